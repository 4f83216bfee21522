"""The equations that shooting solves, compiled once for each text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from physsm._programs import Program
from physsm.models.phy_ssm.grey_box.pieces import Cut
from physsm.models.phy_ssm.grey_box.simulation import Normal, Priors, normal_equations
from physsm.models.phy_ssm.unit import PhysicsUnit

# Weak priors: standard deviations of an initial state around its guess, scaled; of a per-series
# term; and of an unknown around its start, both in their natural size.
_STATE_STD, _SERIES_STD, _SHARED_STD = 3.0, 1.0, 1e3

Equations = Callable[[np.ndarray, np.ndarray], Normal]


def equations_of(
    unit: PhysicsUnit,
    pieces: Cut,
    shared: Float[np.ndarray, "starts k"],
    local: Float[np.ndarray, "starts pieces q"],
    variance: float,
) -> Equations:
    """Normal equations of pieces as a function of shared and local variables, with weak priors
    around these starts. `variance` is that of the errors.
    """
    priors = priors_around(unit, shared, local, variance)
    equations = compiled(unit, normal_equations)
    return lambda shared, local: equations(shared, local, pieces.pieces, priors)


def priors_around(
    unit: PhysicsUnit,
    shared: Float[np.ndarray, "starts k"],
    local: Float[np.ndarray, "starts pieces q"],
    variance: float,
) -> Priors:
    """Weak priors around the starts. Squares of errors are not divided by their variance, so that
    the priors are multiplied by it.
    """
    size, per_series = unit.size, len(unit.per_series)
    centre = local.copy()
    centre[..., size:] = 0.0
    return Priors(
        local=centre,
        local_weight=variance * np.repeat([_STATE_STD**-2, _SERIES_STD**-2], [size, per_series]),
        shared=shared.copy(),
        shared_weight=np.full(shared.shape[1], variance * _SHARED_STD**-2),
    )


def compiled(unit: PhysicsUnit, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the unit, compiled, in double precision: last digits of the errors decide where
    a fit ends.
    """
    arrays, static = eqx.partition(unit, eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)
    leaves = [np.asarray(leaf, float) for leaf in leaves]

    def of_leaves(leaves: list[Array], *arguments: Any) -> Any:
        return function(eqx.combine(structure.unflatten(leaves), static), *arguments)

    # Holds are arrays: the settings make no other program.
    same = {"control_hold": "auto", "unknown_network": "none", "substeps": None}
    config = unit.config.model_copy(update=same)
    name = f"{function.__module__}.{function.__qualname__}"
    identity = f"{name} {unit.text} {unit.scales.structure} {config}"
    program = Program(of_leaves, identity, quick=True)
    return lambda *arguments: program(leaves, *arguments)
