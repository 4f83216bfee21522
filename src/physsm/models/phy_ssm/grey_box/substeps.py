"""Number of integrator steps between two rows, so that their bias is small beside standard errors.

Constants compensate the error of the integrator: a fit with long steps finds other values than a
fit with short ones. The difference is estimated without a second fit: the channels are simulated
with shorter steps, and one Gauss-Newton step towards them shows how far the constants would move.
"""

from __future__ import annotations

import equinox as eqx
import numpy as np

from physsm.models.phy_ssm.build import build_network
from physsm.models.phy_ssm.config import Hold
from physsm.models.phy_ssm.grey_box.candidates import (
    GAIN,
    Candidate,
    Fitting,
    Judge,
    physics_unit,
    with_hold,
)
from physsm.models.phy_ssm.grey_box.shooting import Fit, step_towards
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.unit import PhysicsUnit, hold_weights
from physsm.nn.layers import parameter

_FINER = 4  # times the substeps, of the simulation that stands for the truth
_BIAS = 0.3  # largest bias of a constant, in standard errors
_ERROR = 0.05  # largest error of the integrator, in errors of the simulation
_MOST, _MOST_TRAINED = 32, 4  # substeps; the second where a network is trained with them


def with_enough_substeps(
    network: Network, fitting: Fitting, fits: list[Fit], is_trained: bool
) -> tuple[Network, list[Fit]]:
    """The network with the substeps that the best of its fits needs, and the fits with them."""
    unit = physics_unit(network)
    if network.config.substeps is not None or not fits:
        return network, fits
    best = min(fits, key=lambda fit: fit.finite_cost)
    substeps = enough_substeps(unit, fitting, best, is_trained=is_trained)
    finer = _network_with_substeps(network, substeps)
    if substeps == len(unit.hold):
        return finer, fits
    return finer, [fitting.fit(physics_unit(finer), fit.guess) for fit in fits]


def with_more_substeps(
    best: Candidate, hold: Hold, judge: Judge, fitting: Fitting, is_trained: bool
) -> Candidate:
    """The candidate with more substeps, if its last pieces and hold make constants so certain that
    the bias of the substeps so far would show.
    """
    network = with_hold(best.network, hold)
    unit = physics_unit(network)
    substeps = enough_substeps(unit, fitting, best.fit, is_trained=is_trained)
    if substeps == len(unit.hold):
        return best
    network = _network_with_substeps(network, substeps)
    fit = fitting.fit(physics_unit(network), best.fit.guess)
    finer = judge.candidate(network, fit, fitting.scaled)
    return finer if finer.error < best.error / GAIN else best


def enough_substeps(unit: PhysicsUnit, fitting: Fitting, fit: Fit, *, is_trained: bool) -> int:
    """Substeps that a fit needs; as many as it has if these are enough."""
    now, most = len(unit.hold), _MOST_TRAINED if is_trained else _MOST
    if now >= most:
        return now
    finer = _with_substeps(unit, _FINER * now)
    scaled, length, pieces = fitting
    shift, error = step_towards(unit, finer, scaled, fit, length=length, pieces=pieces)
    std = np.sqrt(np.maximum(np.diagonal(fit.covariance), 1e-30))
    biases, errors = np.abs(shift) / std / _BIAS, error / np.maximum(fit.errors, 1e-9) / _ERROR
    # The error falls with the square of the substeps.
    wanted = now * np.sqrt(max(biases.max(initial=0), errors.max(initial=0)))
    if not np.isfinite(wanted):
        return now
    return int(np.clip(2 * np.ceil(wanted / 2), now, most))


def _with_substeps(unit: PhysicsUnit, substeps: int) -> PhysicsUnit:
    settings = unit.config.model_copy(update={"substeps": substeps})
    weights = hold_weights(unit.system, unit.scales.table.controls, settings)
    return eqx.tree_at(lambda unit: unit.hold, unit, parameter(weights))


def _network_with_substeps(network: Network, substeps: int) -> Network:
    """A network of the same shape before its fit, with this number of substeps."""
    settings = network.config.model_copy(update={"substeps": substeps})
    return build_network(physics_unit(network).system, network.scales, settings, 0)
