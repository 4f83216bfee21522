"""Known physics as the drift of a trajectory, in scaled states and the network's unit of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.random import Generator

from physsm.models._encode_decode.config import PhysicsConfig
from physsm.models._encode_decode.decoder import TrajectoryDecoder
from physsm.models._encode_decode.encoder import ReversedEncoder
from physsm.models._encode_decode.latent_ode import start_posterior
from physsm.models._encode_decode.network import AbstractEncodeDecode
from physsm.models._encode_decode.scales import TrajectoryScales
from physsm.models._encode_decode.values import Timeline, Trajectory
from physsm.models._network import unknowns
from physsm.models._network.observations import Observations
from physsm.nn.gaussian import Gaussian
from physsm.nn.interpolation import interpolate_linear
from physsm.nn.layers import on_last_axis
from physsm.nn.mlp import MLP, Dense
from physsm.nn.ode import Drift, Nodes, solve_ode
from physsm.nn.parameter_groups import PHYSICAL
from physsm.physics.bounds import limits
from physsm.physics.system import System

_SMALL = 0.01  # initial gain of a network that corrects the known drift


class KnownPhysics(eqx.Module):
    """The equations of a system, without trained parameters."""

    system: System = eqx.field(static=True)
    scales: TrajectoryScales
    uses_controls: bool = eqx.field(static=True)

    @property
    def size(self) -> int:
        """The number of states."""
        return len(self.system.states)

    def theta(self, raw: Float[Array, " unknowns"]) -> Float[Array, " unknowns"]:
        """Unknowns in physical units, within their bounds, from unbounded numbers."""
        return unknowns.in_physical_units(self.system, self.scales, raw, is_implicit=False)

    def drift(self, theta: Float[Array, " unknowns"], timeline: Timeline) -> Drift:
        """The drift as a function of time and scaled state. States are clipped to their bounds."""
        scale = on_last_axis(self.scales.states.state_scale, theta)
        time_scale = jnp.asarray(self.scales.table.time_scale, theta.dtype)
        lower, upper = (jnp.asarray(end, theta.dtype) for end in limits(self.system.state_bounds))
        controls = self._signal(timeline)

        def rate(t: Array, z: Array) -> Array:
            state = jnp.clip(z * scale, lower, upper)
            return self.system.drift(theta, state, controls(t)) * (time_scale / scale)

        return rate

    def nodes(self, timeline: Timeline, spacing: Any) -> Nodes:
        """Times at which solver steps must end: time steps, if the controls have a kink there; else
        multiples of `spacing`.
        """
        return timeline.times if self.uses_controls and self.system.controls else spacing

    def _signal(self, timeline: Timeline) -> Callable[[Array], Array]:
        """Controls of the physics as a function of time: linear between time steps, or their
        training means.
        """
        used = np.array(
            [self.scales.table.controls.index(name) for name in self.system.controls], int
        )
        values = timeline.controls[:, used]
        if not self.uses_controls or not len(used):
            means = jnp.asarray(self.scales.table.control_shift, values.dtype)[used]
            return lambda _: means

        return lambda t: interpolate_linear(t, timeline.times, values)


class PhysicsTrajectory(AbstractEncodeDecode):
    """A trajectory of physical states, from a start that an encoder infers.

    `to_state` maps the latent start to scaled states. `constants` are the unknowns before bounds,
    without the part that is inferred for each window.
    """

    encoder: ReversedEncoder
    head: Dense
    to_state: MLP
    constants: Float[Array, " unknowns"] = eqx.field(metadata=PHYSICAL)
    physics: KnownPhysics

    @property
    def physics_text(self) -> str:
        """The text of the physics."""
        return self.physics.system.text

    def start_posterior(self, rows: Observations) -> Gaussian:
        """The latent start of each trajectory."""
        return start_posterior(self.head, self.encoder(rows))

    @property
    def is_inferred(self) -> Float[np.ndarray, " unknowns"]:
        """1 for unknowns of a window, 0 for those that the text calls constant."""
        constant = unknowns.of_kind(self.physics.system, "constant")
        return np.array(
            [float(i not in constant) for i in range(len(self.physics.system.unknowns))]
        )

    def unknowns_of(self, inferred: Float[Array, " unknowns"]) -> Float[Array, " unknowns"]:
        """Unknowns of a window in physical units: constants plus the inferred part.

        An unknown that the text calls constant has no inferred part.
        """
        chosen = jnp.asarray(self.is_inferred, inferred.dtype)
        return self.physics.theta(self.constants + inferred * chosen)

    def state(self, latent: Float[Array, " latent"]) -> Float[Array, " n"]:
        """Scaled states from a latent start."""
        return on_last_axis(self.scales.states.state_offset, latent) + self.to_state(latent)

    def solve(
        self,
        start: Float[Array, " n"],
        drift: Drift,
        times: Float[Array, " times"],
        timeline: Timeline,
    ) -> Trajectory:
        """The trajectory of a drift from a scaled state."""
        nodes = self.physics.nodes(timeline, self.scales.node)
        solution = solve_ode(drift, start, times, self.config.solver, nodes)
        return Trajectory(solution.states, solution.is_reached)


def physics_parts(
    system: System, scales: TrajectoryScales, config: PhysicsConfig, size: int, rng: Generator
) -> dict[str, object]:
    """Parts of every network with known physics; the decoder has `size` inputs."""
    shape, width = config.start_perceptron, config.encoder.width
    states = len(system.states)
    return {
        "decoder": TrajectoryDecoder(scales, config, size, rng),
        "scales": scales,
        "config": config,
        "encoder": ReversedEncoder(scales, config.encoder_perceptron, config.encoder, rng),
        "head": Dense(width, 2 * config.latent, rng),
        "to_state": MLP(config.latent, shape.width, shape.layers, states, rng),
        "constants": unknowns.starts(system, scales),
        "physics": KnownPhysics(system, scales, config.controls_in_physics),
    }


def residual_drift(inputs: int, config: PhysicsConfig, states: int, rng: Generator) -> MLP:
    """A network that is added to the known drift, nearly zero before training."""
    shape = config.drift
    return MLP(inputs, shape.width, shape.layers, states, rng, activation="tanh", last_gain=_SMALL)
