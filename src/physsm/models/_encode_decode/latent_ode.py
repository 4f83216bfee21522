"""Network of a latent ODE: an encoder infers the start, a learned drift moves it."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

from physsm.models._encode_decode.encoder import INITIAL_RAW_STD
from physsm.models._encode_decode.network import AbstractEncodeDecode
from physsm.models._encode_decode.values import Timeline, Trajectory
from physsm.models._network.observations import Observations
from physsm.nn.gaussian import Gaussian, gaussian
from physsm.nn.mlp import MLP, Dense
from physsm.nn.ode import solve_ode


class LatentODENetwork(AbstractEncodeDecode):
    """z0 ~ q(z0 | context), z' = f(z), channels = decoder(z, code of controls)."""

    encoder: Callable[[Observations], Array]
    head: Dense
    drift: MLP

    def infer(self, rows: Observations) -> Gaussian:
        """The start of each trajectory, at the first time step of its window."""
        return start_posterior(self.head, self.encoder(rows))

    def trajectory(
        self, start: Float[Array, " latent"], times: Float[Array, " times"], timeline: Timeline
    ) -> Trajectory:
        """The solution of the learned differential equation."""
        pace = jnp.asarray(self.scales.pace, start.dtype)
        solution = solve_ode(
            lambda _, z: pace * self.drift(z), start, times, self.config.solver, self.scales.node
        )
        return Trajectory(solution.states, solution.is_reached)


def start_posterior(head: Dense, hidden: Float[Array, "steps batch width"]) -> Gaussian:
    """The distribution of the start, from the encoder's hidden state at the first time step."""
    mean, raw = jnp.split(head(hidden[0]), 2, axis=-1)
    return gaussian(mean, raw + INITIAL_RAW_STD)
