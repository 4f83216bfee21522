"""The filter: states and per-series unknowns inferred row by row around the unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.models._latent.plan import Plan
from physsm.models._latent.rows import Observations
from physsm.models.phy_ssm.assimilate import correct, predict, within
from physsm.nn.gaussian import Gaussian
from physsm.nn.layers import on_last_axis, parameter
from physsm.nn.parameter_groups import PHYSICAL

_LEAST_STD, _MOST_STD = 1e-4, 10.0  # of a filtered state, scaled
_START_STD = 2.0  # of a state before its first row, scaled
_START_NOISE = 0.03  # of a step before training, scaled
_START_ERROR = 0.1  # of a measurement before training, scaled
_SMALLEST_VARIANCE = 1e-4  # of a measurement, a hundredth of its scale: for single precision


class Belief(NamedTuple):
    """Mean and covariance of states and series terms together."""

    mean: Float[Array, " q"]
    covariance: Float[Array, "q q"]

    def std(self, size: int) -> Float[Array, " n"]:
        """Of the first `size` components."""
        return jnp.sqrt(jnp.diagonal(self.covariance)[:size])


class Filter(eqx.Module):
    """What the filter learns: noise per unit of time, errors of measurements, and how far series
    terms are apart.
    """

    log_noise: Float[Array, " states"] = eqx.field(metadata=PHYSICAL)
    log_error: Float[Array, " states"] = eqx.field(metadata=PHYSICAL)
    log_apart: Float[Array, " per_series"] = eqx.field(metadata=PHYSICAL)
    plan: Plan = eqx.field(static=True)

    def __init__(self, plan: Plan, per_series: int):
        self.plan = plan
        self.log_noise = parameter(np.full(len(plan.state_scale), np.log(_START_NOISE)))
        self.log_error = parameter(np.full(len(plan.state_scale), np.log(_START_ERROR)))
        self.log_apart = parameter(np.zeros(per_series))

    def start_covariance(self) -> Float[Array, "q q"]:
        """Before the first row."""
        usual = jnp.full_like(self.log_noise, _START_STD**2)
        return jnp.diag(jnp.concatenate([usual, jnp.exp(self.log_apart) ** 2]))

    def noise(self, gap: Float[Array, ""]) -> Float[Array, " q"]:
        """Variances that a gap adds; series terms do not change."""
        added = jnp.exp(self.log_noise) ** 2 * jnp.abs(gap)
        return jnp.concatenate([added, jnp.zeros_like(self.log_apart)])

    def predicted(
        self,
        before: Belief,
        transition: Callable[[Array], Array],
        gap: Float[Array, ""],
        is_started: Float[Array, ""],
    ) -> tuple[Belief, Float[Array, "q q"]]:
        """The belief about a row before it is read (about the first row, what is usual), and the
        slope of the transition.
        """
        mean, covariance, slope = predict(*before, transition, self.noise(gap))
        mean = jnp.where(is_started > 0, mean, before.mean)
        covariance = jnp.where(is_started > 0, covariance, before.covariance)
        return Belief(mean, within(covariance, _LEAST_STD, _MOST_STD)), slope

    def corrected(self, prior: Belief, row: Observations, encoded: Gaussian) -> Belief:
        """The belief after a row, given what the encoder says of its states."""
        nothing = jnp.zeros_like(self.log_apart)
        measured = jnp.concatenate([encoded.mean, nothing])
        precision = jnp.concatenate([self._precision(row, encoded.std), nothing])
        mean, covariance = correct(*prior, measured, precision)
        return Belief(mean, within(covariance, _LEAST_STD, _MOST_STD))

    def _precision(self, row: Observations, std: Array) -> Array:
        """How much the encoder's states count: those measured directly only where they were."""
        place = self.plan.channel_of_state
        shown = row.seen[place.clip(0)]
        counts = jnp.where(place >= 0, shown, jnp.ones_like(shown))
        return counts / jnp.where(place >= 0, self.error(), std**2 + _SMALLEST_VARIANCE)

    def surprise(
        self,
        prior: Gaussian,
        error: Float[Array, "steps batch channels"],
        weight: Float[Array, "steps batch channels"],
    ) -> Float[Array, ""]:
        """Minus the log likelihood of the measured states, each given all rows before it: the mean
        over cells of a channel, summed over channels. `error` is prediction minus measurement.
        """
        channels, variance = self.predicted_variance(prior)
        error, weight = error[..., channels], weight[..., channels]
        each = (error**2 / variance + jnp.log(variance)) / 2 * weight
        return (each.sum((0, 1)) / jnp.maximum(weight.sum((0, 1)), 1)).sum()

    def predicted_variance(self, prior: Gaussian) -> tuple[np.ndarray, Array]:
        """The channels that measure a state, and the variances of what they will show."""
        grounded = np.array(self.plan.grounded)
        channels = np.flatnonzero(grounded >= 0)
        states = grounded[channels]
        errors = on_last_axis(self.error()[states], prior.std)
        return channels, prior.std[..., states] ** 2 + errors

    def error(self) -> Float[Array, " n"]:
        """Variances of measurements of the states, scaled."""
        return jnp.exp(2 * self.log_error) + _SMALLEST_VARIANCE
