"""The start of a grey box: a rough fit on a coarse time grid, from many starts.

Where every state is measured, or is the derivative of one that is, unknowns start from regressions.
Elsewhere hidden states and unknowns start from random draws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.random import Generator

from physsm._values import Panel
from physsm.models.phy_ssm.grey_box.pieces import thinned
from physsm.models.phy_ssm.grey_box.shooting import Fit, Guess, shoot
from physsm.models.phy_ssm.grey_box.smoothing import smoothed_states
from physsm.models.phy_ssm.grey_box.starts import (
    as_shared,
    hidden_states,
    random_unknowns,
    regression,
)
from physsm.models.phy_ssm.unit import PhysicsUnit

_ROWS_OF_SIGNAL = 24  # rows of the coarse grid in the time in which signals change
# Length of a piece in each attempt. Shorter ones have fewer minima, because simulations from wrong
# constants go less astray, but say less of slow constants.
_SIGNAL_TIMES = (5.0, 2.5, 5.0)
ATTEMPTS = len(_SIGNAL_TIMES)
_SHORTEST, _LONGEST = 12, 160  # rows of a piece
_MOST_ROWS = 1200  # of all pieces
_RANDOM_STARTS, _FEW_STARTS = 24, 4  # with hidden states, and without
_ITERATIONS = 12
FIRST_FITS = 4  # with hidden states
CLOSE = 0.05  # error of a fit, scaled, that is small in any case


class FirstFit(NamedTuple):
    """A rough fit: unknowns, states and per-series terms at all rows of a panel, the largest error
    of a channel, scaled, and the length of its pieces in rows of the panel.
    """

    guess: Guess
    error: float
    length: int


def first_fits(
    unit: PhysicsUnit, scaled: Panel, seed: int, attempt: int = 0, number: int = FIRST_FITS
) -> list[FirstFit]:
    """Rough fits, the best first. With hidden states there are up to `number` of them, each from
    draws of its own: they may be in different minima. Each `attempt` has other draws, and
    the second one has shorter pieces.
    """
    rng = np.random.default_rng([seed, attempt])
    span = float(unit.scales.states.signal_time)
    factor = max(1, int(span / _ROWS_OF_SIGNAL))
    coarse = thinned(scaled, factor)
    rows = max(1.0, span / factor)
    known = smoothed_states(unit, coarse, max(1, round(rows / 8)))
    length = int(np.clip(_SIGNAL_TIMES[attempt] * rows, _SHORTEST, _LONGEST))
    fits: list[Fit] = []
    for _ in range(number if hidden_states(unit).any() else 1):
        guesses = _guesses(unit, coarse, known, rows, rng)
        fits.append(
            shoot(
                unit,
                coarse,
                guesses,
                length=length,
                iterations=_ITERATIONS,
                most_rows=_MOST_ROWS,
                rounds=3,
            )
        )
        if not attempt and fits[-1].errors.max(initial=0) < CLOSE:
            break
    fits = sorted(fits, key=lambda fit: fit.finite_cost)

    def at_all_rows(fit: Fit) -> FirstFit:
        states = _at_all_rows(fit.guess.states, coarse, scaled)
        error = float(fit.errors.max(initial=0)) if fit.is_finite else np.inf
        return FirstFit(fit.guess._replace(states=states), error, length * factor)

    return [at_all_rows(fit) for fit in fits]


def _guesses(
    unit: PhysicsUnit, coarse: Panel, known: np.ndarray, rows: float, rng: Generator
) -> list[Guess]:
    """Guesses by regression where all states are known, by the text, and at random."""
    terms = np.zeros((len(coarse), len(unit.per_series)))
    hidden = np.isnan(known).all((0, 1))
    declared = _declared(unit)
    guesses = []
    if not hidden.any():
        for window in sorted({1, max(1, round(rows / 4)), max(1, round(rows))}):
            theta = np.where(np.isnan(declared), regression(unit, coarse, known, window), declared)
            guesses.append(Guess(as_shared(unit, theta), _filled(unit, known, None), terms))
    number = _RANDOM_STARTS if hidden.any() else _FEW_STARTS
    while len(guesses) < number:
        is_first = len(guesses) == 0
        theta = random_unknowns(unit, rng)
        theta = np.where(
            np.isnan(declared), theta, declared * 10 ** rng.normal(0, 0.0 if is_first else 0.2)
        )
        states = _filled(unit, known, None if is_first else rng)
        guesses.append(Guess(as_shared(unit, theta), states, terms))
    return guesses


def _declared(unit: PhysicsUnit) -> Float[np.ndarray, " k"]:
    """First guesses of the text; NaN where it has none."""
    guesses = [unknown.guess for unknown in unit.system.unknowns]
    return np.array([np.nan if guess is None else guess for guess in guesses], float)


def _filled(unit: PhysicsUnit, known: np.ndarray, rng: Generator | None) -> np.ndarray:
    """States without NaN: hidden ones near their mean, or at a random value of their scale."""
    states = known.copy()
    lower, upper = (np.asarray(side, float) for side in unit.limits())
    offset = unit.scales.states.state_offset
    for state in range(unit.size):
        middle = offset[state]
        if rng is not None and np.isnan(known[..., state]).all():
            middle = offset[state] + rng.normal(0, 2)
            middle *= 10 ** rng.uniform(-0.5, 0.5)
        middle = np.clip(middle, lower[state], upper[state])
        own = states[..., state]
        states[..., state] = np.where(np.isnan(own), middle, own)
    return np.clip(states, lower, upper)


def _at_all_rows(states: np.ndarray, coarse: Panel, scaled: Panel) -> np.ndarray:
    """States of the coarse grid, linear between its rows."""
    full = np.zeros((*scaled.times.shape, states.shape[-1]))
    for i, (rough, one) in enumerate(zip(coarse, scaled, strict=True)):
        for state in range(states.shape[-1]):
            values = states[i, : len(rough.times), state]
            full[i, : len(one.times), state] = np.interp(one.times, rough.times, values)
    return full
