"""A trained model that predicts along a path: forecast, one step ahead, inside a history."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from physsm._values import Forecast, Panel, Query, Unknowns
from physsm.data.window import Windows
from physsm.models._base import Prediction, check_coverage, inside_times
from physsm.models._calibration import uncalibrated
from physsm.models._latent.fitted import FittedNetwork
from physsm.models._latent.future import plan_steps
from physsm.models._latent.terms import of_kind
from physsm.models._trajectory.on_windows import Future, OnWindows, Wanted, no_future
from physsm.models._trajectory.tiles import tiles_of

_SMALLEST_SPREAD = 1e-6  # scaled: an interval must not have the width zero


class FittedTrajectory(FittedNetwork):
    """A trained model that predicts along a path. It looks at the last rows of a history, as many
    as its training windows had.
    """

    follows_path: ClassVar[bool] = True

    def _predict(self, history: Panel, query: Query, wants_spread: bool) -> Prediction:
        longest = max(self.plan.largest_gap, 1.0) * self.plan.time_scale
        steps = plan_steps(history, query, longest, holds_start=False)
        start = np.maximum(history.lengths - self.sizes.context, 0)
        series = np.arange(len(history))
        windows = Windows(series, start, history.lengths, history.lengths)
        future = Future(steps.gaps / self.plan.time_scale, steps.controls)
        past = history.times[series, history.lengths - 1] - history.times[series, start]
        times = past / self.plan.time_scale + np.cumsum(future.gaps, axis=0)
        wanted = Wanted(times, steps.controls)
        at = (steps.rows, series[:, None])
        found, spread = self._windows.ask(history, windows, future, wanted, wants_spread)
        mean = self.plan.unscale(found.channels[at])
        return Prediction(
            mean,
            self._spread(spread[at]) if spread is not None else np.zeros_like(mean),
            self._states(found.z[at]),
            self._unknowns(found.unknowns, steps.rows.shape[1]),
            self._warnings(history.ids, query.times, query.lengths, found.is_reached[at]),
        )

    def _one_step(self, history: Panel) -> Prediction:
        """By a window that ends before each row."""
        rows = np.arange(1, history.times.shape[1])
        series, row = np.nonzero(rows[None, :] < history.lengths[:, None])
        row = row + 1
        windows = Windows(series, np.maximum(row - self.sizes.context, 0), row, row + 1)
        scaled_times = history.times / self.plan.time_scale
        gaps = scaled_times[series, row] - scaled_times[series, row - 1]
        controls = history.controls[series, row][None]
        times = scaled_times[series, row] - scaled_times[series, windows.start]
        future, wanted = Future(gaps[None], controls), Wanted(times[None], controls)
        mean = np.full(history.values.shape, np.nan)
        if len(row):
            found, _ = self._windows.ask(history, windows, future, wanted, False)
            mean[series, row] = self.plan.unscale(found.channels[0])
        return Prediction(mean, np.broadcast_to(self._spread(np.zeros(1)), mean.shape).copy())

    def interpolate(
        self, history: Any, *, times: Any = None, coverage: float | None = 0.9
    ) -> Forecast:
        """Values inside the history, given all of its measurements: along the path of the window
        that a time lies in.
        """
        check_coverage(coverage)
        panel = self.check(history)
        at = inside_times(panel, times)
        lengths = panel.lengths if times is None else np.full(len(panel), at.shape[1])
        tiles = tiles_of(panel, at, self.sizes.context)
        origin = panel.times[tiles.windows.series, tiles.windows.start]
        wanted = Wanted((tiles.times - origin) / self.plan.time_scale, tiles.controls)
        future = no_future(panel, tiles.windows)
        found, spread = self._windows.ask(
            panel, tiles.windows, future, wanted, coverage is not None
        )
        mean = self.plan.unscale(found.channels[tiles.place])
        prediction = Prediction(
            mean,
            self._spread(spread[tiles.place]) if spread is not None else np.zeros_like(mean),
            self._states(found.z[tiles.place]),
            warnings=self._warnings(panel.ids, at, lengths, found.is_reached[tiles.place]),
        )
        gaussian = uncalibrated(len(panel.channels))  # the calibration is that of forecasts
        return self._as_forecast(panel, at, lengths, prediction, coverage, gaussian)

    def unknowns(self, history: Any) -> Unknowns:
        """The unknowns of each window of the history: constant along its path, with their spread
        over draws of what was inferred. How sure those are that the text calls constant, nothing
        says: their spread is NaN.
        """
        if self.system is None:
            return super().unknowns(history)
        panel = self.check(history)
        tiles = tiles_of(panel, panel.times, self.sizes.context)
        wanted = Wanted(np.zeros((1, tiles.windows.number)), tiles.controls[:1])
        future = no_future(panel, tiles.windows)
        asked = (panel, tiles.windows, future, wanted)
        mean = self._windows.ask(*asked, wants_spread=False)[0].unknowns
        std = np.array(self._windows.spread(*asked)[1], float)
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
    def _windows(self) -> OnWindows:
        return OnWindows(self.network, self.sizes.context)

    # Units.

    def _spread(self, drawn: np.ndarray) -> np.ndarray:
        """With what one step ahead leaves open, in the units of the table."""
        total = np.sqrt(np.asarray(drawn, float) ** 2 + np.array(self.noise) ** 2)
        return (total + _SMALLEST_SPREAD) * np.array(self.plan.channel_scale)

    def _states(self, z: np.ndarray) -> np.ndarray | None:
        scale = np.array(self.plan.state_scale)
        return np.asarray(z, float)[..., : len(scale)] * scale if len(scale) else None

    def _unknowns(self, unknowns: np.ndarray, steps: int) -> np.ndarray | None:
        if self.system is None:
            return None
        return np.repeat(np.asarray(unknowns, float)[:, None], steps, axis=1)

    def _warnings(
        self, ids: Sequence[str], times: np.ndarray, lengths: np.ndarray, is_reached: np.ndarray
    ) -> tuple[str, ...]:
        """For each series whose path could not be followed to all of its times."""
        inside = np.arange(times.shape[1]) < np.asarray(lengths)[:, None]
        said = []
        for series in np.flatnonzero((~is_reached & inside).any(1)).tolist():
            step = int(np.argmin(is_reached[series] | ~inside[series]))
            said.append(
                f"series {ids[series]}: the solver stopped before the time "
                f"{times[series, step]:g}, and its last state is kept from there: the path runs "
                "away, or needs more of solver.max_steps"
            )
        return tuple(said)
