"""What a training part says of the states and unknowns of a system, before anything is solved."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from physsm._values import Panel
from physsm.models._baseline.origins import steps_ahead
from physsm.models._baseline.state_columns import Columns, states_at
from physsm.models._baseline.trajectory_fit import linear_in_unknowns
from physsm.physics.bounds import limits
from physsm.physics.system import System

_MOST_POINTS = 5000  # behind the first guess of the unknowns
_RIDGE = 1e-6  # for unknowns that cannot be told apart


class Learned(NamedTuple):
    """What the training part says of states and unknowns; states in the units of the table."""

    mean: Float[np.ndarray, " states"]
    scale: Float[np.ndarray, " states"]
    low: Float[np.ndarray, " states"]
    high: Float[np.ndarray, " states"]
    raw: Float[np.ndarray, " unknowns"]
    change: Float[np.ndarray, " unknowns"]


def learn_states(
    system: System, train: Panel, columns: Columns, mean: np.ndarray, scale: np.ndarray
) -> tuple[Learned, Float[np.ndarray, "series steps states"]]:
    """Range and scale of the states in training, no unknowns yet; and the states at all rows."""
    ends = steps_ahead(train, np.arange(len(train)), train.lengths - 1, 0)
    usual = np.array([mean[place] if place >= 0 else 0.0 for place in columns.channel])
    states = states_at(train, ends, train.times, columns, usual)
    valid = np.arange(train.times.shape[1]) < train.lengths[:, None]
    spread = states[valid].std(0)
    spread = np.where(spread > 0, spread, 1)
    own = [scale[c] if c >= 0 else s for c, s in zip(columns.channel, spread, strict=True)]
    nothing = np.zeros(len(system.unknowns))
    low, high = states[valid].min(0), states[valid].max(0)
    return Learned(usual, np.array(own), low, high, nothing, nothing), states


def first_guess(
    system: System,
    train: Panel,
    columns: Columns,
    learned: Learned,
    states: Float[np.ndarray, "series steps states"],
) -> tuple[Float[np.ndarray, " unknowns"], Float[np.ndarray, " unknowns"]]:
    """Unknowns by linear regression of the slopes between rows, and of each the change that moves
    some state by its scale in a median gap.
    """
    gaps = np.diff(train.times, axis=1)
    series, row = np.nonzero(gaps > 0)
    if not len(row):
        return learned.raw, np.ones_like(learned.raw)
    chosen = np.linspace(0, len(row) - 1, min(_MOST_POINTS, len(row))).astype(np.int64)
    series, row = series[chosen], row[chosen]
    before, after = states[series, row], states[series, row + 1]
    slope = (after - before) / gaps[series, row, None]
    u = train.controls[series, row][:, list(columns.control)]
    with jax.enable_x64(True):
        known, factors = map(np.asarray, linear_in_unknowns(system, (before + after) / 2, u))
    per_gap = train.median_gap / learned.scale
    target = ((slope - known) * per_gap).reshape(-1)
    features = (factors * per_gap[:, None]).reshape(len(target), len(system.unknowns))
    usable = np.isfinite(target) & np.isfinite(features).all(1)
    target, features = target[usable], features[usable]
    size = np.sqrt((features**2).mean(0)) if len(features) else np.zeros_like(learned.raw)
    size = np.where(size > 0, size, 1)
    gram = (features / size).T @ (features / size) + _RIDGE * len(features) * np.eye(len(size))
    if not len(features):
        return learned.raw, 1 / size
    return np.linalg.solve(gram, (features / size).T @ target) / size, 1 / size


def as_raw(system: System, theta: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Unknowns before `constrain`, at least a small change inside their bounds."""
    low, high = map(np.array, limits([unknown.bounds for unknown in system.unknowns]))
    inset = np.minimum(least, 0.01 * (high - low))
    with jax.enable_x64(True):
        return np.asarray(system.unconstrain(np.clip(theta, low + inset, high - inset)))


def changes(system: System, raw: np.ndarray, least: np.ndarray) -> np.ndarray:
    """A considerable change of each unknown before `constrain`: of its own size.

    Where there is a bound, small ones are logarithms there, so that 1 is considerable.
    """
    bounded = np.array([bool(unknown.bounds) for unknown in system.unknowns], bool)
    return np.where(bounded, np.maximum(raw, 1), np.maximum(np.abs(raw), least))
