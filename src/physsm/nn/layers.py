"""Parts of layers that work on the last axis: parameters, linear maps and layer norm."""

from __future__ import annotations

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.nn.parameter_groups import UNDECAYED


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Float[np.ndarray, "*shape"]:
    """Normal numbers with the standard deviation 1/√n, for a last axis of size n.

    NumPy draws the start of all parameters, so that JAX compiles no program for it.
    """
    return rng.standard_normal(shape) / np.sqrt(max(shape[-1], 1))


def parameter(values: Float[np.ndarray, "*shape"]) -> Float[Array, "*shape"]:
    """A JAX array in the default precision."""
    return jnp.asarray(np.asarray(values).astype(jax.dtypes.canonicalize_dtype(float)))


def on_last_axis(numbers: Sequence[float] | np.ndarray | Array, like: Array) -> Array:
    """One number for each entry of the last axis of `like`, in its precision and rank.

    Ranks are matched explicitly: the tests forbid JAX's implicit rank promotion.
    """
    if not isinstance(numbers, jax.Array):
        numbers = np.asarray(numbers, float)
    return jnp.asarray(numbers, like.dtype).reshape((1,) * (like.ndim - 1) + (-1,))


def linear(
    W: Float[Array, "outputs inputs"], x: Float[Array, "*rest inputs"]
) -> Float[Array, "*rest outputs"]:
    """W x for every vector along the last axis.

    The vectors are first reshaped into the rows of one matrix: XLA multiplies matrices several
    times faster than arrays with more axes, above all for the gradient of W.
    """
    if x.ndim == 1:
        return W @ x
    rest = x.shape[:-1]
    return (x.reshape(math.prod(rest), x.shape[-1]) @ W.T).reshape(*rest, W.shape[0])


class LayerNorm(eqx.Module):
    """Layer norm with a learned gain and shift."""

    norms: Float[Array, "gain_and_shift width"] = eqx.field(metadata=UNDECAYED)

    def __init__(self, width: int):
        self.norms = parameter(np.stack([np.ones(width), np.zeros(width)]))

    def __call__(self, x: Float[Array, "*rest width"]) -> Float[Array, "*rest width"]:
        """Apply to the last axis."""
        return normalise(x, self.norms)


def normalise(
    x: Float[Array, "*rest width"], gain_and_shift: Float[Array, "2 width"]
) -> Float[Array, "*rest width"]:
    """Layer norm: the last axis with mean 0 and variance 1, times the gain, plus the shift."""
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centred**2, axis=-1, keepdims=True)
    gain, shift = (on_last_axis(one, x) for one in gain_and_shift)
    return centred * jax.lax.rsqrt(variance + 1e-5) * gain + shift
