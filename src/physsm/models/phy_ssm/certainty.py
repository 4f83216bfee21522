"""How sure the constants of the physics are, given the rest of the model.

The parameters of a predictor that is fitted by its errors one step ahead scatter around the truth
with the covariance (sum of J' J / s²)⁻¹, where J is the slope of a prediction in the parameters and
s² the variance of the errors (Ljung, System Identification, 2nd ed., chapter 9). The errors are
taken as independent; what other parameters could make up for is left out.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.objective import as_arrays, predict
from physsm.models.phy_ssm.terms import in_physical_units, of_kind
from physsm.models.phy_ssm.unit import PhysicsUnit

_PRIOR = 1.0  # std of a constant in its natural size, before any data


def std_of_constants(network: Network, batch: Any) -> Float[np.ndarray, " unknowns"]:
    """One standard deviation of each `constant` unknown in physical units; 0 for the others.

    `batch` holds whole series without a target.
    """
    unit = network.unit
    assert isinstance(unit, PhysicsUnit)
    std = np.zeros(len(unit.system.unknowns))
    chosen = np.array(of_kind(unit.system, "constant"), int)
    if len(chosen):
        information = np.asarray(_information(network, batch), float)[np.ix_(chosen, chosen)]
        covariance = np.linalg.inv(information + np.eye(len(chosen)) / _PRIOR**2)
        slope = jax.jacfwd(lambda raw: in_physical_units(unit.system, unit.plan, raw))
        slopes = np.diagonal(np.asarray(slope(unit.constants)))
        std[chosen] = np.abs(slopes[chosen]) * np.sqrt(np.diagonal(covariance))
    return std


@eqx.filter_jit
def _information(network: Network, batch: Any) -> Float[Array, "unknowns unknowns"]:
    """The sum of J' J / s² over all measured cells that were predicted."""
    rows = as_arrays(batch, network.dtype)
    assert isinstance(network.unit, PhysicsUnit)

    def predicted(constants: Array) -> tuple[Array, Array]:
        changed = eqx.tree_at(lambda n: n.unit.constants, network, constants)  # type: ignore[attr-defined]
        _, channels = predict(changed, batch, rows.gaps.shape[0], None)
        return channels, channels

    slopes, channels = jax.jacfwd(predicted, has_aux=True)(network.unit.constants)
    weight = rows.observed[1:] * rows.valid[:-1, :, None]
    square = jnp.sum((channels - rows.values[1:]) ** 2 * weight, (0, 1))
    variance = square / jnp.maximum(weight.sum((0, 1)), 1) + 1e-12
    return jnp.einsum("tscu,tscv,tsc->uv", slopes, slopes, weight / variance[None, None])
