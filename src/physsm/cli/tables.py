"""Scores and unknowns as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

_SCORES = ("interp_mae", "interp_mse", "extrap_mae", "extrap_mse")
_SOME = {  # scores that only some data sets have, and their headings
    "extrap_mae_debiased": "debiased mae",
    "in_ade": "ADE",
    "in_fde": "FDE",
    "out_ade": "late ADE",
    "out_fde": "late FDE",
}


def score_table(rows: Sequence[dict[str, Any]]) -> Table:
    """One line per model, best first; the best of each column is bold."""
    table = Table(box=None, header_style="bold")
    table.add_column("model", no_wrap=True)
    shown = [*_SCORES, *(name for name in _SOME if any(name in row for row in rows))]
    headings = [_SOME.get(name, name.replace("_", " ")) for name in shown]
    for heading in (*headings, "in 90%"):
        table.add_column(heading, justify="right", no_wrap=True)
    best = {
        name: min((r[name] for r in rows if r.get(name) is not None), default=None)
        for name in shown
    }
    for row in sorted(rows, key=lambda row: (row["extrap_mae"] is None, row["extrap_mae"])):
        cells = [_cell(row.get(name), row.get(name) == best[name]) for name in shown]
        cover = row.get("coverage")
        table.add_row(row["model"], *cells, "" if cover is None else f"{cover:.0%}")
    return table


def unknown_table(rows: Sequence[dict[str, Any]]) -> Table:
    """One line per unknown: what was found, and the truth where it is known."""
    has_truth = any(row.get("true") is not None for row in rows)
    table = Table(box=None, header_style="bold")
    table.add_column("unknown", no_wrap=True)
    for name in ("learned", "90% interval", *(("true", "error") if has_truth else ())):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        has_interval = row["lower"] is not None and row["upper"] is not None
        interval = f"{row['lower']:.4g} … {row['upper']:.4g}" if has_interval else "–"
        cells = [f"{row['value']:.4g}", interval]
        if has_truth:
            true = row.get("true")
            error = "" if not true else f"{row['value'] / true - 1:+.1%}"
            cells += ["" if true is None else f"{true:.4g}", error]
        table.add_row(row["name"], *cells)
    return table


def _cell(value: float | None, is_best: bool) -> str:
    if value is None:
        return "–"
    text = f"{value:.1e}" if 0 < abs(value) < 0.001 else f"{value:.4f}"
    return f"[bold]{text}[/bold]" if is_best else text
