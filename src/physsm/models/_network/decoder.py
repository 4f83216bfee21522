"""The decoder: channels from states."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.random import Generator

from physsm.models._network.config import Perceptron
from physsm.models._network.scales import StateScales
from physsm.nn.mlp import MLP


class Decoder(eqx.Module):
    """Channels of states. A channel that measures a state is that state; a perceptron makes the
    others from the states and `extra` further inputs.
    """

    perceptron: MLP | None
    measured: tuple[int, ...] = eqx.field(static=True)

    def __init__(
        self,
        states: StateScales,
        shape: Perceptron,
        size: int,
        rng: Generator,
        *,
        extra: int = 0,
        last_gain: float = 1.0,
    ):
        self.measured = states.measured
        free = len(states.free_channels)
        self.perceptron = None
        if free:
            self.perceptron = MLP(
                size + extra, shape.width, shape.layers, free, rng, last_gain=last_gain
            )

    def __call__(
        self,
        centred: Float[Array, "*steps d"],
        extra: Float[Array, "*steps extra"] | None = None,
    ) -> Float[Array, "*steps channels"]:
        """Scaled channels of states without their means."""
        measured = np.array(self.measured)
        if self.perceptron is None:
            return centred[..., measured]
        inputs = centred if extra is None else jnp.concatenate([centred, extra], axis=-1)
        both = jnp.concatenate([centred, self.perceptron(inputs)], axis=-1)
        free = centred.shape[-1] + np.cumsum(measured < 0) - 1
        return both[..., np.where(measured >= 0, measured, free)]
