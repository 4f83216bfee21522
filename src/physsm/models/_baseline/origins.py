"""What was known at an origin, for many origins at once.

An origin is a row of a series from which a forecast starts; its history is that row and all rows
before it. Everything here looks at those rows only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from physsm._values import Panel, Query


class Origins(NamedTuple):
    """Where forecasts start, ordered by series, and what each is asked for.

    The history of origin o is rows 0 to `row[o]`, included, of series `series[o]`. `times` and
    `controls` are those of its future.
    """

    series: Int[np.ndarray, " origins"]
    row: Int[np.ndarray, " origins"]
    times: Float[np.ndarray, "origins steps"]
    controls: Float[np.ndarray, "origins steps controls"]

    def blocks(self, size: int) -> Iterator[Origins]:
        """The same origins in parts, so that memory does not grow with the table's square."""
        for first in range(0, len(self.row), size):
            yield Origins(*(field[first : first + size] for field in self))


def ends(panel: Panel, query: Query) -> Origins:
    """The last row of each series, asked for a query."""
    return Origins(np.arange(len(panel)), panel.lengths - 1, query.times, query.controls)


def steps_ahead(panel: Panel, series: np.ndarray, row: np.ndarray, steps: int) -> Origins:
    """Given rows, each asked for the `steps` rows after it, padded by the last of its series."""
    later = row[:, None] + np.arange(1, steps + 1)
    later = np.minimum(later, panel.lengths[series, None] - 1)
    at = series[:, None], later
    return Origins(series, row, panel.times[at], panel.controls[at])


def next_rows(panel: Panel) -> Origins:
    """Every row that has one after it, asked for that one."""
    rows = np.arange(panel.times.shape[1])
    series, row = np.nonzero(rows[None, :] + 1 < panel.lengths[:, None])
    return steps_ahead(panel, series, row, 1)


def rolling(
    panel: Panel, horizon: int, most: int
) -> tuple[Origins, Float[np.ndarray, "origins horizon channels"]]:
    """At most `most` origins, evenly over all series and over the last three quarters of each,
    each asked for the `horizon` rows after it; and what was measured there (NaN past the end).
    """
    rows = np.arange(panel.times.shape[1])
    late = rows[None, :] + 1 >= panel.lengths[:, None] // 4
    series, row = np.nonzero(late & (rows[None, :] + 1 < panel.lengths[:, None]))
    chosen = np.unique(np.linspace(0, max(len(row) - 1, 0), most).astype(np.int64))[: len(row)]
    series, row = series[chosen], row[chosen]
    later = row[:, None] + np.arange(1, horizon + 1)
    inside = later < panel.lengths[series, None]
    measured = panel.values[series[:, None], np.minimum(later, panel.times.shape[1] - 1)]
    measured = np.where(inside[..., None], measured, np.nan)
    return steps_ahead(panel, series, row, horizon), measured


class Points(NamedTuple):
    """One quantity where it is known, all series in one row.

    Those of origin o are `begin[o]` to `end[o]` (exclusive); there may be none.
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
        """The latest point of each origin; any point where it has none."""
        return np.maximum(self.end - 1, 0)


def channel_points(panel: Panel, channel: int, origins: Origins) -> Points:
    """The measurements of a channel, in the series that have an origin."""
    part = _series_with_origins(origins)
    values = panel.values[part, :, channel]
    return _points(panel.times[part], values, ~np.isnan(values), part.start, origins)


def control_points(panel: Panel, control: int, origins: Origins) -> Points:
    """A control at all rows, in the series that have an origin."""
    part = _series_with_origins(origins)
    valid = np.arange(panel.times.shape[1]) < panel.lengths[part, None]
    values = panel.controls[part, :, control]
    return _points(panel.times[part], values, valid, part.start, origins)


def _series_with_origins(origins: Origins) -> slice:
    """Those from the first to the last, so that a block of origins does not cost a whole table."""
    series = origins.series
    return slice(int(series[0]), int(series[-1]) + 1) if len(series) else slice(0, 0)


def _points(
    times: np.ndarray, values: np.ndarray, known: np.ndarray, first: int, origins: Origins
) -> Points:
    """`first` is the number of the series in the first row."""
    count = np.cumsum(known).reshape(known.shape)
    before = np.concatenate([[0], count[:-1, -1]])
    series = origins.series - first
    return Points(times[known], values[known], before[series], count[series, origins.row])


def brackets(
    points: Points, origins: Origins, wanted: Float[np.ndarray, "origins nodes"]
) -> tuple[Int[np.ndarray, "origins nodes"], Int[np.ndarray, "origins nodes"]]:
    """The points of each origin on both sides of times; one point twice outside of all.

    There must be points; for an origin that has none, any are returned.
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


class Between(NamedTuple):
    """Where times lie between the points of each origin: the points on both sides, the share of the
    way from the left one, and whether there is a point at all.
    """

    left: Int[np.ndarray, "origins nodes"]
    right: Int[np.ndarray, "origins nodes"]
    share: Float[np.ndarray, "origins nodes"]
    exists: Bool[np.ndarray, " origins"]

    def straight(self, values: Float[np.ndarray, " points"]) -> Float[np.ndarray, "origins nodes"]:
        """Values along straight lines between the points; NaN where there is none."""
        start = values[self.left]
        value = start + self.share * (values[self.right] - start)
        value[~self.exists] = np.nan
        return value


def between(
    points: Points, origins: Origins, wanted: Float[np.ndarray, "origins nodes"]
) -> Between:
    """Where the `wanted` times lie; there must be points. Outside of all it is the nearest one."""
    left, right = brackets(points, origins, wanted)
    start = points.times[left]
    width = points.times[right] - start
    inside = width > 0
    share = np.where(inside, wanted - start, 0) / np.where(inside, width, 1)
    return Between(left, right, share, points.exists)


def straight_between(
    points: Points, origins: Origins, wanted: Float[np.ndarray, "origins nodes"]
) -> Float[np.ndarray, "origins nodes"]:
    """Values at `wanted` times along straight lines between the points of each origin.

    Before the first point and after the last they stay as there; NaN where there is none.
    """
    if not len(points.times):
        return np.full(wanted.shape, np.nan)
    return between(points, origins, wanted).straight(points.values)


def columns_between(
    columns: Sequence[Points], origins: Origins, wanted: Float[np.ndarray, "origins nodes"]
) -> Float[np.ndarray, "origins nodes columns"]:
    """`straight_between` for many columns. Those known at the same times share the search for
    their places, which takes most of the time.
    """
    found = np.full((*wanted.shape, len(columns)), np.nan)
    before, places = None, None
    for k, points in enumerate(columns):
        if not len(points.times):
            continue
        if places is None or before is None or not _same_places(points, before):
            before, places = points, between(points, origins, wanted)
        found[..., k] = places.straight(points.values)
    return found


def _same_places(one: Points, other: Points) -> bool:
    return (
        np.array_equal(one.end, other.end)
        and np.array_equal(one.begin, other.begin)
        and np.array_equal(one.times, other.times)
    )
