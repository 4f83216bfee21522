"""Forecast origins, and the measurements known at each of them, for many origins at once.

An origin is the time step of a series from which a forecast starts. Its history is that time step
and all before it. Points and interpolation of an origin use its history alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from physsm._values import Panel, Query


class Origins(NamedTuple):
    """Forecast origins, ordered by series, with the times to forecast and the controls there.

    The history of origin o is time steps 0 to `step[o]`, included, of series `series[o]`.
    """

    series: Int[np.ndarray, " origins"]
    step: Int[np.ndarray, " origins"]
    times: Float[np.ndarray, "origins steps"]
    controls: Float[np.ndarray, "origins steps controls"]

    def only(self, chosen: slice | np.ndarray) -> Origins:
        """The chosen origins."""
        return Origins(
            series=self.series[chosen],
            step=self.step[chosen],
            times=self.times[chosen],
            controls=self.controls[chosen],
        )

    def blocks(self, size: int) -> Iterator[Origins]:
        """The same origins in blocks, so that memory does not grow with the table's square."""
        for first in range(0, len(self.step), size):
            yield self.only(slice(first, first + size))


def series_ends(panel: Panel, query: Query) -> Origins:
    """The last time step of each series, with the times of a query."""
    return Origins(
        series=np.arange(len(panel)),
        step=panel.lengths - 1,
        times=query.times,
        controls=query.controls,
    )


def origins_at(panel: Panel, series: np.ndarray, step: np.ndarray, horizon: int) -> Origins:
    """Origins at given time steps, with the `horizon` steps after each as times to forecast.

    After the end of a series, its last time step is repeated.
    """
    later = step[:, None] + np.arange(1, horizon + 1)
    later = np.minimum(later, panel.lengths[series, None] - 1)
    at = series[:, None], later
    return Origins(series=series, step=step, times=panel.times[at], controls=panel.controls[at])


def one_step_origins(panel: Panel) -> Origins:
    """Every time step but the last of each series, with the next one as the time to forecast."""
    steps = np.arange(panel.times.shape[1])
    series, step = np.nonzero(steps[None, :] + 1 < panel.lengths[:, None])
    return origins_at(panel, series, step, 1)


def rolling_origins(
    panel: Panel, horizon: int, most: int
) -> tuple[Origins, Float[np.ndarray, "origins horizon channels"]]:
    """At most `most` origins, with the `horizon` steps after each, and the measurements there.

    Origins are spaced evenly over all series, in the order of their ids, and over the last three
    quarters of each. Measurements are NaN past the end of a series.
    """
    steps = np.arange(panel.times.shape[1])
    is_late = steps[None, :] + 1 >= panel.lengths[:, None] // 4
    # The order of the series in the table must not choose.
    by_id = np.argsort(panel.ids, kind="stable")
    series, step = np.nonzero((is_late & (steps[None, :] + 1 < panel.lengths[:, None]))[by_id])
    series = by_id[series]
    chosen = np.unique(np.linspace(0, max(len(step) - 1, 0), most).astype(np.int64))[: len(step)]
    chosen = chosen[np.argsort(series[chosen], kind="stable")]
    series, step = series[chosen], step[chosen]
    later = step[:, None] + np.arange(1, horizon + 1)
    inside = later < panel.lengths[series, None]
    measured = panel.values[series[:, None], np.minimum(later, panel.times.shape[1] - 1)]
    measured = np.where(inside[..., None], measured, np.nan)
    return origins_at(panel, series, step, horizon), measured


class Points(NamedTuple):
    """Known values of one column, those of all series in one vector.

    The points of origin o are `begin[o]` to `end[o]` (exclusive); there may be none.
    """

    times: Float[np.ndarray, " points"]
    values: Float[np.ndarray, " points"]
    begin: Int[np.ndarray, " origins"]
    end: Int[np.ndarray, " origins"]

    @property
    def exists(self) -> Bool[np.ndarray, " origins"]:
        """True where an origin has a point."""
        return self.end > self.begin

    @property
    def last(self) -> Int[np.ndarray, " origins"]:
        """The latest point of each origin; an arbitrary point where it has none."""
        return np.maximum(self.end - 1, 0)


def channel_points(panel: Panel, channel: int, origins: Origins) -> Points:
    """The measurements of a channel, in the series that have an origin."""
    part = _series_with_origins(origins)
    values = panel.values[part, :, channel]
    return _points(panel.times[part], values, ~np.isnan(values), part.start, origins)


