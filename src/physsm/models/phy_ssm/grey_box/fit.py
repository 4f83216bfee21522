"""The fit of a grey box: start → shooting → filter, each stage from where the last one ended."""

from __future__ import annotations

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import numpy as np

from physsm._values import Panel
from physsm.data.parts import Parts
from physsm.data.window import Batch
from physsm.models._network.compiled import CompiledNetwork
from physsm.models._network.observations import series_first
from physsm.models._network.state_scales import scales_of_states
from physsm.models._network.unknowns import from_physical_units
from physsm.models.phy_ssm.build import build_network
from physsm.models.phy_ssm.bypass_inputs import PhySSMScales
from physsm.models.phy_ssm.config import Config, Hold
from physsm.models.phy_ssm.forecast import infer, over_series
from physsm.models.phy_ssm.grey_box.filter_fit import (
    evaluation_batch,
    scores,
    with_chosen_noises,
    with_start,
)
from physsm.models.phy_ssm.grey_box.first_fit import first_fit
from physsm.models.phy_ssm.grey_box.shooting import Fit, Guess, shoot
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.unit import PhysicsUnit, hold_weights
from physsm.nn.layers import parameter
from physsm.physics.system import System

_ITERATIONS = 40
_GAIN = 0.995  # a candidate must have at most this share of the validation error


@dataclass(frozen=True, eq=False, kw_only=True)
class GreyBox:
    """A fitted grey box: its network, the guess at which shooting ended, and the validation errors
    of its stages (root mean square over the asked horizon, scaled).
    """

    network: Network
    fit: Fit
    errors: dict[str, float]

    @property
    def theta(self) -> np.ndarray:
        """The unknowns in physical units."""
        return physical(self.network.unit, self.fit.guess.shared)


def fit_grey_box(
    system: System, scales: PhySSMScales, config: Config, parts: Parts, seed: int
) -> GreyBox:
    """Constants, initial states, hold of the controls and noises from the training part; the
    validation part chooses.
    """
    config = config.model_copy(update={"unknown_network": "none"})
    network = build_network(system, scales, config, seed)
    scaled = scales.table.scale(parts.train.panel)
    guess = first_fit(network.unit, scaled, seed)
    network, guess = _with_scales_of_hidden(network, guess, scaled)
    length = parts.sizes.context + parts.sizes.horizon
    fit = shoot(network.unit, scaled, [guess], length=length, iterations=_ITERATIONS)
    network = with_start(_with_constants(network, fit.guess.shared), fit, scaled)
    batch, context = evaluation_batch(network, parts), parts.sizes.context
    network = with_chosen_noises(network, batch, context)
    network, fit, hold = _with_best_hold(network, fit, scaled, batch, parts)
    network = with_chosen_noises(network, batch, context)
    error = _validation(network, batch, parts)
    return GreyBox(network=_with_hold(network, hold), fit=fit, errors={"grey box": error})


def refitted(box: GreyBox, panel: Panel, length: int) -> GreyBox:
    """The grey box with constants fitted to all rows of a panel, from where they are."""
    scaled = box.network.scales.table.scale(panel)
    unit = box.network.unit
    assert isinstance(unit, PhysicsUnit)
    inferred = over_series(CompiledNetwork(box.network), infer, panel)
    states = np.nan_to_num(series_first(inferred.z_ext, panel)[..., : unit.size])
    guess = Guess(box.fit.guess.shared, states, np.zeros((len(panel), len(unit.per_series))))
    fit = shoot(unit, scaled, [guess], length=length, iterations=_ITERATIONS)
    return replace(box, network=_with_constants(box.network, fit.guess.shared), fit=fit)


def physical(unit: PhysicsUnit, shared: np.ndarray) -> np.ndarray:
    """Unknowns in physical units, with per-series terms of zero."""
    with jax.enable_x64(True):
        precise = eqx.tree_at(lambda u: u.constants, unit, np.asarray(shared, float))
        zeros = np.zeros(len(unit.varying)), np.zeros(len(unit.per_series))
        return np.asarray(jax.jit(lambda unit: unit.theta(*zeros))(precise))


def _with_scales_of_hidden(
    network: Network, guess: Guess, scaled: Panel
) -> tuple[Network, Guess]:
    """The network with scales of hidden states as they are along the first trajectories."""
    unit, scales = network.unit, network.scales
    assert isinstance(unit, PhysicsUnit)
    hidden = scales.states.channel_of_state < 0
    if not hidden.any():
        return network, guess
    theta = physical(unit, guess.shared)
    valid = np.arange(scaled.times.shape[1]) < scaled.lengths[:, None]
    before = np.array(scales.states.state_scale)
    z = guess.states * before
    mean, std = z[valid].mean(0), z[valid].std(0)
    std = np.maximum(std, 0.05 * np.abs(mean))
    scale = np.where(hidden & (std > 1e-3 * before), std, before)
    offset = np.where(hidden, mean / scale, scales.states.state_offset)
    states = scales_of_states(unit.system, scales.table, scales.states, scale, offset)
    scales = replace(scales, states=states)
    network = build_network(unit.system, scales, network.config, 0)
    shared = from_physical_units(unit.system, scales, theta)
    return _with_constants(network, shared), guess._replace(shared=shared, states=z / scale)


def _validation(network: Network, batch: Batch, parts: Parts) -> float:
    """Root mean square error over the horizon on the validation windows of the batch."""
    error = scores(network, batch, parts.sizes.context)[:, 0]
    return float(np.sqrt(error[len(error) // 2 :].mean()))


def _with_best_hold(
    network: Network, fit: Fit, scaled: Panel, batch: Batch, parts: Parts
) -> tuple[Network, Fit, Hold]:
    """The network with the hold of the controls that forecasts the validation part best."""
    unit, asked = network.unit, network.config.control_hold
    assert isinstance(unit, PhysicsUnit)
    if asked != "auto" or set(scaled.control_names) <= set(unit.system.holds):
        return network, fit, asked
    best, chosen = _validation(network, batch, parts), (network, fit, "previous")
    length = parts.sizes.context + parts.sizes.horizon
    for hold in ("linear", "mean"):
        settings = network.config.model_copy(update={"control_hold": hold})
        weights = parameter(hold_weights(unit.system, scaled.control_names, settings))
        candidate = eqx.tree_at(lambda n: n.unit.hold, network, weights)
        found = shoot(candidate.unit, scaled, [fit.guess], length=length, iterations=_ITERATIONS)
        candidate = _with_constants(candidate, found.guess.shared)
        error = _validation(candidate, batch, parts)
        if error < _GAIN * best:
            best, chosen = error, (candidate, found, hold)
    return chosen


def _with_hold(network: Network, hold: Hold) -> Network:
    """The same network, whose settings say which hold it has."""
    unit = network.unit
    assert isinstance(unit, PhysicsUnit)
    settings = network.config.model_copy(update={"control_hold": hold})
    rebuilt = build_network(unit.system, network.scales, settings, 0)
    arrays = jax.tree.leaves(eqx.filter(network, eqx.is_array))
    own, static = eqx.partition(rebuilt, eqx.is_array)
    return eqx.combine(jax.tree.unflatten(jax.tree.structure(own), arrays), static)


def _with_constants(network: Network, shared: np.ndarray) -> Network:
    return eqx.tree_at(lambda n: n.unit.constants, network, parameter(shared))
