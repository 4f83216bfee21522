"""Generic rank of linear systems whose coefficients are functions: true at almost every point.

Functions are evaluated at pseudo-random points of a finite field, where arithmetic is exact: a
number like 1e-23 counts as much as 1, nothing overflows, and every function is defined. A result
there holds generically, with an error probability of about one in 10⁸ (Schwartz and Zippel). sin,
cos and tan of one argument keep their relations; other functions count as independent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import sympy as sp

PRIME = 2**31 - 1  # products of two residues fit into 64 bits


class GenericPoint:
    """Values of symbols and functions in the finite field, the same for the same `seed`.

    `values` fixes some symbols. A function has the same value at two points if its arguments do.
    """

    def __init__(self, seed: int, values: Mapping[sp.Symbol, int]):
        self.seed = seed
        self.values: dict[sp.Expr, int] = {**values}

    def value(self, expression: sp.Expr) -> int:
        """Residue of an expression."""
        if expression not in self.values:
            self.values[expression] = self._computed(expression) % PRIME
        return self.values[expression]

    def _computed(self, expression: sp.Expr) -> int:
        if isinstance(expression, sp.Rational):
            return expression.p * _inverse(expression.q)
        if isinstance(expression, sp.Add):
            return sum(self.value(part) for part in expression.args)  # type: ignore[arg-type]
        if isinstance(expression, sp.Mul):
            product = 1
            for part in expression.args:
                product = product * self.value(part) % PRIME  # type: ignore[arg-type]
            return product
        if isinstance(expression, sp.Pow) and expression.exp.is_Integer:
            exponent = int(expression.exp)
            base = self.value(expression.base)
            return pow(base if exponent > 0 else _inverse(base), abs(exponent), PRIME)
        if isinstance(expression, sp.sin | sp.cos | sp.tan):
            return self._circle(expression)
        if isinstance(expression, sp.Symbol):
            return random_residue(expression.name, self.seed)
        return random_residue(str(expression), *self._symbol_values(expression))

    def _circle(self, function: sp.Expr) -> int:
        """Rational point of the unit circle: sin = 2t/(1 + t²), cos = (1 - t²)/(1 + t²)."""
        argument = function.args[0]
        t = random_residue("circle", str(argument), *self._symbol_values(argument))
        sine, cosine, scale = 2 * t, 1 - t * t, 1 + t * t
        if isinstance(function, sp.tan):
            return sine * _inverse(cosine)
        return (sine if isinstance(function, sp.sin) else cosine) * _inverse(scale)

    def _symbol_values(self, expression: sp.Basic) -> list[int]:
        symbols = sorted(expression.free_symbols, key=str)
        return [self.value(symbol) for symbol in symbols]  # type: ignore[arg-type]


def determined_columns(matrix: np.ndarray) -> np.ndarray:
    """Mask of the unknowns that a linear system over the field determines, by its matrix.

    An unknown is determined if its column has a pivot, and the pivot's row of the reduced matrix
    has no entry in a column without a pivot.
    """
    reduced = matrix.copy() % PRIME
    n_rows, n_columns = reduced.shape
    pivots: list[int] = []
    for column in range(n_columns):
        top = len(pivots)
        candidates = np.flatnonzero(reduced[top:, column]) if top < n_rows else np.array([], int)
        if not candidates.size:
            continue
        row = top + int(candidates[0])
        reduced[[top, row]] = reduced[[row, top]]
        reduced[top] = reduced[top] * _inverse(int(reduced[top, column])) % PRIME
        factors = reduced[:, column].copy()
        factors[top] = 0
        nonzero = np.flatnonzero(factors)
        reduced[nonzero] = (
            reduced[nonzero] - factors[nonzero, None] * reduced[top] % PRIME
        ) % PRIME
        pivots.append(column)
    free = np.setdiff1d(np.arange(n_columns), pivots)
    determined = np.zeros(n_columns, bool)
    for row, column in enumerate(pivots):
        determined[column] = not reduced[row, free].any()
    return determined


def random_residue(*key: object) -> int:
    """Pseudo-random residue of a key, the same in every process."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return 1 + int.from_bytes(digest, "big") % (PRIME - 1)


def _inverse(number: int) -> int:
    return pow(number % PRIME, PRIME - 2, PRIME)
