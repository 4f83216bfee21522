"""A Kalman filter around any transition: predict, then correct by what was measured.

The transition is linearised at the mean (extended Kalman filter). Measurements are of single
components, each with a precision (one over its variance); a precision of zero is no measurement.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


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


def within(covariance: Float[Array, "q q"], least: float, most: float) -> Float[Array, "q q"]:
    """The covariance with standard deviations between two numbers, correlations as they are.

    Keeps single precision sound where a transition stretches space without end.
    """
    variance = jnp.diagonal(covariance)
    factor = jnp.minimum(1, most * jax.lax.rsqrt(jnp.maximum(variance, least**2)))
    shrunk = covariance * factor[:, None] * factor[None, :]
    lacking = jnp.maximum(least**2 - jnp.diagonal(shrunk), 0)
    return shrunk + jnp.diag(lacking)


def _symmetric(matrix: Array) -> Array:
    return (matrix + matrix.T) / 2
