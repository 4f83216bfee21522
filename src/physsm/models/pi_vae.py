"""Physics-integrated VAE (Takeishi and Kalousis, 2021): physics with regularised learned parts.

Each window has an inferred start, an inferred auxiliary latent, and inferred unknowns. For the
unknowns, a network (the unmixer) first removes from the observations what physics does not explain.
The trajectory solves the equations plus a learned part that depends on the auxiliary latent (A).
Channels are decoded from the trajectory, plus another learned part (B). There are four predictions:
full, without A, without B, and by physics alone. Regularisers keep A and B from replacing physics.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, cast, final

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray
from pydantic import Field

from physsm.models._encode_decode.config import PhysicsConfig, Recurrent
from physsm.models._encode_decode.encoder import INITIAL_RAW_STD, ParameterEncoder
from physsm.models._encode_decode.fitted import FittedTrajectory
from physsm.models._encode_decode.forecaster import PhysicsForecaster
from physsm.models._encode_decode.physics import PhysicsTrajectory, physics_parts, residual_drift
from physsm.models._encode_decode.scales import TrajectoryScales
from physsm.models._encode_decode.values import Timeline, Trajectory, Window
from physsm.models._network.observations import Observations
from physsm.models._network.reductions import mean_square
from physsm.nn.gaussian import Gaussian, gaussian
from physsm.nn.mlp import MLP, Dense
from physsm.physics.system import System

_HALF_WIDTH = 3**0.5  # of a uniform distribution with variance 1


class Config(PhysicsConfig):
    """Settings beside those of all models around physics.

    - `parameter_encoder`: the bidirectional network that infers the unknowns of a window.
    - `consistency`, `unmixing`, `augmentation`: weights of the three regularisers (alpha, gamma and
      beta of the publication).
    """

    parameter_encoder: Recurrent = Recurrent(cell="lstm", width=16)
    consistency: float = Field(default=1e-2, ge=0)
    unmixing: float = Field(default=1e-3, ge=0)
    augmentation: float = Field(default=1e-1, ge=0)


class Inferred(NamedTuple):
    """The latent start, the auxiliary latent, and the inferred part of unknowns before bounds."""

    start: Gaussian
    auxiliary: Gaussian
    unknowns: Gaussian


class PartialPredictions(NamedTuple):
    """Predicted channels: full, without B, without A, and by physics alone."""

    full: Float[Array, "steps batch channels"]
    without_output: Float[Array, "steps batch channels"]
    without_drift: Float[Array, "steps batch channels"]
    physics: Float[Array, "steps batch channels"]


def inconsistency(
    predicted: PartialPredictions, weight: Float[Array, "steps batch channels"]
) -> Float[Array, ""]:
    """Mean squared effect of the learned parts, each alone and on top of the other."""
    pairs = (
        (predicted.without_output, predicted.physics),
        (predicted.without_drift, predicted.physics),
        (predicted.full, predicted.without_output),
        (predicted.full, predicted.without_drift),
    )
    total = sum((mean_square(one - other, weight) for one, other in pairs), jnp.zeros(()))
    return total / 4


class PhysicsVAENetwork(PhysicsTrajectory):
    """A trajectory of equations and a learned part, with auxiliary latents beside the states."""

    auxiliary_head: Dense
    unmixer: MLP
    parameter_encoder: ParameterEncoder
    drift: MLP
    output: MLP

    def infer(self, rows: Observations) -> Inferred:
        """Start and auxiliary latent, then unknowns from the unmixed observations."""
        hidden = self.encoder(rows)[0]
        (start, start_raw), (mean, raw) = (
            jnp.split(head(hidden), 2, axis=-1) for head in (self.head, self.auxiliary_head)
        )
        auxiliary = gaussian(mean, raw + INITIAL_RAW_STD)
        unknowns = self.parameter_encoder(self.unmixed(rows, auxiliary.mean))
        return Inferred(gaussian(start, start_raw + INITIAL_RAW_STD), auxiliary, unknowns)

    def unmixed(self, rows: Observations, auxiliary: Float[Array, "batch latent"]) -> Observations:
        """Observations with the part that the unmixer removes, given the auxiliary latent."""
        beside = jnp.broadcast_to(auxiliary, (*rows.last.shape[:-1], auxiliary.shape[-1]))
        change = self.unmixer(jnp.concatenate([rows.last, beside], axis=-1))
        return rows._replace(last=rows.last + change)

    def trajectory(
        self, start: Any, times: Float[Array, " times"], timeline: Timeline
    ) -> Trajectory:
        """States, with the auxiliary latent beside them."""
        known, pace = self.physics.drift(self.unknowns(start), timeline), self.scales.pace

        def rate(t: Array, z: Array) -> Array:
            added = self.drift(jnp.concatenate([z, start.auxiliary]))
            return known(t, z) + jnp.asarray(pace, z.dtype) * added

        solution = self.solve(self.state(start.start), rate, times, timeline)
        return _with_auxiliary(solution, start)

    def physics_trajectory(
        self, start: Any, times: Float[Array, " times"], timeline: Timeline
    ) -> Trajectory:
        """The same without the learned part of the drift."""
        drift = self.physics.drift(self.unknowns(start), timeline)
        solution = self.solve(self.state(start.start), drift, times, timeline)
        return _with_auxiliary(solution, start)

    def decode(
        self, z: Float[Array, "*steps d"], controls: Float[Array, "*steps controls"]
    ) -> Float[Array, "*steps channels"]:
        """Scaled channels from the states, plus the learned part of the output."""
        return self.decode_states(z, controls) + self.output(z)

    def decode_states(self, z: Array, controls: Array) -> Float[Array, "*steps channels"]:
        """Scaled channels from the states alone."""
        return self.decoder(z[..., : self.physics.size], controls)

    def unknowns(self, start: Any) -> Float[Array, " unknowns"]:
        """The unknowns of the window."""
        return self.unknowns_of(start.unknowns)

    def partial_predictions(
        self, start: Any, trajectory: Trajectory, timeline: Timeline
    ) -> tuple[PartialPredictions, Bool[Array, " batch"]]:
        """Predictions with and without the learned parts, at all time steps; and whether the solver
        reached the end with physics alone.
        """
        alone = jax.vmap(self.physics_trajectory, in_axes=(0, 1, 1), out_axes=1)
        physics = alone(start, timeline.times, timeline)
        predicted = PartialPredictions(
            full=self.decode(trajectory.z, timeline.controls),
            without_output=self.decode_states(trajectory.z, timeline.controls),
            without_drift=self.decode(physics.z, timeline.controls),
            physics=self.decode_states(physics.z, timeline.controls),
        )
        return predicted, physics.is_reached.all(0)

    def penalty(
        self,
        window: Window,
        inferred: Any,
        start: Any,
        trajectory: Trajectory,
        key: PRNGKeyArray | None,
    ) -> Float[Array, ""]:
        """The three regularisers."""
        config, context = self.config, len(window.rows.gaps)
        predicted, is_reached = self.partial_predictions(start, trajectory, window.timeline)
        # Physics alone may diverge where the whole does not: such windows have no weight.
        weight = window.weight * is_reached.astype(trajectory.z.dtype)[None, :, None]
        unmixed = self.unmixed(window.rows, inferred.auxiliary.mean).last
        by_physics = jax.lax.stop_gradient(predicted.physics[:context])
        seen = weight[:context] * window.rows.seen
        unmixing = mean_square(unmixed - by_physics, seen)
        total = config.consistency * inconsistency(predicted, weight) + config.unmixing * unmixing
        if key is None:
            return total
        # The key itself drew the starts.
        return total + config.augmentation * self.augmentation(window, start, jr.fold_in(key, 1))

    def augmentation(self, window: Window, start: Any, key: PRNGKeyArray) -> Float[Array, ""]:
        """Mean squared error of unknowns that are inferred from simulations with random unknowns.

        Simulations are by physics alone, so that nothing has to be unmixed.
        """
        shape = start.unknowns.shape
        drawn = jr.uniform(key, shape, self.dtype, -_HALF_WIDTH, _HALF_WIDTH)
        simulated = jax.lax.stop_gradient(start)._replace(unknowns=drawn)
        context = len(window.rows.gaps)
        timeline = jax.tree.map(lambda leaf: leaf[:context], window.timeline)
        alone = jax.vmap(self.physics_trajectory, in_axes=(0, 1, 1), out_axes=1)
        trajectory = alone(simulated, timeline.times, timeline)
        channels = self.decode_states(trajectory.z, timeline.controls)
        rows = window.rows._replace(last=channels, seen=jnp.ones_like(channels))
        inferred = self.parameter_encoder(jax.lax.stop_gradient(rows)).mean
        is_reached = trajectory.is_reached.all(0).astype(inferred.dtype)
        chosen = jnp.asarray(self.is_inferred, inferred.dtype)
        error = (inferred - drawn) ** 2 @ chosen / max(self.is_inferred.sum(), 1)
        return (error * is_reached).mean()


def _with_auxiliary(trajectory: Trajectory, start: Any) -> Trajectory:
    """The trajectory with the auxiliary latent beside the states."""
    latent = jnp.broadcast_to(start.auxiliary, (len(trajectory.z), len(start.auxiliary)))
    return trajectory._replace(z=jnp.concatenate([trajectory.z, latent], axis=-1))


def build(system: System, scales: TrajectoryScales, config: Config, seed: int) -> PhysicsVAENetwork:
    """The network before training."""
    rng, states = np.random.default_rng(seed), len(system.states)
    channels, latent = len(scales.table.channels), config.latent
    parts = cast(dict[str, Any], physics_parts(system, scales, config, states, rng))
    shape = config.start_perceptron
    return PhysicsVAENetwork(
        **parts,
        auxiliary_head=Dense(config.encoder.width, 2 * latent, rng),
        unmixer=MLP(channels + latent, shape.width, shape.layers, channels, rng, last_gain=0.01),
        parameter_encoder=ParameterEncoder(
            scales,
            config.encoder_perceptron,
            config.parameter_encoder,
            len(system.unknowns),
            rng,
        ),
        drift=residual_drift(states + latent, config, states, rng),
        output=MLP(states + latent, shape.width, shape.layers, channels, rng, last_gain=0.01),
    )


@final
class FittedPhysicsVAE(FittedTrajectory):
    """A fitted physics-integrated VAE."""

    name: ClassVar[str] = "pi_vae"
    Config = Config
    build = staticmethod(build)


@final
class PhysicsVAE(PhysicsForecaster):
    """A physics-integrated VAE with the equations of a system."""

    Fitted = FittedPhysicsVAE


MODEL = PhysicsVAE
