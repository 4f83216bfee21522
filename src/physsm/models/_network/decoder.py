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
    """Channels of states. A channel that measures a state is that state; a perceptron makes those
    that the physics does not give from the states and `extra` further inputs. A channel that is a
    function of states is 0: only the unit knows its unknowns.
    """

    perceptron: MLP | None
    states: StateScales

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
        self.states = states
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
        measured = np.array(self.states.measured)
        nothing = jnp.zeros_like(centred[..., :1])
        parts, free = [centred, nothing], self.states.free_channels
        place = np.where(measured >= 0, measured, centred.shape[-1])
        if self.perceptron is not None:
            inputs = centred if extra is None else jnp.concatenate([centred, extra], axis=-1)
            parts.append(self.perceptron(inputs))
            place[free] = centred.shape[-1] + 1 + np.arange(len(free))
        if (measured >= 0).all():
            return centred[..., measured]
        return jnp.concatenate(parts, axis=-1)[..., place]
