"""A Kalman filter around any transition: predict, then correct by what was measured.

The transition is linearised at the mean (extended Kalman filter). Measurements are of single
components, each with a precision (one over its variance); a precision of zero is no measurement.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physsm.nn.solve import solve


def predict(
    mean: Float[Array, " q"],
    covariance: Float[Array, "q q"],
    transition: Callable[[Array], Array],
    noise: Float[Array, " q"],
) -> tuple[Float[Array, " q"], Float[Array, "q q"]]:
    """Mean and covariance after a transition that adds noise of the given variances."""

    def with_value(state: Array) -> tuple[Array, Array]:
        after = transition(state)
        return after, after

    jacobian, after = jax.jacfwd(with_value, has_aux=True)(mean)
    return after, _symmetric(jacobian @ covariance @ jacobian.T) + jnp.diag(noise)


def correct(
    mean: Float[Array, " q"],
    covariance: Float[Array, "q q"],
    measured: Float[Array, " q"],
    precision: Float[Array, " q"],
) -> tuple[Float[Array, " q"], Float[Array, "q q"]]:
    """Mean and covariance given measurements of the components.

    In the form P⁺ = (I + P W)⁻¹ P, which needs no inverse of P and takes precisions of zero.
    """
    information = jnp.eye(len(mean), dtype=mean.dtype) + covariance * precision[None, :]
    after = jax.vmap(solve, in_axes=(None, 1), out_axes=1)(information, covariance)
    after = _symmetric(after)
    return mean + after @ (precision * (measured - mean)), after


def _symmetric(matrix: Array) -> Array:
    return (matrix + matrix.T) / 2
