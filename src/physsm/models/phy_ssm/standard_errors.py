"""Standard errors of the constants of the physics, given the rest of the model.

With J the slope of a prediction one step ahead in the constants (and in the means of varying
unknowns, which may trade off against them), e its error and s² its predicted variance,
H = sum of J'J/s² is the information in the data, and g = sum of J'e/s² the gradient of the
likelihood. An estimate by prediction errors has the covariance H⁻¹ (sum over series of g g') H⁻¹,
however errors within a series are correlated (Ljung, System Identification, 2nd ed., chapter 9;
with H instead of the sum in the middle if errors are independent: the larger of both is taken). Two
biases count as errors too: H⁻¹ g, where training ended elsewhere than at the best predictions one
step ahead, and H⁻¹ (sum of J'd/s²) with d the change of a prediction under finer steps of the unit,
which the constants have compensated.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm._values import Panel
from physsm.data.window import gather, whole_series
from physsm.models._network.compiled import CompiledNetwork
from physsm.models._network.observations import FIRST_GAP, in_precision
from physsm.models._network.unknowns import in_physical_units, of_kind
from physsm.models.phy_ssm.forecast import batch_length
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.objective import predict
from physsm.models.phy_ssm.unit import PhysicsUnit, hold_weights
from physsm.models.phy_ssm.values import Inferred

_PRIOR = 1.0  # standard deviation of a constant in its natural size, before any data
_MOST_SERIES = 64  # at most this many series, evenly spaced, are used


def standard_errors(compiled: CompiledNetwork, train: Panel) -> tuple[float, ...]:
    """One standard error for each `constant` unknown in physical units; 0 for the others."""
    used = np.linspace(0, len(train) - 1, min(len(train), _MOST_SERIES)).astype(int)
    some = train.select(used)
    scaled = compiled.network.scales.table.scale(some)
    batch = gather(scaled, whole_series(some, 0), batch_length(some), 0, FIRST_GAP)
    share = train.lengths[used].sum() / train.lengths.sum()
    return tuple(float(x) for x in constants_std(compiled, batch) * np.sqrt(share))


def constants_std(compiled: CompiledNetwork, batch: Any) -> Float[np.ndarray, " unknowns"]:
    """The same from a batch of whole series without a target."""
    unit = compiled.network.unit
    assert isinstance(unit, PhysicsUnit)
    std = np.zeros(len(unit.system.unknowns))
    chosen = np.array(of_kind(unit.system, "constant"), int)
    if len(chosen):
        parts = compiled(_slopes, batch)
        information, scores, by_steps = (np.asarray(part, float) for part in parts)
        # Of all unknowns together: the mean of one that varies can compensate a constant.
        covariance = np.linalg.inv(information + np.eye(len(std)) / _PRIOR**2)
        bias = np.hypot(covariance @ scores.sum(0), covariance @ by_steps)
        centred = scores - scores.mean(0)
        by_series = covariance @ (centred.T @ centred) @ covariance
        variance = np.maximum(np.diagonal(covariance), np.diagonal(by_series)) + bias**2
        slope = jax.jacfwd(lambda raw: in_physical_units(unit.system, unit.scales, raw))
        slopes = np.diagonal(np.asarray(slope(unit.constants)))
        std[chosen] = (np.abs(slopes) * np.sqrt(variance))[chosen]
    return std


def _with_finer_steps(network: Network) -> Network:
    """The same network with twice the substeps."""
    unit = network.unit
    assert isinstance(unit, PhysicsUnit)
    finer = network.config.model_copy(update={"substeps": 2 * len(unit.hold)})
    weights = hold_weights(unit.system, network.scales.table.controls, finer)
    return eqx.tree_at(lambda n: n.unit.hold, network, jnp.asarray(weights, network.dtype))


def _slopes(
    network: Network, batch: Any
) -> tuple[
    Float[Array, "unknowns unknowns"], Float[Array, "series unknowns"], Float[Array, " unknowns"]
]:
    """H, g of each series, and the sum of J'd/s², over all measured cells that were predicted."""
    rows = in_precision(batch, network.dtype)
    unit = network.unit
    assert isinstance(unit, PhysicsUnit)
    finer = _with_finer_steps(network)

    def predicted(constants: Array) -> tuple[Array, tuple[Inferred, Array]]:
        changed = eqx.tree_at(lambda n: n.unit.constants, network, constants)
        inferred, channels = predict(changed, batch, rows.gaps.shape[0], None)
        return channels, (inferred, channels)

    slopes, (inferred, channels) = jax.jacfwd(predicted, has_aux=True)(unit.constants)
    weight = rows.observed[1:] * rows.valid[:-1, :, None]
    error = rows.values[1:] - channels
    square = jnp.sum(error**2 * weight, (0, 1))
    variance = jnp.broadcast_to(square / jnp.maximum(weight.sum((0, 1)), 1), error.shape) + 1e-12
    weight = weight / network.inference.predicted_variance(inferred, variance)
    information = jnp.einsum("tscu,tscv,tsc->uv", slopes, slopes, weight)
    # The error of a corrected step falls with the square of the substeps, so that steps of half the
    # length leave a quarter of it; that of another step, which is of first order, a half.
    whole = 4 / 3 if network.config.correct else 2
    by_steps = (predict(finer, batch, rows.gaps.shape[0], None)[1] - channels) * whole
    return (
        information,
        jnp.einsum("tscu,tsc->su", slopes, error * weight),
        jnp.einsum("tscu,tsc->u", slopes, by_steps * weight),
    )
