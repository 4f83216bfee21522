"""Tables of `physsm bench` for the terminal: experiments, parameter counts, results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from physsm.benchmark.summary import Sheet, cell_text, headings


def experiment_grid(experiments: Sequence[Mapping[str, Any]]) -> Table:
    """One line per experiment: its name, title, data sets and models."""
    grid = Table(box=None, header_style="bold")
    for head in ("table", "title", "data", "models"):
        grid.add_column(head, no_wrap=head == "table")
    for one in experiments:
        grid.add_row(one["name"], one["title"], ", ".join(one["data"]), ", ".join(one["models"]))
    return grid


def parameter_grid(rows: Sequence[Mapping[str, Any]]) -> Table:
    """One line per row of an experiment, with its parameter count."""
    grid = Table(box=None, header_style="bold")
    for head in ("row", "model", "configuration", "parameters"):
        grid.add_column(head, no_wrap=True, justify="right" if head == "parameters" else "left")
    for row in rows:
        count = row["parameters"]
        shown = "" if count is None else f"{count:,}"
        grid.add_row(row["row"], row["model"], row["configuration"] or "", shown)
    return grid


def sheet_grid(sheet: Sheet) -> Table:
    """One line per model, best first; the best of each column is bold."""
    grid = Table(box=None, header_style="bold")
    grid.add_column("model", no_wrap=True)
    for heading in headings(sheet):
        grid.add_column(heading, justify="right", no_wrap=True)
    for line in sheet.lines:
        cells = []
        for name in sheet.columns:
            cell = line.cells[name]
            is_best = cell is not None and cell.is_best
            cells.append(f"[bold]{cell_text(cell)}[/bold]" if is_best else cell_text(cell))
        grid.add_row(line.marked_label, *cells)
    return grid
