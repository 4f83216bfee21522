"""The fit of a grey box: start → shooting → filter, each stage from where the last one ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physsm._values import Panel
from physsm.data.parts import Parts
from physsm.models._network.fitted import Stage
from physsm.models._network.state_scales import scales_of_states
from physsm.models._network.unknowns import from_physical_units, in_physical_units, of_kind
from physsm.models.phy_ssm.build import build_network
from physsm.models.phy_ssm.bypass_inputs import PhySSMScales
from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.grey_box.candidates import (
    GAIN,
    Fitting,
    Judge,
    physics_unit,
    with_best_hold,
    with_hold,
)
from physsm.models.phy_ssm.grey_box.first_fit import first_fits, has_hidden_states
from physsm.models.phy_ssm.grey_box.pieces import number_of_pieces
from physsm.models.phy_ssm.grey_box.shooting import Fit, Guess
from physsm.models.phy_ssm.grey_box.substeps import with_enough_substeps, with_more_substeps
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.unit import PhysicsUnit
from physsm.physics.system import System

_ATTEMPTS, _GOOD_ERROR = 3, 0.5  # with a larger error, scaled, other starts are tried
_LONGER = 8  # times the asked length, of longer pieces


@dataclass(frozen=True, eq=False, kw_only=True)
class GreyBox:
    """A fitted grey box: its network, the guess at which shooting ended, and its stages.

    `length` is the number of rows of a piece, `likelihood` the weight of the likelihood one step
    ahead that served forecasts best.
    """

    network: Network
    fit: Fit
    stages: tuple[Stage, ...]
    length: int
    likelihood: float

    @property
    def is_good(self) -> bool:
        """Whether its validation error is so small that no other minimum needs to be looked for."""
        error = self.stages[-1].error
        return error is not None and error < _GOOD_ERROR


def fit_grey_box(
    system: System, scales: PhySSMScales, config: Config, parts: Parts, seed: int
) -> GreyBox:
    """Constants and initial states from the training part, noises of the filter from windows of
    both parts; the validation part chooses between candidates and the hold of the controls.
    """
    is_trained = config.unknown_network != "none" and bool(of_kind(system, "varying"))
    config = config.model_copy(update={"unknown_network": "none"})
    network = build_network(system, scales, config, seed)
    scaled = scales.table.scale(parts.train.panel)
    guesses = first_fits(physics_unit(network), scaled, seed)
    network, guesses = _with_scales_of_hidden(network, guesses, scaled)
    asked = parts.sizes.context + parts.sizes.horizon
    fitting = Fitting(scaled, asked, _all_pieces(parts, asked))
    network, fits = with_enough_substeps(network, fitting, guesses, is_trained)
    judge = Judge(network, parts)
    rough = fitting.fit(physics_unit(network), guesses[0], iterations=0)
    start = best = judge.candidate(network, rough, scaled)
    for attempt in range(1, _ATTEMPTS + 1):
        candidates = [judge.candidate(network, fit, scaled) for fit in fits]
        best = min([best, *candidates], key=lambda candidate: candidate.error)
        if best.error < _GOOD_ERROR or not has_hidden_states(physics_unit(network)):
            break
        guesses = first_fits(physics_unit(network), scaled, seed, attempt)
        fits = [fitting.fit(physics_unit(network), guess) for guess in guesses]
    for length in _longer(asked, int(scaled.lengths.max())):
        longer = Fitting(scaled, length, _all_pieces(parts, length))
        candidate = judge.candidate(
            network, longer.fit(physics_unit(network), best.fit.guess), scaled
        )
        # Of nearly equal ones the fit to longer pieces: forecasts may be asked for more later.
        if candidate.error < best.error / GAIN:
            best, fitting = candidate, longer
    before, (best, hold) = (best, with_best_hold(best, judge, fitting))
    if config.substeps is None and (fitting.length != asked or best is not before):
        best = with_more_substeps(best, hold, judge, fitting, is_trained)
    chosen, likelihood = judge.with_noises(best)
    if not chosen.error <= start.error:
        (chosen, likelihood), best, hold = judge.with_noises(start), start, config.control_hold
    stages = (
        Stage(name="start", error=_finite(start.error), kept=True),
        Stage(name="grey box", error=_finite(chosen.error), kept=best is not start),
    )
    return GreyBox(
        network=with_hold(chosen.network, hold),
        fit=best.fit,
        stages=stages,
        length=fitting.length,
        likelihood=likelihood,
    )


def _finite(error: float) -> float | None:
    return error if np.isfinite(error) else None


def _all_pieces(parts: Parts, length: int) -> int:
    """Number of pieces of the later fit to all rows: with as many, one program serves both."""
    panels = parts.train.panel, parts.validation.panel
    return sum(number_of_pieces(panel, length) for panel in panels)


def _longer(asked: int, longest: int) -> list[int]:
    """The length of longer pieces to try, where series are much longer than asked."""
    return [] if longest < 2 * asked else [min(longest, _LONGER * asked)]


def constants_std(network: Network, fit: Fit) -> tuple[float, ...]:
    """Standard errors of constant unknowns in physical units; 0 for the others."""
    unit = physics_unit(network)
    with jax.enable_x64(True):
        slope = jax.jit(jax.jacfwd(partial(in_physical_units, unit.system, unit.scales)))
        slopes = np.diagonal(np.asarray(slope(jnp.asarray(fit.guess.shared))))
    std = np.abs(slopes) * np.sqrt(np.maximum(np.diagonal(fit.covariance), 0))
    is_constant = np.isin(np.arange(len(std)), of_kind(unit.system, "constant"))
    return tuple(float(x) for x in np.where(is_constant, std, 0.0))


def with_arrays_of(network: Network, box: Network) -> Network:
    """The network with the constants, holds and filter of a grey box."""

    def parts(n: Any) -> list[Any]:
        return [n.unit.constants, n.unit.hold, n.inference]

    return eqx.tree_at(parts, network, parts(box))


def physical(unit: PhysicsUnit, shared: np.ndarray) -> np.ndarray:
    """Unknowns in physical units, with per-series terms of zero."""
    with jax.enable_x64(True):
        precise = eqx.tree_at(lambda u: u.constants, unit, np.asarray(shared, float))
        zeros = jnp.zeros(len(unit.varying)), jnp.zeros(len(unit.per_series))
        return np.asarray(jax.jit(lambda unit: unit.theta(*zeros))(precise))


def _with_scales_of_hidden(
    network: Network, guesses: list[Guess], scaled: Panel
) -> tuple[Network, list[Guess]]:
    """The network with scales of hidden states as they are along the best first trajectories."""
    unit, scales = physics_unit(network), network.scales
    hidden = scales.states.channel_of_state < 0
    if not hidden.any():
        return network, guesses
    valid = np.arange(scaled.times.shape[1]) < scaled.lengths[:, None]
    before = np.array(scales.states.state_scale)
    z = guesses[0].states[valid] * before
    mean, std = z.mean(0), z.std(0)
    std = np.maximum(std, 0.05 * np.abs(mean))
    scale = np.where(hidden & (std > 1e-3 * before), std, before)
    offset = np.where(hidden, mean / scale, scales.states.state_offset)
    states = scales_of_states(unit.system, scales.table, scales.states, scale, offset)
    scales = replace(scales, states=states)
    rescaled = [
        guess._replace(
            shared=from_physical_units(unit.system, scales, physical(unit, guess.shared)),
            states=guess.states * (before / scale),
        )
        for guess in guesses
    ]
    return build_network(unit.system, scales, network.config, 0), rescaled
