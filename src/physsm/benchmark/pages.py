"""Summaries of benchmarks as Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from physsm.benchmark.summary import Line, Sheet, cell_text, headings


def to_markdown(sheets: Sequence[Sheet]) -> str:
    """One section with a table for each sheet."""
    return "\n".join(_markdown_sheet(sheet) for sheet in sheets)


def to_latex(sheets: Sequence[Sheet]) -> str:
    """One `tabular` for each sheet; it needs the package booktabs."""
    return "\n".join(_latex_sheet(sheet) for sheet in sheets)


def title(sheet: Sheet) -> str:
    """Title of a sheet: data set, protocol, number of test windows and budget."""
    windows = "window" if sheet.test_windows == 1 else "windows"
    budget = "" if sheet.budget == "cpu" else f", budget {sheet.budget}"
    return f"{sheet.dataset}, {sheet.protocol} ({sheet.test_windows:,} test {windows}{budget})"


def explanation(sheet: Sheet) -> str:
    """Sentences below a title: the scale of the errors, seeds, published values and notes."""
    seeds = max(line.seeds for line in sheet.lines)
    remarks = ""
    if seeds > 1:
        is_single = any(line.seeds == 1 for line in sheet.lines)
        others = "; models without ± have one seed" if is_single else ""
        remarks = f" Mean ± standard deviation of {seeds} seeds{others}."
    if any(
        cell and cell.published is not None for line in sheet.lines for cell in line.cells.values()
    ):
        remarks += " Published values are in brackets."
    if sheet.interp_windows < sheet.test_windows:
        remarks += (
            " One step ahead (interp), models that encode a window as a whole (those with a window "
            f"score) are scored on {sheet.interp_windows} of the windows."
        )
    if any(line.saw_all_windows for line in sheet.lines):
        remarks += (
            " † Trained on all windows of the training series, not on the protocol's alone: where "
            "training and test share a series, test windows are among them."
        )
    notes = "".join(f" {note}" for note in sheet.notes)
    return f"Errors are in units of {sheet.unit_of_errors}.{remarks}{notes}"


def _cells(sheet: Sheet, line: Line, bold: Callable[[str], str]) -> list[str]:
    texts = []
    for name in sheet.columns:
        cell = line.cells[name]
        text = cell_text(cell)
        texts.append(bold(text) if cell is not None and cell.is_best else text)
    return texts


def _code(line: Line) -> str:
    """The label as code in Markdown, its mark behind it."""
    return f"`{line.label}`" + line.marked_label.removeprefix(line.label)


def _markdown_sheet(sheet: Sheet) -> str:
    heads = ["model", *headings(sheet)]
    rows = [[_code(line), *_cells(sheet, line, lambda text: f"**{text}**")] for line in sheet.lines]
    lines = [
        f"### {title(sheet)}\n",
        f"{explanation(sheet)}\n",
        "| " + " | ".join(heads) + " |",
        "|---|" + "---:|" * len(sheet.columns),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _latex_sheet(sheet: Sheet) -> str:
    heads = ["model", *headings(sheet)]
    rows = [
        [line.marked_label, *_cells(sheet, line, lambda text: f"\\textbf{{{text}}}")]
        for line in sheet.lines
    ]
    lines = [
        f"% {title(sheet)}. {explanation(sheet)}",
        f"\\begin{{tabular}}{{l{'r' * len(sheet.columns)}}}",
        "\\toprule",
        _latex_row(heads),
        "\\midrule",
        *(_latex_row(row) for row in rows),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _latex_row(cells: Sequence[str]) -> str:
    escaped = (re.sub(r"([_%&#])", r"\\\1", cell).replace("±", "$\\pm$") for cell in cells)
    escaped = (re.sub(r"(\d)e([+-]\d+)", _power_of_ten, cell) for cell in escaped)
    return " & ".join(cell.replace("–", "--") for cell in escaped) + r" \\"


def _power_of_ten(match: re.Match[str]) -> str:
    return f"{match[1]}$\\cdot 10^{{{int(match[2])}}}$"
