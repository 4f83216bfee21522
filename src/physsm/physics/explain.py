"""Descriptions of a structure: terminal tables, LaTeX, JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import sympy as sp
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from physsm.physics.formula import (
    product_latex,
    product_text,
    sum_text,
    to_latex,
    to_text,
)
from physsm.physics.structure import Entries, Entry, Place, Structure, Unknown

KNOWN, UNKNOWN, ZERO, HEADING = "cyan", "bold yellow", "bright_black", "bold"
_MARKS = {KNOWN: "k", UNKNOWN: "?", ZERO: "0"}

Cell = Callable[[Entry], str]


def describe(structure: Structure) -> dict[str, Any]:
    """Lifted system as plain values, ready for JSON."""
    physics = structure.physics
    return {
        "summary": physics.summary,
        "text": structure.text,
        "states": [state.name for state in structure.states],
        "names": list(structure.names),
        "controls": list(structure.controls),
        "holds": physics.holds,
        "observed": list(structure.observed),
        "observations": _observed_texts(structure),
        "constants": physics.constants,
        "units": physics.units,
        "state_constraints": [b.describe(name) for name, b in physics.state_bounds.items()],
        "equations": lifted_equations(structure),
        "unknowns": [_describe_unknown(unknown) for unknown in structure.unknowns],
        "mask_A": structure.mask("A").astype(int).tolist(),
        "mask_B": structure.mask("B").astype(int).tolist(),
        "known_A": _matrix(structure, "A", lambda entry: to_text(entry.known)),
        "known_B": _matrix(structure, "B", lambda entry: to_text(entry.known)),
        "invariants": list(structure.invariant_texts),
        "invariant_weights": structure.invariants.tolist(),
        "unique": structure.is_unique,
        "warnings": list(structure.warnings),
        "notes": list(structure.notes),
    }


def lifted_equations(structure: Structure) -> list[str]:
    """Equation of each extended state as text; the column is the last factor of each term."""
    labels = _labels(structure)
    equations = []
    for i, name in enumerate(structure.names):
        terms: list[str] = []
        for entries, columns in _sides(structure):
            for (row, j), entry in entries.items():
                if row == i:
                    terms += _terms(entry, columns[j], labels)
        left = f"{name}'" if name.isidentifier() else f"({name})'"
        equations.append(f"{left} = {sum_text(terms)}")
    return equations


def learned_equations(structure: Structure, values: Mapping[str, float]) -> list[str]:
    """Equations of the written states, with the values of the unknowns to three digits."""
    numbers = {
        symbol: sp.Rational(f"{values[unknown.name]:.3g}")
        for symbol, unknown in zip(structure.symbols, structure.unknowns, strict=True)
    }
    equations = []
    for i, state in enumerate(structure.states):
        terms: list[str] = []
        for entries, columns in _sides(structure):
            for (row, j), entry in entries.items():
                if row == i:
                    parts = [factor * numbers[s] for s, factor in entry.factors.items()]
                    terms += _terms(Entry(sp.Add(entry.known, *parts)), columns[j], {})
        equations.append(f"{state}' = {sum_text(terms)}")
    return equations


def latex(structure: Structure) -> str:
    """Lifted system as a LaTeX formula (a matrix equation); a star marks the unknowns."""
    stars = {
        symbol: r"\star" if unknown.anonymous else f"{to_latex(sp.Symbol(unknown.name))}^{{\\star}}"
        for symbol, unknown in zip(structure.symbols, structure.unknowns, strict=True)
    }

    def cell(entry: Entry) -> str:
        known = [to_latex(entry.known)] if entry.known != 0 else []
        return sum_text(known + [product_latex(f, stars[s]) for s, f in entry.factors.items()])

    state = _latex_array([[to_latex(column)] for column in structure.extended])
    formula = rf"\frac{{d}}{{dt}} {state} = {_latex_array(_matrix(structure, 'A', cell))} {state}"
    if structure.B:
        controls = _latex_array([[to_latex(control)] for control in structure.physics.controls])
        formula += f" + {_latex_array(_matrix(structure, 'B', cell))} {controls}"
    for name, state, entry in _observations(structure):
        if state < 0:
            formula += rf", \qquad {to_latex(sp.Symbol(name))} = {cell(entry)}"
    return formula


def render(structure: Structure, title: str) -> RenderableType:
    """Lifted system as tables for a terminal."""
    parts: list[RenderableType] = [Text(title, style=HEADING)]
    if structure.physics.summary:
        parts.append(Text(structure.physics.summary))
    parts += _section("Lifted equations", _equation_grid(structure))
    parts += _section("State matrix A", _MatrixTable(structure, "A"))
    if structure.B:
        parts += _section("Input matrix B", _MatrixTable(structure, "B"))
    elif structure.controls:
        parts += _section("Input matrix B", Text("zero: no term has a control as its column"))
    if min(structure.observed_states, default=0) < 0:
        parts += _section("Observations", _observation_grid(structure))
    if structure.unknowns:
        parts += _section("Unknowns", _unknown_table(structure))
    if declared := _declared(structure):
        parts += _section("Declared", declared)
    parts += _section("Guarantees", *_guarantees(structure))
    return Group(*parts)


def _describe_unknown(unknown: Unknown) -> dict[str, Any]:
    return {
        "name": unknown.name,
        "kind": unknown.kind,
        "constraint": unknown.constraint or None,
        "lower": unknown.bounds.lower,
        "upper": unknown.bounds.upper,
        "guess": unknown.guess,
        "entries": [
            {"matrix": p.matrix, "row": p.row, "column": p.column, "factor": p.factor}
            for p in unknown.places
        ],
    }


def _observations(structure: Structure) -> list[tuple[str, int, Entry]]:
    """Name, state (or -1) and value of each observed channel."""
    return list(
        zip(structure.observed, structure.observed_states, structure.observations, strict=True)
    )


def _observed_texts(structure: Structure) -> dict[str, str]:
    text = _entry_text(structure)
    return {name: text(entry) for name, _, entry in _observations(structure)}


def _labels(structure: Structure) -> dict[sp.Symbol, str]:
    return {
        symbol: unknown.label
        for symbol, unknown in zip(structure.symbols, structure.unknowns, strict=True)
    }


def _sides(structure: Structure) -> list[tuple[Entries, tuple[str, ...]]]:
    return [(structure.A, structure.names), (structure.B, structure.controls)]


def _terms(entry: Entry, column: str, labels: dict[sp.Symbol, str]) -> list[str]:
    terms = [product_text(f, labels[s]) for s, f in entry.factors.items()]
    if column == "1":
        return ([to_text(entry.known)] if entry.known != 0 else []) + terms
    factor = f"({column})" if column.startswith("1/") else column
    if entry.known == 1:
        return [column, *(f"{term}*{factor}" for term in terms)]
    known = [product_text(entry.known, factor)] if entry.known != 0 else []
    return known + [f"{term}*{factor}" for term in terms]


def _entry_text(structure: Structure) -> Cell:
    labels = _labels(structure)

    def text(entry: Entry) -> str:
        return sum_text(_terms(entry, "1", labels))

    return text


def _matrix(structure: Structure, matrix: str, cell: Cell) -> list[list[str]]:
    entries, columns = _sides(structure)[matrix == "B"]
    empty = Entry()
    return [
        [cell(entries.get((i, j), empty)) for j in range(len(columns))]
        for i in range(len(structure.names))
    ]


def _latex_array(rows: list[list[str]]) -> str:
    body = r" \\ ".join(" & ".join(row) for row in rows)
    return rf"\left[\begin{{array}}{{{'c' * len(rows[0])}}} {body} \end{{array}}\right]"


def _section(heading: str, *content: RenderableType) -> list[RenderableType]:
    return [Text(""), Text(heading, style=HEADING), *(Padding(part, (0, 2)) for part in content)]


def _grid() -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def _equation_grid(structure: Structure) -> Table:
    grid = _grid()
    for equation in lifted_equations(structure):
        left, right = equation.split(" = ", 1)
        grid.add_row(Text(left), Text(f"= {right}"))
    return grid


def _observation_grid(structure: Structure) -> Table:
    grid = _grid()
    texts = _observed_texts(structure)
    for name, state, _ in _observations(structure):
        grid.add_row(Text(name), Text("is a state" if state >= 0 else f"= {texts[name]}"))
    return grid


class _MatrixTable:
    """Matrix of entries or, where the terminal is too narrow, of one mark for each entry."""

    def __init__(self, structure: Structure, matrix: str):
        self.has_legend = matrix == "A"
        controls = enumerate(structure.controls, start=1)
        self.columns = "" if matrix == "A" else ", ".join(f"{j} {name}" for j, name in controls)
        self.full = _matrix_table(structure, matrix, compact=False)
        self.compact = _matrix_table(structure, matrix, compact=True)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self.full)

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        wide = options.update(width=10_000)
        fits = Measurement.get(console, wide, self.full).maximum <= options.max_width
        yield self.full if fits else self.compact
        if not fits and self.columns:
            yield Text(f"columns: {self.columns}", style=ZERO)
        if self.has_legend:
            yield _legend("known" if fits else "k known, as in the equations above")


def _matrix_table(structure: Structure, matrix: str, compact: bool) -> Table:
    entries, columns = _sides(structure)[matrix == "B"]
    table = Table(box=None, padding=(0, 1), header_style=ZERO)
    table.add_column("", justify="right", style=ZERO, no_wrap=True)
    for j, column in enumerate(columns, start=1):
        table.add_column(Text(str(j) if compact else column), justify="center", no_wrap=True)
    for i, row in enumerate(_matrix(structure, matrix, _entry_text(structure))):
        cells = []
        for j, text in enumerate(row):
            style = _style(entries.get((i, j)))
            cells.append(Text(_MARKS[style] if compact else text, style=style))
        number = f" {i + 1}" if compact else ""
        table.add_row(Text(structure.names[i] + number), *cells)
    return table


def _style(entry: Entry | None) -> str:
    if entry is None:
        return ZERO
    return UNKNOWN if entry.factors else KNOWN


def _legend(known: str) -> Text:
    return Text.assemble(
        (known, KNOWN), "  ", ("? learned", UNKNOWN), "  ", ("0 always zero", ZERO)
    )


def _unknown_table(structure: Structure) -> Table:
    table = Table(box=None, padding=(0, 1), header_style=ZERO)
    has_guess = any(unknown.guess is not None for unknown in structure.unknowns)
    guess_heading = ("guess",) if has_guess else ()
    for heading in ("unknown", "kind", "constraint", *guess_heading, "entries"):
        table.add_column(heading, overflow="fold")
    for unknown in structure.unknowns:
        guess = "-" if unknown.guess is None else f"{unknown.guess:g}"
        table.add_row(
            Text(unknown.name, style=UNKNOWN),
            unknown.kind,
            Text(unknown.constraint or "-"),
            *([guess] if has_guess else []),
            Text(", ".join(map(_place_text, unknown.places))),
        )
    return table


def _place_text(place: Place) -> str:
    is_entry = place.matrix != "observe"
    where = f"{place.matrix}[{place.row}, {place.column}]" if is_entry else f"observed {place.row}"
    return where if place.factor == "1" else f"{where} times {place.factor}"


def _declared(structure: Structure) -> Text | None:
    physics = structure.physics
    declared = {
        "measured directly": [n for n, state, _ in _observations(structure) if state >= 0],
        "holds": [f"{name} {hold}" for name, hold in physics.holds.items()],
        "bounds": [bounds.describe(name) for name, bounds in physics.state_bounds.items()],
        "constants": [f"{name} = {value:g}" for name, value in physics.constants.items()],
        "units": [f"{name} in {unit}" for name, unit in physics.units.items()],
    }
    lines = [f"{what}: {', '.join(values)}" for what, values in declared.items() if values]
    return Text("\n".join(lines)) if lines else None


def _guarantees(structure: Structure) -> list[RenderableType]:
    lines = []
    for text in structure.invariant_texts:
        lines.append(Text(f"{text} is conserved for all values of the unknowns"))
    if structure.is_unique:
        disjoint = "are identifiable" if structure.overlaps else "do not overlap"
        lines.append(Text(f"known and unknown parts {disjoint} (Proposition 1)"))
    lines += [Text(f"warning: {message}", style="bold red") for message in structure.warnings]
    lines += [Text(f"note: {message}", style=ZERO) for message in structure.notes]
    return lines
