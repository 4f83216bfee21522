"""Levenberg-Marquardt for multiple shooting, from many starts at once.

Each piece has its own variables, which meet only in the shared ones: the blocks of the pieces are
eliminated first (a Schur complement), so that an iteration costs the same for each piece, however
many there are. A general solver would treat the Jacobian as dense.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from physsm.models.phy_ssm.grey_box.simulation import Normal

_FIRST_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-2, 1e-9, 1e9
_WHOLE_STEP = 1e-4  # damping of a step that is nearly that of Gauss and Newton
_LONGEST_STEP = 2.0  # of a shared variable in one iteration, in its natural size or its value
_TINY = 1e-12
_RIDGE = 1e-15
_UNDETERMINED = 1e12  # variance of a shared variable where none can be computed


class Solution(NamedTuple):
    """Variables of each start, and the equations there."""

    shared: Float[np.ndarray, "starts k"]
    local: Float[np.ndarray, "starts pieces q"]
    normal: Normal

    @property
    def order(self) -> Int[np.ndarray, " starts"]:
        """Starts from the least cost to the largest."""
        return np.argsort(np.where(np.isfinite(self.normal.cost), self.normal.cost, np.inf))


def minimise(
    equations: Callable[[np.ndarray, np.ndarray], Normal],
    shared: Float[np.ndarray, "starts k"],
    local: Float[np.ndarray, "starts pieces q"],
    *,
    iterations: int,
    tolerance: float,
) -> Solution:
    """The least cost near each start; ends when no start gains more than a share `tolerance` by a
    step that is hardly damped: short steps gain little anywhere.
    """
    now = as_numpy(equations(shared, local))
    damping = np.full(len(shared), _FIRST_DAMPING)
    for _ in range(iterations):
        step_shared, step_local = gauss_newton_steps(now, damping, shared)
        trial_shared, trial_local = shared + step_shared, local + step_local
        trial = as_numpy(equations(trial_shared, trial_local))
        before, after = now.cost, trial.cost
        is_better = np.isfinite(after) & ((after < before) | ~np.isfinite(before))
        gain = np.where(is_better, (before - after) / np.maximum(np.abs(before), _TINY), 0.0)
        shared, local, now = (
            _chosen(is_better, trial_shared, shared),
            _chosen(is_better, trial_local, local),
            Normal(*(_chosen(is_better, new, old) for new, old in zip(trial, now, strict=True))),
        )
        # A start has ended when whole steps gain nothing, when no step is short enough to gain, or
        # where equations are not finite: there is no step from there.
        is_whole = damping <= _WHOLE_STEP
        is_stuck = (is_better & is_whole & (gain < tolerance)) | (damping >= _MOST_DAMPING)
        is_stuck |= ~np.isfinite(now.cost)
        damping = np.where(is_better, damping / 5, damping * 8)
        damping = np.clip(damping, _LEAST_DAMPING, _MOST_DAMPING)
        if is_stuck.all():
            break
    return Solution(shared, local, now)


def covariance_of_shared(
    normal: Normal, start: int, weight: Float[np.ndarray, "pieces rows channels"]
) -> Float[np.ndarray, "k k"]:
    """Covariance of the shared variables at a minimum.

    For each variable the larger of two: from the variance of the errors, for errors that are
    correlated from row to row as they are found to be; and from how much single pieces would move
    the variables.
    """
    local_local = normal.local_local[start]
    nothing_known = _UNDETERMINED * np.eye(len(normal.shared_shared[start]))
    if not np.isfinite(local_local).all():
        return nothing_known
    cross, shared = normal.local_shared[start], normal.shared_shared[start]
    by_shared = _solve(_damped(local_local, np.full(len(local_local), _TINY)), cross)
    schur = shared - np.einsum("pqk,pqj->kj", cross, by_shared)
    # In units of the diagonal: a ridge may not tell what neither data nor priors do.
    unit = np.sqrt(np.maximum(np.diagonal(shared), _TINY**2))
    schur = schur / np.multiply.outer(unit, unit) + _RIDGE * np.eye(len(schur))
    inverse = _solve(schur, np.eye(len(schur))) / np.multiply.outer(unit, unit)
    squares, lagged = normal.squares[start].sum(), normal.lagged[start].sum()
    pieces = weight.any((1, 2)).sum()
    number = max(weight.sum() - len(schur) - pieces * local_local.shape[-1], 1.0)
    correlation = np.clip(lagged / max(squares, _TINY), 0.0, 0.99)
    plain = inverse * (squares / number * (1 + correlation) / (1 - correlation))
    if not np.isfinite(plain).all():
        return nothing_known
    if pieces < 2 * len(schur):
        return plain
    scores = normal.shared_of_piece[start]
    by_pieces = inverse @ (scores.T @ scores) @ inverse
    ratio = np.diagonal(by_pieces) / np.maximum(np.diagonal(plain), _TINY**3)
    wider = np.sqrt(np.maximum(ratio, 1.0))
    return plain * np.multiply.outer(wider, wider)


def as_numpy(normal: Normal) -> Normal:
    """Equations in double precision, outside of JAX."""
    return Normal(*(np.asarray(part, float) for part in normal))


def _chosen(which: np.ndarray, new: np.ndarray, old: np.ndarray) -> np.ndarray:
    return np.where(which.reshape(-1, *(1,) * (new.ndim - 1)), new, old)


def gauss_newton_steps(
    normal: Normal, damping: np.ndarray, shared: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Damped Gauss-Newton steps; none from a start whose equations are not finite."""
    is_finite = np.isfinite(normal.cost)
    blocks = normal[:6]  # without what was simulated
    for part in blocks:
        is_finite &= np.isfinite(part).reshape(len(is_finite), -1).all(1)
    parts = Normal(*(_chosen(is_finite, part, np.zeros_like(part)) for part in normal))
    local_local = _damped(parts.local_local, damping[:, None])
    shared_shared = _damped(parts.shared_shared, damping)
    cross = parts.local_shared
    eliminated = _solve(local_local, np.concatenate([cross, parts.local[..., None]], axis=-1))
    by_shared, by_local = eliminated[..., :-1], eliminated[..., -1]
    schur = shared_shared - np.einsum("mpqk,mpqj->mkj", cross, by_shared)
    right = -parts.shared + np.einsum("mpqk,mpq->mk", cross, by_local)
    size = np.trace(schur, axis1=1, axis2=2)[:, None, None] + 1
    schur = schur + _TINY * size * np.eye(schur.shape[-1])
    step_shared = _solve(schur, right[..., None])[..., 0]
    longest = (np.abs(step_shared) / np.maximum(np.abs(shared) / 2, 1)).max(-1, initial=0)
    step_shared *= np.minimum(1, _LONGEST_STEP / np.maximum(longest, _TINY))[:, None]
    step_local = -by_local - np.einsum("mpqk,mk->mpq", by_shared, step_shared)
    return step_shared, step_local


