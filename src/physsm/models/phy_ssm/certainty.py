"""How sure the constants of the physics are, given the rest of the model.

With J the slope of a prediction one row ahead in the constants (and in the means of unknowns that
vary, which may trade off against them), e its error and s² the variance that the filter predicts
for it (or, without one, that of all errors), H = sum of J'J/s² is the information in the data, and
g = sum of J'e/s² the direction in which the constants would predict better. An estimate that is
fitted by its errors scatters with the covariance H⁻¹ (sum over series of g g') H⁻¹, however errors
within a series hang together (Ljung, System Identification, 2nd ed., chapter 9; with H instead of
the sum in the middle if the errors are independent: the larger of both is taken). Two ways off the
mark count as errors too: H⁻¹ g, where training ended elsewhere than at the best predictions one row
ahead, and H⁻¹ (sum of J'd/s²) with d what finer steps of the unit would change in a prediction,
which the constants have made up for.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.models._latent.kept import Kept
from physsm.models._latent.rows import in_precision
from physsm.models._latent.terms import in_physical_units, of_kind
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.objective import predict
from physsm.models.phy_ssm.unit import PhysicsUnit
from physsm.nn.gaussian import Gaussian
from physsm.physics.system import System

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
        parts = Kept(network)(_slopes, batch)
        information, scores, by_steps = (np.asarray(part, float) for part in parts)
        # Of all unknowns together: the mean of one that varies can make up for a constant.
        covariance = np.linalg.inv(information + np.eye(len(std)) / _PRIOR**2)
        away = np.hypot(covariance @ scores.sum(0), covariance @ by_steps)
        centred = scores - scores.mean(0)
        by_series = covariance @ (centred.T @ centred) @ covariance
        variance = np.maximum(np.diagonal(covariance), np.diagonal(by_series)) + away**2
        slope = jax.jacfwd(lambda raw: in_physical_units(unit.system, unit.plan, raw))
        slopes = np.diagonal(np.asarray(slope(unit.constants)))
        std[chosen] = (np.abs(slopes) * np.sqrt(variance))[chosen]
    return std


def _with_finer_steps(network: Network, system: System) -> Network:
    """The same network with twice the substeps."""
    config = network.config
    finer = config.model_copy(update={"substeps": 2 * config.substeps})
    with jax.ensure_compile_time_eval():  # only its structure is wanted
        fresh = Network(system, network.plan, finer, seed=0)
    return jax.tree.unflatten(jax.tree.structure(fresh), jax.tree.leaves(network))


def _slopes(
    network: Network, batch: Any
) -> tuple[
    Float[Array, "unknowns unknowns"], Float[Array, "series unknowns"], Float[Array, " unknowns"]
]:
    """H, g of each series, and the sum of J'd/s², over all measured cells that were predicted."""
    rows = in_precision(batch, network.dtype)
    assert isinstance(network.unit, PhysicsUnit)
    finer = _with_finer_steps(network, network.unit.system)

    def predicted(constants: Array) -> tuple[Array, tuple[Gaussian, Array]]:
        changed = eqx.tree_at(lambda n: n.unit.constants, network, constants)  # type: ignore[attr-defined]
        observed, channels = predict(changed, batch, rows.gaps.shape[0], None)
        return channels, (observed.prior, channels)

    slopes, (prior, channels) = jax.jacfwd(predicted, has_aux=True)(network.unit.constants)
    weight = rows.observed[1:] * rows.valid[:-1, :, None]
    error = rows.values[1:] - channels
    square = jnp.sum(error**2 * weight, (0, 1))
    variance = jnp.broadcast_to(square / jnp.maximum(weight.sum((0, 1)), 1), error.shape) + 1e-12
    if network.filter is not None:
        grounded, predicted_variance = network.filter.predicted_variance(prior)
        variance = variance.at[..., grounded].set(predicted_variance)
    weight = weight / variance
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