def control_points(panel: Panel, control: int, origins: Origins) -> Points:
    """A control at all time steps, in the series that have an origin."""
    part = _series_with_origins(origins)
    valid = np.arange(panel.times.shape[1]) < panel.lengths[part, None]
    values = panel.controls[part, :, control]
    return _points(panel.times[part], values, valid, part.start, origins)


def _series_with_origins(origins: Origins) -> slice:
    """From the first such series to the last: a block of origins must not cost a whole table."""
    series = origins.series
    return slice(int(series[0]), int(series[-1]) + 1) if len(series) else slice(0, 0)


def _points(
    times: np.ndarray, values: np.ndarray, known: np.ndarray, first: int, origins: Origins
) -> Points:
    """Points of arrays with one row for each series; `first` is the series of the first row."""
    count = np.cumsum(known).reshape(known.shape)
    before = np.concatenate([[0], count[:-1, -1]])
    series = origins.series - first
    return Points(
        times=times[known],
        values=values[known],
        begin=before[series],
        end=count[series, origins.step],
    )


def brackets(
    points: Points, origins: Origins, wanted: Float[np.ndarray, "origins nodes"]
) -> tuple[Int[np.ndarray, "origins nodes"], Int[np.ndarray, "origins nodes"]]:
    """The points of each origin on both sides of the `wanted` times.

    Outside the points of an origin, both are the nearest one. There must be points; for an origin
    that has none, they are arbitrary.
    """
    after = np.empty(wanted.shape, np.int64)
    bounds = np.flatnonzero(np.diff(origins.series)) + 1
    for part in np.split(np.arange(len(origins.series)), bounds):
        if len(part):  # all origins of one series
            begin, end = points.begin[part[0]], points.end[part].max()
            after[part] = begin + np.searchsorted(points.times[begin:end], wanted[part], "right")
    last = points.last[:, None]
    first = np.minimum(points.begin[:, None], last)
    return np.clip(after - 1, first, last), np.clip(after, first, last)


class Interpolation(NamedTuple):
    """Linear interpolation between points: the points on both sides of each time, the weight of
    the right one, and whether the origin has a point.
    """

    left: Int[np.ndarray, "origins nodes"]
    right: Int[np.ndarray, "origins nodes"]
    weight: Float[np.ndarray, "origins nodes"]
    exists: Bool[np.ndarray, " origins"]

    def of(self, values: Float[np.ndarray, " points"]) -> Float[np.ndarray, "origins nodes"]:
        """Interpolated values; NaN for an origin without points."""
        start = values[self.left]
        value = start + self.weight * (values[self.right] - start)
        value[~self.exists] = np.nan
        return value


def interpolation(
    points: Points, origins: Origins, wanted: Float[np.ndarray, "origins nodes"]
) -> Interpolation:
    """Interpolation to the `wanted` times; there must be points."""
    left, right = brackets(points, origins, wanted)
    start = points.times[left]
    width = points.times[right] - start
    inside = width > 0
    weight = np.where(inside, wanted - start, 0) / np.where(inside, width, 1)
    return Interpolation(left=left, right=right, weight=weight, exists=points.exists)


def interpolate(
    points: Points, origins: Origins, wanted: Float[np.ndarray, "origins nodes"]
) -> Float[np.ndarray, "origins nodes"]:
    """Values at the `wanted` times, interpolated linearly between the points of each origin.

    Before the first point and after the last, values are constant. An origin without points has
    NaN.
    """
    if not len(points.times):
        return np.full(wanted.shape, np.nan)
    return interpolation(points, origins, wanted).of(points.values)


def interpolate_columns(
    columns: Sequence[Points], origins: Origins, wanted: Float[np.ndarray, "origins nodes"]
) -> Float[np.ndarray, "origins nodes columns"]:
    """`interpolate` for many columns.

    Consecutive columns with the same times share one search, which takes most of the time.
    """
    values = np.full((*wanted.shape, len(columns)), np.nan)
    searched, shared = None, None
    for k, points in enumerate(columns):
        if not len(points.times):
            continue
        if shared is None or searched is None or not _same_times(points, searched):
            searched, shared = points, interpolation(points, origins, wanted)
        values[..., k] = shared.of(points.values)
    return values


def _same_times(one: Points, other: Points) -> bool:
    return (
        np.array_equal(one.end, other.end)
        and np.array_equal(one.begin, other.begin)
        and np.array_equal(one.times, other.times)
    )
