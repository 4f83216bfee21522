"""Candidates of a grey box: fits from guesses, and validation windows that choose between them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from physsm._values import Panel
from physsm.data.parts import Parts
from physsm.data.window import narrowed
from physsm.models.phy_ssm.build import build_network
from physsm.models.phy_ssm.config import Hold
from physsm.models.phy_ssm.grey_box.filter_fit import (
    evaluation_batch,
    scores,
    with_chosen_noises,
    with_start,
)
from physsm.models.phy_ssm.grey_box.first_fit import CLOSE, FirstFit
from physsm.models.phy_ssm.grey_box.shooting import Fit, Guess, shoot
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.unit import PhysicsUnit, hold_weights
from physsm.nn.layers import parameter
from physsm.nn.parameter_groups import is_parameter

_ITERATIONS = 100
GOOD_ERROR = 0.5  # of the validation part, scaled, after which no other minimum is looked for
GAIN = 0.99  # share of the validation error that makes a difference
_FAILED = 2.0  # times the error of the rough fit, from which on a fit from it has failed
_LARGE_ERROR = 0.5  # of a fit that has failed anyway, scaled
_GROWTH = 3.0  # of the length of pieces after such a failure
_OTHER_LIKELIHOODS = (0.1,)  # weights that are tried beside that of the settings
# The same for another hold, in training and validation: differences of a few percent are chance.
_HOLD_GAIN = 0.95
_CHANCE = 0.1  # share of the square error of one window by which others may differ


class Fitting(NamedTuple):
    """Pieces that constants are fitted to: their series, their length and their least number."""

    scaled: Panel
    length: int
    least_pieces: int

    def fit(self, unit: PhysicsUnit, guess: Guess, iterations: int = _ITERATIONS) -> Fit:
        """The fit from a guess."""
        return shoot(
            unit,
            self.scaled,
            [guess],
            length=self.length,
            iterations=iterations,
            least_pieces=self.least_pieces,
        )

    def fit_from(self, unit: PhysicsUnit, first: FirstFit) -> Fit:
        """The fit from a rough one. If that fails, by pieces that grow to the asked length: each
        fit is then near enough to the next one, even where small errors grow (chaos).
        """
        fit = self.fit(unit, first.guess)
        growing = _between(first.length, self.length)
        if is_found(fit, first) or not growing:
            return fit
        guess = first.guess
        for length in growing:
            shorter = self._replace(length=length, least_pieces=1).fit(unit, guess)
            if not is_found(shorter, first):
                return fit
            guess = shorter.guess
        grown = self.fit(unit, guess)
        return min(fit, grown, key=lambda one: one.finite_cost)


def is_found(fit: Fit, first: FirstFit) -> bool:
    """Whether a fit is about as close as the rough one, whose pieces are shorter."""
    limit = min(_LARGE_ERROR, _FAILED * max(first.error, CLOSE))
    return bool(fit.errors.max(initial=0) <= limit)


def _between(shortest: int, longest: int) -> list[int]:
    """Lengths from the shortest to below the longest, each about three times the one before."""
    number = int(np.ceil(np.log(max(longest / shortest, 1.0)) / np.log(_GROWTH)))
    return [round(shortest * (longest / shortest) ** (i / number)) for i in range(number)]


class Candidate(NamedTuple):
    """A network with the constants of a fit, and its validation error."""

    network: Network
    fit: Fit
    error: float


class Judge:
    """Validation windows that choose between candidates."""

    def __init__(self, network: Network, parts: Parts):
        self.batch, self.context = evaluation_batch(network, parts), parts.sizes.context
        apart = replace(parts.sizes, stride=parts.sizes.horizon)
        self._targets = narrowed(parts.validation.windows, apart).number  # without common rows

    def error(self, network: Network) -> float:
        """Root mean square error over the horizon on the validation windows."""
        mean = float(np.sqrt(self._squares(network).mean()))
        return mean if np.isfinite(mean) else np.inf

    def prefers(self, network: Network, other: Network) -> bool:
        """Whether the validation error of a network is less than that of another by more than
        chance: see `is_clearly_less`.
        """
        return is_clearly_less(self._squares(network), self._squares(other), self._targets)

    def _squares(self, network: Network) -> np.ndarray:
        """The mean square error over the horizon of each validation window."""
        error = scores(network, self.batch, self.context)[:, 0]
        return error[len(error) // 2 :]

    def candidate(self, network: Network, fit: Fit, scaled: Panel) -> Candidate:
        """A fit with a filter of its own, whose noises are in the order of its errors."""
        if not fit.is_finite:
            return Candidate(network, fit, np.inf)
        network = with_start(with_constants(network, fit.guess.shared), fit, scaled)
        return Candidate(network, fit, self.error(network))

    def with_noises(self, candidate: Candidate) -> tuple[Candidate, float]:
        """The candidate with noises chosen by forecasts, if they lower its validation error; and
        the weight of the likelihood in that choice, the first one unless another is clearly better.
        """
        best, chosen = candidate, candidate.network.config.likelihood
        is_given = "likelihood" in candidate.network.config.model_fields_set
        for weight in (chosen,) if is_given else (chosen, *_OTHER_LIKELIHOODS):
            network = with_chosen_noises(candidate.network, self.batch, self.context, weight)
            error = self.error(network)
            if error < best.error * (1 if best is candidate else GAIN):
                best, chosen = Candidate(network, candidate.fit, error), weight
        return best, chosen


def is_clearly_less(
    new: Float[np.ndarray, " windows"], old: Float[np.ndarray, " windows"], separate: int
) -> bool:
    """Whether errors of windows are less on average than others by more than chance: by the
    standard error of the mean difference and, for what few windows cannot show, by a share. Errors
    are mean squares. `separate` is the number of windows that have no rows in common.
    """
    if not (np.isfinite(old).all() and np.isfinite(new).all()):
        return bool(np.isfinite(new).all())
    gain, number = old - new, min(separate, len(old))
    chance = np.hypot(
        gain.std() / np.sqrt(max(number - 1, 1)), _CHANCE * old.mean() / np.sqrt(max(number, 1))
    )
    return bool(gain.mean() > chance)


def with_best_hold(best: Candidate, judge: Judge, fitting: Fitting) -> tuple[Candidate, Hold]:
    """The candidate with the hold of the controls that is best in both parts: `previous`, unless
    another one is clearly better.
    """
    network, first = best.network, best
    unit, chosen = physics_unit(network), network.config.control_hold
    if chosen != "auto" or set(fitting.scaled.control_names) <= set(unit.system.holds):
        return best, chosen
    chosen, limit = "previous", _HOLD_GAIN**2 * best.fit.cost
    for hold in ("linear", "mean"):
        settings = network.config.model_copy(update={"control_hold": hold})
        weights = parameter(hold_weights(unit.system, fitting.scaled.control_names, settings))
        held = eqx.tree_at(lambda n: n.unit.hold, network, weights)
        fit = fitting.fit(physics_unit(held), best.fit.guess)
        if not fit.cost < limit:
            continue
        held = with_constants(held, fit.guess.shared)
        error = judge.error(held)
        if error < _HOLD_GAIN * first.error and error < best.error:
            best, chosen = Candidate(held, fit, error), hold
    return best, chosen


def physics_unit(network: Network) -> PhysicsUnit:
    """The unit of a network with physics."""
    assert isinstance(network.unit, PhysicsUnit)
    return network.unit


def with_hold(network: Network, hold: Hold) -> Network:
    """The same network, whose settings say which hold it has."""
    unit = physics_unit(network)
    settings = network.config.model_copy(update={"control_hold": hold})
    rebuilt = build_network(unit.system, network.scales, settings, 0)
    arrays = jax.tree.leaves(eqx.filter(network, is_parameter))
    own, static = eqx.partition(rebuilt, is_parameter)
    return eqx.combine(jax.tree.unflatten(jax.tree.structure(own), arrays), static)


def with_constants(network: Network, shared: np.ndarray) -> Network:
    """The network with other shared unknowns."""
    return eqx.tree_at(lambda n: n.unit.constants, network, parameter(shared))
