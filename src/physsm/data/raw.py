"""Raw table, before any cell is parsed, and the errors that point into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from jaxtyping import Bool, Int

from physsm._errors import DataError


@dataclass(frozen=True)
class RawTable:
    """Columns as given by the user, and the row numbers that the user sees.

    `rows` numbers the rows for messages: in a file the header is row 1, in a data frame the first
    data row is row 1, in arrays the first step of each series is row 1. `row_series` names the
    series of each row where the row number is ambiguous (arrays).
    """

    frame: pl.DataFrame
    rows: Int[np.ndarray, " rows"]
    path: str | None = None
    row_series: Sequence[str] | None = None

    def error(
        self,
        message: str,
        *,
        at: int | None = None,
        column: str | None = None,
        hint: str | None = None,
    ) -> DataError:
        """Error in the table, in a column, or in row `at` (an index into the frame)."""
        if at is not None and self.row_series is not None:
            message = f"series {self.row_series[at]}: {message}"
        row = None if at is None else int(self.rows[at])
        return DataError(message, path=self.path, row=row, column=column, hint=hint)

    def cell(self, column: str, at: int) -> str:
        """Cell as text for messages: on one line, at most 40 characters."""
        text = str(self.frame[column][at])
        shown = "".join(
            letter if letter.isprintable() else repr(letter)[1:-1] for letter in text[:40]
        )
        return shown if len(text) <= 40 else f"{shown}..."


def first_true(flags: Bool[np.ndarray, " rows"] | pl.Series) -> int | None:
    """Index of the first true flag; None if all are false."""
    array = np.asarray(flags)
    return int(array.argmax()) if array.any() else None


def duplicate(names: Sequence[str]) -> str | None:
    """First repeated name; None if all are different."""
    seen = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
