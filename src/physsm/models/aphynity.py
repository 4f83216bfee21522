"""A neural ODE with known physics: z' = known(z; theta) + f(z), with f as small as the data allow.

After APHYNITY (Yin et al., 2021): of all pairs that explain the measurements, the objective prefers
the one whose learned part has the least norm, so that physics explains as much as it can. The
unknowns are constants, the same for all series.
"""

from __future__ import annotations

from typing import Any, ClassVar, cast, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from pydantic import Field

from physsm.models._encode_decode.config import PhysicsConfig
from physsm.models._encode_decode.fitted import FittedTrajectory
from physsm.models._encode_decode.forecaster import PhysicsForecaster
from physsm.models._encode_decode.physics import PhysicsTrajectory, physics_parts, residual_drift
from physsm.models._encode_decode.scales import TrajectoryScales
from physsm.models._encode_decode.values import Timeline, Trajectory, Window
from physsm.models._network.observations import Observations
from physsm.nn.gaussian import Gaussian
from physsm.nn.mlp import MLP
from physsm.physics.system import System


class Config(PhysicsConfig):
    """Settings beside those of all models around physics.

    - `norm`: weight of the mean square of the learned part of the drift.
    """

    norm: float = Field(default=0.1, ge=0)


class AphynityNetwork(PhysicsTrajectory):
    """A trajectory of known equations and a learned part."""

    residual: MLP

    def infer(self, rows: Observations) -> Gaussian:
        """The latent start of each trajectory."""
        return self.start_posterior(rows)

    def trajectory(
        self, start: Float[Array, " latent"], times: Float[Array, " times"], timeline: Timeline
    ) -> Trajectory:
        """The solution with the sum of both parts."""
        known = self.physics.drift(self.unknowns(start), timeline)

        def drift(t: Array, z: Array) -> Array:
            return known(t, z) + self.learned(z)

        return self.solve(self.state(start), drift, times, timeline)

    def learned(self, z: Float[Array, "*steps n"]) -> Float[Array, "*steps n"]:
        """The learned part of the drift."""
        return jnp.asarray(self.scales.pace, z.dtype) * self.residual(z)

    def unknowns(self, start: Any) -> Float[Array, " unknowns"]:
        """The constants."""
        return self.physics.theta(self.constants)

    def penalty(
        self,
        window: Window,
        inferred: Any,
        start: Any,
        trajectory: Trajectory,
        key: PRNGKeyArray | None,
    ) -> Float[Array, ""]:
        """Weighted mean square of the learned part along the trajectory."""
        learned = self.residual(jax.lax.stop_gradient(trajectory.z))
        return self.config.norm * (learned**2).sum(-1).mean()


def build(system: System, scales: TrajectoryScales, config: Config, seed: int) -> AphynityNetwork:
    """The network before training."""
    rng, states = np.random.default_rng(seed), len(system.states)
    parts = cast(dict[str, Any], physics_parts(system, scales, config, states, rng))
    return AphynityNetwork(**parts, residual=residual_drift(states, config, states, rng))


@final
class FittedAphynity(FittedTrajectory):
    """A fitted neural ODE with known physics."""

    name: ClassVar[str] = "aphynity"
    Config = Config
    build = staticmethod(build)


@final
class Aphynity(PhysicsForecaster):
    """A neural ODE with known physics."""

    Fitted = FittedAphynity


MODEL = Aphynity
