"""The future: which times to forecast, and the controls then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from physsm._errors import DataError, did_you_mean
from physsm._values import Panel, Query, Series
from physsm.data.columns import check_column
from physsm.data.raw import RawTable
from physsm.data.rows import Groups, check_increasing, cut_series, group_rows
from physsm.data.table import read_controls, to_raw
from physsm.data.times import Moments, read_times, to_datetimes


def to_query(data: Any, history: Panel) -> Query:
    """Read a table of future times: a path, a data frame or a dict of columns.

    Its columns are called as in the history's table: time, series (if the history has such a
    column) and all controls. Other columns are not read. Every series of the history needs at
    least one row, after its last time.
    """
    table, layout = to_raw(data), history.layout
    for name in (layout.time, *([layout.series] if layout.series else [])):
        check_column(table, name)
    advice = "a forecast needs the controls in every row up to its last time"
    for name in history.control_names:
        if name not in table.frame.columns:
            raise table.error(
                f"the future of the control {name} is not known: there is no such column",
                column=name,
                hint=did_you_mean(name, table.frame.columns) or advice,
            )
    groups = group_rows(table, layout.series)
    times = _read_future_times(table, history)
    check_increasing(table, groups, times, layout.time)
    place = {name: k for k, name in enumerate(groups.ids)}
    _check_same_series(table, groups, history)
    for k, past in enumerate(history):
        row = int(groups.rows(place[past.id])[0])
        if times[row] <= past.times[-1]:
            of = f" of series {past.id}" if len(history) > 1 else ""
            raise table.error(
                f"the time {table.cell(layout.time, row)} is not after the history{of}",
                at=row,
                column=layout.time,
                hint=f"the history ends at {_last_time(history, k)}; keep later rows only",
            )
    controls = read_controls(table, history.control_names, advice)
    series = list(cut_series(groups, times, np.empty((len(times), 0)), controls))
    return _padded([series[place[name]] for name in history.ids], history)


def horizon_query(
    history: Panel,
    horizon: int,
    controls: Float[np.ndarray, "series horizon controls"] | None = None,
) -> Query:
    """The next `horizon` times of each series, at the median gap of its history."""
    shape = (len(history), horizon, len(history.control_names))
    if controls is None:
        if history.control_names:
            raise DataError(
                f"the future of the controls is not known: {', '.join(history.control_names)}",
                hint="give future times with controls (--times), or in Python also controls=",
            )
        controls = np.empty(shape)
    if controls.shape != shape:
        raise DataError(
            f"the future controls have the shape {controls.shape}",
            hint=f"expected {shape}: series, steps, controls",
        )
    if not np.isfinite(controls).all():
        raise DataError("the future controls hold NaN or infinity")
    steps = np.arange(1, horizon + 1)
    future = []
    for k, past in enumerate(history):
        gap = np.median(np.diff(past.times)) if len(past.times) > 1 else history.median_gap
        times = past.times[-1] + gap * steps
        future.append(Series(past.id, times, np.empty((horizon, 0)), controls[k]))
    return _padded(future, history)


def _read_future_times(table: RawTable, history: Panel) -> Float[np.ndarray, " rows"]:
    """Times on the clock of the history."""
    layout = history.layout
    times = read_times(table, layout.time)
    if not isinstance(times, Moments):
        if layout.origin is not None:
            raise table.error("the times are numbers, but dates in the history", column=layout.time)
        return times
    if layout.origin is None:
        raise table.error("the times are dates, but numbers in the history", column=layout.time)
    if times.utc != layout.origin.endswith("Z"):
        here, there = ("an", "none") if times.utc else ("no", "one")
        raise table.error(
            f"the times have {here} offset to UTC, those of the history have {there}",
            column=layout.time,
        )
    return times.since(layout.origin, layout.time_unit)


def _check_same_series(table: RawTable, groups: Groups, history: Panel) -> None:
    known = set(history.ids)
    for k, name in enumerate(groups.ids):
        if name not in known:
            raise table.error(
                f"series {name} is not in the history",
                at=int(groups.rows(k)[0]),
                column=history.layout.series,
                hint="forecast only series whose history is given",
            )
    missing = [name for name in history.ids if name not in set(groups.ids)]
    if missing:
        raise table.error(
            f"series {missing[0]} of the history has no row",
            column=history.layout.series,
            hint="give future times for every series, or leave the series out of the history",
        )


def _last_time(history: Panel, k: int) -> str:
    last = history[k].times[-1:]
    if history.layout.origin is None:
        return f"{last[0]:g}"
    moment = to_datetimes(last, history.layout.origin, history.layout.time_unit)
    return moment.dt.to_string("%Y-%m-%dT%H:%M:%S%.f").item()


def _padded(series: Sequence[Series], history: Panel) -> Query:
    """A query has the padding of a panel without channels."""
    panel = Panel.from_series(series, (), history.control_names)
    return Query(panel.times, panel.controls, panel.lengths)
