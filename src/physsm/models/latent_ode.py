"""Latent ODE with a recurrent encoder (Chen, Rubanova, Bettencourt and Duvenaud, 2018).

A recurrent network reads the window backwards in time and infers the start of a latent trajectory.
A learned differential equation continues it through the window and beyond.
"""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from physsm.models._encode_decode.config import ODEConfig
from physsm.models._encode_decode.decoder import TrajectoryDecoder
from physsm.models._encode_decode.encoder import ReversedEncoder
from physsm.models._encode_decode.fitted import FittedTrajectory
from physsm.models._encode_decode.forecaster import TrajectoryForecaster
from physsm.models._encode_decode.latent_ode import LatentODENetwork
from physsm.models._encode_decode.scales import TrajectoryScales
from physsm.nn.mlp import MLP, Dense
from physsm.physics.system import System


def build(
    system: System | None, scales: TrajectoryScales, config: ODEConfig, seed: int
) -> LatentODENetwork:
    """The network before training."""
    rng = np.random.default_rng(seed)
    shape, drift = config.encoder_perceptron, config.drift
    return LatentODENetwork(
        decoder=TrajectoryDecoder(scales, config, config.latent, rng),
        scales=scales,
        config=config,
        encoder=ReversedEncoder(scales, shape, config.encoder, rng),
        head=Dense(config.encoder.width, 2 * config.latent, rng),
        drift=MLP(config.latent, drift.width, drift.layers, config.latent, rng, activation="tanh"),
    )


@final
class FittedLatentODE(FittedTrajectory):
    """A fitted latent ODE."""

    name: ClassVar[str] = "latent_ode"
    Config = ODEConfig
    build = staticmethod(build)


@final
class LatentODE(TrajectoryForecaster):
    """Latent ODE with a recurrent encoder."""

    Fitted = FittedLatentODE


MODEL = LatentODE
