"""The section of scores: the model beside the others, and plain words when one of them wins."""

from __future__ import annotations

import math

from physsm.report.contents import Contents, Number, Score
from physsm.report.markup import Column, brief, escape, is_finite, number, share, table

_ERRORS = {
    "extrap_mae": "extrapolation MAE",
    "extrap_mse": "extrapolation MSE",
    "interp_mae": "interpolation MAE",
    "interp_mse": "interpolation MSE",
}


def best_row(scores: list[Score]) -> Score | None:
    """The row of the smallest extrapolation MAE, if any row has one."""
    best = min(scores, key=lambda row: _sortable(row["extrap_mae"]), default=None)
    return best if best and math.isfinite(_sortable(best["extrap_mae"])) else None


def scores_section(contents: Contents) -> str:
    """The table, best first, and a sentence on who is best."""
    scores = sorted(contents["scores"], key=lambda row: _sortable(row["extrap_mae"]))
    if not scores:
        return "<section id=scores>\n<h2>Scores</h2>\n<p>No scores were kept.</p>\n</section>"
    wanted, model = contents["coverage_wanted"], contents["model"]
    columns = [
        Column("Model"),
        *(Column(_capital(name), is_number=True) for name in _ERRORS.values()),
        Column(f"Coverage (wanted: {share(wanted)})", is_number=True),
    ]
    cells = [_error_column([row[key] for row in scores]) for key in _ERRORS]
    cells.append(_coverage_column([row["coverage"] for row in scores], wanted))
    rows = [[escape(row["model"]), *values] for row, *values in zip(scores, *cells, strict=True)]
    ours = next((i for i, row in enumerate(scores) if row["model"] == model), None)
    parts = [
        _finding(scores, scores[ours]) if ours is not None else "",
        table(columns, rows, marked=ours),
        "<p class=note>Extrapolation is past the context, interpolation one step ahead inside it. "
        "MAE and MSE are mean absolute and mean squared errors, smaller is better. Coverage is the "
        "share of measurements inside their interval. The best of each column is bold.</p>",
    ]
    body = "\n".join(part for part in parts if part)
    return f"<section id=scores>\n<h2>Scores</h2>\n{body}\n</section>"


def _finding(scores: list[Score], ours: Score) -> str:
    """One sentence: in what another row beats ours, or that none does."""
    name = escape(ours["model"])
    wins: dict[str, list[str]] = {}
    for key, error in _ERRORS.items():
        best = min(scores, key=lambda row: _sortable(row[key]))
        if _sortable(best[key]) < _sortable(ours[key]):
            win = f"{error} ({brief(best[key])} against {brief(ours[key])})"
            wins.setdefault(best["model"], []).append(win)
    if wins:
        beaten = "; ".join(
            f"{escape(winner)} has the smaller {_listed(errors)}" for winner, errors in wins.items()
        )
        return f'<p class="finding beaten">{name} is not the best in every column: {beaten}.</p>'
    if len(scores) == 1 or not all(math.isfinite(_sortable(ours[key])) for key in _ERRORS):
        return ""
    return f"<p class=finding>No other row has a smaller error than {name} in any column.</p>"


def _error_column(errors: list[Number]) -> list[str]:
    return _best_bold([number(e) for e in errors], [_sortable(e) for e in errors])


def _coverage_column(coverages: list[Number], wanted: Number) -> list[str]:
    off = [
        math.inf if c is None or wanted is None else abs(_sortable(c) - _sortable(wanted))
        for c in coverages
    ]
    return _best_bold([share(c) for c in coverages], off)


def _best_bold(texts: list[str], sizes: list[float]) -> list[str]:
    best = min(sizes)
    return [
        f"<strong>{text}</strong>" if size == best and math.isfinite(size) else text
        for text, size in zip(texts, sizes, strict=True)
    ]


def _sortable(error: Number) -> float:
    """The error as a float; one that is missing or not finite comes after all others."""
    return math.inf if error is None or not is_finite(error) else float(error)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
