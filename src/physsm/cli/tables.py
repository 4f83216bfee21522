"""Scores and unknowns as tables for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from physsm.cli.output import show
from physsm.metrics._metric import Score, ranking_score, shown_scores
from physsm.report.channel_errors import compare_channels


def score_table(rows: Sequence[dict[str, Any]]) -> Table:
    """One line per model, best first; the best value of each score is bold."""
    keys = {key for row in rows for key in row}
    scores = shown_scores("everywhere", keys)
    table = Table(box=None, header_style="bold")
    table.add_column("model", no_wrap=True)
    for score in scores:
        table.add_column(score.heading, justify="right", no_wrap=True)
    best = {score.key: min(_loss(row, score) for row in rows) for score in scores}
    ranking = ranking_score(keys)
    ranked = rows if ranking is None else sorted(rows, key=lambda row: _loss(row, ranking))
    for row in ranked:
        cells = [_cell(row, score, _loss(row, score) == best[score.key]) for score in scores]
        table.add_row(row["model"], *cells)
    return table


def show_scores(rows: Sequence[dict[str, Any]]) -> None:
    """Print the scores, and the errors by channel where the rows have them."""
    show(score_table(rows))
    if (by_channel := channel_table(rows)) is not None:
        show(by_channel)


def channel_table(rows: Sequence[dict[str, Any]]) -> Table | None:
    """Errors of the first row's model by channel, in the units of the table, beside the best other
    model; None if the scores have none.
    """
    found = compare_channels(list(rows), rows[0]["model"])
    if found is None:
        return None
    more = f", first {len(found.channels)} channels" if found.left_out else ""
    table = Table(box=None, header_style="bold")
    table.add_column(f"extrap, in units of the table{more}", overflow="fold")
    for name in found.models:
        for error in ("MAE", "RMSE"):
            table.add_column(f"{name} {error}", justify="right")
    for name, errors in found.channels.items():
        unit = f" ({errors[0]['unit']})" if errors[0]["unit"] else ""
        values = (value for each in errors for value in (each["mae"], each["rmse"]))
        cells = ("–" if value is None else f"{value:.4g}" for value in values)
        table.add_row(escape(f"{name}{unit}"), *cells)
    return table


def stage_table(stages: Sequence[dict[str, Any]]) -> Table:
    """One line per stage of a fit: its error over the horizon in validation, and its fate."""
    table = Table(box=None, header_style="bold")
    table.add_column("stage of the fit", no_wrap=True)
    table.add_column("validation RMSE over the horizon, scaled", justify="right")
    table.add_column("result", no_wrap=True)
    for stage in stages:
        error = stage["error"]
        value = "–" if error is None else f"{error:.4f}"
        table.add_row(stage["name"], value, "kept" if stage["kept"] else "dropped")
    return table


def _loss(row: dict[str, Any], score: Score) -> float:
    value = row.get(score.key)
    return math.inf if value is None else score.loss(value)


def _cell(row: dict[str, Any], score: Score, is_best: bool) -> str:
    value = row.get(score.key)
    if value is None:
        return "–"
    text = f"{value:.1e}" if 0 < abs(value) < 0.001 else f"{value:.4f}"
    text = f"{value:.0%}" if score.metric.is_share else text
    return f"[bold]{text}[/bold]" if is_best else text


def unknown_table(rows: Sequence[dict[str, Any]]) -> Table:
    """One line per unknown: its learned value, and the true one where a simulation knows it."""
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
