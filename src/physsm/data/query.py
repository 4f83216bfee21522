"""Queries: the times to forecast and their controls, from a table, arrays or a horizon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from physsm._arguments import is_array, numbers, whole_number
from physsm._errors import DataError, did_you_mean
from physsm._layout import to_datetimes
from physsm._values import Panel, Query, Series
from physsm.data.columns import check_column
from physsm.data.raw import RawTable
from physsm.data.rows import Groups, check_increasing, cut_series, group_rows
from physsm.data.table import read_controls, to_raw
from physsm.data.times import Moments, as_numbers, read_times

LONGEST_HORIZON = 1_000_000


def make_query(history: Panel, times: Any, horizon: int | None, controls: Any) -> Query:
    """Query from a table of times (and controls), arrays, or a number of further time steps."""
    if times is None and horizon is None:
        raise DataError("say which times to forecast (times) or how many rows (horizon)")
    if times is not None and horizon is not None:
        raise DataError("say which times to forecast or how many rows (horizon), not both")
    if isinstance(times, Query):
        return _checked(history, times)
    if horizon is not None:
        given = None if controls is None else _for_each_series(controls, len(history))
        return horizon_query(history, whole_number(horizon, "horizon", 1, LONGEST_HORIZON), given)
    if not is_array(times):
        if controls is not None:
            raise DataError("give the controls as columns of the table of times")
        return to_query(times, history)
    return _from_arrays(history, as_numbers(times, history.layout), controls)


def to_query(data: Any, history: Panel) -> Query:
    """Query from a table of future times: a path, a data frame or a dict of columns.

    Its columns have the names of the history's table: time, series (if the history has such a
    column) and all controls. Other columns are ignored. Every series of the history needs at least
    one row, after its last time.
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
    """Query for the next `horizon` times of each series, at the median gap of its history."""
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
    """Times in the unit and from the origin of the history."""
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
    """Query of series, padded like a panel without channels."""
    panel = Panel.from_series(series, (), history.control_names)
    return Query(panel.times, panel.controls, panel.lengths)


def _checked(history: Panel, query: Query) -> Query:
    wanted = (len(history), len(history.control_names))
    given = (query.times.shape[0], query.controls.shape[2])
    if given != wanted:
        raise DataError(
            f"the query has {given[0]} series and {given[1]} controls, and the history {wanted[0]} "
            f"and {wanted[1]}"
        )
    return query


def _for_each_series(controls: Any, series: int) -> np.ndarray:
    """Controls with an axis of series; without one they are the same for all series."""
    given = numbers(controls, "controls")
    return np.broadcast_to(given, (series, *given.shape)) if given.ndim == 2 else given


def _from_arrays(history: Panel, times: np.ndarray, controls: Any) -> Query:
    series, m = len(history), len(history.control_names)
    if times.ndim not in (1, 2) or not times.size or (times.ndim == 2 and len(times) != series):
        raise DataError(
            f"the times have the shape {times.shape}; they must be (steps,), or ({series}, steps) "
            "for the series of the history"
        )
    times = np.broadcast_to(times, (series, times.shape[-1])).copy()
    last = history.times[np.arange(series), history.lengths - 1]
    if not np.isfinite(times).all() or (np.diff(times, axis=1, prepend=last[:, None]) <= 0).any():
        raise DataError("the times must be finite, increasing, and after the history's last time")
    wanted = (series, times.shape[1], m)
    if controls is None and m:
        raise DataError(
            f"the future needs values of the controls {', '.join(history.control_names)}"
        )
    given = np.zeros(wanted) if controls is None else _for_each_series(controls, series)
    if given.shape != wanted:
        raise DataError(
            f"the controls have the shape {given.shape[-2:]} and must have {wanted[1:]}: one row "
            f"for each time, one column for each of {', '.join(history.control_names)}"
            + (f"; or {wanted} for the series of the history" if series > 1 else "")
        )
    if not np.isfinite(given).all():
        raise DataError("the controls must be finite numbers")
    return Query(times, np.array(given), np.full(series, times.shape[1], np.int64))
