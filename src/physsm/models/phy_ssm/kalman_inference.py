"""Inference by a Kalman filter around the unit: states and per-series unknowns, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, PRNGKeyArray

from physsm.models._network.observations import Observations
from physsm.models._network.scales import Scales
from physsm.models.phy_ssm.abstract_unit import AbstractUnit
from physsm.models.phy_ssm.inference import AbstractInference, over_axes
from physsm.models.phy_ssm.kalman import Moments, Noises, Start
from physsm.models.phy_ssm.measurement import Instruments, channels_with_slopes, measurement
from physsm.models.phy_ssm.values import (
    Boundary,
    Drive,
    Encoded,
    FilteredState,
    FilterSteps,
    Inferred,
    Step,
    UnitState,
)
from physsm.nn.discretise import Discrete
from physsm.nn.layers import on_last_axis
from physsm.nn.linear_algebra import cholesky
from physsm.nn.recompute import lean_scan

Record = Callable[[Observations, Step, Moments, Array], Any]


class KalmanInference(AbstractInference):
    """A Kalman filter that predicts by the unit and corrects by the encoder's outputs."""

    noises: Noises  # learned variances of transitions and measurements
    first: Start  # distribution of the states before the first measurement
    scales: Scales
    uses_encoder: bool = eqx.field(static=True)  # its outputs measure states without a channel

    def __init__(self, scales: Scales, per_series: int, uses_encoder: bool):
        self.scales, self.uses_encoder = scales, uses_encoder
        self.noises = Noises(scales.states, per_series)
        self.noise_size = len(scales.states.state_scale)
        self.first = Start(scales.states, len(scales.table.controls))

    @property
    def _instruments(self) -> Instruments:
        return Instruments(self.noises.error_variance(), self.scales.states, self.uses_encoder)

    def start(self, unit: AbstractUnit) -> FilteredState:
        """The distribution of the start at the mean of the controls."""
        controls = jnp.zeros(len(self.scales.table.controls), unit.dtype)
        moments = self.first.moments(controls, jnp.exp(self.noises.log_series_std))
        return FilteredState(
            z_ext=unit.extend(moments.mean[: unit.size]),
            series_terms=jnp.zeros(len(unit.per_series), unit.dtype),
            covariance=moments.covariance,
            is_started=jnp.zeros((), unit.dtype),
        )

    def infer(
        self, unit: AbstractUnit, rows: Observations, encoded: Encoded, key: PRNGKeyArray | None
    ) -> Inferred:
        """The filter forwards in time. It draws nothing, so that it needs no key."""
        size = unit.size

        def record(row: Observations, after: Step, prior: Moments, slope: Array) -> Any:
            latent = after.latent
            posterior = Moments(latent.z_ext, latent.covariance).of_states(size)
            theta, theta_std = unit.theta_with_std(
                after.unit.features, latent.series_terms, latent.covariance[size:, size:]
            )
            slopes = channels_with_slopes(unit, prior.mean, row)[1]
            variance = jnp.einsum("cq,qp,cp->c", slopes, prior.covariance, slopes)
            return posterior, latent.z_ext, theta, theta_std, prior.of_states(size), variance

        end, recorded = self._filter(unit, rows, encoded, record)
        posterior, z_ext, theta, theta_std, prior, variance = recorded
        prior, variance = jax.tree.map(lambda leaf: leaf[1:], (prior, variance))
        return Inferred(
            posterior=posterior,
            z_ext=z_ext,
            theta=theta,
            theta_std=theta_std,
            predicted=over_axes(unit.extend, rows.gaps.ndim)(prior.mean),
            prior=prior,
            channel_variance=variance,
            latent=end.latent,
            unit=end.unit,
        )

    def filter_steps(self, unit: AbstractUnit, rows: Observations, encoded: Encoded) -> FilterSteps:
        """The filter at each time step, for a smoother."""

        def record(row: Observations, after: Step, prior: Moments, slope: Array) -> FilterSteps:
            latent = after.latent
            return FilterSteps(
                mean=jnp.concatenate([latent.z_ext[: unit.size], latent.series_terms]),
                covariance=latent.covariance,
                predicted=prior.mean,
                slope=slope,
                noise=self.noises.of_gap(row.gaps),
            )

        return self._filter(unit, rows, encoded, record)[1]

    def update(
        self, unit: AbstractUnit, before: Boundary, row: Observations, encoded: Encoded
    ) -> Boundary:
        """One step of the filter."""
        assert isinstance(before.latent, FilteredState)
        step = Step(before.latent, before.unit, before.control)
        after = self._step(unit, step, row, encoded, unit.discrete(row.gaps))[0]
        return before._replace(latent=after.latent, unit=after.unit, control=after.control)

    def draw(self, unit: AbstractUnit, latent: Any, key: PRNGKeyArray) -> FilteredState:
        """From the joint distribution of states and series terms."""
        mean = jnp.concatenate([latent.z_ext[: unit.size], latent.series_terms])
        drawn = mean + cholesky(latent.covariance) @ jr.normal(key, mean.shape, mean.dtype)
        z_ext = unit.extend(drawn[: unit.size])
        return latent._replace(z_ext=z_ext, series_terms=drawn[unit.size :])

    def disturb(self, unit: AbstractUnit, z_ext: Array, noise: Array, gap: Array) -> Array:
        """By the learned noise of a transition."""
        std = jnp.sqrt(self.noises.of_gap(gap)[: unit.size])
        shift = std * noise * jnp.where(gap > 0, 1, 0).astype(noise.dtype)
        return unit.extend(z_ext[: unit.size] + shift)

    def negative_log_likelihood(self, inferred: Inferred, error: Array, weight: Array) -> Array:
        """Mean over cells of each channel that the physics gives, summed over channels."""
        channels = self.scales.states.grounded_channels
        variance = self._total_variance(inferred)
        error, weight, variance = (part[..., channels] for part in (error, weight, variance))
        each = (error**2 / variance + jnp.log(variance)) / 2 * weight
        return (each.sum((0, 1)) / jnp.maximum(weight.sum((0, 1)), 1)).sum()

    def predicted_variance(self, inferred: Inferred, others: Array) -> Array:
        """That of the filter, for channels that the physics gives."""
        variance = self._total_variance(inferred)
        channels = self.scales.states.grounded_channels
        return others.at[..., channels].set(variance[..., channels])

    def _total_variance(self, inferred: Inferred) -> Array:
        own = inferred.channel_variance
        return own + on_last_axis(self.noises.error_variance(), own)

    def unknown_std(
        self, unit: AbstractUnit, rows: Observations, encoded: Encoded, inferred: Inferred
    ) -> Array:
        """From the covariance of the filter."""
        return inferred.theta_std

    def _filter(
        self, unit: AbstractUnit, rows: Observations, encoded: Encoded, record: Record
    ) -> tuple[Step, Any]:
        """The state after all time steps, and `record` of each: of its observations, the state
        after it, the prediction before it, and the slope of the transition to it.
        """
        batch, latent = rows.gaps.shape[1:], self.start(unit)
        control = jnp.zeros(rows.controls.shape[-1], unit.dtype)
        step = Step(latent, unit.start_state(latent.z_ext, control), control)
        start = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*batch, *leaf.shape)), step)

        def one(before: Step, row: Observations, encoded: Encoded, discrete: Discrete | None):
            after, prior, slope = self._step(unit, before, row, encoded, discrete)
            return after, record(row, after, prior, slope)

        each = over_axes(one, len(batch))
        inputs = (rows, encoded, unit.discrete(rows.gaps))
        return lean_scan(lambda before, now: each(before, *now), start, inputs)

    def _step(
        self,
        unit: AbstractUnit,
        before: Step,
        row: Observations,
        encoded: Encoded,
        discrete: Discrete | None,
    ) -> tuple[Step, Moments, Array]:
        """The state after one time step, the prediction before it, and the slope of the transition.
        A step with a gap of zero (padding) changes nothing.
        """
        size, latent = unit.size, before.latent
        drive = Drive(before.control, row.controls, row.gaps)

        def transition(state: Array) -> Array:
            theta = unit.theta(before.unit.features, state[size:])
            after = unit.advance(unit.extend(state[:size]), theta, drive)
            return jnp.concatenate([after[:size], state[size:]])

        state = jnp.concatenate([latent.z_ext[:size], latent.series_terms])
        prior, slope = self.noises.predict(Moments(state, latent.covariance), transition, row.gaps)
        scaled = self.scales.table.scale_controls(row.controls)
        first = self.first.moments(scaled, jnp.exp(self.noises.log_series_std))
        is_started = latent.is_started > 0
        prior = jax.tree.map(lambda later, start: jnp.where(is_started, later, start), prior, first)
        measured = measurement(self._instruments, unit, prior, row, encoded.posterior)
        moments = self.noises.correct(prior, measured)
        z_ext = unit.clip(unit.extend(moments.mean[:size]))
        features, carry = unit.feature_step(z_ext, row.controls, discrete, before.unit.carry)
        after = Step(
            latent=FilteredState(
                z_ext=z_ext,
                series_terms=moments.mean[size:],
                covariance=moments.covariance,
                is_started=jnp.ones((), unit.dtype),
            ),
            unit=UnitState(features, carry),
            control=row.controls,
        )
        is_step = row.gaps > 0
        after = jax.tree.map(lambda new, old: jnp.where(is_step, new, old), after, before)
        return after, prior, slope