def local_steps(normal: Normal, damping: np.ndarray) -> np.ndarray:
    """Damped Gauss-Newton steps of the pieces' own variables, with the shared ones held; none for a
    piece whose equations are not finite.
    """
    is_finite = np.isfinite(normal.local_local).all((-2, -1)) & np.isfinite(normal.local).all(-1)
    blocks = np.where(is_finite[..., None, None], normal.local_local, 0.0)
    right = np.where(is_finite[..., None], normal.local, 0.0)
    return -_solve(_damped(blocks, damping), right[..., None])[..., 0]


def _solve(matrices: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solutions of linear systems; NaN for those whose matrix is singular, as after a simulation
    that has nearly overflowed.
    """
    try:
        return np.linalg.solve(matrices, right)
    except np.linalg.LinAlgError:
        if matrices.ndim == 2:
            return np.full(right.shape, np.nan)
        return np.stack([_solve(one, its) for one, its in zip(matrices, right, strict=True)])


def _damped(blocks: np.ndarray, damping: np.ndarray) -> np.ndarray:
    """Blocks with their diagonals enlarged (Marquardt's scaling)."""
    diagonal = np.einsum("...ii->...i", blocks)
    added = damping[..., None] * np.maximum(diagonal, _TINY) + _TINY
    return blocks + added[..., None] * np.eye(blocks.shape[-1])
