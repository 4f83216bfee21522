"""How far draws come apart."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float


def spread_of(draws: Float[Array, " draws *shape"]) -> Float[Array, "*shape"]:
    """Robust to single draws that run away: half the distance of the quantiles one std apart."""
    low, high = jnp.quantile(draws, jnp.asarray([0.1587, 0.8413], draws.dtype), axis=0)
    return (high - low) / 2
