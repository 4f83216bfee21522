"""A Kalman filter around any transition, and the smoother that goes back over its steps.

The filter linearises the transition at the mean (extended Kalman filter). A measurement is of one
component, with a precision (one over its variance); a precision of zero is no measurement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.models._network.observations import Observations
from physsm.models._network.scales import StateScales
from physsm.models.phy_ssm.values import FilterSteps
from physsm.nn.gaussian import Gaussian
from physsm.nn.layers import on_last_axis, parameter
from physsm.nn.parameter_groups import PHYSICAL

_LEAST_STD, _MOST_STD = 1e-4, 10.0  # of a filtered state, scaled
_START_STD = 2.0  # of a state before its first measurement, scaled
_START_NOISE = 0.03  # of a step before training, scaled
_START_ERROR = 0.1  # of a measurement before training, scaled
_SMALLEST_VARIANCE = 1e-4  # of a measurement, scaled: for single precision
_RIDGE = 1e-12  # relative: keeps the covariance of a component without noise invertible


def predict(
    mean: Float[Array, " q"],
    covariance: Float[Array, "q q"],
    transition: Callable[[Array], Array],
    noise: Float[Array, " q"],
) -> tuple[Float[Array, " q"], Float[Array, "q q"], Float[Array, "q q"]]:
    """Mean and covariance after a transition that adds noise of the given variances, and the slope
    of the transition.
    """

    def with_value(state: Array) -> tuple[Array, Array]:
        after = transition(state)
        return after, after

    jacobian, after = jax.jacfwd(with_value, has_aux=True)(mean)
    return after, _symmetric(jacobian @ covariance @ jacobian.T) + jnp.diag(noise), jacobian


def correct(
    mean: Float[Array, " q"],
    covariance: Float[Array, "q q"],
    measured: Float[Array, " q"],
    precision: Float[Array, " q"],
) -> tuple[Float[Array, " q"], Float[Array, "q q"]]:
    """Mean and covariance given measurements of the components.

    Errors of measurements are independent, so they are taken one after the other: each is a
    division by a number instead of a linear system, and a precision of zero needs no special case.
    """
    for j in range(mean.shape[0]):
        gain = covariance[:, j] * (precision[j] / (1 + precision[j] * covariance[j, j]))
        mean = mean + gain * (measured[j] - mean[j])
        covariance = covariance - gain[:, None] * covariance[None, j]
    return mean, _symmetric(covariance)


def bounded(covariance: Float[Array, "q q"], least: float, most: float) -> Float[Array, "q q"]:
    """The covariance with standard deviations between two numbers and the same correlations.

    Keeps single precision sound where a transition stretches space without end.
    """
    variance = jnp.diagonal(covariance)
    factor = jnp.minimum(1, most * jax.lax.rsqrt(jnp.maximum(variance, least**2)))
    shrunk = covariance * factor[:, None] * factor[None, :]
    lacking = jnp.maximum(least**2 - jnp.diagonal(shrunk), 0)
    return shrunk + jnp.diag(lacking)


def _symmetric(matrix: Array) -> Array:
    return (matrix + matrix.T) / 2


class Moments(NamedTuple):
    """Mean and covariance of states and series terms together."""

    mean: Float[Array, " q"]
    covariance: Float[Array, "q q"]

    def of_states(self, size: int) -> Gaussian:
        """Mean and standard deviation of the first `size` components."""
        return Gaussian(self.mean[:size], jnp.sqrt(jnp.diagonal(self.covariance)[:size]))


class Noises(eqx.Module):
    """Learned variances of the filter: noise of a transition per unit of time, errors of
    measurements, and the prior of the per-series unknowns.
    """

    log_noise: Float[Array, " states"] = eqx.field(metadata=PHYSICAL)
    log_error: Float[Array, " states"] = eqx.field(metadata=PHYSICAL)
    log_series_std: Float[Array, " per_series"] = eqx.field(metadata=PHYSICAL)
    states: StateScales = eqx.field(static=True)

    def __init__(self, states: StateScales, per_series: int):
        self.states, size = states, len(states.state_scale)
        self.log_noise = parameter(np.full(size, np.log(_START_NOISE)))
        self.log_error = parameter(np.full(size, np.log(_START_ERROR)))
        self.log_series_std = parameter(np.zeros(per_series))

    def start_covariance(self) -> Float[Array, "q q"]:
        """Covariance of states and series terms before the first measurement."""
        wide = jnp.full_like(self.log_noise, _START_STD**2)
        return jnp.diag(jnp.concatenate([wide, jnp.exp(self.log_series_std) ** 2]))

    def of_gap(self, gap: Float[Array, ""]) -> Float[Array, " q"]:
        """Variances that a gap adds; series terms do not change."""
        added = jnp.exp(self.log_noise) ** 2 * jnp.abs(gap)
        return jnp.concatenate([added, jnp.zeros_like(self.log_series_std)])

    def error_variance(self) -> Float[Array, " n"]:
        """Variances of measurements of the states, scaled."""
        return jnp.exp(2 * self.log_error) + _SMALLEST_VARIANCE

    def predicted_variance(self, prior: Gaussian) -> tuple[np.ndarray, Array]:
        """The channels that measure a state, and the variances of their measurements."""
        measured = np.array(self.states.measured)
        channels = np.flatnonzero(measured >= 0)
        states = measured[channels]
        errors = on_last_axis(self.error_variance()[states], prior.std)
        return channels, prior.std[..., states] ** 2 + errors

    def negative_log_likelihood(
        self,
        prior: Gaussian,
        error: Float[Array, "steps batch channels"],
        weight: Float[Array, "steps batch channels"],
    ) -> Float[Array, ""]:
        """The mean over cells of each channel that measures a state, summed over channels."""
        channels, variance = self.predicted_variance(prior)
        error, weight = error[..., channels], weight[..., channels]
        each = (error**2 / variance + jnp.log(variance)) / 2 * weight
        return (each.sum((0, 1)) / jnp.maximum(weight.sum((0, 1)), 1)).sum()

    def predict(
        self,
        before: Moments,
        transition: Callable[[Array], Array],
        gap: Float[Array, ""],
        is_started: Float[Array, ""],
    ) -> tuple[Moments, Float[Array, "q q"]]:
        """Moments before a measurement (before the first one, those of the start), and the slope
        of the transition.
        """
        mean, covariance, slope = predict(*before, transition, self.of_gap(gap))
        mean = jnp.where(is_started > 0, mean, before.mean)
        covariance = jnp.where(is_started > 0, covariance, before.covariance)
        return Moments(mean, bounded(covariance, _LEAST_STD, _MOST_STD)), slope

    def correct(self, prior: Moments, row: Observations, posterior: Gaussian) -> Moments:
        """Moments after a time step, with the encoder's output as its measurement. States that a
        channel measures count only where it did.
        """
        place = self.states.channel_of_state
        shown = row.seen[place.clip(0)]
        counts = jnp.where(place >= 0, shown, jnp.ones_like(shown))
        vague = posterior.std**2 + _SMALLEST_VARIANCE
        precision = counts / jnp.where(place >= 0, self.error_variance(), vague)
        nothing = jnp.zeros_like(self.log_series_std)
        mean, covariance = correct(
            *prior,
            jnp.concatenate([posterior.mean, nothing]),
            jnp.concatenate([precision, nothing]),
        )
        return Moments(mean, bounded(covariance, _LEAST_STD, _MOST_STD))


def smooth(
    steps: FilterSteps,
) -> tuple[Float[np.ndarray, "steps series q"], Float[np.ndarray, "steps series q q"]]:
    """Means and covariances given all measurements of a series, later ones included (Rauch, Tung
    and Striebel, 1965). In double precision: it divides by covariances that the filter has made
    small.
    """
    mean, covariance, predicted, slope, noise = (np.array(part, float) for part in steps)
    q = mean.shape[-1]
    for i in range(len(mean) - 2, -1, -1):
        step = slope[i + 1]
        cross = step @ covariance[i]
        prior = cross @ step.swapaxes(-1, -2) + noise[i + 1][..., None] * np.eye(q)
        size = np.trace(prior, axis1=-2, axis2=-1)[..., None, None]
        gain = np.linalg.solve(prior + _RIDGE * size * np.eye(q), cross).swapaxes(-1, -2)
        innovation = mean[i + 1] - predicted[i + 1]
        mean[i] += (gain @ innovation[..., None])[..., 0]
        covariance[i] += gain @ (covariance[i + 1] - prior) @ gain.swapaxes(-1, -2)
    return mean, covariance
