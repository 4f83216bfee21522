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

from physsm.models.phy_ssm.assimilate import correct, predict, within
from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.plan import Plan
from physsm.models.phy_ssm.unit import FreeUnit, PhysicsUnit, Unit
from physsm.nn.gaussian import Gaussian, gaussian
from physsm.nn.mlp import MLP, Dense
from physsm.nn.s5 import S5Stack
from physsm.physics.system import System

FAR = 100.0  # scaled: how far from its mean a state may go in a rollout
_CERTAIN, _VAGUE = -2.0, 1.0  # raw values of the encoder's std before training: 0.13 and 1.3
_LEAST_STD, _MOST_STD = 1e-4, 10.0  # of a filtered state, scaled
_START_STD = 2.0  # of a state before its first row, scaled
_START_NOISE = 0.03  # of the filter's steps before training, scaled
_SMALLEST_VARIANCE = 1e-4  # of what the encoder says: keeps single precision sound


class Observations(NamedTuple):
    """What the encoder reads, scaled: each channel's last shown value, whether it was shown in
    this row, the controls (in their units), and the gap before the row.
    """

    last: Float[Array, "*steps channels"]
    seen: Float[Array, "*steps channels"]
    controls: Float[Array, "*steps controls"]
    gaps: Float[Array, "*steps"]


class Inferred(NamedTuple):
    """What the encoder says of each row: the latent, and terms of the per-series unknowns."""

    posterior: Gaussian
    series_terms: Float[Array, "*steps per_series"]


class Boundary(NamedTuple):
    """All that the future depends on: the state of a stream after its last row.

    `covariance` is that of states and series terms together, where they are filtered, else empty;
    `is_started` is 1 from the first row on.
    """

    encoder: Float[Array, "depth states"]
    unit: Float[Array, "unit_depth unit_states"]
    posterior: Gaussian
    z_ext: Float[Array, " d"]
    features: Float[Array, " features"]
    series_terms: Float[Array, " per_series"]
    control: Float[Array, " controls"]
    covariance: Float[Array, "q q"]
    is_started: Float[Array, ""]


class Observed(NamedTuple):
    """The observed part: `predicted[i]` is row i+1 as predicted from row i, `prior[i]` likewise."""

    posterior: Gaussian
    z_ext: Float[Array, "steps d"]
    theta: Float[Array, "steps unknowns"]
    theta_std: Float[Array, "steps unknowns"]
    predicted: Float[Array, "before d"]
    prior: Gaussian
    boundary: Boundary


# How a batch of `Observed` is laid out: time first, then the series.
TIME_FIRST: Any = Observed(1, 1, 1, 1, 1, 1, boundary=0)  # type: ignore[arg-type]


class Rollout(NamedTuple):
    """The future: extended states, and the unknowns that led from each to the next."""

    z_ext: Float[Array, "steps d"]
    theta: Float[Array, "steps features"]


class Filter(eqx.Module):
    """What the filter learns: noise per unit of time, and how far series terms are apart."""

    log_noise: Float[Array, " states"]
    log_apart: Float[Array, " per_series"]

    def __init__(self, states: int, per_series: int):
        self.log_noise = jnp.full(states, np.log(_START_NOISE))
        self.log_apart = jnp.zeros(per_series)

    def noise(self, gap: Float[Array, ""]) -> Float[Array, " q"]:
        """Variances that a gap adds; series terms do not change."""
        added = jnp.exp(self.log_noise) ** 2 * jnp.abs(gap)
        return jnp.concatenate([added, jnp.zeros_like(self.log_apart)])

    def start_covariance(self, states: int) -> Float[Array, "q q"]:
        """Before the first row."""
        usual = jnp.full(states, _START_STD**2, self.log_noise.dtype)
        return jnp.diag(jnp.concatenate([usual, jnp.exp(self.log_apart) ** 2]))


