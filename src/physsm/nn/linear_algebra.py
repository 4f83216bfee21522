"""Linear algebra of small matrices, without calls to LAPACK.

Batched LAPACK solves are slow for matrices of a dozen rows (one call each), and with some versions
of JAX two of them in one program deadlock on machines with two cores. A program with such a call
cannot be stored for another process either (see `physsm._programs`). Elimination written as array
operations runs over the whole batch at once. Under `jax.vmap` the batch becomes the last axis,
along which the processor's vector units work.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Float


@jax.custom_jvp
def solve(A: Float[Array, "d d"], b: Float[Array, " d"]) -> Float[Array, " d"]:
    """The x with A x = b, by Gaussian elimination with partial pivoting on equilibrated rows.

    A singular matrix gives infinities or NaN, as in NumPy's division by zero.
    """
    return _eliminate(A, b[:, None])[:, 0]


@solve.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    """Derivatives need the inverse. One elimination computes it together with the solution; all
    further derivatives, forward and reverse, are products with it.
    """
    (A, b), (dA, db) = primals, tangents
    x, inverse = solve_and_invert(A, b)
    return x, inverse @ (db - dA @ x)


@jax.custom_jvp
def solve_and_invert(
    A: Float[Array, "d d"], b: Float[Array, " d"]
) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
    """The solution of A x = b, and the inverse of A."""
    both = _eliminate(A, jnp.concatenate([b[:, None], jnp.eye(len(b), dtype=A.dtype)], axis=1))
    return both[:, 0], both[:, 1:]


@solve_and_invert.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]):
    (A, b), (dA, db) = primals, tangents
    x, inverse = solve_and_invert(A, b)
    return (x, inverse), (inverse @ (db - dA @ x), -(inverse @ dA) @ inverse)


@custom_vmap
def _eliminate(
    A: Float[Array, "d d *batch"], b: Float[Array, "d k *batch"]
) -> Float[Array, "d k *batch"]:
    """The x with A x = b, for k right-hand sides and a batch on the last axes."""
    d = A.shape[0]
    largest = jnp.max(jnp.abs(A), axis=1, keepdims=True)
    rows = jnp.concatenate([A, b], axis=1) / jnp.where(largest > 0, largest, 1)
    above = []
    for _ in range(d):
        rows = _pivot_first(rows)
        pivot_row = rows[0, 1:] / rows[0, :1]
        above.append(pivot_row)
        rows = rows[1:, 1:] - rows[1:, :1] * pivot_row[None]
    x = above.pop()[None]
    while above:
        row, solved = above.pop(), len(x)
        known = jnp.sum(row[:solved, None] * x, axis=0)
        x = jnp.concatenate([(row[solved:] - known)[None], x])
    return x


@_eliminate.def_vmap
def _(size: int, is_batched: list[bool], A: Array, b: Array) -> tuple[Array, bool]:
    def batch_last(leaf: Array, batched: bool) -> Array:
        if batched:
            return jnp.moveaxis(leaf, 0, -1)
        return jnp.broadcast_to(leaf[..., None], (*leaf.shape, size))

    x = _eliminate(batch_last(A, is_batched[0]), batch_last(b, is_batched[1]))
    return jnp.moveaxis(x, -1, 0), True


def _pivot_first(rows: Float[Array, "n m *batch"]) -> Float[Array, "n m *batch"]:
    """Exchange the first row and the one with the largest entry in the first column.

    It compares instead of indexing, because a gather for each sample of a batch is slow.
    """
    if rows.shape[0] == 1:
        return rows
    size = jnp.abs(rows[:, 0])
    place = lax.broadcasted_iota(jnp.int32, size.shape, 0)
    is_largest = size == jnp.max(size, axis=0, keepdims=True)
    pivot = jnp.min(jnp.where(is_largest, place, len(rows)), axis=0, keepdims=True)
    is_pivot = (place == pivot)[:, None]
    chosen = jnp.sum(jnp.where(is_pivot, rows, 0), axis=0, keepdims=True)
    exchanged = jnp.where(is_pivot, rows[:1], rows)
    return jnp.concatenate([chosen, exchanged[1:]])


def cholesky(A: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Lower triangular L with L Lᵀ = A, for a symmetric and positive semidefinite A.

    A pivot that rounding has made negative is taken as zero, and so is its column.
    """
    size = A.shape[0]
    L = jnp.zeros((size, 0), A.dtype)
    for j in range(size):
        rest = A[:, j] - L @ L[j]
        pivot = jnp.maximum(rest[j], 0)
        scale = jnp.where(pivot > 0, 1 / jnp.sqrt(jnp.where(pivot > 0, pivot, 1)), 0)
        column = jnp.where(np.arange(size) >= j, rest * scale, 0)
        L = jnp.concatenate([L, column[:, None]], axis=1)
    return L
