"""The check behind Proposition 1: known and unknown parts of the matrices do not overlap.

If no entry holds two parts, then whoever knows A and B knows each part. An entry with several
parts is reported, with what to write instead, unless its unknowns can be told apart all the same:
by other entries in which they stand, or because they are constants with different known factors.
Lifted rows only repeat, by the chain rule, unknowns of the written rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp

from physsm.physics.formula import product_text, to_text
from physsm.physics.parse import Physics
from physsm.physics.program import compile_program, run_program
from physsm.physics.structure import Entries, Entry, Overlap, Unknown

_MAX_COLUMNS = 1500
_TOLERANCE = 1e-8


def find_overlaps(
    physics: Physics,
    names: tuple[str, ...],
    unknowns: dict[sp.Symbol, Unknown],
    A: Entries,
    B: Entries,
) -> tuple[Overlap, ...]:
    """Every entry with more than one part."""
    n_written = len(physics.equations)
    columns = {"A": names, "B": tuple(control.name for control in physics.controls)}
    entries = [
        ((matrix, names[i], columns[matrix][j]), i < n_written, entry)
        for matrix, of_matrix in (("A", A), ("B", B))
        for (i, j), entry in of_matrix.items()
        if entry.factors
    ]
    shared = [item for item in entries if len(list(item[2].parts())) > 1]
    if not shared:
        return ()
    written = [entry for _, is_written, entry in entries if is_written]
    told_apart = _told_apart(physics, unknowns, written)
    overlaps = []
    for place, is_written, entry in shared:
        where = f"entry ({place[1]}, {place[2]}) of {place[0]}"
        if not is_written:
            reason = "follows by the chain rule: its unknowns are those of other rows"
            overlaps.append(Overlap(*place, True, f"{where} {reason}"))
        elif told_apart.issuperset(entry.factors):
            reason = "has several parts, but constants or other entries tell them apart"
            overlaps.append(Overlap(*place, True, f"{where} {reason}"))
        else:
            advice = _advice(entry, unknowns, place[2])
            overlaps.append(Overlap(*place, False, f"{where} {advice}"))
    return tuple(overlaps)


@dataclass(frozen=True)
class _Part:
    """One part of an entry: which unknown (or, for a known part, which entry) and its factor."""

    entry: int
    unknown: object
    factor: sp.Expr
    varies: bool


def _told_apart(
    physics: Physics, unknowns: dict[sp.Symbol, Unknown], entries: Sequence[Entry]
) -> set[object]:
    """The unknowns that the entries determine, given the entries at several random points.

    The entries are linear in the unknowns. An unknown that varies may have another value at each
    point, a constant has the same; a known part beside an unknown counts as a constant. An unknown
    is determined if no null vector of this linear system touches it.
    """
    parts = _connected(
        [
            _Part(k, symbol or k, factor, symbol is not None and unknowns[symbol].kind == "varying")
            for k, entry in enumerate(entries)
            for symbol, factor in entry.parts()
        ]
    )
    constants = {part.unknown for part in parts if not part.varies}
    varying = {part.unknown for part in parts if part.varies}
    n_points = len(constants) + 2
    if not parts or n_points * len(varying) + len(constants) > _MAX_COLUMNS:
        return set()
    values = _factor_values(physics, parts, n_points)
    values = values[:, np.isfinite(values).all(axis=0)]
    if not values.size:
        return set()
    columns: dict[tuple[object, int | None], int] = {}
    rows: dict[object, int] = {}
    cells = []
    for part, at_points in zip(parts, values, strict=True):
        for point, value in enumerate(at_points):
            column = (part.unknown, point if part.varies else None)
            row = rows.setdefault((part.entry, point), len(rows))
            cells.append((row, columns.setdefault(column, len(columns)), value))
    matrix = np.zeros((max(len(rows), len(columns)), len(columns)))
    for row, column, value in cells:
        matrix[row, column] = value
    matrix /= np.maximum(np.abs(matrix).max(axis=0, initial=0), 1e-300)
    _, sizes, directions = np.linalg.svd(matrix)
    null_space = directions[sizes <= _TOLERANCE * sizes.max(initial=1)]
    touched = np.abs(null_space).max(axis=0, initial=0) > _TOLERANCE
    free = {unknown for (unknown, _), column in columns.items() if touched[column]}
    return {unknown for unknown, _ in columns} - free


def _connected(parts: list[_Part]) -> list[_Part]:
    """The parts that have to do with an entry of several parts, directly or through others."""
    by_entry: dict[int, list[_Part]] = {}
    by_unknown: dict[object, list[_Part]] = {}
    for part in parts:
        by_entry.setdefault(part.entry, []).append(part)
        by_unknown.setdefault(part.unknown, []).append(part)
    waiting = [entry for entry, members in by_entry.items() if len(members) > 1]
    seen = set(waiting)
    while waiting:
        for part in by_entry[waiting.pop()]:
            for other in by_unknown[part.unknown]:
                if other.entry not in seen:
                    seen.add(other.entry)
                    waiting.append(other.entry)
    return [part for part in parts if part.entry in seen]


def _factor_values(physics: Physics, parts: list[_Part], n_points: int) -> np.ndarray:
    """The factors at random points, shape (parts, points)."""
    states = [equation.state for equation in physics.equations]
    program = compile_program([part.factor for part in parts], [*states, *physics.controls])
    random = np.random.default_rng(0)
    points = random.uniform(0.4, 1.9, (len(states) + len(physics.controls), n_points))
    with np.errstate(all="ignore"):
        values = run_program(program, list(points), np)
    return np.stack([np.broadcast_to(value, n_points) for value in values])


def _advice(entry: Entry, unknowns: dict[sp.Symbol, Unknown], column: str) -> str:
    parts = [
        product_text(factor, unknowns[symbol].label) for symbol, factor in entry.factors.items()
    ]
    tail = "" if column == "1" else f"*{column}"
    only_the_sum = "only their sum is identified, so Proposition 1 does not hold here; "
    if entry.known != 0:
        return (
            f"has a known part {to_text(entry.known)} and an unknown part {' + '.join(parts)}: "
            f"{only_the_sum}leave the known part out and let ?{tail} learn the whole"
        )
    varying = [s for s in entry.factors if unknowns[s].kind == "varying"]
    named = ", ".join(unknowns[s].label for s in varying if not unknowns[s].anonymous)
    constants = f"; if they are numbers, write 'unknown {named} constant'" if named else ""
    return (
        f"has {len(parts)} unknown parts, {' and '.join(parts)}: {only_the_sum}"
        f"write one unknown, ?{tail}, or give one part another last factor{constants}"
    )
