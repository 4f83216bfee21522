"""GOKU (Linial, Ravid, Eytan and Shalit, 2021): start and unknowns inferred from each window.

A backward recurrent network infers the initial states, and a bidirectional one the unknowns of the
window. The trajectory solves the equations, plus a learned term (`residual`).
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, cast, final

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.models._encode_decode.config import PhysicsConfig, Recurrent
from physsm.models._encode_decode.encoder import ParameterEncoder
from physsm.models._encode_decode.fitted import FittedTrajectory
from physsm.models._encode_decode.forecaster import PhysicsForecaster
from physsm.models._encode_decode.physics import PhysicsTrajectory, physics_parts, residual_drift
from physsm.models._encode_decode.scales import TrajectoryScales
from physsm.models._encode_decode.values import Timeline, Trajectory
from physsm.models._network.observations import Observations
from physsm.nn.gaussian import Gaussian
from physsm.nn.mlp import MLP
from physsm.physics.system import System


class Config(PhysicsConfig):
    """Settings beside those of all models around physics.

    - `parameter_encoder`: the bidirectional network that infers the unknowns of a window.
    - `residual`: whether a network is added to the equations, as in the paper's comparison. Without
      it the unknowns alone must explain the measurements, and are easier to interpret.
    """

    parameter_encoder: Recurrent = Recurrent(cell="lstm", width=16)
    residual: bool = True


class Inferred(NamedTuple):
    """The latent start, and latents of the unknowns."""

    start: Gaussian
    unknowns: Gaussian


class GokuNetwork(PhysicsTrajectory):
    """A trajectory of the equations with the unknowns of its window."""

    parameter_encoder: ParameterEncoder
    to_unknowns: MLP
    residual: MLP | None

    def infer(self, rows: Observations) -> Inferred:
        """Latents of start and unknowns of each window."""
        return Inferred(self.start_posterior(rows), self.parameter_encoder(rows))

    def trajectory(
        self, start: Any, times: Float[Array, " times"], timeline: Timeline
    ) -> Trajectory:
        """The solution of the equations, with the learned term."""
        drift = self.physics.drift(self.unknowns(start), timeline)
        residual, pace = self.residual, jnp.asarray(self.scales.pace, self.dtype)
        if residual is not None:
            known = drift
            drift = lambda t, z: known(t, z) + pace * residual(z)  # noqa: E731
        return self.solve(self.state(start.start), drift, times, timeline)

    def unknowns(self, start: Any) -> Float[Array, " unknowns"]:
        """The unknowns of the window, from their latents."""
        return self.unknowns_of(self.to_unknowns(start.unknowns))


def build(system: System, scales: TrajectoryScales, config: Config, seed: int) -> GokuNetwork:
    """The network before training."""
    rng, states = np.random.default_rng(seed), len(system.states)
    parts = cast(dict[str, Any], physics_parts(system, scales, config, states, rng))
    shape, latent = config.start_perceptron, config.latent
    return GokuNetwork(
        **parts,
        parameter_encoder=ParameterEncoder(
            scales, config.encoder_perceptron, config.parameter_encoder, latent, rng
        ),
        to_unknowns=MLP(
            latent, shape.width, shape.layers, len(system.unknowns), rng, last_gain=0.1
        ),
        residual=residual_drift(states, config, states, rng) if config.residual else None,
    )


@final
class FittedGoku(FittedTrajectory):
    """A fitted GOKU."""

    name: ClassVar[str] = "goku"
    Config = Config
    build = staticmethod(build)


@final
class Goku(PhysicsForecaster):
    """GOKU with the equations of a system."""

    Fitted = FittedGoku


MODEL = Goku
