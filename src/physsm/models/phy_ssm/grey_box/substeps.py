"""Number of integrator steps between two rows, so that their bias is small beside standard errors.

Constants compensate the error of the integrator: a fit with long steps finds other values than a
fit with short ones. The difference is estimated without a second fit: the channels are simulated
with shorter steps, and one Gauss-Newton step towards them shows how far the constants would move.
"""

from __future__ import annotations

import equinox as eqx
import numpy as np

from physsm.models.phy_ssm.grey_box.candidates import Fitting
from physsm.models.phy_ssm.grey_box.shooting import Fit, step_towards
from physsm.models.phy_ssm.unit import PhysicsUnit, hold_weights
from physsm.nn.layers import parameter

_FINER = 4  # times the substeps, of the simulation that stands for the truth
_BIAS = 0.3  # largest bias of a constant, in standard errors
_ERROR = 0.05  # largest error of the integrator, in errors of the simulation
_MOST, _MOST_TRAINED = 16, 4  # substeps; the second where a network is trained with them


def enough_substeps(unit: PhysicsUnit, fitting: Fitting, fit: Fit, *, is_trained: bool) -> int:
    """Substeps that a fit needs; as many as it has if these are enough or were asked for."""
    now, most = len(unit.hold), _MOST_TRAINED if is_trained else _MOST
    if unit.config.substeps is not None:
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
