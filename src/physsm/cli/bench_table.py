"""A sheet of results as a table for the terminal."""

from __future__ import annotations

from rich.table import Table

from physsm.benchmark.summary import Sheet, cell_text, headings


def grid_of(sheet: Sheet) -> Table:
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
        grid.add_row(line.label, *cells)
    return grid
