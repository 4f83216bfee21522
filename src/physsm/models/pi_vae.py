"""Physics-integrated VAE (Takeishi and Kalousis, 2021): physics, and auxiliary parts kept from
taking its place.

Of each window are inferred a start, an auxiliary latent, and, from rows that a network (the
unmixer) has cleaned of what physics does not explain, the unknowns. The path follows the equations
plus a learned part that depends on the auxiliary latent (A); channels are decoded from it, plus
another learned part (B). With either part taken away there are four predictions: full, without A,
without B, and physics alone.
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

_REACH = 3**0.5  # of a uniform distribution with the variance 1


class Config(PhysicsConfig):
    """Settings beside those of all models around physics.

    - `parameter_encoder`: what reads cleaned rows both ways, for the unknowns.
    - `consistency`, `unmixing`, `augmentation`: weights of the three regularisers (alpha, gamma and
      beta of the publication).
    """

    parameter_encoder: Recurrent = Recurrent(cell="lstm", width=16)
    consistency: float = Field(default=1e-2, ge=0)
    unmixing: float = Field(default=1e-3, ge=0)
    augmentation: float = Field(default=1e-1, ge=0)


class Inferred(NamedTuple):
    """The latent start, the auxiliary latent, and the unknowns before bounds, less constants."""

    start: Gaussian
    auxiliary: Gaussian
    terms: Gaussian


class Four(NamedTuple):
    """Predicted channels: full, without B, without A, and by physics alone."""

    full: Float[Array, "rows batch channels"]
    without_output: Float[Array, "rows batch channels"]
    without_drift: Float[Array, "rows batch channels"]
    physics: Float[Array, "rows batch channels"]


def inconsistency(four: Four, weight: Float[Array, "rows batch channels"]) -> Float[Array, ""]:
    """How much the auxiliary parts change, each alone and on top of the other."""
    pairs = (
        (four.without_output, four.physics),
        (four.without_drift, four.physics),
        (four.full, four.without_output),
        (four.full, four.without_drift),
    )
    total = sum((mean_square(one - other, weight) for one, other in pairs), jnp.zeros(()))
    return total / 4


class PhysicsVAENetwork(PhysicsTrajectory):
    """A path under equations and a learned part, with auxiliary latents beside the states."""

    auxiliary_head: Dense
    unmixer: MLP
    parameter_encoder: ParameterEncoder
    drift: MLP
    output: MLP

    def infer(self, rows: Observations) -> Inferred:
        """In turn: start and auxiliary latent, cleaned rows, unknowns."""
        hidden = self.encoder(rows)[0]
        (start, start_raw), (mean, raw) = (
            jnp.split(head(hidden), 2, axis=-1) for head in (self.head, self.auxiliary_head)
        )
        auxiliary = gaussian(mean, raw + INITIAL_RAW_STD)
        terms = self.parameter_encoder(self.cleaned(rows, auxiliary.mean))
        return Inferred(gaussian(start, start_raw + INITIAL_RAW_STD), auxiliary, terms)

    def cleaned(self, rows: Observations, auxiliary: Float[Array, "batch latent"]) -> Observations:
        """The rows, changed by what the auxiliary latent says of them."""
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

        return self._beside(self.follow(self.state(start.start), rate, times, timeline), start)

    def physics_trajectory(
        self, start: Any, times: Float[Array, " times"], timeline: Timeline
    ) -> Trajectory:
        """The same without the learned part."""
        drift = self.physics.drift(self.unknowns(start), timeline)
        return self._beside(self.follow(self.state(start.start), drift, times, timeline), start)

    def _beside(self, trajectory: Trajectory, start: Any) -> Trajectory:
        latent = jnp.broadcast_to(start.auxiliary, (len(trajectory.z), len(start.auxiliary)))
        return trajectory._replace(z=jnp.concatenate([trajectory.z, latent], axis=-1))

    def decode(
        self, z: Float[Array, "*steps d"], controls: Float[Array, "*steps controls"]
    ) -> Float[Array, "*steps channels"]:
        """From the states, plus the learned part of the output."""
        return self.decode_states(z, controls) + self.output(z)

    def decode_states(self, z: Array, controls: Array) -> Float[Array, "*steps channels"]:
        """From the states alone."""
        return self.decoder(z[..., : self.physics.size], controls)

    def unknowns(self, start: Any) -> Float[Array, " unknowns"]:
        """Those of the window."""
        return self.unknowns_of(start.terms)

    def four(
        self, start: Any, trajectory: Trajectory, timeline: Timeline
    ) -> tuple[Four, Bool[Array, " batch"]]:
        """Predictions with and without the auxiliary parts, at all rows; and whether physics alone
        could be followed to the end.
        """
        alone = jax.vmap(self.physics_trajectory, in_axes=(0, 1, 1), out_axes=1)
        physics = alone(start, timeline.times, timeline)
        predicted = Four(
            self.decode(trajectory.z, timeline.controls),
            self.decode_states(trajectory.z, timeline.controls),
            self.decode(physics.z, timeline.controls),
            self.decode_states(physics.z, timeline.controls),
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
        four, is_reached = self.four(start, trajectory, window.timeline)
        # Physics alone may run away where the whole does not: such windows say nothing here.
        weight = window.weight * is_reached.astype(trajectory.z.dtype)[None, :, None]
        cleaned = self.cleaned(window.rows, inferred.auxiliary.mean).last
        by_physics = jax.lax.stop_gradient(four.physics[:context])
        shown = weight[:context] * window.rows.seen
        unmixed = mean_square(cleaned - by_physics, shown)
        total = config.consistency * inconsistency(four, weight) + config.unmixing * unmixed
        if key is None:
            return total
        # The key itself has drawn the starts.
        return total + config.augmentation * self.augmentation(window, start, jr.fold_in(key, 1))

    def augmentation(self, window: Window, start: Any, key: PRNGKeyArray) -> Float[Array, ""]:
        """How far unknowns of windows, drawn at random, are from those that are inferred of a
        simulation with them: by physics alone, so its rows need no cleaning.
        """
        shape = start.terms.shape
        drawn = jr.uniform(key, shape, self.dtype, -_REACH, _REACH)
        simulated = jax.lax.stop_gradient(start)._replace(terms=drawn)
        context = len(window.rows.gaps)
        timeline = jax.tree.map(lambda leaf: leaf[:context], window.timeline)
        alone = jax.vmap(self.physics_trajectory, in_axes=(0, 1, 1), out_axes=1)
        trajectory = alone(simulated, timeline.times, timeline)
        shown = self.decode_states(trajectory.z, timeline.controls)
        rows = window.rows._replace(last=shown, seen=jnp.ones_like(shown))
        found = self.parameter_encoder(jax.lax.stop_gradient(rows)).mean
        ends = trajectory.is_reached.all(0).astype(found.dtype)
        chosen = jnp.asarray(self.is_inferred, found.dtype)
        distance = (found - drawn) ** 2 @ chosen / max(self.is_inferred.sum(), 1)
        return (distance * ends).mean()


def build(system: System, scales: TrajectoryScales, config: Config, seed: int) -> PhysicsVAENetwork:
    """A network before its training."""
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
    """A physics-integrated VAE around any system."""

    Fitted = FittedPhysicsVAE


MODEL = PhysicsVAE
