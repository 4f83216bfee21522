"""Maps between all real numbers and an interval, so that bounds hold by construction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.physics.bounds import Bounds

Numbers = TypeVar("Numbers", np.ndarray, Array)

_EDGE = 15.0  # softplus(-15) and sigmoid(-15) are about 3e-7


def to_bounded(
    raw: Float[Array, " k"], bounds: Sequence[Bounds], size: Any = 1.0
) -> Float[Array, " k"]:
    """Map each number into its interval: softplus for one bound, a scaled sigmoid for two.

    Numbers and their softplus are in units of `size`: in another unit of the results the same
    numbers mean the same.
    """
    lowest, highest, has_lower, has_upper = _limits(bounds, raw.dtype)
    size = jnp.asarray(size, raw.dtype)
    lower, upper = lowest / size, highest / size
    above = lower + jax.nn.softplus(raw)
    below: Any = upper - jax.nn.softplus(raw)
    # A weighted mean of both ends does not overflow; clipping keeps rounding errors inside.
    mean = lower * jax.nn.sigmoid(-raw) + upper * jax.nn.sigmoid(raw)
    between = jnp.clip(mean, lower, upper)
    not_above: Any = jnp.where(has_upper, below, raw)
    one_sided: Any = jnp.where(has_lower, above, not_above)
    value = size * jnp.where(has_lower & has_upper, between, one_sided)
    # Scaling may round a value just over its bound.
    value = jnp.asarray(jnp.where(has_lower, jnp.maximum(value, lowest), value))
    return jnp.where(has_upper, jnp.minimum(value, highest), value)


def from_bounded(value: Numbers, bounds: Sequence[Bounds], size: Any = 1.0) -> Numbers:
    """Inverse of `to_bounded`, of an array of JAX or of NumPy.

    A value on a bound or beyond has no inverse. It is replaced by one slightly inside (3e-7 from a
    single bound, or that share of the interval), where gradients do not vanish.
    """
    xp: Any = np if isinstance(value, np.ndarray) else jnp
    lower, upper, has_lower, has_upper = _limits(bounds, value.dtype)
    size = xp.asarray(size, value.dtype)
    value, lower, upper = value / size, lower / size, upper / size
    distance = xp.where(has_lower, value - lower, upper - value)
    positive = xp.where(distance > 0, distance, 1)
    one_sided = xp.where(distance > 0, positive + xp.log(-xp.expm1(-positive)), -_EDGE)
    width = upper / 2 - lower / 2  # halves, so that the widest interval does not overflow
    share = (value / 2 - lower / 2) / xp.where(width > 0, width, xp.ones_like(width))
    inner = xp.where((share > 0) & (share < 1), share, 0.5)
    between = xp.log(inner) - xp.log1p(-inner)
    between = xp.where(share <= 0, -_EDGE, xp.where(share >= 1, _EDGE, between))
    one_sided = xp.where(has_lower | has_upper, one_sided, value)
    return xp.where(has_lower & has_upper, between, one_sided)


def _limits(bounds: Sequence[Bounds], dtype: jnp.dtype) -> tuple[np.ndarray, ...]:
    """Lower and upper limits, and whether each exists.

    A missing limit becomes a finite number, so that the branch that `where` does not take, and its
    gradient, stay finite.
    """
    has_lower = np.array([b.lower is not None for b in bounds], bool)
    has_upper = np.array([b.upper is not None for b in bounds], bool)
    lower = _rounded([b.lower for b in bounds], dtype, upwards=True)
    upper = _rounded([b.upper for b in bounds], dtype, upwards=False)
    one = np.ones((), dtype)
    upper = np.where(has_upper, upper, lower + one)
    lower = np.where(has_lower, lower, upper - one)
    return lower, np.maximum(lower, upper), has_lower, has_upper


def _rounded(limits: Sequence[float | None], dtype: jnp.dtype, upwards: bool) -> np.ndarray:
    """Limits in the arrays' precision, finite and rounded towards the inside of the interval."""
    exact = np.array([0.0 if limit is None else limit for limit in limits])
    largest = float(jnp.finfo(dtype).max)
    rounded = np.clip(exact, -largest, largest).astype(dtype)
    outside = rounded < exact if upwards else rounded > exact
    inner = np.nextafter(rounded, np.asarray(largest if upwards else -largest, dtype))
    return np.where(outside, inner, rounded)
