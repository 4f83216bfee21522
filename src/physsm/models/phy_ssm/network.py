"""The network: encoder, unit and decoder, on one series; `jax.vmap` with time in front for many.

Inside the observed part every step starts from the inferred state (one step ahead). After it, the
unit goes on from its own predictions (rollout).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.plan import Plan
from physsm.models.phy_ssm.unit import FreeUnit, PhysicsUnit, Unit
from physsm.nn.gaussian import Gaussian, gaussian
from physsm.nn.mlp import MLP, Dense
from physsm.nn.s5 import S5Stack
from physsm.physics.system import System


class Observations(NamedTuple):
    """What the encoder reads, scaled: each channel's last shown value, whether it was shown in
    this row, the controls (in their units), and the gap before the row.
    """

    last: Float[Array, "*steps channels"]
    seen: Float[Array, "*steps channels"]
    controls: Float[Array, "*steps controls"]
    gaps: Float[Array, "*steps"]


class Inferred(NamedTuple):
    """Of each row: the distribution of the latent, and the terms of the per-series unknowns."""

    posterior: Gaussian
    series_terms: Float[Array, "*steps per_series"]


class Boundary(NamedTuple):
    """All that the future depends on: the state of a stream after its last row."""

    encoder: Float[Array, "depth states"]
    unit: Float[Array, "unit_depth unit_states"]
    posterior: Gaussian
    z_ext: Float[Array, " d"]
    theta: Float[Array, " features"]
    series_terms: Float[Array, " per_series"]
    control: Float[Array, " controls"]


class Observed(NamedTuple):
    """The observed part: `predicted[i]` is row i+1 as predicted from row i."""

    posterior: Gaussian
    z_ext: Float[Array, "steps d"]
    theta: Float[Array, "steps features"]
    predicted: Float[Array, "before d"]
    boundary: Boundary


# How a batch of `Observed` is laid out: time first, then the series.
TIME_FIRST: Any = Observed(posterior=1, z_ext=1, theta=1, predicted=1, boundary=0)  # type: ignore[arg-type]


class Rollout(NamedTuple):
    """The future: extended states, and the unknowns that led from each to the next."""

    z_ext: Float[Array, "steps d"]
    theta: Float[Array, "steps features"]


class Network(eqx.Module):
    """Phy-SSM. `system` None: the same without physics, a plain S5 latent model."""

    perceptron: MLP
    encoder: S5Stack
    posterior_head: Dense
    series_head: Dense | None
    to_state: Dense | None
    prior_head: Dense
    decoder: MLP | None
    unit: Unit
    plan: Plan = eqx.field(static=True)
    config: Config = eqx.field(static=True)

    def __init__(self, system: System | None, plan: Plan, config: Config, key: PRNGKeyArray):
        keys = jr.split(key, 8)
        self.plan, self.config = plan, config
        channels, m = len(plan.channels), len(plan.controls)
        inputs = channels * (2 if plan.shows_missing else 1) + (m if config.physical_units else 0)
        width = config.encoder.width or 32
        first = config.encoder_perceptron
        self.perceptron = MLP(inputs, first.width, first.layers, width, keys[0])
        self.encoder = S5Stack(
            config.encoder.depth,
            width,
            config.encoder.states,
            keys[1],
            discretisation=config.discretisation,
            skip=config.skip,
        )
        if system is None:
            self.unit = FreeUnit(plan, config, keys[2])
            extended = self.unit.latent
        else:
            self.unit = PhysicsUnit(system, plan, config, keys[2])
            extended = len(system.names)
        latent = config.latent if system is not None and config.latent else self.unit.size
        self.posterior_head = Dense(width, 2 * latent, keys[3])
        per_series = len(self.unit.per_series)
        self.series_head = Dense(width, per_series, keys[4], gain=0.1) if per_series else None
        needs_map = latent != self.unit.size or (config.latent is not None and system is not None)
        self.to_state = Dense(latent, self.unit.size, keys[5]) if needs_map else None
        self.prior_head = Dense(extended, 2 * latent, keys[6])
        free = sum(state < 0 for state in self._grounded)
        last = config.decoder_perceptron
        self.decoder = MLP(extended, last.width, last.layers, free, keys[7]) if free else None

    @property
    def _grounded(self) -> tuple[int, ...]:
        return self.plan.grounded or (-1,) * len(self.plan.channels)

    @property
    def dtype(self) -> jnp.dtype:
        """The precision of the parameters."""
        return self.posterior_head.W.dtype

    # The observed part.

    def observe(self, rows: Observations, key: PRNGKeyArray | None) -> Observed:
        """Infer the states of all rows and predict each next row; means if there is no key."""
        hidden, encoder_states = self.encoder(
            self.perceptron(self._inputs(rows)), rows.gaps, self.encoder.start()
        )
        inferred = self._infer(hidden, rows.last)
        z_ext = jax.vmap(self.unit.extend)(self._states(inferred.posterior, key))
        theta, unit_states = self.unit.features(
            z_ext, rows.controls, rows.gaps, self.unit.start(), inferred.series_terms
        )
        predicted = jax.vmap(self.unit.advance)(
            z_ext[:-1], theta[:-1], rows.controls[:-1], rows.controls[1:], rows.gaps[1:]
        )
        boundary = Boundary(
            encoder_states,
            unit_states,
            jax.tree.map(lambda leaf: leaf[-1], inferred.posterior),
            z_ext[-1],
            theta[-1],
            inferred.series_terms[-1],
            rows.controls[-1],
        )
        return Observed(inferred.posterior, z_ext, theta, predicted, boundary)

    def start(self) -> Boundary:
        """A stream before its first row."""
        latent = self.posterior_head.b.shape[0] // 2
        zeros = jnp.zeros(latent, self.dtype)
        z = jnp.zeros(self.unit.size, self.dtype)
        z_ext = self.unit.extend(z)
        series_terms = jnp.zeros(len(self.unit.per_series), self.dtype)
        u = jnp.zeros(len(self.plan.controls), self.dtype)
        theta, _ = self.unit.feature_step(
            z_ext, u, jnp.zeros((), self.dtype), self.unit.start(), series_terms
        )
        return Boundary(
            self.encoder.start(),
            self.unit.start(),
            gaussian(zeros, zeros),
            z_ext,
            theta,
            series_terms,
            u,
        )

    def update(self, before: Boundary, row: Observations) -> Boundary:
        """The stream after one more row: what `observe` would give for all rows so far."""
        hidden, encoder_states = self.encoder.step(
            self.perceptron(self._inputs(row)), row.gaps, before.encoder
        )
        inferred = self._infer(hidden, row.last)
        z_ext = self.unit.extend(self._states(inferred.posterior, None))
        theta, unit_states = self.unit.feature_step(
            z_ext, row.controls, row.gaps, before.unit, inferred.series_terms
        )
        return Boundary(
            encoder_states,
            unit_states,
            inferred.posterior,
            z_ext,
            theta,
            inferred.series_terms,
            row.controls,
        )

    def draw(self, boundary: Boundary, key: PRNGKeyArray) -> Boundary:
        """The boundary with a draw of its state instead of the mean."""
        z_ext = self.unit.extend(self._states(boundary.posterior, key))
        return boundary._replace(z_ext=z_ext)

    # The future.

    def rollout(
        self,
        boundary: Boundary,
        controls: Float[Array, "steps controls"],
        gaps: Float[Array, " steps"],
        key: PRNGKeyArray | None = None,
    ) -> Rollout:
        """Go on from the boundary; `gaps[k]` is the time before future row k.

        With a key, each step adds a draw of the prior's spread: what the model leaves open.
        """

        def body(carry: tuple[Array, Array, Array, Array], inputs: tuple[Array, ...]):
            z_ext, theta, unit_states, u = carry
            u_next, gap, noise = inputs
            z_next = self.unit.advance(z_ext, theta, u, u_next, gap)
            if key is not None:
                z_next = self._disturbed(z_next, noise, gap)
            theta_next, unit_states = self.unit.feature_step(
                z_next, u_next, gap, unit_states, boundary.series_terms
            )
            return (z_next, theta_next, unit_states, u_next), (z_next, theta)

        latent = self.posterior_head.b.shape[0] // 2
        shape = (gaps.shape[0], latent if key is not None else 0)
        noise = jnp.zeros(shape, self.dtype)
        noise = noise if key is None else jr.normal(key, shape, self.dtype)
        initial = (boundary.z_ext, boundary.theta, boundary.unit, boundary.control)
        _, (z_ext, theta) = jax.lax.scan(body, initial, (controls, gaps, noise))
        return Rollout(z_ext, theta)

    def prior(self, predicted: Float[Array, "*steps d"]) -> Gaussian:
        """The distribution of the latent that a prediction implies.

        Where the latent is the state itself, the prediction is its mean, and only the spread is
        learned; else both are linear in the prediction.
        """
        mean, raw = jnp.split(self.prior_head(self._centred(predicted)), 2, axis=-1)
        if self.to_state is None:
            mean = predicted[..., : self.unit.size]
        return gaussian(mean, raw)

    def decode(self, z_ext: Float[Array, "*steps d"]) -> Float[Array, "*steps channels"]:
        """Scaled channels: measured states as they are, the others by the decoder network."""
        grounded = np.array(self._grounded)
        is_state = grounded >= 0
        shape = (1,) * (z_ext.ndim - 1) + (-1,)
        chosen = z_ext[..., np.maximum(grounded, 0)]
        offset = self._like(self.plan.state_offset or (0.0,))[np.maximum(grounded, 0)]
        direct = chosen - offset.reshape(shape)
        if self.decoder is None:
            return direct
        free = self.decoder(self._centred(z_ext))
        place = np.cumsum(~is_state) - 1
        return jnp.where(is_state.reshape(shape), direct, free[..., np.maximum(place, 0)])

    # Parts.

    def _inputs(self, rows: Observations) -> Array:
        parts = [rows.last]
        parts += [rows.seen] if self.plan.shows_missing else []
        if self.config.physical_units:
            shape = (1,) * (rows.controls.ndim - 1) + (-1,)
            shift = self._like(self.plan.control_shift).reshape(shape)
            scale = self._like(self.plan.control_scale).reshape(shape)
            parts.append((rows.controls - shift) / scale)
        return jnp.concatenate(parts, axis=-1)

    def _infer(self, hidden: Array, last: Array) -> Inferred:
        mean, raw = jnp.split(self.posterior_head(hidden), 2, axis=-1)
        if self.to_state is None and isinstance(self.unit, PhysicsUnit):
            mean = mean + self._measured_states(last)
        empty = jnp.zeros((*hidden.shape[:-1], 0), hidden.dtype)
        terms = empty if self.series_head is None else self.series_head(hidden)
        return Inferred(gaussian(mean, raw - 2), terms)

    def _measured_states(self, last: Array) -> Array:
        """Measured states as last seen, zero for the others: what the encoder corrects."""
        shape = (1,) * (last.ndim - 1) + (-1,)
        place = np.full(self.unit.size, -1)
        for channel, state in enumerate(self._grounded):
            if state >= 0:
                place[state] = channel
        shown = last[..., np.maximum(place, 0)] * (place >= 0).astype(last.dtype).reshape(shape)
        return shown + self._like(self.plan.state_offset).reshape(shape)

    def _states(self, posterior: Gaussian, key: PRNGKeyArray | None) -> Array:
        latent = posterior.mean
        if key is not None:
            noise = jr.normal(key, latent.shape, latent.dtype)
            latent = latent + posterior.std * noise
        return latent if self.to_state is None else self.to_state(latent)

    def _disturbed(self, z_ext: Array, noise: Array, gap: Array) -> Array:
        prior = self.prior(z_ext)
        shift = prior.std * noise * jnp.where(gap > 0, 1, 0).astype(noise.dtype)
        shift = shift if self.to_state is None else self.to_state.W @ shift
        return self.unit.extend(z_ext[: self.unit.size] + shift)

    def _centred(self, z_ext: Array) -> Array:
        if not self.plan.state_offset:
            return z_ext
        rest = z_ext.shape[-1] - len(self.plan.state_offset)
        offset = self._like((*self.plan.state_offset, *(0.0,) * rest))
        return z_ext - offset.reshape((1,) * (z_ext.ndim - 1) + (-1,))

    def _like(self, numbers: tuple[float, ...]) -> Array:
        return jnp.asarray(np.array(numbers, float), self.dtype)
