"""Panels from tables in long form (one row per series and time), and back."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Float

from physsm._errors import DataError
from physsm._values import Layout, Panel, TimeUnit
from physsm.data.cells import read_numbers
from physsm.data.columns import Roles, choose_columns
from physsm.data.files import read_file
from physsm.data.frames import raw_from_dict, raw_from_frame
from physsm.data.raw import RawTable, first_true
from physsm.data.rows import check_increasing, check_long_enough, cut_series, group_rows
from physsm.data.times import Moments, check_unit, read_times


def read_table(
    path: str | os.PathLike[str],
    *,
    time: str | None = None,
    series: str | None = None,
    channels: Sequence[str] | None = None,
    controls: Sequence[str] | None = None,
    time_unit: TimeUnit = "s",
) -> Panel:
    """Panel of a CSV or Parquet file with one row per series and time; every cell is checked.

    Args:
        path: a CSV file (comma, semicolon or tab; UTF-8) or a Parquet file, by its ending.
        time: the column of times: numbers, or datetimes in ISO 8601. By default the column
            called `time`, `t`, `timestamp` or `date`.
        series: the column of series ids, text or integers. By default the column called
            `series`, `id` or `series_id`; without one, all rows are one series.
        channels: the measured columns; by default all that have no other role. An empty cell,
            `NA`, `nan` or `null` means that this channel was not measured then.
        controls: the columns of known inputs; by default none. Their cells must be filled.
        time_unit: the unit in which datetimes become numbers.
    """
    check_unit(time_unit)
    return make_panel(read_file(path), time, series, channels, controls, time_unit)


def to_panel(
    data: Any,
    *,
    time: str | None = None,
    series: str | None = None,
    channels: Sequence[str] | None = None,
    controls: Sequence[str] | None = None,
    time_unit: TimeUnit = "s",
    may_be_unmeasured: bool = False,
) -> Panel:
    """Panel of a data frame (pandas, Polars, PyArrow), a dict of columns or a path.

    The arguments are those of `read_table`. `may_be_unmeasured` also accepts a channel without any
    measurement, which the history of a forecast may have. A `Panel` is returned unchanged. In
    errors the first data row is row 1, because a data frame has no header row; for a file it is
    row 2.
    """
    check_unit(time_unit)
    if isinstance(data, Panel):
        _check_same_columns(data, time, series, channels, controls)
        return data
    return make_panel(to_raw(data), time, series, channels, controls, time_unit, may_be_unmeasured)


def to_raw(data: Any) -> RawTable:
    """Raw table of a path, a dict of columns or a data frame."""
    if isinstance(data, str | os.PathLike):
        return read_file(data)
    return raw_from_dict(data) if isinstance(data, Mapping) else raw_from_frame(data)


def make_panel(
    table: RawTable,
    time: str | None,
    series: str | None,
    channels: Sequence[str] | None,
    controls: Sequence[str] | None,
    time_unit: TimeUnit,
    may_be_unmeasured: bool = False,
) -> Panel:
    """Panel of a raw table: chosen columns, checked cells, rows cut into series."""
    roles = choose_columns(table, time, series, channels, controls)
    groups = group_rows(table, roles.series)
    times = read_times(table, roles.time)
    origin = None
    if isinstance(times, Moments):
        origin = times.earliest()
        times = times.since(origin, time_unit)
    check_increasing(table, groups, times, roles.time)
    values = _read_channels(table, roles, may_be_unmeasured)
    controlled = read_controls(table, roles.controls, "fill it, for instance with the value before")
    check_long_enough(table, groups)
    return Panel.from_series(
        list(cut_series(groups, times, values, controlled)),
        roles.channels,
        roles.controls,
        Layout(roles.time, roles.series, groups.integer_ids, origin, time_unit),
    )


def read_controls(
    table: RawTable, names: Sequence[str], advice: str
) -> Float[np.ndarray, "rows controls"]:
    """Controls, with a number in every cell; `advice` is the hint for an empty cell."""
    columns = np.empty((table.frame.height, len(names)))
    for k, name in enumerate(names):
        columns[:, k] = read_numbers(table, name, "a control needs a number in every row")
        empty = first_true(np.isnan(columns[:, k]))
        if empty is not None:
            raise table.error("the control is empty", at=empty, column=name, hint=advice)
    return columns


def _read_channels(
    table: RawTable, roles: Roles, may_be_unmeasured: bool
) -> Float[np.ndarray, "rows channels"]:
    columns = np.empty((table.frame.height, len(roles.channels)))
    for k, name in enumerate(roles.channels):
        columns[:, k] = read_numbers(table, name)
        if np.isnan(columns[:, k]).all() and not may_be_unmeasured:
            raise table.error(
                "this channel was never measured", column=name, hint="leave the column out"
            )
    return columns


def _check_same_columns(
    panel: Panel,
    time: str | None,
    series: str | None,
    channels: Sequence[str] | None,
    controls: Sequence[str] | None,
) -> None:
    """Raise an error if the request differs from the columns of the Panel."""
    asked = {
        "time": (time, panel.layout.time),
        "series": (series, panel.layout.series),
        "channels": (channels and tuple(channels), panel.channels),
        "controls": (controls and tuple(controls), panel.control_names),
    }
    for role, (wanted, present) in asked.items():
        if wanted is not None and wanted != present:
            shown = ", ".join(present) if isinstance(present, tuple) else present
            raise DataError(
                f"{role} of a Panel cannot be chosen again: here it is {shown or 'none'}",
                hint="choose columns when the Panel is made; Panel.only keeps some channels",
            )


def panel_frame(panel: Panel) -> pl.DataFrame:
    """Table of a panel: series, time, channels, controls. Null means not measured."""
    columns = [(name, panel.values[:, :, k]) for k, name in enumerate(panel.channels)]
    columns += [(name, panel.controls[:, :, k]) for k, name in enumerate(panel.control_names)]
    return panel.layout.long_frame(panel.ids, panel.times, panel.lengths, columns).fill_nan(None)
