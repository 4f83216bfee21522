"""The future that a forecast is asked for: times and controls, given in any of several ways."""

from __future__ import annotations

from typing import Any

import numpy as np

from physsm._arguments import is_array, numbers, whole_number
from physsm._errors import DataError
from physsm._values import Panel, Query
from physsm.data.query import horizon_query, to_query
from physsm.data.times import as_numbers

MOST_ROWS = 1_000_000


def make_query(history: Panel, times: Any, horizon: int | None, controls: Any) -> Query:
    """A query from a table of times (and controls), arrays, or a number of further rows."""
    if times is None and horizon is None:
        raise DataError("say which times to forecast (times) or how many rows (horizon)")
    if times is not None and horizon is not None:
        raise DataError("say which times to forecast or how many rows (horizon), not both")
    if isinstance(times, Query):
        return _checked(history, times)
    if horizon is not None:
        given = None if controls is None else _for_each_series(controls, len(history))
        return horizon_query(history, whole_number(horizon, "horizon", 1, MOST_ROWS), given)
    if not is_array(times):
        if controls is not None:
            raise DataError("the controls belong into the columns of the table of times")
        return to_query(times, history)
    return _from_arrays(history, as_numbers(times, history.layout), controls)


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
    """Controls with an axis of series; without one they hold for all."""
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
