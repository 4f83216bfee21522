"""A query cut into steps that the unit can take: no step longer than those of the training data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from physsm._errors import DataError
from physsm._values import Panel, Query

_MOST_STEPS = 1_000_000


class Steps(NamedTuple):
    """Gaps before each step and controls after it, time-major; gaps of zero after the last.

    `rows[s, k]` is the step at which series s reaches the k-th time of the query.
    """

    gaps: Float[np.ndarray, "steps series"]
    controls: Float[np.ndarray, "steps series controls"]
    rows: Int[np.ndarray, "series query"]


def plan_steps(history: Panel, query: Query, longest: float, holds_start: bool) -> Steps:
    """Cut gaps longer than `longest` into equal parts.

    Between two rows a control is held at its value at the start, or runs along a straight line.
    """
    last = history.times[np.arange(len(history)), history.lengths - 1]
    last_control = history.controls[np.arange(len(history)), history.lengths - 1]
    times = np.concatenate([last[:, None], query.times], axis=1)
    controls = np.concatenate([last_control[:, None], query.controls], axis=1)
    gaps = np.diff(times, axis=1)
    inside = np.arange(gaps.shape[1]) < query.lengths[:, None]
    parts = np.where(inside, np.maximum(np.ceil(gaps / longest - 1e-9), 1), 0)
    if parts.sum(1).max(initial=0) > _MOST_STEPS:
        far = times[np.arange(len(times)), query.lengths].max()
        raise DataError(
            f"the time {far:g} is more than {_MOST_STEPS:,} steps of the model after the history",
            hint=f"a step is at most {longest:g}, the longest gap of the training data; check the "
            "times, or their unit",
        )
    parts = parts.astype(np.int64)
    reached = np.cumsum(parts, axis=1)
    total = int(reached.max(initial=1))
    step_gaps = np.zeros((total, len(history)))
    step_controls = np.zeros((total, len(history), controls.shape[2]))
    for s in range(len(history)):
        count = parts[s][inside[s]]
        step_gaps[: count.sum(), s] = np.repeat(gaps[s][inside[s]] / count, count)
        piece = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + 1
        share = (piece / np.repeat(count, count))[:, None]
        before = np.repeat(controls[s, :-1][inside[s]], count, axis=0)
        after = np.repeat(controls[s, 1:][inside[s]], count, axis=0)
        along = before + share * (after - before)
        between = np.where(share < 1, before, after) if holds_start else along
        step_controls[: count.sum(), s] = between
        step_controls[count.sum() :, s] = after[-1] if len(after) else 0
    rows = np.maximum(reached - 1, 0)
    return Steps(step_gaps, step_controls, rows)
