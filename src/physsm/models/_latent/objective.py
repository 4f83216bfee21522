"""Terms that objectives share."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float


def mean_square(
    error: Float[Array, "rows batch channels"], weight: Float[Array, "rows batch channels"]
) -> Float[Array, ""]:
    """The mean square over the cells of each channel that count, summed over channels."""
    count = jnp.maximum(weight.sum((0, 1)), 1)
    return ((error**2 * weight).sum((0, 1)) / count).sum()


def ramp(progress: Array, share: float) -> Array:
    """From 0 to 1 over the first `share` of the training, then 1."""
    return jnp.minimum(progress / share, 1.0) if share else jnp.ones_like(progress)
