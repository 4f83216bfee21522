"""Solving one small linear system, without a call to LAPACK.

Batched LAPACK solves are slow for matrices of a dozen rows (one call each), and with some versions
of JAX two of them in one program deadlock on machines with two cores. Elimination written out in
array operations runs over the whole batch at once.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float


def solve(A: Float[Array, "d d"], b: Float[Array, " d"]) -> Float[Array, " d"]:
    """The x with A x = b, by Gaussian elimination with partial pivoting on equilibrated rows.

    Derivatives, forwards and backwards, solve with the same matrix instead of differentiating the
    elimination. A singular matrix gives infinities or NaN, as in NumPy's division by zero.
    """
    return lax.custom_linear_solve(
        lambda x: A @ x,
        b,
        lambda _, right: _eliminate(A, right),
        lambda _, right: _eliminate(A.T, right),
    )


def _eliminate(A: Array, b: Array) -> Array:
    d = b.shape[0]
    rows = jnp.concatenate([A, b[:, None]], axis=1)
    largest = jnp.max(jnp.abs(A), axis=1, keepdims=True)
    rows = rows / jnp.where(largest > 0, largest, 1)
    for k in range(d):
        rows = _bring_pivot_up(rows, k)
        pivot_row = rows[k, k:] / rows[k, k]
        below = rows[k + 1 :, k:] - rows[k + 1 :, k : k + 1] * pivot_row[None]
        rows = rows.at[k, k:].set(pivot_row).at[k + 1 :, k:].set(below)
    x = [rows[d - 1, d]]
    for k in range(d - 2, -1, -1):
        x.insert(0, rows[k, d] - rows[k, k + 1 : d] @ jnp.stack(x))
    return jnp.stack(x)


def _bring_pivot_up(rows: Array, k: int) -> Array:
    """Exchange row k and the row at or below it with the largest entry in column k.

    Written with comparisons instead of indexing: a gather per sample is slow in a batch.
    """
    d = rows.shape[0]
    if k == d - 1:
        return rows
    pivot = k + jnp.argmax(jnp.abs(rows[k:, k]))
    is_pivot = (jnp.arange(d) == pivot)[:, None]
    chosen = jnp.sum(jnp.where(is_pivot, rows, 0), axis=0)
    exchanged = jnp.where(is_pivot, rows[k][None], rows)
    return exchanged.at[k].set(chosen)
