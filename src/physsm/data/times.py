"""Time columns: numbers unchanged, datetimes as microseconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import polars as pl
from jaxtyping import Float, Int

from physsm._arguments import numbers
from physsm._errors import ConfigError, DataError
from physsm._layout import MICROSECONDS, Layout, TimeUnit, parse_origin
from physsm.data.cells import is_text, kind, read_numbers, stripped
from physsm.data.raw import RawTable, first_true

_ISO_8601 = (
    r"^(?<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ](?<minute>[0-9]{2}:[0-9]{2})(?:(?<second>:[0-5][0-9])(?:[.,](?<fraction>[0-9]+))?)?"
    r" ?(?<offset>[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?)?$"
)

_ADVICE = "every row needs a time"


@dataclass(frozen=True)
class Moments:
    """Datetimes: microseconds since 1970, and whether they are in UTC or in an unknown zone."""

    microseconds: Int[np.ndarray, " rows"]
    utc: bool

    def earliest(self) -> str:
        """Earliest datetime in ISO 8601."""
        first = pl.Series([self.microseconds.min()]).cast(pl.Datetime("us"))
        return first.dt.to_string("%Y-%m-%dT%H:%M:%S%.f").item() + ("Z" if self.utc else "")

    def since(self, origin: str, unit: TimeUnit) -> Float[np.ndarray, " rows"]:
        """Times since `origin` (ISO 8601) in `unit`."""
        return (self.microseconds - parse_origin(origin)) / MICROSECONDS[unit]


def check_unit(unit: str) -> None:
    """Raise an error if `unit` is not a unit of time."""
    if unit not in get_args(TimeUnit):
        raise ConfigError(
            f"the time unit {unit!r} is unknown; choose one of {', '.join(get_args(TimeUnit))}"
        )


def read_times(table: RawTable, name: str) -> Float[np.ndarray, " rows"] | Moments:
    """Column of times: all numbers or all datetimes, without empty cells."""
    column = table.frame[name]
    _check_filled(table, name)
    if isinstance(column.dtype, pl.Datetime):
        return _from_datetimes(table, name, column, utc=column.dtype.time_zone is not None)
    if column.dtype == pl.Date:
        return _from_datetimes(table, name, column.cast(pl.Datetime("us")), utc=False)
    if column.dtype.is_numeric():
        return read_numbers(table, name, _ADVICE)
    if not is_text(column):
        raise table.error(
            f"this column holds {kind(column)}, not times: times are numbers or datetimes",
            column=name,
        )
    text, _ = stripped(column)
    is_number = text.cast(pl.Float64, strict=False).is_not_null()
    if is_number.all():
        return read_numbers(table, name, _ADVICE)
    moments, utc = _parse_iso(table, name, text, is_number)
    return _from_datetimes(table, name, moments, utc)


def as_numbers(values: Any, layout: Layout) -> Float[np.ndarray, "*shape"]:
    """Times given in Python as numbers; a table with dates also takes datetimes or ISO 8601 text.

    Numbers count from the table's origin in its time unit.
    """
    try:
        given = np.asarray(values)
    except ValueError:  # series of different lengths
        return numbers(values, "times")
    if layout.origin is None or given.dtype.kind in "iuf":
        return numbers(values, "times")
    flat = given.reshape(-1)
    if given.dtype.kind == "M":
        flat = flat.astype("datetime64[us]")
    try:
        column = pl.Series("times", flat if given.dtype.kind == "M" else list(flat))
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        raise DataError("the times must be numbers, or all datetimes") from None
    table = RawTable(pl.DataFrame([column]), np.arange(1, len(column) + 1))
    moments = read_times(table, "times")
    if not isinstance(moments, Moments):
        return moments.reshape(given.shape)
    if moments.utc != layout.origin.endswith("Z"):
        here, there = ("an", "none") if moments.utc else ("no", "one")
        raise DataError(f"the times have {here} offset to UTC, and those of the table have {there}")
    return moments.since(layout.origin, layout.time_unit).reshape(given.shape)


def _check_filled(table: RawTable, name: str) -> None:
    column = table.frame[name]
    missing = stripped(column)[1] if is_text(column) else column.is_null()
    if column.dtype.is_float():
        missing = missing | column.is_nan().fill_null(True)
    empty = first_true(missing)
    if empty is not None:
        raise table.error("the time is empty", at=empty, column=name, hint=_ADVICE)


def _from_datetimes(table: RawTable, name: str, column: pl.Series, utc: bool) -> Moments:
    years = column.dt.year()
    outside = first_true((years < 1) | (years > 9999))
    if outside is not None:
        raise table.error("the time is outside the years 1 to 9999", at=outside, column=name)
    if isinstance(column.dtype, pl.Datetime) and column.dtype.time_unit == "ns":
        _refuse_finer(table, name, column.to_physical() % 1000 != 0)
    # The integers of a column with a zone count in UTC.
    return Moments(column.dt.epoch("us").to_numpy(), utc)


def _parse_iso(
    table: RawTable, name: str, text: pl.Series, is_number: pl.Series
) -> tuple[pl.Series, bool]:
    """Datetimes of ISO 8601 text in UTC, or without a zone where the text has none."""
    parts = text.str.extract_groups(_ISO_8601).struct.unnest()
    fraction = parts["fraction"].fill_null("")
    canonical = parts.select(
        pl.col("date")
        + "T"
        + pl.col("minute").fill_null("00:00")
        + pl.col("second").fill_null(":00")
    ).to_series()
    moments = canonical.str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False, time_unit="us")
    bad = first_true(moments.is_null() & ~is_number)
    if bad is not None:
        raise table.error(
            f'"{table.cell(name, bad)}" is not a time',
            at=bad,
            column=name,
            hint="write a number, or a date as 2024-01-31 or 2024-01-31T18:30:00",
        )
    mixed = first_true(is_number != is_number[0])
    if mixed is not None:
        raise table.error(
            f'"{table.cell(name, mixed)}" is a {"number" if is_number[mixed] else "date"}, '
            f"but the time in the first row is a {'number' if is_number[0] else 'date'}",
            at=mixed,
            column=name,
            hint="write all times as numbers, or all as dates",
        )
    _refuse_finer(table, name, fraction.str.slice(6).str.contains("[1-9]"))
    microseconds = fraction.str.slice(0, 6).str.pad_end(6, "0").cast(pl.Int64)
    offsets, utc = _offsets(table, name, parts["offset"])
    return (moments.to_physical() + microseconds - offsets).cast(pl.Datetime("us")), utc


def _offsets(table: RawTable, name: str, offset: pl.Series) -> tuple[pl.Series, bool]:
    """Offsets of local time from UTC in microseconds, and whether the table has offsets."""
    has_offset = offset.is_not_null()
    mixed = first_true(has_offset != has_offset[0])
    if mixed is not None:
        raise table.error(
            "some times have an offset to UTC and others do not",
            at=mixed,
            column=name,
            hint="write the offset (or Z) in all rows or in none",
        )
    digits = offset.str.to_uppercase().str.replace("Z", "+0000").str.replace(":", "")
    hours = digits.str.slice(1, 2).cast(pl.Int64)
    minutes = digits.str.slice(3, 2).str.pad_end(2, "0").cast(pl.Int64)
    bad = first_true(((hours > 23) | (minutes > 59)).fill_null(False))
    if bad is not None:
        raise table.error(
            f'"{table.cell(name, bad)}" has no possible offset to UTC', at=bad, column=name
        )
    sign = digits.str.starts_with("-").cast(pl.Int64) * -2 + 1
    ahead = sign * (hours * MICROSECONDS["h"] + minutes * MICROSECONDS["min"])
    return ahead.fill_null(0), bool(has_offset[0])


def _refuse_finer(table: RawTable, name: str, finer: pl.Series) -> None:
    bad = first_true(finer.fill_null(False))
    if bad is not None:
        raise table.error(
            "datetimes have a resolution of one microsecond, and this one is finer",
            at=bad,
            column=name,
            hint='round them, in pandas with .dt.round("us"), or write the times as numbers',
        )
