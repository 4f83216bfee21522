"""Reductions that objectives and intervals of networks share."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float


def mean_square(
    error: Float[Array, "steps batch channels"], weight: Float[Array, "steps batch channels"]
) -> Float[Array, ""]:
    """Mean square error over the weighted cells of each channel, summed over channels."""
    count = jnp.maximum(weight.sum((0, 1)), 1)
    return ((error**2 * weight).sum((0, 1)) / count).sum()


def ramp(progress: Array, share: float) -> Array:
    """Weight that grows from 0 to 1 over the first `share` of the training and stays 1."""
    return jnp.minimum(progress / share, 1.0) if share else jnp.ones_like(progress)


def spread_of(draws: Float[Array, " draws *shape"]) -> Float[Array, "*shape"]:
    """Half the distance of the 16 % and 84 % quantiles: a standard deviation that single draws
    which diverge do not change.
    """
    low, high = jnp.quantile(draws, jnp.asarray([0.1587, 0.8413], draws.dtype), axis=0)
    return (high - low) / 2
