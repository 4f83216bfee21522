"""How sure the constants of the physics are, given the rest of the model.

With J the slope of a prediction one row ahead in the constants, e its error and s² the variance of
the errors, H = sum of J'J/s² is the information in the data, and g = sum of J'e/s² the direction in
which the constants would predict better. An estimate that is fitted by its errors scatters with the
covariance H⁻¹ (sum over series of g g') H⁻¹, however errors within a series hang together (Ljung,
System Identification, 2nd ed., chapter 9; with H instead of the sum in the middle if the errors are
independent: the larger of both is taken). Where training ended elsewhere than at the best
predictions one row ahead, the way there, H⁻¹ g, counts as an error too.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.objective import predict
from physsm.models.phy_ssm.terms import in_physical_units, of_kind
from physsm.models.phy_ssm.unit import PhysicsUnit
from physsm.models.phy_ssm.values import in_precision

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
        information, scores = (np.asarray(part, float) for part in _slopes(network, batch))
        information = information[np.ix_(chosen, chosen)] + np.eye(len(chosen)) / _PRIOR**2
        scores, covariance = scores[:, chosen], np.linalg.inv(information)
        away = covariance @ scores.sum(0)
        centred = scores - scores.mean(0)
        by_series = covariance @ (centred.T @ centred) @ covariance
        variance = np.maximum(np.diagonal(covariance), np.diagonal(by_series)) + away**2
        slope = jax.jacfwd(lambda raw: in_physical_units(unit.system, unit.plan, raw))
        slopes = np.diagonal(np.asarray(slope(unit.constants)))
        std[chosen] = np.abs(slopes[chosen]) * np.sqrt(variance)
    return std


@eqx.filter_jit
def _slopes(
    network: Network, batch: Any
) -> tuple[Float[Array, "unknowns unknowns"], Float[Array, "series unknowns"]]:
    """H, and g of each series, over all measured cells that were predicted."""
    rows = in_precision(batch, network.dtype)
    assert isinstance(network.unit, PhysicsUnit)

    def predicted(constants: Array) -> tuple[Array, Array]:
        changed = eqx.tree_at(lambda n: n.unit.constants, network, constants)  # type: ignore[attr-defined]
        _, channels = predict(changed, batch, rows.gaps.shape[0], None)
        return channels, channels

    slopes, channels = jax.jacfwd(predicted, has_aux=True)(network.unit.constants)
    weight = rows.observed[1:] * rows.valid[:-1, :, None]
    error = rows.values[1:] - channels
    square = jnp.sum(error**2 * weight, (0, 1))
    variance = square / jnp.maximum(weight.sum((0, 1)), 1) + 1e-12
    weight = weight / variance[None, None]
    information = jnp.einsum("tscu,tscv,tsc->uv", slopes, slopes, weight)
    return information, jnp.einsum("tscu,tsc->su", slopes, error * weight)
