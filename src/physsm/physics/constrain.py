"""Maps between all real numbers and an interval, so that bounds hold by construction."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.physics.bounds import Bounds

_EDGE = 15.0  # softplus(-15) and sigmoid(-15) are about 3e-7


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
    """The inverse of `to_bounded`.

    A value on a bound or beyond has no inverse; it is taken as one just inside, near enough to the
    bound for most purposes and far enough for gradients not to vanish.
    """
    lower, upper, has_lower, has_upper = _limits(bounds, value.dtype)
    distance = jnp.where(has_lower, value - lower, upper - value)
    inside = jnp.where(distance > 0, distance, 1)
    one_sided = jnp.where(distance > 0, _inverse_softplus(inside), -_EDGE)
    share = (value - lower) / (upper - lower)
    inner = jnp.where((share > 0) & (share < 1), share, 0.5)
    between = jnp.log(inner) - jnp.log1p(-inner)
    between = jnp.where(share <= 0, -_EDGE, jnp.where(share >= 1, _EDGE, between))
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