class Network(eqx.Module):
    """Phy-SSM. `system` None: the same without physics, a plain S5 latent model."""

    perceptron: MLP
    encoder: S5Stack
    posterior_head: Dense
    series_head: Dense | None
    to_state: Dense | None
    prior_head: Dense | None
    decoder: MLP | None
    unit: Unit
    filter: Filter | None
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
        filters = config.assimilate and system is not None and config.latent is None
        self.filter = Filter(self.unit.size, per_series) if filters else None
        has_head = per_series and not filters
        self.series_head = Dense(width, per_series, keys[4], gain=0.1) if has_head else None
        needs_map = latent != self.unit.size or (config.latent is not None and system is not None)
        self.to_state = Dense(latent, self.unit.size, keys[5]) if needs_map else None
        self.prior_head = None if filters else Dense(extended, 2 * latent, keys[6])
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
        inferred = self._infer(hidden, rows)
        if self.filter is not None:
            return self._filtered(rows, inferred, encoder_states)
        z_ext = jax.vmap(self.unit.extend)(self._states(inferred.posterior, key))
        features, unit_states = self.unit.features(
            z_ext, rows.controls, rows.gaps, self.unit.start()
        )
        theta = jax.vmap(self.unit.theta)(features, inferred.series_terms)
        predicted = jax.vmap(self.unit.advance)(
            z_ext[:-1], theta[:-1], rows.controls[:-1], rows.controls[1:], rows.gaps[1:]
        )
        boundary = Boundary(
            encoder_states,
            unit_states,
            jax.tree.map(lambda leaf: leaf[-1], inferred.posterior),
            z_ext[-1],
            features[-1],
            inferred.series_terms[-1],
            rows.controls[-1],
            jnp.zeros((0, 0), self.dtype),
            jnp.ones((), self.dtype),
        )
        prior = self.prior(predicted)
        return Observed(
            inferred.posterior, z_ext, theta, jnp.zeros_like(theta), predicted, prior, boundary
        )

    def start(self) -> Boundary:
        """A stream before its first row."""
        latent = self.posterior_head.b.shape[0] // 2
        zeros = jnp.zeros(latent, self.dtype)
        size, per_series = self.unit.size, len(self.unit.per_series)
        z = self._like(self.plan.state_offset) if self.filter is not None else zeros[:size]
        z = z if len(z) == size else jnp.zeros(size, self.dtype)
        z_ext = self.unit.extend(z)
        u = jnp.zeros(len(self.plan.controls), self.dtype)
        features, _ = self.unit.feature_step(z_ext, u, jnp.zeros((), self.dtype), self.unit.start())
        covariance = jnp.zeros((0, 0), self.dtype)
        if self.filter is not None:
            covariance = self.filter.start_covariance(size)
        return Boundary(
            self.encoder.start(),
            self.unit.start(),
            gaussian(zeros, zeros),
            z_ext,
            features,
            jnp.zeros(per_series, self.dtype),
            u,
            covariance,
            jnp.zeros((), self.dtype),
        )

    def update(self, before: Boundary, row: Observations) -> Boundary:
        """The stream after one more row: what `observe` would give for all rows so far."""
        hidden, encoder_states = self.encoder.step(
            self.perceptron(self._inputs(row)), row.gaps, before.encoder
        )
        inferred = self._infer(hidden, row)
        if self.filter is not None:
            after, _ = self._filter_row(before, row, inferred)
            return after._replace(encoder=encoder_states)
        z_ext = self.unit.extend(self._states(inferred.posterior, None))
        features, unit_states = self.unit.feature_step(z_ext, row.controls, row.gaps, before.unit)
        return Boundary(
            encoder_states,
            unit_states,
            inferred.posterior,
            z_ext,
            features,
            inferred.series_terms,
            row.controls,
            before.covariance,
            jnp.ones((), self.dtype),
        )

    def _filtered(self, rows: Observations, inferred: Inferred, encoder_states: Array) -> Observed:
        """The observed part by a filter that goes from row to row."""

        def body(before: Boundary, now: tuple[Observations, Inferred]):
            after, (mean, std) = self._filter_row(before, *now)
            theta, theta_std = self._theta_with_std(after)
            return after, (after.posterior, after.z_ext, theta, theta_std, mean, std)

        end, seen = jax.lax.scan(body, self.start(), (rows, inferred))
        posterior, z_ext, theta, theta_std, mean, std = seen
        return Observed(
            posterior,
            z_ext,
            theta,
            theta_std,
            jax.vmap(self.unit.extend)(mean[1:]),
            Gaussian(mean[1:], std[1:]),
            end._replace(encoder=encoder_states),
        )

    def _filter_row(
        self, before: Boundary, row: Observations, inferred: Inferred
    ) -> tuple[Boundary, tuple[Array, Array]]:
        """One row of the filter, and the mean and std of its prediction.

        A row with a gap of zero is padding and changes nothing. The first row has no prediction:
        it starts from what is usual in the training data.
        """
        assert self.filter is not None
        size = self.unit.size
        state = jnp.concatenate([before.z_ext[:size], before.series_terms])

        def transition(state: Array) -> Array:
            theta = self.unit.theta(before.features, state[size:])
            after = self.unit.advance(
                self.unit.extend(state[:size]), theta, before.control, row.controls, row.gaps
            )
            return jnp.concatenate([after[:size], state[size:]])

        noise = self.filter.noise(row.gaps)
        mean, covariance = predict(state, before.covariance, transition, noise)
        is_started = before.is_started > 0
        mean = jnp.where(is_started, mean, state)
        covariance = jnp.where(is_started, covariance, before.covariance)
        covariance = within(covariance, _LEAST_STD, _MOST_STD)
        terms = jnp.zeros_like(before.series_terms)
        measured = jnp.concatenate([inferred.posterior.mean, terms])
        precision = jnp.concatenate([self._precision(row, inferred.posterior.std), terms])
        prior_std = jnp.sqrt(jnp.diagonal(covariance)[:size])
        prior = (mean[:size], prior_std)
        mean, covariance = correct(mean, covariance, measured, precision)
        covariance = within(covariance, _LEAST_STD, _MOST_STD)
        z_ext = self.within_reach(self.unit.extend(mean[:size]))
        features, unit_states = self.unit.feature_step(z_ext, row.controls, row.gaps, before.unit)
        after = Boundary(
            before.encoder,
            unit_states,
            Gaussian(z_ext[:size], jnp.sqrt(jnp.diagonal(covariance)[:size])),
            z_ext,
            features,
            mean[size:],
            row.controls,
            covariance,
            jnp.ones((), self.dtype),
        )
        is_row = row.gaps > 0
        return jax.tree.map(lambda new, old: jnp.where(is_row, new, old), after, before), prior

    def _precision(self, row: Observations, std: Array) -> Array:
        """How much the encoder's states count: those measured directly only where they were."""
        place = self._channel_of_state()
        shown = row.seen[np.maximum(place, 0)]
        counts = jnp.where(place >= 0, shown, jnp.ones_like(shown))
        return counts / (std**2 + _SMALLEST_VARIANCE)

    def _theta_with_std(self, boundary: Boundary) -> tuple[Array, Array]:
        """The unknowns, and their std from that of the series terms, to first order."""
        terms, size = boundary.series_terms, self.unit.size
        theta = self.unit.theta(boundary.features, terms)
        slope = jax.jacfwd(self.unit.theta, argnums=1)(boundary.features, terms)
        variance = (slope @ boundary.covariance[size:, size:] * slope).sum(-1)
        return theta, jnp.sqrt(jnp.maximum(variance, 0))

    def draw(self, boundary: Boundary, key: PRNGKeyArray) -> Boundary:
        """The boundary with a draw of its state (and series terms) instead of the mean."""
        if self.filter is None:
            z_ext = self.unit.extend(self._states(boundary.posterior, key))
            return boundary._replace(z_ext=z_ext)
        size = self.unit.size
        mean = jnp.concatenate([boundary.z_ext[:size], boundary.series_terms])
        jitter = 1e-9 * jnp.eye(len(mean), dtype=mean.dtype)
        root = jnp.linalg.cholesky(boundary.covariance + jitter)
        drawn = mean + root @ jr.normal(key, mean.shape, mean.dtype)
        return boundary._replace(z_ext=self.unit.extend(drawn[:size]), series_terms=drawn[size:])

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
            z_ext, features, unit_states, u = carry
            u_next, gap, noise = inputs
            theta = self.unit.theta(features, boundary.series_terms)
            z_next = self.unit.advance(z_ext, theta, u, u_next, gap)
            if key is not None:
                z_next = self._disturbed(z_next, noise, gap)
            z_next = self.within_reach(z_next)
            features, unit_states = self.unit.feature_step(z_next, u_next, gap, unit_states)
            return (z_next, features, unit_states, u_next), (z_next, theta)

        latent = self.posterior_head.b.shape[0] // 2
        shape = (gaps.shape[0], latent if key is not None else 0)
        noise = jnp.zeros(shape, self.dtype)
        noise = noise if key is None else jr.normal(key, shape, self.dtype)
        initial = (boundary.z_ext, boundary.features, boundary.unit, boundary.control)
        _, (z_ext, theta) = jax.lax.scan(body, initial, (controls, gaps, noise))
        return Rollout(z_ext, theta)

    def within_reach(self, z_ext: Float[Array, " d"]) -> Float[Array, " d"]:
        """The state, kept within its bounds and stopped where nothing is meant any more.

        A model that is still wrong may run away in a rollout; without a stop its gradients would
        be infinite, and it could not learn from its start.
        """
        size = self.unit.size
        lower, upper = self.unit.limits()
        centre = self._like(self.plan.state_offset) if self.plan.state_offset else 0.0
        z = jnp.clip(
            z_ext[:size], jnp.maximum(centre - FAR, lower), jnp.minimum(centre + FAR, upper)
        )
        is_inside = jnp.all(z == z_ext[:size])
        return jnp.where(is_inside, z_ext, self.unit.extend(z))

    def prior(self, predicted: Float[Array, "*steps d"]) -> Gaussian:
        """The distribution of the latent that a prediction implies.

        Where the latent is the state itself, the prediction is its mean, and only the spread is
        learned; else both are linear in the prediction.
        """
        assert self.prior_head is not None
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

    def _infer(self, hidden: Array, rows: Observations) -> Inferred:
        mean, raw = jnp.split(self.posterior_head(hidden), 2, axis=-1)
        if self.to_state is None and isinstance(self.unit, PhysicsUnit):
            mean = mean + self._measured_states(rows.last)
            raw = raw + self._start_of_std().reshape((1,) * (raw.ndim - 1) + (-1,))
        else:
            raw = raw + _CERTAIN
        empty = jnp.zeros((*hidden.shape[:-1], 0), hidden.dtype)
        terms = empty if self.series_head is None else self.series_head(hidden)
        return Inferred(gaussian(mean, raw), terms)

    def _start_of_std(self) -> Array:
        """Before training, the filter gets little from what the encoder says of states that are
        not measured.
        """
        is_measured = self._channel_of_state() >= 0
        vague = _VAGUE if self.filter is not None else _CERTAIN
        return self._like(tuple(_CERTAIN if known else vague for known in is_measured))

    def _channel_of_state(self) -> np.ndarray:
        """The channel that measures each state, or -1."""
        place = np.full(self.unit.size, -1)
        for channel, state in enumerate(self._grounded):
            if state >= 0:
                place[state] = channel
        return place

    def _measured_states(self, last: Array) -> Array:
        """Measured states as last seen, zero for the others: what the encoder corrects."""
        shape = (1,) * (last.ndim - 1) + (-1,)
        place = self._channel_of_state()
        shown = last[..., np.maximum(place, 0)] * (place >= 0).astype(last.dtype).reshape(shape)
        return shown + self._like(self.plan.state_offset).reshape(shape)

    def _states(self, posterior: Gaussian, key: PRNGKeyArray | None) -> Array:
        latent = posterior.mean
        if key is not None:
            noise = jr.normal(key, latent.shape, latent.dtype)
            latent = latent + posterior.std * noise
        return latent if self.to_state is None else self.to_state(latent)

    def _disturbed(self, z_ext: Array, noise: Array, gap: Array) -> Array:
        if self.filter is not None:
            std = jnp.sqrt(self.filter.noise(gap)[: self.unit.size])
        else:
            std = self.prior(z_ext).std
        shift = std * noise * jnp.where(gap > 0, 1, 0).astype(noise.dtype)
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
