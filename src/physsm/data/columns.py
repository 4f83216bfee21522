"""Roles of the columns of a table: time, series, channels, controls."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from physsm._errors import did_you_mean
from physsm._values import Layout
from physsm.data.raw import RawTable, duplicate

_TIME_NAMES = ("time", "t", "timestamp", "date")
_SERIES_NAMES = ("series", "id", "series_id")
_MOST_LISTED = 20


class Roles(NamedTuple):
    """Column names by role; `series` is None where all rows are one series."""

    time: str
    series: str | None
    channels: tuple[str, ...]
    controls: tuple[str, ...]


def choose_columns(
    table: RawTable,
    time: str | None,
    series: str | None,
    channels: Sequence[str] | None,
    controls: Sequence[str] | None,
) -> Roles:
    """Roles as requested; a role without a request goes to a column with a default name."""
    names = table.frame.columns
    for role, columns in (("channels", channels), ("controls", controls)):
        if isinstance(columns, str):
            raise table.error(
                f'{role} is a list of column names, not the text "{columns}"',
                hint=f'write {role}=["{columns}"]',
            )
    requested = [name for name in (time, series) if name is not None]
    requested += [*(channels or ()), *(controls or ())]
    for name in requested:
        check_column(table, name)
    repeated = duplicate(requested)
    if repeated is not None:
        raise table.error("this column is requested twice", column=repeated)

    free = [name for name in names if name not in requested]
    time = time or _default_column(_TIME_NAMES, free)
    if time is None:
        raise table.error(
            f"no column is called time; the columns are {_listed(names)}",
            hint="name the column of times with time or --time (an index is not a column)",
        )
    series = series or _default_column(_SERIES_NAMES, [name for name in free if name != time])
    if channels is None:
        channels = [name for name in free if name not in (time, series)]
    if not channels:
        raise table.error(
            "no column is left for a measured channel",
            hint="a table needs a column of times and at least one of measurements",
        )
    return Roles(time, series, tuple(channels), tuple(controls or ()))


def known_series_column(
    table: RawTable, layout: Layout, channels: Sequence[str], controls: Sequence[str]
) -> str | None:
    """The series column of an earlier table; None for a table without it, which is one series.

    If a column of no other role has a similar name, the name is probably misspelt: it is returned,
    and reading the table says so.
    """
    names = table.frame.columns
    if layout.series is None or layout.series in names:
        return layout.series
    others = [name for name in names if name not in (layout.time, *channels, *controls)]
    return layout.series if did_you_mean(layout.series, others) else None


def check_column(table: RawTable, name: str) -> None:
    """Raise an error if the table has no such column."""
    names = table.frame.columns
    if name not in names:
        raise table.error(
            f"there is no column {name}; the columns are {_listed(names)}",
            column=name,
            hint=did_you_mean(name, names),
        )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_LISTED])
    more = len(names) - _MOST_LISTED
    return f"{shown} and {more} more" if more > 0 else shown


def _default_column(default_names: Sequence[str], free: Collection[str]) -> str | None:
    """Column with a default name, in the order of these names; case does not matter."""
    for name in default_names:
        for column in sorted(free, key=lambda column: column != name):  # the exact name first
            if column.lower() == name:
                return column
    return None
