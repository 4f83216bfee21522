"""Multiple shooting: unknowns and initial states by which pieces of series are simulated best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from physsm._values import Panel
from physsm.models.phy_ssm.grey_box.least_squares import Solution, minimise
from physsm.models.phy_ssm.grey_box.pieces import Cut, cut
from physsm.models.phy_ssm.grey_box.simulation import Priors, normal_equations, simulate_pieces
from physsm.models.phy_ssm.unit import PhysicsUnit

_STATE_STD = 3.0  # of an initial state around its guess, scaled: a weak prior
_SERIES_STD = 1.0  # of a per-series term, in the natural size of its unknown
_SHARED_WEIGHT = 1e-6  # of an unknown around its start: only for those that data do not determine
_TOLERANCE = 1e-5


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


@dataclass(frozen=True, eq=False)
class Fit:
    """Result of shooting: the guess that it ended with, and the root mean square error of the
    simulation in each channel, scaled.
    """

    guess: Guess
    cost: float
    errors: Float[np.ndarray, " channels"]


def in_double(unit: PhysicsUnit) -> PhysicsUnit:
    """The unit in double precision: last digits of the errors decide where a fit ends."""
    return jax.tree.map(
        lambda leaf: jnp.asarray(np.asarray(leaf, float)) if eqx.is_inexact_array(leaf) else leaf,
        unit,
    )


def shoot(
    unit: PhysicsUnit,
    scaled: Panel,
    guesses: list[Guess],
    *,
    length: int,
    iterations: int,
    bend: float = np.inf,
    most_rows: int = 20_000,
    finalists: int = 1,
) -> Fit:
    """The best fit from several guesses to pieces of `length` rows. Of many guesses, the best few
    (`finalists`) are followed to the end. Errors beyond `bend` count linearly.
    """
    pieces = cut(scaled, length, most_rows)
    shared = np.stack([guess.shared for guess in guesses])
    local = np.stack([guess.local(pieces) for guess in guesses])
    with jax.enable_x64(True):
        precise = in_double(unit)
        if len(guesses) > finalists:
            first = _minimise(precise, pieces, shared, local, bend, iterations // 2)
            best = np.argsort(np.where(np.isfinite(first.cost), first.cost, np.inf))[:finalists]
            shared, local = first.shared[best], first.local[best]
        end = _minimise(precise, pieces, shared, local, bend, iterations)
        best = end.best
        states, channels = (
            np.asarray(part)
            for part in simulate_pieces(precise, end.shared[best], end.local[best], pieces.pieces)
        )
    guess = Guess(
        shared=end.shared[best],
        states=_states_at_rows(guesses[0].states, pieces, states),
        terms=_terms_of_series(guesses[0].terms, pieces, end.local[best][:, unit.size :]),
    )
    weight = pieces.pieces.weight
    square = (weight * (channels - pieces.pieces.values) ** 2).sum((0, 1))
    errors = np.sqrt(square / np.maximum(weight.sum((0, 1)), 1))
    return Fit(guess, float(end.cost[best]), errors)


def _minimise(
    unit: PhysicsUnit,
    pieces: Cut,
    shared: np.ndarray,
    local: np.ndarray,
    bend: float,
    iterations: int,
) -> Solution:
    size, per_series = unit.size, len(unit.per_series)
    centre = local.copy()
    centre[..., size:] = 0.0
    weights = np.repeat([_STATE_STD**-2, _SERIES_STD**-2], [size, per_series])
    priors = Priors(centre, weights, shared.copy(), np.full(shared.shape[1], _SHARED_WEIGHT))
    at = np.asarray(bend, float)
    return minimise(
        lambda shared, local: normal_equations(unit, shared, local, pieces.pieces, priors, at),
        shared,
        local,
        iterations=iterations,
        tolerance=_TOLERANCE,
    )


def _states_at_rows(
    before: Float[np.ndarray, "series rows n"],
    pieces: Cut,
    states: Float[np.ndarray, "pieces rows n"],
) -> Float[np.ndarray, "series rows n"]:
    """States at all rows: those of the pieces, and those from before where no piece is."""
    after = before.copy()
    for series, first, own in zip(pieces.series, pieces.first, states, strict=True):
        rows = min(len(own), after.shape[1] - first)
        after[series, first : first + rows] = own[:rows]
    return after


def _terms_of_series(before: np.ndarray, pieces: Cut, terms: np.ndarray) -> np.ndarray:
    """Per-series terms: the mean over the pieces of a series."""
    after = before.copy()
    for series in np.unique(pieces.series):
        after[series] = terms[pieces.series == series].mean(0)
    return after
