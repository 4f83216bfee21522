"""Numbers for the last axis of an array: JAX is not left to guess how ranks are to be matched."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array


def on_last_axis(numbers: Sequence[float] | np.ndarray | Array, like: Array) -> Array:
    """One number for each entry of the last axis of `like`, in its precision and rank."""
    if not isinstance(numbers, jax.Array):
        numbers = np.asarray(numbers, float)
    return jnp.asarray(numbers, like.dtype).reshape((1,) * (like.ndim - 1) + (-1,))
