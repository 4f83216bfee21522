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

from physsm.models._latent.objective import mean_square
from physsm.models._latent.plan import Plan
from physsm.models._latent.rows import Observations
from physsm.models._trajectory.config import PhysicsConfig, Recurrent
from physsm.models._trajectory.encoder import CERTAIN, ParameterEncoder
from physsm.models._trajectory.fitted import FittedTrajectory
from physsm.models._trajectory.forecaster import PhysicsForecaster
from physsm.models._trajectory.physics import PhysicsPath, physics_parts, residual_drift
from physsm.models._trajectory.values import Course, Path, Window
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


class PhysicsVAENetwork(PhysicsPath):
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
        auxiliary = gaussian(mean, raw + CERTAIN)
        terms = self.parameter_encoder(self.cleaned(rows, auxiliary.mean))
        return Inferred(gaussian(start, start_raw + CERTAIN), auxiliary, terms)

    def cleaned(self, rows: Observations, auxiliary: Float[Array, "batch latent"]) -> Observations:
        """The rows, changed by what the auxiliary latent says of them."""
        beside = jnp.broadcast_to(auxiliary, (*rows.last.shape[:-1], auxiliary.shape[-1]))
        change = self.unmixer(jnp.concatenate([rows.last, beside], axis=-1))
        return rows._replace(last=rows.last + change)

    def path(self, start: Any, times: Float[Array, " times"], course: Course) -> Path:
        """States, with the auxiliary latent beside them."""
        known, pace = self.physics.drift(self.unknowns(start), course), self.pace

        def rate(t: Array, z: Array) -> Array:
            added = self.drift(jnp.concatenate([z, start.auxiliary]))
            return known(t, z) + jnp.asarray(pace, z.dtype) * added

        return self._beside(self.follow(self.state(start.start), rate, times, course), start)

    def physics_path(self, start: Any, times: Float[Array, " times"], course: Course) -> Path:
        """The same without the learned part."""
        drift = self.physics.drift(self.unknowns(start), course)
        return self._beside(self.follow(self.state(start.start), drift, times, course), start)

    def _beside(self, path: Path, start: Any) -> Path:
        latent = jnp.broadcast_to(start.auxiliary, (len(path.z), len(start.auxiliary)))
        return path._replace(z=jnp.concatenate([path.z, latent], axis=-1))

    def decode(
        self, z: Float[Array, "*steps d"], controls: Float[Array, "*steps controls"]
    ) -> Float[Array, "*steps channels"]:
        """From the states, plus the learned part of the output."""
        return self.decode_states(z, controls) + self.output(z)

    def decode_states(self, z: Array, controls: Array) -> Float[Array, "*steps channels"]:
        """From the states alone."""
        return self.emission(z[..., : self.physics.size], controls)

    def unknowns(self, start: Any) -> Float[Array, " unknowns"]:
        """Those of the window."""
        return self.unknowns_of(start.terms)

    def four(self, start: Any, path: Path, course: Course) -> tuple[Four, Bool[Array, " batch"]]:
        """Predictions with and without the auxiliary parts, at all rows; and whether physics alone
        could be followed to the end.
        """
        alone = jax.vmap(self.physics_path, in_axes=(0, 1, 1), out_axes=1)
        physics = alone(start, course.times, course)
        predicted = Four(
            self.decode(path.z, course.controls),
            self.decode_states(path.z, course.controls),
            self.decode(physics.z, course.controls),
            self.decode_states(physics.z, course.controls),
        )
        return predicted, physics.is_reached.all(0)

    def penalty(
        self, window: Window, inferred: Any, start: Any, path: Path, key: PRNGKeyArray | None
    ) -> Float[Array, ""]:
        """The three regularisers."""
        config, context = self.config, len(window.rows.gaps)
        four, is_reached = self.four(start, path, window.course)
        # Physics alone may run away where the whole does not: such windows say nothing here.
        weight = window.weight * is_reached.astype(path.z.dtype)[None, :, None]
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
        course = jax.tree.map(lambda leaf: leaf[:context], window.course)
        alone = jax.vmap(self.physics_path, in_axes=(0, 1, 1), out_axes=1)
        path = alone(simulated, course.times, course)
        shown = self.decode_states(path.z, course.controls)
        rows = window.rows._replace(last=shown, seen=jnp.ones_like(shown))
        found = self.parameter_encoder(jax.lax.stop_gradient(rows)).mean
        ends = path.is_reached.all(0).astype(found.dtype)
        chosen = jnp.asarray(self.is_inferred, found.dtype)
        distance = (found - drawn) ** 2 @ chosen / max(self.is_inferred.sum(), 1)
        return (distance * ends).mean()


def build(system: System, plan: Plan, config: Config, seed: int) -> PhysicsVAENetwork:
    """A network before its training."""
    rng, states = np.random.default_rng(seed), len(system.states)
    channels, latent = len(plan.channels), config.latent
    parts = cast(dict[str, Any], physics_parts(system, plan, config, states, rng))
    shape = config.start_perceptron
    return PhysicsVAENetwork(
        **parts,
        auxiliary_head=Dense(config.encoder.width, 2 * latent, rng),
        unmixer=MLP(channels + latent, shape.width, shape.layers, channels, rng, last_gain=0.01),
        parameter_encoder=ParameterEncoder(
            plan,
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

    name: ClassVar[str] = "pi_vae"
    Config = Config
    Fitted = FittedPhysicsVAE


MODEL = PhysicsVAE
