"""A fitted encode-decode model: forecast, one step ahead, inside a history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from physsm._values import Forecast, Panel, Query, Unknowns
from physsm.data.window import Windows
from physsm.models._base import Prediction, check_coverage
from physsm.models._encode_decode.scales import TrajectoryScales
from physsm.models._encode_decode.tiles import tiles_of
from physsm.models._encode_decode.windows import WindowedNetwork, question, question_inside
from physsm.models._interpolation import inside_times
from physsm.models._intervals import uncalibrated
from physsm.models._network.compiled import rounded_up
from physsm.models._network.fitted import FittedNetwork
from physsm.models._network.unknowns import of_kind
from physsm.models._steps import future_steps


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FittedTrajectory(FittedNetwork):
    """A trained model that predicts one trajectory for each window.

    Of a history it reads the last time steps, as many as the contexts of its training windows have.
    """

    Scales = TrajectoryScales
    predicts_trajectory: ClassVar[bool] = True

    def _predict(self, history: Panel, query: Query, wants_spread: bool) -> Prediction:
        table, series = self.scales.table, np.arange(len(history))
        future = future_steps(
            history, query, table.longest_step, holds_start=False, padded=rounded_up
        )
        gaps = future.gaps / table.time_scale
        start = np.maximum(history.lengths - self.sizes.context, 0)
        windows = Windows(
            series=series, start=start, boundary=history.lengths, stop=history.lengths
        )
        past = history.times[series, history.lengths - 1] - history.times[series, start]
        times = past / table.time_scale + np.cumsum(gaps, axis=0)
        asked = question(gaps, future.controls, times, future.controls)
        means = self._windowed.trajectories(history, windows, asked)
        at = (future.steps, series[:, None])
        mean = table.unscale(means.channels[at])
        spread = np.zeros_like(mean)
        if wants_spread:
            spread = self.spread(self._windowed.spread(history, windows, asked)[0][at])
        return Prediction(
            mean=mean,
            spread=spread,
            states=self.scales.states.unscale(means.z[at]),
            unknowns=self._repeated(means.unknowns, future.steps.shape[1]),
            warnings=self._warnings(history.ids, query.times, query.lengths, means.is_reached[at]),
        )

    def _one_step(self, history: Panel) -> Prediction:
        """Forecasts of windows, each of which ends before one of the time steps."""
        table = self.scales.table
        steps = np.arange(1, history.times.shape[1])
        series, step = np.nonzero(steps[None, :] < history.lengths[:, None])
        step = step + 1
        windows = Windows(
            series=series,
            start=np.maximum(step - self.sizes.context, 0),
            boundary=step,
            stop=step + 1,
        )
        scaled_times = history.times / table.time_scale
        gaps = scaled_times[series, step] - scaled_times[series, step - 1]
        controls = history.controls[series, step][None]
        times = scaled_times[series, step] - scaled_times[series, windows.start]
        mean = np.full(history.values.shape, np.nan)
        if len(step):
            asked = question(gaps[None], controls, times[None], controls)
            means = self._windowed.trajectories(history, windows, asked)
            mean[series, step] = table.unscale(means.channels[0])
        spread = np.broadcast_to(self.spread(np.zeros(1)), mean.shape).copy()
        return Prediction(mean=mean, spread=spread)

    def interpolate(
        self, history: Any, *, times: Any = None, coverage: float | None = 0.9
    ) -> Forecast:
        """Values inside the history, given all of its measurements: on the trajectory of the window
        around each time.
        """
        check_coverage(coverage)
        panel = self.check(history)
        at = inside_times(panel, times)
        lengths = panel.lengths if times is None else np.full(len(panel), at.shape[1])
        tiles = tiles_of(panel, at, self.sizes.context)
        origin = panel.times[tiles.windows.series, tiles.windows.start]
        scaled = (tiles.times - origin) / self.scales.table.time_scale
        asked = question_inside(panel, tiles.windows, scaled, tiles.controls)
        means = self._windowed.trajectories(panel, tiles.windows, asked)
        mean = self.scales.table.unscale(means.channels[tiles.place])
        spread = np.zeros_like(mean)
        if coverage is not None:
            drawn = self._windowed.spread(panel, tiles.windows, asked)[0]
            spread = self.spread(drawn[tiles.place])
        prediction = Prediction(
            mean=mean,
            spread=spread,
            states=self.scales.states.unscale(means.z[tiles.place]),
            warnings=self._warnings(panel.ids, at, lengths, means.is_reached[tiles.place]),
        )
        gaussian = uncalibrated(len(panel.channels))  # the calibration is valid for forecasts
        return self._as_forecast(panel, at, lengths, prediction, coverage, gaussian)

    def unknowns(self, history: Any) -> Unknowns:
        """The unknowns of each window of the history, constant along its trajectory.

        `std` is the spread over draws of the inferred latents. It is NaN for unknowns that the text
        calls constant, because the model has no standard errors of them.
        """
        if self.system is None:
            return super().unknowns(history)
        panel = self.check(history)
        tiles = tiles_of(panel, panel.times, self.sizes.context)
        times = np.zeros((1, tiles.windows.number))
        asked = question_inside(panel, tiles.windows, times, tiles.controls[:1])
        mean = self._windowed.trajectories(panel, tiles.windows, asked).unknowns
        std = np.array(self._windowed.spread(panel, tiles.windows, asked)[1], float)
        std[:, list(of_kind(self.system, "constant"))] = np.nan
        tile = tiles.place[1]
        return Unknowns(
            names=self._physics_names()[1],
            ids=panel.ids,
            times=panel.times,
            lengths=panel.lengths,
            mean=mean[tile],
            std=std[tile],
        )

    @cached_property
    def _windowed(self) -> WindowedNetwork:
        return WindowedNetwork(self.compiled, self.sizes.context)

    def _repeated(self, unknowns: np.ndarray, steps: int) -> np.ndarray | None:
        """The unknowns of a window at each of its future times."""
        if self.system is None:
            return None
        return np.repeat(np.asarray(unknowns, float)[:, None], steps, axis=1)

    def _warnings(
        self, ids: Sequence[str], times: np.ndarray, lengths: np.ndarray, is_reached: np.ndarray
    ) -> tuple[str, ...]:
        """A sentence for each series whose solver did not reach all of its times."""
        inside = np.arange(times.shape[1]) < np.asarray(lengths)[:, None]
        warnings = []
        for series in np.flatnonzero((~is_reached & inside).any(1)).tolist():
            step = int(np.argmin(is_reached[series] | ~inside[series]))
            warnings.append(
                f"series {ids[series]}: the solver stopped before the time "
                f"{times[series, step]:g}, and its last state is repeated from there: the "
                "trajectory diverges, or needs more of solver.max_steps"
            )
        return tuple(warnings)
