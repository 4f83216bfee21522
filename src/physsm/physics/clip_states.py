"""States clipped to their declared bounds, as the functions of a system see them.

The slope is 1 inside and on a bound, 0 beyond. A state is exactly on a bound or clearly inside:
closer to a bound of zero than `_closest`, inverse powers of the state would overflow. A bound that
is not zero is approached up to a few roundings, so that 3*x - 0.3 is not negative at x >= 0.1.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.physics.bounds import Bounds, limits

_ROUNDINGS = 8


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def clip_states(z: Float[Array, " n"], bounds: tuple[Bounds, ...]) -> Float[Array, " n"]:
    """States within their bounds."""
    lower, upper = (np.asarray(ends) for ends in limits(bounds))
    low, nearest_low = _ends(lower, 1.0, z.dtype)
    high, nearest_high = _ends(upper, -1.0, z.dtype)
    return jnp.where(z < nearest_low, low, jnp.where(z > nearest_high, high, z))


@clip_states.defjvp
def _clip_states_jvp(
    bounds: tuple[Bounds, ...], at: tuple[Array], tangent: tuple[Array]
) -> tuple[Array, Array]:
    (z,), (change,) = at, tangent
    lower, upper = (np.asarray(ends).astype(z.dtype) for ends in limits(bounds))
    is_inside = (z >= lower) & (z <= upper)
    return clip_states(z, bounds), jnp.where(is_inside, change, jnp.zeros_like(change))


def _ends(
    bound: Float[np.ndarray, " n"], inwards: float, dtype: jnp.dtype
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Value of a state on its bound, and the value up to which a state counts as on it."""
    kind = jnp.finfo(dtype)
    is_finite = np.isfinite(bound)
    size = np.where(is_finite, np.abs(bound), 0)
    end = np.where(is_finite, bound + inwards * _ROUNDINGS * float(kind.eps) * size, bound)
    # An upper bound of zero is -0.0: the inverse of the state is negative there.
    end = np.where(bound == 0, np.copysign(0.0, inwards), end)
    # The inverse cube of this number is finite.
    closest = float(kind.tiny) ** (1 / 3)
    return end.astype(dtype), np.where(bound == 0, inwards * closest, end).astype(dtype)
