"""GOKU (Linial, Ravid, Eytan and Shalit, 2021): a start and parameters inferred of each window.

A recurrent network that reads backwards says where the physical states start, one that reads both
ways which values the unknowns have along this path; the equations, and a network that adds to them
(`residual`), do the rest.
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

    - `parameter_encoder`: what reads a window both ways, for the unknowns.
    - `residual`: whether a network adds to the equations, as in the paper's comparison. Without,
      the unknowns alone must explain the data, and mean more.
    """

    parameter_encoder: Recurrent = Recurrent(cell="lstm", width=16)
    residual: bool = True


class Inferred(NamedTuple):
    """The latent start, and latents of the unknowns."""

    start: Gaussian
    terms: Gaussian


class GokuNetwork(PhysicsTrajectory):
    """A path under the equations with the unknowns of its window."""

    parameter_encoder: ParameterEncoder
    to_terms: MLP
    residual: MLP | None

    def infer(self, rows: Observations) -> Inferred:
        """Start and unknowns of each window."""
        return Inferred(self.start_posterior(rows), self.parameter_encoder(rows))

    def trajectory(
        self, start: Any, times: Float[Array, " times"], timeline: Timeline
    ) -> Trajectory:
        """Along the equations, and what is added to them."""
        drift = self.physics.drift(self.unknowns(start), timeline)
        added, pace = self.residual, jnp.asarray(self.scales.pace, self.dtype)
        if added is not None:
            known = drift
            drift = lambda t, z: known(t, z) + pace * added(z)  # noqa: E731
        return self.follow(self.state(start.start), drift, times, timeline)

    def unknowns(self, start: Any) -> Float[Array, " unknowns"]:
        """Those of the window, from their latents."""
        return self.unknowns_of(self.to_terms(start.terms))


def build(system: System, scales: TrajectoryScales, config: Config, seed: int) -> GokuNetwork:
    """A network before its training."""
    rng, states = np.random.default_rng(seed), len(system.states)
    parts = cast(dict[str, Any], physics_parts(system, scales, config, states, rng))
    shape, latent = config.start_perceptron, config.latent
    return GokuNetwork(
        **parts,
        parameter_encoder=ParameterEncoder(
            scales, config.encoder_perceptron, config.parameter_encoder, latent, rng
        ),
        to_terms=MLP(latent, shape.width, shape.layers, len(system.unknowns), rng, last_gain=0.1),
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
    """GOKU around any system."""

    Fitted = FittedGoku


MODEL = Goku
