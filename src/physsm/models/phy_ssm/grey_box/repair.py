"""Repair of pieces whose initial states ended in another minimum than those of the rest.

With hidden states a piece may fit far worse than the others with the same unknowns, as one that
starts on the wrong side of an absolute value; it then spoils the unknowns too. Such a piece is
fitted again by itself, from states that occur in the good pieces, with the unknowns held.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm.models.phy_ssm.grey_box.equations import Equations
from physsm.models.phy_ssm.grey_box.least_squares import as_numpy, local_steps
from physsm.models.phy_ssm.grey_box.pieces import Cut
from physsm.models.phy_ssm.grey_box.simulation import Normal

_FAR = 3.0  # times the error of the median piece, from which on a piece is fitted again
_LEAST_PIECES = 4
_TRIALS = 8  # states from which it is fitted again
_ITERATIONS = 12
_GAIN = 0.5  # share of its cost that a repaired piece keeps at most
_DAMPING = 1e-2


def repaired(
    equations: Equations,
    end: Normal,
    shared: Float[np.ndarray, "starts k"],
    local: Float[np.ndarray, "starts pieces q"],
    pieces: Cut,
) -> Float[np.ndarray, "pieces q"] | None:
    """Variables of the pieces with those of bad ones replaced; None if nothing was found. `shared`
    and `local` repeat the place where a fit has ended, with the equations `end`, as often as
    `equations` takes starts.
    """
    weight = np.asarray(pieces.pieces.weight)
    error = np.sqrt(end.cost_of_piece / np.maximum(weight.sum((1, 2)), 1))
    error = np.where(np.isfinite(error), error, np.inf)
    measured = pieces.measured
    if len(measured) < _LEAST_PIECES or not np.isfinite(np.median(error[measured])):
        return None
    is_bad = np.zeros(len(error), bool)
    is_bad[measured] = error[measured] > _FAR * np.median(error[measured])
    if not is_bad.any():
        return None
    pool = _states_of(end, pieces, measured[~is_bad[measured]])
    rng = np.random.default_rng(0)
    before = np.where(np.isfinite(end.cost_of_piece), end.cost_of_piece, np.inf)
    best, cost = local[0].copy(), np.where(is_bad, _GAIN * before, 0.0)
    for _ in range(-(-_TRIALS // len(shared))):
        trial = local.copy()
        # The same states for each bad piece: the order of the series must not choose.
        drawn = pool[rng.integers(len(pool), size=len(shared))]
        trial[:, is_bad, : pool.shape[1]] = drawn[:, None]
        trial, costs = _fit_pieces(equations, shared, trial)
        for one, its in zip(trial, costs, strict=True):
            is_better = is_bad & (its < cost)
            best[is_better], cost[is_better] = one[is_better], its[is_better]
    return best if (best != local[0]).any() else None


def _states_of(end: Normal, pieces: Cut, chosen: np.ndarray) -> Float[np.ndarray, "rows n"]:
    """Simulated states at the rows of some pieces, in an order of their own."""
    is_row = np.asarray(pieces.pieces.gaps)[chosen] > 0  # without the first row, and padding
    states = end.states[chosen][is_row]
    return states[np.lexsort(states.T)]


def _fit_pieces(
    equations: Equations, shared: np.ndarray, local: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Variables of pieces after a minimisation of each by itself, and its cost."""
    now = as_numpy(equations(shared, local))
    damping = np.full(local.shape[:2], _DAMPING)
    for _ in range(_ITERATIONS):
        trial = local + local_steps(now, damping)
        new = as_numpy(equations(shared, trial))
        is_better = new.cost_of_piece < now.cost_of_piece
        is_better |= np.isfinite(new.cost_of_piece) & ~np.isfinite(now.cost_of_piece)
        local = np.where(is_better[..., None], trial, local)
        now = now._replace(
            local_local=np.where(is_better[..., None, None], new.local_local, now.local_local),
            local=np.where(is_better[..., None], new.local, now.local),
            cost_of_piece=np.where(is_better, new.cost_of_piece, now.cost_of_piece),
        )
        damping = np.where(is_better, damping / 5, damping * 8)
    return local, np.where(np.isfinite(now.cost_of_piece), now.cost_of_piece, np.inf)
