"""Reader of CSV text: bytes to text cells.

Polars reads the cells. This module checks the structure of the text first, because Polars would
silently repair a short row, a repeated column name or a stray quote, or refuse it without a row.
"""

from __future__ import annotations

import csv

import numpy as np
import polars as pl
from jaxtyping import Bool, Int

from physsm._errors import DataError
from physsm.data.raw import RawTable, duplicate, first_true

_QUOTE, _NEWLINE = ord('"'), ord("\n")
_SEPARATORS = ",;\t"


def parse_csv(content: bytes, path: str) -> RawTable:
    """Table of CSV text; the separator (comma, semicolon or tab) is that of the header line."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if not content.strip():
        raise DataError("the file is empty", path=path)
    _check_utf8(content, path)

    text = np.frombuffer(content if content.endswith(b"\n") else content + b"\n", np.uint8)
    text, quoted, rows = _without_blank_rows(text, _inside_quotes(text))
    ends = np.flatnonzero((text == _NEWLINE) & ~quoted)
    header = text[: ends[0]].tobytes().decode()
    separator = _separator(header)
    _check_quotes(text, ends, separator, rows, path)
    names = _names(header, separator, path, int(rows[0]))

    separators = np.flatnonzero((text == ord(separator)) & ~quoted)
    cells = np.diff(np.searchsorted(separators, ends), prepend=0) + 1
    _check_widths(cells, rows, path)
    if len(ends) == 1:
        raise DataError("the table has a header but no rows", path=path)
    body = text[ends[0] + 1 :].tobytes()
    try:
        frame = pl.read_csv(
            body, separator=separator, has_header=False, schema=dict.fromkeys(names, pl.String)
        )
    except pl.exceptions.PolarsError as error:
        raise DataError(f"the file is not a CSV table: {_first_line(error)}", path=path) from error
    if frame.height != len(ends) - 1:
        raise DataError("the file is not a CSV table: its rows cannot be separated", path=path)
    return RawTable(frame, rows[1:], path)


def _check_utf8(content: bytes, path: str) -> None:
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"the file is not UTF-8 text (byte {error.start})",
            path=path,
            row=content.count(b"\n", 0, error.start) + 1,
            hint="save it as CSV with the encoding UTF-8",
        ) from error


def _inside_quotes(text: np.ndarray) -> Bool[np.ndarray, " bytes"]:
    """Mask of the bytes between quotes. A doubled quote inside closes and opens again."""
    is_quote = text == _QUOTE
    if not is_quote.any():
        return is_quote
    inside = np.logical_xor.accumulate(is_quote) & ~is_quote
    inside[-1] = False  # the last row ends there, even if a quote was never closed
    return inside


def _check_quotes(
    text: np.ndarray, ends: np.ndarray, separator: str, rows: np.ndarray, path: str
) -> None:
    """Raise an error unless quotes are at both ends of a cell or doubled inside it."""
    places = np.flatnonzero(text == _QUOTE)
    if places.size == 0:
        return
    edges = [ord(separator), _NEWLINE, _QUOTE]
    opening, closing = places[0::2], places[1::2]
    stray = ~np.isin(text[opening - 1], edges)  # before the first byte comes the last: a newline
    # If a quote closes too early or never, the error is at the quote that opened.
    stray[: len(closing)] |= ~np.isin(text[closing + 1], edges)
    stray[len(closing) :] = True
    first_stray = first_true(stray)
    if first_stray is not None:
        raise DataError(
            "a quote has no partner at the other end of its cell",
            path=path,
            row=int(rows[np.searchsorted(ends, opening[first_stray])]),
            hint='put quotes around the whole cell and write "" for a quote inside it',
        )


def _without_blank_rows(
    text: np.ndarray, quoted: np.ndarray
) -> tuple[np.ndarray, np.ndarray, Int[np.ndarray, " rows"]]:
    """Text without empty lines, its mask of quotes, and the number of each remaining line."""
    ends = np.flatnonzero((text == _NEWLINE) & ~quoted)
    lengths = np.diff(ends, prepend=-1) - 1
    rows = np.flatnonzero(lengths > 0) + 1
    if len(rows) == len(ends):
        return text, quoted, rows
    blank = ends[lengths == 0]
    return np.delete(text, blank), np.delete(quoted, blank), rows


def _separator(header: str) -> str:
    """Most frequent separator in the header, outside quotes."""
    outside = "".join(header.split('"')[0::2])
    return max(_SEPARATORS, key=outside.count)


def _names(header: str, separator: str, path: str, row: int) -> list[str]:
    try:
        cells = next(csv.reader([header], delimiter=separator))
    except csv.Error as error:
        raise DataError(f"the header cannot be read: {error}", path=path, row=row) from error
    names = [" ".join(name.split()) for name in cells]
    if "" in names:
        raise DataError(
            f"column {names.index('') + 1} has no name",
            path=path,
            row=row,
            hint="name or remove it; pandas writes such a column without index=False",
        )
    repeated = duplicate(names)
    if repeated is not None:
        raise DataError(
            "two columns have the same name", path=path, row=row, column=repeated, hint="rename one"
        )
    return names


def _check_widths(cells: np.ndarray, rows: np.ndarray, path: str) -> None:
    odd = first_true(cells != cells[0])
    if odd is not None:
        raise DataError(
            f"this row has {_count(int(cells[odd]))}, the header has {_count(int(cells[0]))}",
            path=path,
            row=int(rows[odd]),
            hint="write an empty cell where nothing was measured, and a decimal point, not a comma",
        )


def _count(cells: int) -> str:
    return f"{cells} cell" if cells == 1 else f"{cells} cells"


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0]
