"""A Kalman filter around any transition, and the smoother that goes back over its steps.

The filter linearises the transition and the measurements at the mean (extended Kalman filter).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.models._network.scales import StateScales
from physsm.models.phy_ssm.values import FilterSteps
from physsm.nn.gaussian import Gaussian
from physsm.nn.layers import parameter
from physsm.nn.parameter_groups import PHYSICAL, UNDECAYED

_LEAST_STD, _MOST_STD = 1e-4, 10.0  # of a filtered state, scaled
_START_STD = 2.0  # of a state before its first measurement, scaled
_START_NOISE = 0.03  # of a step before training, scaled
_START_ERROR = 0.1  # of a measurement before training, scaled
SMALLEST_VARIANCE = 1e-5  # of a measurement, scaled: for single precision
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


class Measurement(NamedTuple):
    """Measurements of functions of the state, with independent errors: measured minus predicted
    values, slopes of the functions, and precisions (one over a variance; 0: not measured).
    """

    innovation: Float[Array, " m"]
    slope: Float[Array, "m q"]
    precision: Float[Array, " m"]


def correct(
    mean: Float[Array, " q"], covariance: Float[Array, "q q"], measured: Measurement
) -> tuple[Float[Array, " q"], Float[Array, "q q"]]:
    """Mean and covariance given measurements.

    Errors of measurements are independent, so they are taken one after the other: each is a
    division by a number instead of a linear system, and a precision of zero needs no special case.
    """
    start = mean
    for j in range(measured.innovation.shape[0]):
        slope, precision = measured.slope[j], measured.precision[j]
        across = covariance @ slope
        gain = across * (precision / (1 + precision * (slope @ across)))
        mean = mean + gain * (measured.innovation[j] - slope @ (mean - start))
        covariance = covariance - gain[:, None] * across[None, :]
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


class Start(eqx.Module):
    """Distribution of the states before the first measurement: a mean that is linear in the scaled
    controls, and the root of the covariance. A grey box fits it; training leaves it unchanged.
    """

    mean: Float[Array, " n"] = eqx.field(metadata=UNDECAYED)
    slope: Float[Array, "n controls"] = eqx.field(metadata=UNDECAYED)
    root: Float[Array, "n n"] = eqx.field(metadata=UNDECAYED)

    def __init__(self, states: StateScales, controls: int):
        size = len(states.state_scale)
        self.mean = parameter(np.array(states.state_offset).reshape(size))
        self.slope = parameter(np.zeros((size, controls)))
        self.root = parameter(_START_STD * np.eye(size))

    def moments(self, controls: Float[Array, " controls"], series_std: Array) -> Moments:
        """Moments of states and series terms at the first time step."""
        mean, slope, root = jax.lax.stop_gradient((self.mean, self.slope, self.root))
        size, terms = len(mean), len(series_std)
        covariance = jnp.zeros((size + terms, size + terms), mean.dtype)
        covariance = covariance.at[:size, :size].set(root @ root.T)
        covariance = covariance + jnp.diag(jnp.concatenate([jnp.zeros_like(mean), series_std**2]))
        zeros = jnp.zeros_like(series_std)
        return Moments(jnp.concatenate([mean + slope @ controls, zeros]), covariance)


class Noises(eqx.Module):
    """Learned variances of the filter: noise of a transition per unit of time, errors of the
    channels, and the prior of the per-series unknowns.
    """

    log_noise: Float[Array, " states"] = eqx.field(metadata=PHYSICAL)
    log_error: Float[Array, " channels"] = eqx.field(metadata=PHYSICAL)
    log_series_std: Float[Array, " per_series"] = eqx.field(metadata=PHYSICAL)

    def __init__(self, states: StateScales, per_series: int):
        size, channels = len(states.state_scale), len(states.measured)
        self.log_noise = parameter(np.full(size, np.log(_START_NOISE)))
        self.log_error = parameter(np.full(channels, np.log(_START_ERROR)))
        self.log_series_std = parameter(np.zeros(per_series))

    def of_gap(self, gap: Float[Array, ""]) -> Float[Array, " q"]:
        """Variances that a gap adds; series terms do not change."""
        added = jnp.exp(self.log_noise) ** 2 * jnp.abs(gap)
        return jnp.concatenate([added, jnp.zeros_like(self.log_series_std)])

    def error_variance(self) -> Float[Array, " channels"]:
        """Variances of measurements of the channels, scaled."""
        return jnp.exp(2 * self.log_error) + SMALLEST_VARIANCE

    def predict(
        self,
        before: Moments,
        transition: Callable[[Array], Array],
        gap: Float[Array, ""],
    ) -> tuple[Moments, Float[Array, "q q"]]:
        """Moments after a gap, and the slope of the transition."""
        mean, covariance, slope = predict(*before, transition, self.of_gap(gap))
        return Moments(mean, bounded(covariance, _LEAST_STD, _MOST_STD)), slope

    def correct(self, prior: Moments, measured: Measurement) -> Moments:
        """Moments given the measurements of a time step."""
        mean, covariance = correct(*prior, measured)
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
