"""Steps of an integrator: gaps between times, cut into equal steps of limited length."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from physsm._errors import DataError
from physsm._values import Panel, Query

_MOST_STEPS = 1_000_000  # of a forecast
_ROUNDING = 1e-6  # of a step: rounding error of a gap


class Steps(NamedTuple):
    """Steps of each series one after another, padded with steps of length 0.

    Step k of series s has the length `lengths[s, k]` and lies in the gap after time `gap[s, k]`;
    at its end, the fraction `share[s, k]` of that gap has passed. Series s reaches its r-th time
    after its first `reached[s, r]` steps.
    """

    lengths: Float[np.ndarray, "series steps"]
    gap: Int[np.ndarray, "series steps"]
    share: Float[np.ndarray, "series steps"]
    reached: Int[np.ndarray, "series times"]

    def zero_order_hold(
        self, controls: Float[np.ndarray, "series times controls"]
    ) -> Float[np.ndarray, "series steps controls"]:
        """Control during each step: that at the start of its gap."""
        return np.take_along_axis(controls, self.gap[..., None], axis=1)

    def at_ends(
        self,
        controls: Float[np.ndarray, "series times controls"],
        holds_start: bool | Bool[np.ndarray, " controls"],
    ) -> Float[np.ndarray, "series steps controls"]:
        """Control at the end of each step: linear in time, or, for controls that `holds_start`
        marks, that at the start of the gap until the gap ends.
        """
        before, after = (
            self.zero_order_hold(controls),
            np.take_along_axis(
                controls, np.minimum(self.gap + 1, controls.shape[1] - 1)[..., None], axis=1
            ),
        )
        share = self.share[..., None]
        held = np.where(share < 1, before, after)
        return np.where(holds_start, held, before + share * (after - before))


def cut_gaps(
    times: Float[np.ndarray, "series times"],
    longest: float,
    most: int,
    padded: Callable[[int], int] = lambda steps: steps,
) -> Steps:
    """Steps from each time to the next, none longer than `longest`, at most `most` for a series.

    Repeated times (padding) take no step. `padded` rounds the number of steps up, so that few
    shapes occur.
    """
    gaps = np.diff(times, axis=1)
    wanted = np.ceil(np.minimum(gaps / longest, most) - _ROUNDING)
    parts = np.where(gaps > 0, np.maximum(wanted, 1), 0).astype(np.int64)
    reached = np.minimum(np.pad(parts.cumsum(1), ((0, 0), (1, 0))), most)
    parts = np.diff(reached, axis=1)
    shape = len(times), padded(int(reached[:, -1].max(initial=1)))
    owner = np.repeat(np.arange(parts.size), parts.reshape(-1))
    series, gap = np.divmod(owner, max(gaps.shape[1], 1))
    step = np.arange(len(owner)) - (np.cumsum(reached[:, -1]) - reached[:, -1])[series]
    lengths, share = np.zeros(shape), np.ones(shape)
    lengths[series, step] = gaps[series, gap] / parts[series, gap]
    share[series, step] = (step - reached[series, gap] + 1) / parts[series, gap]
    gap_of_step = np.full(shape, max(gaps.shape[1] - 1, 0))
    gap_of_step[series, step] = gap
    return Steps(lengths=lengths, gap=gap_of_step, share=share, reached=reached)


class FutureSteps(NamedTuple):
    """Gaps before the steps of a future and controls at their ends, time-major.

    After the last step, gaps are zero. `steps[s, k]` is the step at which series s reaches the k-th
    time of the query.
    """

    gaps: Float[np.ndarray, "steps series"]
    controls: Float[np.ndarray, "steps series controls"]
    steps: Int[np.ndarray, "series query"]


def future_steps(
    history: Panel,
    query: Query,
    longest: float,
    holds_start: bool | Bool[np.ndarray, " controls"],
    padded: Callable[[int], int],
) -> FutureSteps:
    """Steps no longer than `longest` from the end of each history through the query's times.

    Between two times a control is constant at its first value (`holds_start`), or linear.
    """
    series = np.arange(len(history))
    last = history.lengths - 1
    times = np.concatenate([history.times[series, last][:, None], query.times], axis=1)
    controls = np.concatenate([history.controls[series, last][:, None], query.controls], axis=1)
    place = np.minimum(np.arange(times.shape[1]), query.lengths[:, None])
    times, controls = times[series[:, None], place], controls[series[:, None], place]
    if (np.ceil(np.diff(times, axis=1) / longest).sum(1) > _MOST_STEPS).any():
        raise DataError(
            f"the time {times.max():g} is more than {_MOST_STEPS:,} steps of the model after the "
            "history",
            hint=f"a step is at most {longest:g}, the longest gap of the training part; check the "
            "times and their unit",
        )
    steps = cut_gaps(times, longest, _MOST_STEPS, padded)
    return FutureSteps(
        gaps=steps.lengths.T,
        controls=np.swapaxes(steps.at_ends(controls, holds_start), 0, 1),
        steps=np.maximum(steps.reached[:, 1:] - 1, 0),
    )
