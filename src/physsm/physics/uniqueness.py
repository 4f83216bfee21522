"""Check of Proposition 1: known and unknown parts of the matrices do not overlap.

If every entry has one part, then A and B determine each part. An entry with several parts is
reported, with what to write instead, unless its unknowns are identifiable all the same: from other
entries that hold them, or because they are constants with different known factors. Lifted rows only
repeat, by the chain rule, unknowns of the written rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp

from physsm.physics.formula import product_text, to_text
from physsm.physics.generic import PRIME, GenericPoint, determined_columns, random_residue
from physsm.physics.invariants import orthogonal_directions
from physsm.physics.parse import Kind, Physics
from physsm.physics.structure import Entries, Entry, Overlap, Unknown

MAX_CELLS = 300_000


def find_overlaps(
    physics: Physics,
    names: tuple[str, ...],
    unknowns: dict[sp.Symbol, Unknown],
    A: Entries,
    B: Entries,
    observations: Sequence[Entry],
    conserved: np.ndarray,
) -> tuple[Overlap, ...]:
    """Entries and observations with more than one part.

    `conserved` are weights of the equations' invariants.
    """
    n_written = len(physics.equations)
    columns = {"A": names, "B": tuple(control.name for control in physics.controls)}
    entries = [
        ((matrix, names[i], columns[matrix][j]), i < n_written, entry)
        for matrix, of_matrix in (("A", A), ("B", B))
        for (i, j), entry in of_matrix.items()
        if entry.factors
    ]
    entries += [
        (("observe", observation.name, "1"), True, entry)
        for observation, entry in zip(physics.observations, observations, strict=True)
        if entry.factors
    ]
    shared = [item for item in entries if len(list(item[2].parts())) > 1]
    if not shared:
        return ()
    written = [entry for _, is_written, entry in entries if is_written]
    identified, undecided = _identified_unknowns(
        physics, unknowns, written, conserved[:, :n_written]
    )
    overlaps = []
    for place, is_written, entry in shared:
        is_entry = place[0] != "observe"
        where = f"entry ({place[1]}, {place[2]}) of {place[0]}"
        where = where if is_entry else f"the observation {place[1]}"
        if not is_written:
            reason = "follows by the chain rule: its unknowns are those of other rows"
            overlaps.append(Overlap(*place, True, f"{where} {reason}"))
        elif undecided.intersection(entry.factors):
            reason = "has several parts and shares unknowns with too many entries to decide whether"
            overlaps.append(Overlap(*place, False, f"{where} {reason} they are identifiable"))
        elif identified.issuperset(entry.factors):
            reason = "has several parts, but constants or other entries identify them"
            overlaps.append(Overlap(*place, True, f"{where} {reason}"))
        else:
            advice = _advice(entry, unknowns, place[2] if is_entry else None)
            overlaps.append(Overlap(*place, False, f"{where} {advice}"))
    return tuple(overlaps)


@dataclass(frozen=True)
class _Part:
    """Part of an entry: its unknown (for a known part, its entry) and its factor."""

    entry: int
    unknown: object
    factor: sp.Expr
    kind: Kind


def _identified_unknowns(
    physics: Physics,
    unknowns: dict[sp.Symbol, Unknown],
    entries: Sequence[Entry],
    conserved: np.ndarray,
) -> tuple[set[object], set[object]]:
    """Unknowns that the entries determine, and those for which the check would be too large.

    The entries at several points are linear equations for the unknowns. A varying unknown has a
    different value at each point, a constant the same at all points; a known part beside an unknown
    counts as a constant. For an unknown that is constant per series, the points are those of one
    series, on which conserved quantities have the same value.
    """
    parts = [
        _Part(k, symbol or k, factor, unknowns[symbol].kind if symbol else "constant")
        for k, entry in enumerate(entries)
        for symbol, factor in entry.parts()
    ]
    identified: set[object] = set()
    undecided: set[object] = set()
    for group in _groups(parts):
        constants = {part.unknown for part in group if part.kind != "varying"}
        varying = {part.unknown for part in group} - constants
        n_points = len(constants) + 2
        n_rows = n_points * len({part.entry for part in group})
        if n_rows * (n_points * len(varying) + len(constants)) > MAX_CELLS:
            undecided |= {part.unknown for part in group}
            continue
        series = {part.unknown for part in group if part.kind == "per series"}
        identified |= _determined(group, [GenericPoint(k, {}) for k in range(n_points)]) - series
        if series:
            identified |= _determined(group, _points_of_one_series(physics, n_points, conserved))
    return identified, undecided


def _points_of_one_series(
    physics: Physics, count: int, conserved: np.ndarray
) -> list[GenericPoint]:
    """Points with the same values of the conserved quantities."""
    states = [equation.state for equation in physics.equations]
    directions = orthogonal_directions(conserved)
    points = []
    for seed in range(count):
        values = {state: random_residue("level", state.name) for state in states}
        for k, direction in enumerate(directions):
            length = random_residue("length", k, seed)
            for state, component in zip(states, direction, strict=True):
                inverse = pow(component.denominator, PRIME - 2, PRIME)
                values[state] = (values[state] + component.numerator * inverse * length) % PRIME
        points.append(GenericPoint(seed, values))
    return points


def _determined(group: list[_Part], points: list[GenericPoint]) -> set[object]:
    columns: dict[tuple[object, int | None], int] = {}
    rows: dict[tuple[int, int], int] = {}
    cells: dict[tuple[int, int], int] = {}
    for part in group:
        for k, point in enumerate(points):
            name = (part.unknown, k if part.kind == "varying" else None)
            row = rows.setdefault((part.entry, k), len(rows))
            cells[row, columns.setdefault(name, len(columns))] = point.value(part.factor)
    matrix = np.zeros((len(rows), len(columns)), np.int64)
    for place, value in cells.items():
        matrix[place] = value
    determined = determined_columns(matrix)
    free = {unknown for (unknown, _), column in columns.items() if not determined[column]}
    return {unknown for unknown, _ in columns} - free


def _groups(parts: list[_Part]) -> Iterator[list[_Part]]:
    """Groups of parts linked by shared unknowns or entries, if an entry has several parts."""
    by_entry: dict[int, list[_Part]] = {}
    by_unknown: dict[object, list[_Part]] = {}
    for part in parts:
        by_entry.setdefault(part.entry, []).append(part)
        by_unknown.setdefault(part.unknown, []).append(part)
    seen: set[int] = set()
    for start, members in by_entry.items():
        if len(members) < 2 or start in seen:
            continue
        group, waiting = {start}, [start]
        while waiting:
            for part in by_entry[waiting.pop()]:
                for linked in by_unknown[part.unknown]:
                    if linked.entry not in group:
                        group.add(linked.entry)
                        waiting.append(linked.entry)
        seen |= group
        yield [part for entry in sorted(group) for part in by_entry[entry]]


def _advice(entry: Entry, unknowns: dict[sp.Symbol, Unknown], column: str | None) -> str:
    """What to write instead; `column` is None for an observation, which has no columns."""
    parts = [
        product_text(factor, unknowns[symbol].label) for symbol, factor in entry.factors.items()
    ]
    if column is None:
        known = [to_text(entry.known)] if entry.known != 0 else []
        return (
            f"has the parts {' and '.join(known + parts)}, of which only the sum is identified: "
            "write one unknown for it"
        )
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
