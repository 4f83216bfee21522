"""Layer norm."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.nn.broadcast import on_last_axis
from physsm.nn.initial import parameter
from physsm.nn.parameter_groups import UNDECAYED


class LayerNorm(eqx.Module):
    """The last axis with mean 0 and variance 1, then scaled and shifted."""

    norms: Float[Array, "gain_and_shift width"] = eqx.field(metadata=UNDECAYED)

    def __init__(self, width: int):
        self.norms = parameter(np.stack([np.ones(width), np.zeros(width)]))

    def __call__(self, x: Float[Array, "*rest width"]) -> Float[Array, "*rest width"]:
        """Apply to the last axis."""
        return normalise(x, self.norms)


def normalise(
    x: Float[Array, "*rest width"], gain_and_shift: Float[Array, "2 width"]
) -> Float[Array, "*rest width"]:
    """Layer norm over the last axis."""
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centred**2, axis=-1, keepdims=True)
    gain, shift = (on_last_axis(one, x) for one in gain_and_shift)
    return centred * jax.lax.rsqrt(variance + 1e-5) * gain + shift
