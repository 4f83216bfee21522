"""Scores and unknowns as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

_SCORES = ("interp_mae", "interp_mse", "extrap_mae", "extrap_mse")


def score_table(rows: Sequence[dict[str, Any]]) -> Table:
    """One line per model, best first; the best of each column is bold."""
    table = Table(box=None, header_style="bold")
    table.add_column("model", no_wrap=True)
    for name in (*_SCORES, "coverage"):
        table.add_column(name.replace("_", " "), justify="right", no_wrap=True)
    best = {
        name: min((r[name] for r in rows if r[name] is not None), default=None) for name in _SCORES
    }
    for row in sorted(rows, key=lambda row: (row["extrap_mae"] is None, row["extrap_mae"])):
        cells = [_cell(row[name], row[name] == best[name]) for name in _SCORES]
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
        cells = [f"{row['value']:.4g}", f"{row['lower']:.4g} … {row['upper']:.4g}"]
        if has_truth:
            true = row.get("true")
            error = "" if not true else f"{row['value'] / true - 1:+.1%}"
            cells += ["" if true is None else f"{true:.4g}", error]
        table.add_row(row["name"], *cells)
    return table


def _cell(value: float | None, is_best: bool) -> str:
    if value is None:
        return "–"
    return f"[bold]{value:.4f}[/bold]" if is_best else f"{value:.4f}"
