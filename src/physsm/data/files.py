"""Table files: CSV and Parquet, by the ending of their name."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl

from physsm._errors import DataError, did_you_mean
from physsm._whole_files import whole_file
from physsm.data.csv_text import parse_csv
from physsm.data.raw import RawTable

_CSV_ENDINGS = (".csv", ".tsv", ".txt")


def read_file(path: str | os.PathLike[str]) -> RawTable:
    """Raw table of a CSV or Parquet file; its cells are not yet parsed."""
    file, shown = Path(path), os.fspath(path)
    try:
        if not file.exists():
            raise DataError("there is no such file", path=shown, hint=_similar_file(file))
        if not file.is_file():
            raise DataError("this is not a file", path=shown)
        ending = file.suffix.lower()
        if ending != ".parquet" and ending not in _CSV_ENDINGS:
            raise DataError(
                f"a table cannot be read from a file that ends in {ending or 'nothing'}",
                path=shown,
                hint="save it as .csv or .parquet",
            )
        if ending == ".parquet":
            return _read_parquet(file, shown)
        return parse_csv(file.read_bytes(), shown)
    except (OSError, ValueError) as error:  # a ValueError is a null character in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"the file cannot be read: {reason}", path=shown) from error


def write_table(frame: pl.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a CSV or Parquet file, by its ending, atomically."""
    file, shown = Path(path), os.fspath(path)
    ending = file.suffix.lower()
    if ending not in (".csv", ".parquet"):
        raise DataError(
            f"a table cannot be written to a file that ends in {ending or 'nothing'}",
            path=shown,
            hint="choose a name that ends in .csv or .parquet",
        )
    try:
        with whole_file(file) as stream:
            if ending == ".csv":
                _plain_datetimes(frame).write_csv(stream)
            else:
                frame.write_parquet(stream)
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"the file cannot be written: {reason}", path=shown) from error


def _plain_datetimes(frame: pl.DataFrame) -> pl.DataFrame:
    """Table with datetimes as ISO 8601 text, with a Z if they are in UTC."""
    return frame.with_columns(
        pl.col(name).dt.to_string("%Y-%m-%dT%H:%M:%S%.f" + ("Z" if dtype.time_zone else ""))
        for name, dtype in frame.schema.items()
        if isinstance(dtype, pl.Datetime)
    )


def _read_parquet(file: Path, shown: str) -> RawTable:
    try:
        with file.open("rb") as stream:
            frame = pl.read_parquet(stream)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = str(error).split("\n")[0]
        raise DataError(f"this is not a Parquet file: {reason}", path=shown) from error
    if frame.height == 0:
        raise DataError("the table has no rows", path=shown)
    return RawTable(frame, np.arange(2, frame.height + 2), shown)


def _similar_file(file: Path) -> str | None:
    """Hint with a file of a similar name in the same folder."""
    try:
        return did_you_mean(file.name, [entry.name for entry in file.parent.iterdir()])
    except OSError:
        return None
