"""Functions of the controls alone that equations name, such as rpm1**2 in `[rpm1**2]*?`.

Whoever writes them down says how controls act, even where all else is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from physsm.physics.structure import Entries, Structure


def control_terms(structure: Structure) -> tuple[sp.Expr, ...]:
    """Each once, in the order of the text, without a number in front, but no plain control."""
    controls = set(structure.physics.controls)
    found: dict[sp.Expr, None] = {}
    for term in _terms(structure):
        function = term.as_coeff_Mul()[1]
        if function.free_symbols and function.free_symbols <= controls:
            found.setdefault(function)
    return tuple(function for function in found if function not in controls)


def _terms(structure: Structure) -> Iterator[sp.Expr]:
    """What unknowns and numbers are multiplied by in the equations of the written states."""
    matrices: list[tuple[Entries, tuple[sp.Expr, ...]]] = [
        (structure.A, structure.extended),
        (structure.B, structure.physics.controls),
    ]
    for entries, columns in matrices:
        for (row, column), entry in entries.items():
            if row < len(structure.states):
                for _, factor in entry.parts():
                    yield from (part * columns[column] for part in sp.Add.make_args(factor))
