"""Which column of a table plays which role."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from physsm._errors import did_you_mean
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
    """The columns asked for, and for what was not asked for the usual names."""
    names = table.frame.columns
    for role, asked in (("channels", channels), ("controls", controls)):
        if isinstance(asked, str):
            raise table.error(
                f'{role} is a list of column names, not the text "{asked}"',
                hint=f'write {role}=["{asked}"]',
            )
    asked = [name for name in (time, series) if name is not None]
    asked += [*(channels or ()), *(controls or ())]
    for name in asked:
        check_column(table, name)
    twice = duplicate(asked)
    if twice is not None:
        raise table.error("this column is asked for twice", column=twice)

    free = [name for name in names if name not in asked]
    time = time or _usual(_TIME_NAMES, free)
    if time is None:
        raise table.error(
            f"no column is called time; the columns are {_listed(names)}",
            hint="say which one holds the times with time or --time (an index does not count)",
        )
    series = series or _usual(_SERIES_NAMES, [name for name in free if name != time])
    if channels is None:
        channels = [name for name in free if name not in (time, series)]
    if not channels:
        raise table.error(
            "no column is left for a measured channel",
            hint="a table needs a column of times and at least one of measurements",
        )
    return Roles(time, series, tuple(channels), tuple(controls or ()))


def check_column(table: RawTable, name: str) -> None:
    """Fail where the table has no such column."""
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


def _usual(usual: Sequence[str], free: Collection[str]) -> str | None:
    """The column with a usual name, the most usual first; capitals do not matter."""
    for name in usual:
        for column in sorted(free, key=lambda column: column != name):  # the exact name first
            if column.lower() == name:
                return column
    return None
