"""Where parameters start: drawn by NumPy, so that no program has to be compiled for it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Float[np.ndarray, "*shape"]:
    """Standard normal numbers, divided by the root of the last size."""
    return rng.standard_normal(shape) / np.sqrt(max(shape[-1], 1))


def parameter(values: Float[np.ndarray, "*shape"]) -> Float[Array, "*shape"]:
    """An array in JAX's default precision."""
    return jnp.asarray(np.asarray(values).astype(jax.dtypes.canonicalize_dtype(float)))
