"""Raw tables from data frames and dictionaries of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from physsm._errors import DataError
from physsm.data.raw import RawTable, duplicate

# Text of missing values in pandas and NumPy.
_MISSING = {"None", "<NA>", "NaT", "nan"}


def raw_from_frame(native: Any) -> RawTable:
    """Raw table of a data frame of any library that narwhals supports."""
    try:
        frame = nw.from_native(native, eager_only=True)
        names: list[Any] = list(frame.columns)
    except nw.exceptions.DuplicateError as error:
        raise _repeated_name(duplicate([str(name) for name in _native_names(native)])) from error
    except TypeError as error:
        raise DataError(
            f"a {type(native).__name__} is not a table",
            hint="pass a data frame (a lazy one: collect it first), a path, a dict of columns or "
            "a Panel; for arrays of many series use panel_from_arrays",
        ) from error
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"the column name {name!r} is not text", hint="rename the column")
    try:
        columns = [_to_polars(frame.get_column(name)) for name in names]
    except nw.exceptions.DuplicateError as error:
        raise _repeated_name(duplicate(names)) from error
    return raw_from_columns(columns)


def raw_from_dict(columns: Mapping[Any, Any]) -> RawTable:
    """Raw table of columns by name; each is a list or an array with one entry per row."""
    return raw_from_columns([_from_array(str(name), cells) for name, cells in columns.items()])


def raw_from_columns(columns: list[pl.Series]) -> RawTable:
    """Raw table of columns of one length; rows count from 1."""
    if not columns or len(columns[0]) == 0:
        raise DataError("the table has no rows" if columns else "the table has no columns")
    first = columns[0]
    for column in columns:
        if len(column) != len(first):
            raise DataError(
                f"this column has {len(column)} rows, column {first.name} has {len(first)}",
                column=column.name,
            )
    return RawTable(pl.DataFrame(columns), np.arange(1, len(first) + 1))


def to_column(name: str, array: np.ndarray) -> pl.Series:
    """Column of a one-dimensional array; types that Polars lacks are widened, never narrowed."""
    kind = array.dtype.kind
    if kind == "M" and np.datetime_data(array.dtype)[0] not in ("ms", "us", "ns"):
        array = array.astype("datetime64[us]")
    elif kind == "f" and array.dtype.itemsize not in (4, 8):
        array = array.astype(np.float64)
    return pl.Series(name, array) if kind in "biufM" else _as_text(name, array.tolist())


def _from_array(name: str, cells: Any) -> pl.Series:
    try:
        array = np.ma.filled(np.ma.asarray(cells, float), np.nan) if _masked(cells) else cells
        array = np.asarray(array)
    except (TypeError, ValueError) as error:
        raise DataError("the entries of this column have different shapes", column=name) from error
    if array.dtype.kind == "c":
        raise DataError("complex numbers cannot be measured values", column=name)
    if array.ndim != 1:
        raise DataError(
            f"a column has one dimension, this one has {array.ndim}",
            column=name,
            hint="for arrays of many series or channels use panel_from_arrays",
        )
    return to_column(name, array)


def _masked(cells: Any) -> bool:
    return isinstance(cells, np.ma.MaskedArray)


def _to_polars(column: nw.Series[Any]) -> pl.Series:
    native = column.to_native()
    if isinstance(getattr(native, "dtype", None), np.dtype) and native.dtype.kind in "biufM":
        return to_column(column.name, column.to_numpy())
    try:
        return column.to_polars()
    # Columns of mixed objects become text, so that an error can name the bad cell. ImportError:
    # pandas needs PyArrow to convert such columns.
    except (TypeError, ValueError, ImportError, NotImplementedError, pl.exceptions.PolarsError):
        return _as_text(column.name, column.to_list())


def _as_text(name: str, cells: Iterable[Any]) -> pl.Series:
    texts = (str(cell) for cell in cells)
    return pl.Series(name, [None if text in _MISSING else text for text in texts], pl.String)


def _native_names(native: Any) -> Iterable[Any]:
    """Column names; PyArrow has them in `column_names`, other libraries in `columns`."""
    return getattr(native, "column_names", None) or native.columns


def _repeated_name(name: str | None) -> DataError:
    return DataError("two columns have the same name", column=name, hint="rename one of them")
