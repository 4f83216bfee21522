"""Multiple shooting: unknowns and initial states by which pieces of series are simulated best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from physsm._values import Panel
from physsm.models.phy_ssm.grey_box.equations import compiled, equations_of, priors_around
from physsm.models.phy_ssm.grey_box.least_squares import (
    Solution,
    as_numpy,
    covariance_of_shared,
    gauss_newton_steps,
    minimise,
)
from physsm.models.phy_ssm.grey_box.pieces import Cut, cut
from physsm.models.phy_ssm.grey_box.repair import repaired
from physsm.models.phy_ssm.grey_box.simulation import (
    Normal,
    normal_equations,
    simulated_channels,
)
from physsm.models.phy_ssm.grey_box.starts import hidden_states
from physsm.models.phy_ssm.unit import PhysicsUnit

_TOLERANCE = 1e-6
_FEW_STARTS = 8
_REPAIRS = 3
_SIGNAL_VARIANCE = 1.0  # of scaled channels
_LEAST_VARIANCE = 1e-10  # of their errors
_REWEIGHTINGS, _SAME_VARIANCE = 4, 1.1


class Guess(NamedTuple):
    """Start of a fit: unknowns as the unit trains them, states at all rows, and the per-series
    terms of each series.
    """

    shared: Float[np.ndarray, " k"]
    states: Float[np.ndarray, "series rows n"]
    terms: Float[np.ndarray, "series per_series"]

    def local(self, pieces: Cut) -> Float[np.ndarray, "pieces q"]:
        """Variables of pieces."""
        at = pieces.series, pieces.first
        return np.concatenate([self.states[at], self.terms[pieces.series]], axis=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """Result of shooting: the guess that it ended with, its cost, the root mean square error of the
    simulation in each channel, scaled, and the covariance of the shared variables.
    """

    guess: Guess
    cost: float
    errors: Float[np.ndarray, " channels"]
    covariance: Float[np.ndarray, "k k"]

    @property
    def finite_cost(self) -> float:
        """The cost; infinite where it is not a number."""
        return self.cost if np.isfinite(self.cost) else np.inf

    @property
    def is_finite(self) -> bool:
        """Whether the simulation is finite."""
        is_finite = np.isfinite(self.guess.states).all() and np.isfinite(self.guess.shared).all()
        return bool(np.isfinite(self.cost) and is_finite)


def shoot(
    unit: PhysicsUnit,
    scaled: Panel,
    guesses: list[Guess],
    *,
    length: int,
    iterations: int,
    most_rows: int = 20_000,
    rounds: int = 1,
    least_pieces: int = 1,
) -> Fit:
    """The best fit from several guesses to pieces of `length` rows. Of many guesses, each round
    keeps the better third.
    """
    pieces = cut(scaled, length, most_rows, least_pieces)
    shared = np.stack([guess.shared for guess in guesses])
    local = np.stack([guess.local(pieces) for guess in guesses])
    with jax.enable_x64(True):
        end = _minimise(unit, pieces, shared, local, iterations)
        # A program for fewer starts is worth its compilation only where there are many. The best
        # are repeated up to that number, so that one program serves all later rounds.
        few = -(-len(guesses) // 3) if len(guesses) > _FEW_STARTS else len(guesses)
        for _ in range(rounds - 1):
            best = np.resize(end.order[: -(-len(end.order) // 3)], few)
            end = _minimise(unit, pieces, end.shared[best], end.local[best], iterations)
        for _ in range(_REPAIRS if iterations and hidden_states(unit).any() else 0):
            before, end = end, _repaired(unit, pieces, end, iterations)
            if end is before:
                break
        if iterations:
            end = _reweighted(unit, pieces, end, iterations)
    best, weight = end.order[0], pieces.pieces.weight
    guess = Guess(
        shared=end.shared[best],
        states=_states_at_rows(guesses[0].states, pieces, end.normal.states[best]),
        terms=_terms_of_series(guesses[0].terms, pieces, end.local[best][:, unit.size :]),
    )
    return Fit(
        guess=guess,
        cost=float(end.normal.cost[best]),
        errors=np.sqrt(end.normal.squares[best] / np.maximum(weight.sum((0, 1)), 1)),
        covariance=covariance_of_shared(end.normal, int(best), weight),
    )


def step_towards(
    unit: PhysicsUnit, other: PhysicsUnit, scaled: Panel, fit: Fit, *, length: int, pieces: int
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " channels"]]:
    """The Gauss-Newton step of the unknowns from a fit towards the channels that another unit
    simulates at the same place, and the root mean square differences of these channels.
    """
    parts = cut(scaled, length, least_pieces=pieces)
    shared, local = fit.guess.shared, fit.guess.local(parts)
    with jax.enable_x64(True):
        channels = np.asarray(compiled(other, simulated_channels)(shared, local, parts.pieces))
        weight = np.asarray(parts.pieces.weight)
        towards = parts.pieces._replace(values=np.where(weight > 0, channels, 0.0))
        variance = max(float(np.mean(fit.errors**2)), _LEAST_VARIANCE)
        priors = priors_around(unit, shared[None], local[None], variance)
        priors = priors._replace(local=local[None])
        equations = compiled(unit, normal_equations)
        normal = as_numpy(equations(shared[None], local[None], towards, priors))
    no_limit = np.full_like(shared[None], np.inf)
    step, _ = gauss_newton_steps(normal, np.zeros(1), no_limit)
    return step[0], np.sqrt(normal.squares[0] / np.maximum(weight.sum((0, 1)), 1))


def _minimise(
    unit: PhysicsUnit,
    pieces: Cut,
    shared: np.ndarray,
    local: np.ndarray,
    iterations: int,
    variance: float = _SIGNAL_VARIANCE,
) -> Solution:
    return minimise(
        equations_of(unit, pieces, shared, local, variance),
        shared,
        local,
        iterations=iterations,
        tolerance=_TOLERANCE,
    )


def _reweighted(unit: PhysicsUnit, pieces: Cut, end: Solution, iterations: int) -> Solution:
    """The solution with priors for the variance that its errors have.

    The way there has priors for the variance of the signal, which keep bad starts in place; with
    small errors they would hold what the data tell otherwise.
    """
    before, cells = _SIGNAL_VARIANCE, max(float(np.asarray(pieces.pieces.weight).sum()), 1.0)
    variables = len(end.shared[0]) + len(pieces.measured) * end.local.shape[-1]
    number = max(cells - variables, cells / 2)  # with priors, not all variables are free
    for _ in range(_REWEIGHTINGS):
        variance = float(end.normal.squares[end.order[0]].sum()) / number
        if not np.isfinite(variance) or not variance * _SAME_VARIANCE < before:
            break
        variance = max(variance, _LEAST_VARIANCE)
        end = _minimise(unit, pieces, end.shared, end.local, iterations, variance)
        before = variance
    return end


def _repaired(unit: PhysicsUnit, pieces: Cut, end: Solution, iterations: int) -> Solution:
    """The solution after a repair of pieces of its best start, if that lowers the cost."""
    best, number = end.order[0], len(end.shared)
    shared = np.repeat(end.shared[best][None], number, axis=0)
    local = np.repeat(end.local[best][None], number, axis=0)
    found = repaired(
        equations_of(unit, pieces, shared, local, _SIGNAL_VARIANCE),
        Normal(*(part[best] for part in end.normal)),
        shared,
        local,
        pieces,
    )
    if found is None:
        return end
    again = _minimise(unit, pieces, shared, np.repeat(found[None], number, axis=0), iterations)
    before, after = end.normal.squares[best].sum(), again.normal.squares[again.order[0]].sum()
    return again if after < before or not np.isfinite(before) else end


def _states_at_rows(
    before: Float[np.ndarray, "series rows n"],
    pieces: Cut,
    states: Float[np.ndarray, "pieces steps n"],
) -> Float[np.ndarray, "series rows n"]:
    """States at all rows: those of the pieces, and those from before where no piece is."""
    after = before.copy()
    for piece in pieces.measured:
        rows = 1 + int(np.count_nonzero(pieces.pieces.gaps[piece]))  # without padding
        first = pieces.first[piece]
        after[pieces.series[piece], first : first + rows] = states[piece, :rows]
    return after


def _terms_of_series(before: np.ndarray, pieces: Cut, terms: np.ndarray) -> np.ndarray:
    """Per-series terms: the mean over the pieces of a series."""
    after = before.copy()
    series, terms = pieces.series[pieces.measured], terms[pieces.measured]
    for one in np.unique(series):
        after[one] = terms[series == one].mean(0)
    return after
