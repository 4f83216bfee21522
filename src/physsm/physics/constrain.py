"""Maps between all real numbers and an interval, so that bounds hold by construction."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.physics.bounds import Bounds


def to_bounded(raw: Float[Array, " k"], bounds: Sequence[Bounds]) -> Float[Array, " k"]:
    """Map each number into its interval: softplus for one bound, a scaled sigmoid for two."""
    lower, upper, has_lower, has_upper = _limits(bounds, raw.dtype)
    above = lower + jax.nn.softplus(raw)
    below = upper - jax.nn.softplus(raw)
    # Written from the nearer end, and clipped, so that rounding never leaves the interval.
    between = jnp.clip(lower + (upper - lower) * jax.nn.sigmoid(raw), lower, upper)
    one_sided = jnp.where(has_lower, above, jnp.where(has_upper, below, raw))
    return jnp.where(has_lower & has_upper, between, one_sided)


def from_bounded(value: Float[Array, " k"], bounds: Sequence[Bounds]) -> Float[Array, " k"]:
    """The inverse of `to_bounded`. A value on a bound or outside is taken as just inside."""
    lower, upper, has_lower, has_upper = _limits(bounds, value.dtype)
    tiny = jnp.finfo(value.dtype).tiny
    distance = jnp.where(has_lower, value - lower, upper - value)
    one_sided = _inverse_softplus(jnp.maximum(distance, tiny))
    epsilon = jnp.finfo(value.dtype).epsneg
    share = jnp.clip((value - lower) / (upper - lower), tiny, 1 - epsilon)
    between = jnp.log(share) - jnp.log1p(-share)
    one_sided = jnp.where(has_lower | has_upper, one_sided, value)
    return jnp.where(has_lower & has_upper, between, one_sided)


def _inverse_softplus(positive: Array) -> Array:
    return positive + jnp.log(-jnp.expm1(-positive))


def _limits(bounds: Sequence[Bounds], dtype: jnp.dtype) -> tuple[np.ndarray, ...]:
    """Lower and upper limits and whether each exists. A missing one gets a harmless number, so
    that the branch which `where` does not take stays finite and so does its gradient.
    """
    has_lower = np.array([b.lower is not None for b in bounds], bool)
    has_upper = np.array([b.upper is not None for b in bounds], bool)
    lower = np.array([0.0 if b.lower is None else b.lower for b in bounds], dtype)
    upper = np.array([1.0 if b.upper is None else b.upper for b in bounds], dtype)
    upper = np.where(has_upper, upper, lower + np.asarray(1, dtype))
    lower = np.where(has_lower, lower, upper - np.asarray(1, dtype))
    return lower, upper, has_lower, has_upper
