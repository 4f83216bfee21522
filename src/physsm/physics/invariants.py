"""Linear conserved quantities: weights w with w·(A z_ext + B u) = 0 for all states, controls and
unknowns.

The bilinear step conserves such a quantity exactly for all values of the unknowns, because w·A = 0
and w·B = 0 make both sides of (I - dt/2 A) z' = (I + dt/2 A) z + dt B u agree along w. It does not
conserve a quantity that only the equations conserve: if one equation has x*y and another -y*x, the
two terms cancel in the sum but are in different columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import comb, gcd, lcm, prod

import numpy as np
import sympy as sp
from sympy.polys.domains import QQ
from sympy.polys.matrices import DomainMatrix

from physsm.physics.structure import Entries

MAX_EXPANDED_TERMS = 100
_MAX_WHOLE_WEIGHT = 10**6
_MAX_COMBINED = 12

# Condition on the weights: key of the function that must cancel, row, coefficient in that row.
Condition = tuple[object, int, sp.Rational]
Vector = tuple[Fraction, ...]


def matrix_invariants(extended: Sequence[sp.Expr], A: Entries, B: Entries) -> np.ndarray:
    """Weights over the extended state, without the state 1, of quantities that A and B conserve.

    Functions related only by an identity (sin² + cos² = 1) count as independent. A quantity that
    depends on such an identity is therefore missed; every reported quantity is conserved.
    """

    def conditions() -> Iterator[Condition]:
        for matrix, entries in (("A", A), ("B", B)):
            for (i, j), entry in entries.items():
                for unknown, value in entry.parts():
                    for product, coefficient in monomials(value).items():
                        yield (matrix, j, unknown, product), i, coefficient

    rows = [i for i, column in enumerate(extended) if column != 1]
    return _weights(conditions(), rows, len(extended))


def equation_invariants(
    n_states: int,
    extended: Sequence[sp.Expr],
    controls: Sequence[sp.Symbol],
    A: Entries,
    B: Entries,
) -> np.ndarray:
    """Weights of quantities that the written equations conserve, zero for lifted states."""

    def conditions() -> Iterator[Condition]:
        for entries, columns in ((A, extended), (B, controls)):
            for (i, j), entry in entries.items():
                if i < n_states:
                    for unknown, value in entry.parts():
                        for product, coefficient in monomials(value * columns[j]).items():
                            yield (unknown, product), i, coefficient

    return _weights(conditions(), list(range(n_states)), len(extended))


def lost_invariants(
    n_states: int,
    extended: Sequence[sp.Expr],
    controls: Sequence[sp.Symbol],
    A: Entries,
    B: Entries,
) -> tuple[np.ndarray, np.ndarray]:
    """Weights that the equations conserve, and those of them that the matrices do not."""
    by_equations = equation_invariants(n_states, extended, controls, A, B)
    written = {place: entry for place, entry in A.items() if place[0] < n_states}
    inputs = {place: entry for place, entry in B.items() if place[0] < n_states}
    by_matrices = matrix_invariants(extended[:n_states], written, inputs)
    if len(by_matrices) == len(by_equations):
        return by_equations, by_equations[:0]
    conserved = [_exact(weights) for weights in by_matrices]
    lost = [
        weights
        for weights in by_equations
        if _rank([*conserved, _exact(weights[:n_states])]) > len(conserved)
    ]
    return by_equations, np.array(lost)


def orthogonal_directions(weights: np.ndarray) -> list[Vector]:
    """Basis of the directions along which no weighted sum changes."""
    rows = [
        {j: QQ(number.numerator, number.denominator) for j, number in enumerate(row) if number}
        for row in map(_exact, weights)
    ]
    return _null_space(rows, weights.shape[1])


def _exact(weights: np.ndarray) -> Vector:
    return tuple(Fraction(float(weight)) for weight in weights)


def monomials(value: sp.Expr) -> dict[sp.Expr, sp.Rational]:
    """Rational coefficient of each product in the expanded value."""
    if not _is_expanded(value) and _expanded_size(value) <= MAX_EXPANDED_TERMS:
        value = sp.expand(value)
    result: dict[sp.Expr, sp.Rational] = {}
    for term in sp.Add.make_args(value):
        coefficient, product = term.as_coeff_Mul()
        total = result.get(product, sp.S.Zero) + coefficient
        assert isinstance(total, sp.Rational)  # as are all numbers of a physics text
        result[product] = total
    return result


def _is_expanded(value: sp.Expr) -> bool:
    """Whether a value is a sum of products without sums as factors."""
    return not any(
        isinstance(factor.as_base_exp()[0], sp.Add)
        for term in sp.Add.make_args(value)
        for factor in sp.Mul.make_args(term)
    )


def _expanded_size(value: sp.Expr) -> int:
    """Number of terms after expansion, counted up to one more than the limit."""
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


def _weights(conditions: Iterator[Condition], rows: list[int], size: int) -> np.ndarray:
    position = {row: k for k, row in enumerate(rows)}
    equations: dict[object, dict[int, object]] = {}
    for key, row, coefficient in conditions:
        equation = equations.setdefault(key, {})
        number = QQ(coefficient.p, coefficient.q)
        equation[position[row]] = equation.get(position[row], QQ(0)) + number  # type: ignore[operator]
    without_zeros = [{i: v for i, v in row.items() if v} for row in equations.values()]
    basis = _null_space([row for row in without_zeros if row], len(rows))
    weights = np.zeros((len(basis), size))
    weights[:, rows] = np.reshape(_natural_basis(basis), (len(basis), len(rows)))
    return weights


def _null_space(equations: list[dict[int, object]], size: int) -> list[Vector]:
    if not equations:
        return [tuple(Fraction(i == j) for j in range(size)) for i in range(size)]
    matrix = DomainMatrix(dict(enumerate(equations)), (len(equations), size), QQ)
    return [
        tuple(Fraction(int(number.p), int(number.q)) for number in vector)
        for vector in matrix.nullspace().to_Matrix().tolist()
    ]


def _natural_basis(basis: list[Vector]) -> list[list[float]]:
    """Basis of the simplest combinations: S + I + R rather than S - E + P."""
    if len(basis) > _MAX_COMBINED:
        return [_normalised(vector) for vector in basis]
    candidates = list(basis)
    for one, two in combinations(basis, 2):
        candidates.append(tuple(a + b for a, b in zip(one, two, strict=True)))
        candidates.append(tuple(a - b for a, b in zip(one, two, strict=True)))
    chosen: list[Vector] = []
    for vector in sorted(candidates, key=lambda vector: _complexity(_normalised(vector))):
        if len(chosen) < len(basis) and _rank([*chosen, vector]) > len(chosen):
            chosen.append(vector)
    chosen.sort(key=lambda vector: [weight == 0 for weight in vector])
    return [_normalised(vector) for vector in chosen]


def _rank(vectors: list[Vector]) -> int:
    rows = [[QQ(number.numerator, number.denominator) for number in row] for row in vectors]
    return DomainMatrix(rows, (len(rows), len(rows[0])), QQ).rank()


def _complexity(vector: list[float]) -> tuple[bool, float, int]:
    return min(vector) < 0, max(map(abs, vector)), sum(weight != 0 for weight in vector)


def _normalised(vector: Vector) -> list[float]:
    """Vector scaled to small whole numbers if possible, else to a first weight of one."""
    scale = lcm(*(number.denominator for number in vector))
    whole = [int(number * scale) for number in vector]
    divisor = gcd(*whole) or 1
    first = next(number for number in vector if number)
    sign = 1 if first > 0 else -1
    if max(map(abs, whole)) // divisor <= _MAX_WHOLE_WEIGHT:
        return [float(sign * number // divisor) for number in whole]
    return [float(number / first) for number in vector]
