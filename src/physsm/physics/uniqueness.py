"""The check behind Proposition 1: known and unknown parts of the matrices do not overlap.

If no entry holds two parts, then whoever knows A and B knows each part. An entry with several
parts is reported, with what to write instead, unless its parts can be told apart for another
reason: they are constants with different known factors, or the row only repeats, by the chain
rule, unknowns of a written row.
"""

from __future__ import annotations

import sympy as sp
from sympy.polys.domains import QQ
from sympy.polys.matrices import DomainMatrix

from physsm.physics.formula import product_text, to_text
from physsm.physics.invariants import monomials
from physsm.physics.parse import Physics
from physsm.physics.structure import Entries, Entry, Overlap, Unknown


def find_overlaps(
    physics: Physics,
    names: tuple[str, ...],
    unknowns: dict[sp.Symbol, Unknown],
    A: Entries,
    B: Entries,
) -> tuple[Overlap, ...]:
    """Every entry with more than one part."""
    overlaps = []
    written_rows = len(physics.equations)
    columns = {"A": names, "B": tuple(control.name for control in physics.controls)}
    for matrix, entries in (("A", A), ("B", B)):
        for (i, j), entry in entries.items():
            if len(list(entry.parts())) < 2:
                continue
            place = (matrix, names[i], columns[matrix][j])
            where = f"entry ({place[1]}, {place[2]}) of {matrix}"
            if i >= written_rows:
                message = f"{where} follows by the chain rule: its unknowns are those of other rows"
                overlaps.append(Overlap(*place, True, message))
            elif _are_separable_constants(entry, unknowns):
                message = (
                    f"{where} has several parts, but they are constants with different factors"
                )
                overlaps.append(Overlap(*place, True, message))
            else:
                message = f"{where} {_advice(entry, unknowns, place[2])}"
                overlaps.append(Overlap(*place, False, message))
    return tuple(overlaps)


def _are_separable_constants(entry: Entry, unknowns: dict[sp.Symbol, Unknown]) -> bool:
    """Whether all unknowns here are numbers, and all parts have linearly independent factors."""
    if any(unknowns[symbol].kind == "varying" for symbol in entry.factors):
        return False
    rows = [monomials(value) for _, value in entry.parts()]
    index = {monomial: j for j, monomial in enumerate({m: None for row in rows for m in row})}
    matrix = DomainMatrix(
        {i: {index[m]: QQ(c.p, c.q) for m, c in row.items()} for i, row in enumerate(rows)},
        (len(rows), len(index)),
        QQ,
    )
    return matrix.rank() == len(rows)


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
    named = ", ".join(unknowns[s].label for s in entry.factors if not unknowns[s].anonymous)
    constants = f"; if they are numbers, write 'unknown {named} constant'" if named else ""
    return (
        f"has {len(parts)} unknown parts, {' and '.join(parts)}: {only_the_sum}"
        f"write one unknown, ?{tail}, or give one part another last factor{constants}"
    )
