"""Latent ODE with an ODE-RNN encoder (Rubanova, Chen and Duvenaud, 2019).

Like `latent_ode`, but the hidden state of the recurrent network also changes between time steps:
over each gap it solves a learned differential equation by Euler's method. A recurrent cell then
reads the time step. A time step without measurements does not update the state.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar, final

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from pydantic import Field

from physsm.models._encode_decode.config import ODEConfig
from physsm.models._encode_decode.decoder import TrajectoryDecoder
from physsm.models._encode_decode.encoder import StepReader, gaps_after
from physsm.models._encode_decode.fitted import FittedTrajectory
from physsm.models._encode_decode.forecaster import TrajectoryForecaster
from physsm.models._encode_decode.latent_ode import LatentODENetwork
from physsm.models._encode_decode.scales import TrajectoryScales
from physsm.models._network.config import Perceptron
from physsm.models._network.observations import Observations, is_step
from physsm.nn.mlp import MLP, Dense
from physsm.nn.recurrent import RecurrentLayer
from physsm.physics.system import System


class Config(ODEConfig):
    """Settings beside those of a latent ODE.

    - `encoder_drift`: the drift of the hidden state of each encoder layer between time steps.
    - `encoder_steps`: Euler steps over each gap.
    """

    encoder_drift: Perceptron = Perceptron(width=32, layers=1)
    encoder_steps: int = Field(default=1, ge=1, le=100)


class ODERNNEncoder(eqx.Module):
    """Hidden state h' = g(h) over a gap, then h = GRU(h, time step); backwards in time.

    A further layer reads the hidden states of the one below instead of time steps.
    """

    reader: StepReader
    cells: tuple[RecurrentLayer, ...]
    drifts: tuple[MLP, ...]
    steps: int = eqx.field(static=True)

    def __init__(self, scales: TrajectoryScales, config: Config, rng: np.random.Generator):
        width, layers = config.encoder.width, range(config.encoder.depth)
        shape = config.encoder_drift
        self.reader = StepReader(scales, config.encoder_perceptron, width, rng)
        self.cells = tuple(RecurrentLayer(width, width, config.encoder.cell, rng) for _ in layers)
        self.drifts = tuple(
            MLP(width, shape.width, shape.layers, width, rng, activation="tanh") for _ in layers
        )
        self.steps = config.encoder_steps

    def __call__(self, rows: Observations) -> Float[Array, "steps *batch width"]:
        """Hidden states at each time step, from that step and all after it."""
        x = self.reader(rows)[::-1]
        measured = ((rows.seen.sum(-1) > 0).astype(x.dtype) * is_step(rows))[::-1]
        after = (gaps_after(rows.gaps) * is_step(rows))[::-1]
        for cell, drift in zip(self.cells, self.drifts, strict=True):
            x = cell.run(cell.given(x), measured, after, partial(self.over_gap, drift))
        return x[::-1]

    def over_gap(
        self, drift: MLP, state: Float[Array, "*batch state"], gap: Float[Array, "*batch"]
    ) -> Float[Array, "*batch state"]:
        """The hidden state a gap later, by Euler's method. The memory of an LSTM is constant."""
        width = self.cells[0].width
        pace = jnp.asarray(self.reader.scales.pace, gap.dtype)
        step = (gap * (pace / self.steps))[..., None]
        moved = state[..., :width]
        for _ in range(self.steps):
            moved = moved + step * drift(moved)
        return jnp.concatenate([moved, state[..., width:]], axis=-1)


def build(
    system: System | None, scales: TrajectoryScales, config: Config, seed: int
) -> LatentODENetwork:
    """The network before training."""
    rng = np.random.default_rng(seed)
    latent, drift = config.latent, config.drift
    return LatentODENetwork(
        decoder=TrajectoryDecoder(scales, config, latent, rng),
        scales=scales,
        config=config,
        encoder=ODERNNEncoder(scales, config, rng),
        head=Dense(config.encoder.width, 2 * latent, rng),
        drift=MLP(latent, drift.width, drift.layers, latent, rng, activation="tanh"),
    )


@final
class FittedODERNN(FittedTrajectory):
    """A fitted latent ODE with an ODE-RNN encoder."""

    name: ClassVar[str] = "ode_rnn"
    Config = Config
    build = staticmethod(build)


@final
class ODERNN(TrajectoryForecaster):
    """Latent ODE with an ODE-RNN encoder."""

    Fitted = FittedODERNN


MODEL = ODERNN
