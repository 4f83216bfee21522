"""The decoder: channels from extended states."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.random import Generator

from physsm.models._latent.plan import Plan
from physsm.models.phy_ssm.config import Config
from physsm.nn.mlp import MLP


class Decoder(eqx.Module):
    """Channels that measure a state are that state; a perceptron makes the others."""

    perceptron: MLP | None
    plan: Plan = eqx.field(static=True)

    def __init__(self, plan: Plan, config: Config, extended: int, rng: Generator):
        self.plan = plan
        free, last = sum(state < 0 for state in plan.grounded), config.decoder_perceptron
        # Beside a direct path the decoder only corrects: at first it says nothing.
        gain = 0.0 if plan.offsets else 1.0
        self.perceptron = None
        if free:
            self.perceptron = MLP(extended, last.width, last.layers, free, rng, last_gain=gain)

    def __call__(self, centred: Float[Array, "*steps d"]) -> Float[Array, "*steps channels"]:
        """Scaled channels of extended states, which come without their means."""
        if self.perceptron is None:
            return centred[..., np.array(self.plan.grounded)]
        both = jnp.concatenate([centred, self.perceptron(centred)], axis=-1)
        grounded = np.array(self.plan.grounded)
        free = centred.shape[-1] + np.cumsum(grounded < 0) - 1
        return both[..., np.where(grounded >= 0, grounded, free)]
