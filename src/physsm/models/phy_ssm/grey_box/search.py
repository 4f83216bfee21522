"""The search for the best minimum: fits from many rough ones, told apart by their costs.

All have the same unknowns, so that costs can be compared (substeps and the scales of hidden states
change them little); validation windows are few, and a filter whose noises are not chosen yet says
little of a minimum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from physsm.models.phy_ssm.grey_box.candidates import (
    GOOD_ERROR,
    Candidate,
    Fitting,
    Judge,
    is_found,
    physics_unit,
)
from physsm.models.phy_ssm.grey_box.first_fit import ATTEMPTS, FirstFit, first_fits
from physsm.models.phy_ssm.grey_box.hidden_scales import (
    with_other_sizes_of_hidden,
    with_scales_of_hidden,
)
from physsm.models.phy_ssm.grey_box.shooting import Fit
from physsm.models.phy_ssm.grey_box.starts import hidden_states
from physsm.models.phy_ssm.grey_box.substeps import with_enough_substeps
from physsm.models.phy_ssm.network import Network

_NEAR_COST = 4.0  # times the least cost of a fit, up to which others are looked into
_SAME_COST = 1.01  # times the cost of a better fit: the same minimum
_MOST_MINIMA = 6


class Search(NamedTuple):
    """The rough fit to begin with, and fits in different minima, the least cost first."""

    start: Candidate
    minima: list[Candidate]


def search(network: Network, fitting: Fitting, judge: Judge, seed: int, is_trained: bool) -> Search:
    """Fits to pieces of the asked length. Hidden states start at two sizes; where fits from these
    have failed, there are further attempts.
    """
    networks = [network, *with_other_sizes_of_hidden(network)]
    attempts = ATTEMPTS if hidden_states(physics_unit(network)).any() else 1
    tried: list[_Fits] = []
    fitted: list[Candidate] = []
    for attempt in range(attempts):
        if _is_enough(fitted, tried):
            break
        begun = [_begin(each, fitting, seed, attempt) for each in networks]
        tried += begun
        least = min(fit.finite_cost for each in tried for fit in each.fits)
        for each in begun:
            near = [fit for fit in each.fits if fit.finite_cost <= _NEAR_COST * least]
            own, near = with_enough_substeps(each.network, fitting, near, is_trained)
            fitted += [judge.candidate(own, fit, fitting.scaled) for fit in near]
        # Further attempts have the size of hidden states with which the rough fit is closest.
        networks = [networks[int(np.argmin([each.first[0].error for each in begun]))]]
    own, guess = tried[0].network, tried[0].first[0].guess
    rough = fitting.fit(physics_unit(own), guess, iterations=0)
    start = judge.candidate(own, rough, fitting.scaled)
    return Search(start, _minima(fitted))


def with_longer_pieces(minima: list[Candidate], longer: Fitting, judge: Judge) -> Candidate:
    """The best of the fits to longer pieces from several minima: these tell minima apart that
    serve shorter ones about as well.
    """
    fits = [(one.network, longer.fit(physics_unit(one.network), one.fit.guess)) for one in minima]
    return min((judge.candidate(*fit, longer.scaled) for fit in fits), key=_order)


class _Fits(NamedTuple):
    """A network with the scales of its hidden states, rough fits, and a fit from each."""

    network: Network
    first: list[FirstFit]
    fits: list[Fit]


def _begin(network: Network, fitting: Fitting, seed: int, attempt: int) -> _Fits:
    """Fits with a network of the scales that hidden states have in the rough fit."""
    first = first_fits(physics_unit(network), fitting.scaled, seed, attempt)
    network, first = with_scales_of_hidden(network, first, fitting.scaled)
    return _Fits(network, first, [fitting.fit_from(physics_unit(network), one) for one in first])


def _is_enough(fitted: list[Candidate], tried: list[_Fits]) -> bool:
    """Whether a fit is about as close as the closest rough one, and of use in validation."""
    if not fitted:
        return False
    best = min(fitted, key=_order)
    closest = min((one for each in tried for one in each.first), key=lambda one: one.error)
    return is_found(best.fit, closest) and best.error < GOOD_ERROR


def _minima(fitted: list[Candidate]) -> list[Candidate]:
    """Fits in different minima, the least cost first."""
    minima: list[Candidate] = []
    for one in sorted(fitted, key=_order):
        if not minima or minima[-1].fit.cost * _SAME_COST < one.fit.cost:
            minima.append(one)
    most = _NEAR_COST * minima[0].fit.finite_cost
    return [one for one in minima[:_MOST_MINIMA] if one.fit.finite_cost <= most]


def _order(candidate: Candidate) -> tuple[bool, float]:
    """By cost; those whose forecasts are not finite come last."""
    return not np.isfinite(candidate.error), candidate.fit.finite_cost
