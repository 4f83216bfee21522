"""`Panel` and `Forecast` → data frames that look like the table they came from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from jaxtyping import Bool, Float, Int

from physsm._errors import DataError
from physsm._values import Forecast, Layout, Panel
from physsm.data.raw import duplicate
from physsm.data.times import to_datetimes


def panel_frame(panel: Panel) -> pl.DataFrame:
    """The table of a panel: series, time, channels, controls. Null = not measured."""
    valid = np.arange(panel.times.shape[1]) < panel.lengths[:, None]
    columns = _index_columns(panel.layout, panel.ids, panel.lengths, panel.times[valid])
    values, controls = panel.values[valid], panel.controls[valid]
    columns += [pl.Series(name, values[:, k]) for k, name in enumerate(panel.channels)]
    columns += [pl.Series(name, controls[:, k]) for k, name in enumerate(panel.control_names)]
    return _frame(columns).fill_nan(None)


def forecast_frame(forecast: Forecast) -> pl.DataFrame:
    """The table of a forecast: series, time, and for each channel the mean and its interval.

    The columns of a channel `x` are `x`, `x_lower` and `x_upper`. Times are numbers or datetimes
    as in the history's table, ids integers where they were.
    """
    valid = forecast.valid
    columns = _index_columns(forecast.layout, forecast.ids, forecast.lengths, forecast.times[valid])
    parts = {"": forecast.mean, "_lower": forecast.lower, "_upper": forecast.upper}
    columns += [
        _channel(f"{name}{ending}", part, k, valid)
        for k, name in enumerate(forecast.channels)
        for ending, part in parts.items()
    ]
    return _frame(columns)


def _channel(
    name: str,
    part: Float[np.ndarray, "series steps channels"],
    k: int,
    valid: Bool[np.ndarray, "series steps"],
) -> pl.Series:
    return pl.Series(name, part[:, :, k][valid])


def _index_columns(
    layout: Layout,
    ids: Sequence[str],
    lengths: Int[np.ndarray, " series"],
    times: Float[np.ndarray, " rows"],
) -> list[pl.Series]:
    """The columns that say which row is which: series, if the table had it, and time."""
    columns = []
    if layout.series is not None:
        labels = pl.Series(layout.series, ids, pl.String)
        labels = labels.cast(pl.Int64) if layout.integer_ids else labels
        columns.append(labels.gather(np.repeat(np.arange(len(ids)), lengths)))
    if layout.origin is None:
        columns.append(pl.Series(layout.time, times))
    else:
        clock = to_datetimes(times, layout.origin, layout.time_unit)
        columns.append(clock.alias(layout.time))
    return columns


def _frame(columns: Sequence[pl.Series]) -> pl.DataFrame:
    twice = duplicate([column.name for column in columns])
    if twice is not None:
        raise DataError(
            "the table would have two columns of this name",
            column=twice,
            hint="rename the channel that is called so",
        )
    return pl.DataFrame(columns)
