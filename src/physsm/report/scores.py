"""Section of scores: the model beside the others, and a sentence on those that beat it."""

from __future__ import annotations

import math

from physsm.metrics._metric import Score, ranking_score, shown_scores
from physsm.report.channel_errors import channel_section
from physsm.report.contents import Contents, ScoreRow
from physsm.report.markup import Column, brief, escape, number, share, table
from physsm.report.ranking import loss, ranked, score_keys


def best_score(rows: list[ScoreRow]) -> tuple[ScoreRow, Score] | None:
    """The best model and the score that decides, if any model has a value of it."""
    ranking = ranking_score(score_keys(rows))
    if ranking is None:
        return None
    best = min(rows, key=lambda row: loss(row, ranking))
    return (best, ranking) if math.isfinite(loss(best, ranking)) else None


def scores_section(contents: Contents) -> str:
    """The table, best first, and a sentence on the best models."""
    rows, model = ranked(contents["scores"]), contents["model"]
    if not rows:
        return "<section id=scores>\n<h2>Scores</h2>\n<p>This run has no scores.</p>\n</section>"
    scores = shown_scores("everywhere", score_keys(rows))
    columns = [
        Column("Model"),
        *(Column(_capital(score.heading), is_number=True) for score in scores),
    ]
    cells = [_cells(rows, score) for score in scores]
    lines = [[escape(row["model"]), *values] for row, *values in zip(rows, *cells, strict=True)]
    ours = next((i for i, row in enumerate(rows) if row["model"] == model), None)
    parts = [
        _finding(rows, rows[ours], scores) if ours is not None else "",
        table(columns, lines, marked=ours),
        f"<p class=note>{_explanation(scores)}</p>",
        channel_section(rows, model),
    ]
    body = "\n".join(part for part in parts if part)
    return f"<section id=scores>\n<h2>Scores</h2>\n{body}\n</section>"


def _explanation(scores: list[Score]) -> str:
    """Sentences below the table: the parts of a window, and what each metric is."""
    sentences = []
    for metric in dict.fromkeys(score.metric for score in scores):
        headings = [score.column.heading for score in scores if score.metric is metric]
        if isinstance(metric.direction, str):
            better = f"{metric.direction} is better"
        else:
            wanted = share(metric.direction) if metric.is_share else brief(metric.direction)
            better = f"{wanted} is best"
        sentence = f"{_capital(_listed(headings))}: {metric.description}; {better}."
        sentences.append(escape(sentence))
    return (
        "Interp is one step ahead inside the context, extrap is past the context. "
        f"{' '.join(sentences)} The best value of each column is bold."
    )


def _finding(rows: list[ScoreRow], ours: ScoreRow, scores: list[Score]) -> str:
    """One sentence: the errors in which other models beat ours, or that none does."""
    name = escape(ours["model"])
    errors = [score for score in scores if score.is_error]
    wins: dict[str, list[str]] = {}
    for score in errors:
        best = min(rows, key=lambda row: loss(row, score))
        if loss(best, score) < loss(ours, score):
            values = f"{brief(best[score.key])} against {brief(ours.get(score.key))}"
            wins.setdefault(best["model"], []).append(f"{escape(score.heading)} ({values})")
    if wins:
        beaten = "; ".join(
            f"{escape(winner)} has the better {_listed(each)}" for winner, each in wins.items()
        )
        return f'<p class="finding beaten">{name} is not the best in every column: {beaten}.</p>'
    if len(rows) == 1 or not all(math.isfinite(loss(ours, score)) for score in errors):
        return ""
    return f"<p class=finding>No other model has a better error than {name} in any column.</p>"


def _cells(rows: list[ScoreRow], score: Score) -> list[str]:
    """The column of a score, the best value bold."""
    show = share if score.metric.is_share else number
    return _best_bold(
        [show(row.get(score.key)) for row in rows], [loss(row, score) for row in rows]
    )


def _best_bold(texts: list[str], losses: list[float]) -> list[str]:
    best = min(losses)
    return [
        f"<strong>{text}</strong>" if each == best and math.isfinite(each) else text
        for text, each in zip(texts, losses, strict=True)
    ]


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
