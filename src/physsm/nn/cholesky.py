"""The root of a small covariance, without a call to LAPACK: a program with one could not be kept
for another process (see `physsm._programs`).
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def cholesky(A: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Lower triangular L with L Lᵀ = A, for a symmetric A that is positive definite, or nearly:
    pivots that rounding has made negative count as zero, and so does their column.
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
