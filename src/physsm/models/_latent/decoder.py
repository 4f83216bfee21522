"""The decoder: channels from states."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.random import Generator

from physsm.models._latent.plan import Plan
from physsm.models._latent.settings import Perceptron
from physsm.nn.mlp import MLP


class Decoder(eqx.Module):
    """Channels that measure a state are that state; a perceptron makes the others, of the states
    and of what else it is given (`extra` numbers).
    """

    perceptron: MLP | None
    plan: Plan = eqx.field(static=True)

    def __init__(self, plan: Plan, shape: Perceptron, size: int, rng: Generator, extra: int = 0):
        self.plan = plan
        free = sum(state < 0 for state in plan.grounded)
        # Beside a direct path the decoder only corrects: at first it says nothing.
        gain = 0.0 if plan.offsets else 1.0
        self.perceptron = None
        if free:
            self.perceptron = MLP(
                size + extra, shape.width, shape.layers, free, rng, last_gain=gain
            )

    def __call__(
        self,
        centred: Float[Array, "*steps d"],
        given: Float[Array, "*steps extra"] | None = None,
    ) -> Float[Array, "*steps channels"]:
        """Scaled channels of states, which come without their means."""
        if self.perceptron is None:
            return centred[..., np.array(self.plan.grounded)]
        inputs = centred if given is None else jnp.concatenate([centred, given], axis=-1)
        both = jnp.concatenate([centred, self.perceptron(inputs)], axis=-1)
        grounded = np.array(self.plan.grounded)
        free = centred.shape[-1] + np.cumsum(grounded < 0) - 1
        return both[..., np.where(grounded >= 0, grounded, free)]
