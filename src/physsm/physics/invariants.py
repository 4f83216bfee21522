"""Linear conserved quantities: weights w with w·(A z_ext + B u) = 0 for all states, controls and
unknowns.

The bilinear step keeps such a quantity exactly, whatever the unknowns are, because w·A = 0 and
w·B = 0 make both sides of (I - dt/2 A) z' = (I + dt/2 A) z + dt B u agree along w.
"""

from __future__ import annotations

from math import comb, gcd, lcm, prod

import numpy as np
import sympy as sp
from sympy.polys.domains import QQ
from sympy.polys.matrices import DomainMatrix

from physsm.physics.structure import Entries

MAX_EXPANDED_TERMS = 100


def linear_invariants(extended: tuple[sp.Expr, ...], A: Entries, B: Entries) -> np.ndarray:
    """Rows of weights over the extended state, in small whole numbers; the state 1 is left out.

    Functions that only an identity relates (sin² + cos² = 1) count as independent, so a quantity
    that rests on one is not found; none that is found is wrong.
    """
    free = [i for i, column in enumerate(extended) if column != 1]
    position = {i: k for k, i in enumerate(free)}
    equations: dict[object, dict[int, object]] = {}
    for matrix, entries in (("A", A), ("B", B)):
        for (i, j), entry in entries.items():
            for unknown, value in entry.parts():
                for monomial, coefficient in monomials(value).items():
                    equation = equations.setdefault((matrix, j, unknown, monomial), {})
                    equation[position[i]] = QQ(coefficient.p, coefficient.q)
    rows = dict(enumerate(equations.values()))
    matrix = DomainMatrix(rows, (len(rows), len(free)), QQ)
    weights = np.zeros((0, len(extended)))
    basis = matrix.nullspace().to_Matrix().tolist() if rows else sp.eye(len(free)).tolist()
    for vector in basis:
        row = np.zeros(len(extended))
        row[free] = _whole_numbers(vector)
        weights = np.vstack([weights, row])
    return weights


def monomials(value: sp.Expr) -> dict[sp.Expr, sp.Rational]:
    """The value as a sum of rational coefficients times products."""
    if _expanded_size(value) <= MAX_EXPANDED_TERMS:
        value = sp.expand(value) if not value.is_Atom else value
    result: dict[sp.Expr, sp.Rational] = {}
    for term in sp.Add.make_args(value):
        coefficient, product = term.as_coeff_Mul()
        total = result.get(product, sp.S.Zero) + coefficient
        assert isinstance(total, sp.Rational)  # all numbers of a physics text are
        result[product] = total
    return result


def _expanded_size(value: sp.Expr) -> int:
    """How many terms multiplying out would give, counted up to one more than the limit."""
    sizes = [_expanded_size(part) for part in value.args]  # type: ignore[arg-type]
    if value.is_Add:
        size = sum(sizes)
    elif value.is_Mul:
        size = prod(sizes)
    elif isinstance(value, sp.Pow) and value.exp.is_Integer:
        size = comb(abs(int(value.exp)) + sizes[0] - 1, sizes[0] - 1)
    else:
        size = max(sizes, default=1)
    return min(size, MAX_EXPANDED_TERMS + 1)


def _whole_numbers(vector: list[sp.Rational]) -> list[float]:
    """Clear denominators and common factors; make the first weight positive."""
    scale = lcm(*(int(number.q) for number in vector))
    whole = [int(number * scale) for number in vector]
    divisor = gcd(*whole) or 1
    first = next(number for number in whole if number)
    return [float(number // divisor if first > 0 else -number // divisor) for number in whole]
