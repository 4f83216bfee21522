"""The fit of a grey box: start → shooting → filter, each stage from where the last one ended."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physsm._errors import TrainingError
from physsm.data.parts import Parts
from physsm.models._network.fitted import Stage
from physsm.models._network.unknowns import in_physical_units, of_kind
from physsm.models.phy_ssm.build import build_network
from physsm.models.phy_ssm.bypass_inputs import PhySSMScales
from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.grey_box.candidates import (
    Candidate,
    Fitting,
    Judge,
    is_found,
    physics_unit,
    with_best_hold,
    with_hold,
)
from physsm.models.phy_ssm.grey_box.first_fit import (
    ATTEMPTS,
    FirstFit,
    first_fits,
)
from physsm.models.phy_ssm.grey_box.hidden_scales import (
    with_other_sizes_of_hidden,
    with_scales_of_hidden,
)
from physsm.models.phy_ssm.grey_box.pieces import number_of_pieces
from physsm.models.phy_ssm.grey_box.shooting import Fit
from physsm.models.phy_ssm.grey_box.starts import hidden_states
from physsm.models.phy_ssm.grey_box.substeps import with_enough_substeps, with_more_substeps
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.not_finite import explain_not_finite
from physsm.physics.system import System

_GOOD_ERROR = 0.5  # of the validation part, scaled, after which a refit looks for no other minimum
_NEAR_ERROR = 1.1  # times the validation error of shorter pieces, at most
_NEAR_COST = 4.0  # times the least cost of a fit, up to which others are looked into
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
    asked = parts.sizes.context + parts.sizes.horizon
    fitting = Fitting(scaled, asked, _all_pieces(parts, asked))
    judge = Judge(network, parts)
    start, best = _start_and_best(network, fitting, judge, seed, is_trained)
    if not best.fit.is_finite:
        raise _hopeless(best, judge)
    for length in _longer(asked, int(scaled.lengths.max())):
        longer = Fitting(scaled, length, _all_pieces(parts, length))
        fit = longer.fit(physics_unit(best.network), best.fit.guess)
        candidate = judge.candidate(best.network, fit, scaled)
        # The fit to longer pieces, unless it is clearly worse: its constants are more certain, and
        # forecasts may be asked for more later.
        is_near = candidate.error < _NEAR_ERROR * best.error
        if is_near and not judge.prefers(best.network, candidate.network):
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


def _start_and_best(
    network: Network, fitting: Fitting, judge: Judge, seed: int, is_trained: bool
) -> tuple[Candidate, Candidate]:
    """The rough fit to begin with, and the best of the fits from rough ones. Hidden states start at
    two sizes; where fits from these have failed, there are further attempts.
    """
    candidates: list[Candidate] = []
    rough_fits: list[FirstFit] = []
    networks, least = [network, *with_other_sizes_of_hidden(network)], np.inf
    attempts = ATTEMPTS if hidden_states(physics_unit(network)).any() else 1
    for attempt in range(attempts):
        if attempt and _is_enough(_best(candidates), rough_fits):
            break
        begun = [_begin(start, fitting, seed, attempt) for start in networks]
        if not candidates:
            own, first, _ = begun[0]
            rough = fitting.fit(physics_unit(own), first[0].guess, iterations=0)
            candidates.append(judge.candidate(own, rough, fitting.scaled))
        least = min(least, *(fit.finite_cost for _, _, fits in begun for fit in fits))
        for own, first, fits in begun:
            near = [fit for fit in fits if fit.finite_cost <= _NEAR_COST * least]
            own, near = with_enough_substeps(own, fitting, near, is_trained)
            candidates += [judge.candidate(own, fit, fitting.scaled) for fit in near]
            rough_fits += first
        # Further attempts have the size of hidden states with which the rough fit is closest.
        networks = [networks[int(np.argmin([first[0].error for _, first, _ in begun]))]]
    return candidates[0], _best(candidates)


def _begin(
    network: Network, fitting: Fitting, seed: int, attempt: int
) -> tuple[Network, list[FirstFit], list[Fit]]:
    """A network with the scales of its hidden states, rough fits, and a fit from each."""
    first = first_fits(physics_unit(network), fitting.scaled, seed, attempt)
    network, first = with_scales_of_hidden(network, first, fitting.scaled)
    return network, first, [fitting.fit_from(physics_unit(network), one) for one in first]


def _is_enough(best: Candidate, rough_fits: list[FirstFit]) -> bool:
    """Whether a candidate is about as close as the closest rough fit, and of use in validation."""
    closest = min(rough_fits, key=lambda one: one.error)
    return is_found(best.fit, closest) and best.error < _GOOD_ERROR


def _hopeless(best: Candidate, judge: Judge) -> TrainingError:
    """The error of a text whose simulations are finite from no start."""
    reason = explain_not_finite(best.network, judge.batch, judge.context)
    return TrainingError(
        "the physics cannot be simulated: from every start and with every tried value of the "
        f"unknowns, a state was not a finite number{f'. {reason}' if reason else ''}\n"
        "  check the signs of the text against the data (a root or a logarithm of a negative "
        "number?), and set bounds on the unknowns and states (state x >= 0)"
    )


def _best(candidates: list[Candidate]) -> Candidate:
    """The least validation error; of those that have none, the least cost."""
    return min(candidates, key=lambda candidate: (candidate.error, candidate.fit.finite_cost))


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
