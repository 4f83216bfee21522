"""Numbers and series ids of raw columns; an error names the row and column of a bad cell."""

from __future__ import annotations

import numpy as np
import polars as pl
from jaxtyping import Float

from physsm.data.raw import RawTable, first_true

_NOT_MEASURED = ("", "na", "n/a", "#n/a", "nan", "null", "none", "-")
_DECIMAL_COMMA = r"^[+-]?[0-9. ]*,[0-9]+([eE][+-]?[0-9]+)?$"
_CHANNEL_ADVICE = (
    "leave the cell empty if nothing was measured, or leave the column out by naming the measured "
    "ones with channels or --channels"
)
_INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"


def read_numbers(
    table: RawTable, name: str, advice: str = _CHANNEL_ADVICE
) -> Float[np.ndarray, " rows"]:
    """Column as finite numbers; NaN where a cell is empty or is NaN, NA, null or -.

    `advice` is the hint for a cell that is neither a number nor empty.
    """
    column = table.frame[name]
    if is_text(column):
        text, missing = stripped(column)
        numbers = text.cast(pl.Float64, strict=False).set(missing, None)
        bad = first_true(numbers.is_null() & ~missing)
        if bad is not None:
            comma = text[bad : bad + 1].str.contains(_DECIMAL_COMMA).item()
            raise table.error(
                f'"{table.cell(name, bad)}" is not a number',
                at=bad,
                column=name,
                hint="write a decimal point instead of the comma" if comma else advice,
            )
    elif column.dtype.is_numeric() or column.dtype == pl.Null:
        numbers = column.cast(pl.Float64)
    else:
        raise table.error(
            f"this column holds {kind(column)}, not numbers",
            column=name,
            hint="name the measured columns with channels or --channels",
        )
    result = numbers.fill_null(np.nan).to_numpy()
    infinite = first_true(np.isinf(result))
    if infinite is not None:
        raise table.error(
            f"{table.cell(name, infinite)} is not a finite number",
            at=infinite,
            column=name,
            hint=advice,
        )
    return result


def read_ids(table: RawTable, name: str) -> tuple[pl.Series, bool]:
    """Series id of each row as text, and whether all ids are integers."""
    column = table.frame[name]
    if is_text(column):
        ids = column.cast(pl.String).str.strip_chars()
    elif column.dtype.is_integer():
        ids = column.cast(pl.String)
    elif column.dtype.is_float() or column.dtype == pl.Null:
        # Some libraries store integers with missing cells as floats.
        ids = column.cast(pl.Float64).fill_nan(None).cast(pl.Int64, strict=False).cast(pl.String)
        fraction = first_true((column != ids.cast(pl.Float64)).fill_null(False))
        if fraction is not None:
            raise table.error(
                f"{table.cell(name, fraction)} is not a series id: ids are text or integers",
                at=fraction,
                column=name,
            )
    else:
        raise table.error(
            f"this column holds {kind(column)}, not series ids: ids are text or integers",
            column=name,
        )
    empty = first_true(ids.is_null() | (ids == "").fill_null(True))
    if empty is not None:
        raise table.error("the series id is empty", at=empty, column=name)
    return ids, bool(ids.str.contains(_INTEGER).all())


def is_text(column: pl.Series) -> bool:
    """Whether the cells are text that is not yet parsed."""
    return column.dtype in (pl.String, pl.Categorical, pl.Enum)


def stripped(column: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Text without surrounding blanks, and whether it means "not measured"."""
    text = column.cast(pl.String).str.strip_chars()
    return text, text.is_null() | text.str.to_lowercase().is_in(_NOT_MEASURED).fill_null(True)


def kind(column: pl.Series) -> str:
    """Kind of values in a column, for messages."""
    if column.dtype == pl.Boolean:
        return "truth values (true and false)"
    if column.dtype.is_nested():
        return "lists or records"
    if column.dtype == pl.Duration:
        return "durations"
    if column.dtype.is_temporal():
        return "dates or times of day"
    if column.dtype.is_numeric():
        return "numbers"
    return "text" if is_text(column) else "objects"
