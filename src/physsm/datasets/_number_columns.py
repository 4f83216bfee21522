"""Reader of CSV files of numbers as some benchmarks publish them: names in the first line, and
perhaps a comma at the end of every line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from physsm._errors import DataError
from physsm.data.cells import read_numbers
from physsm.data.csv_text import parse_csv
from physsm.data.raw import first_true

_AGAIN = "the file is damaged or another one: obtain it again"


def read_columns(
    path: Path, names: Sequence[str], rows: int
) -> dict[str, Float[np.ndarray, " rows"]]:
    """Columns of these names, with a number in each of the `rows` rows."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"the file cannot be read: {error.strerror}", path=str(path)) from error
    table = parse_csv(re.sub(rb",[ \t]*(?=\r?\n|$)", b"", content), str(path))
    columns = {}
    for name in names:
        if name not in table.frame.columns:
            known = ", ".join(table.frame.columns)
            raise table.error(f"there is no column {name}: there are {known}", hint=_AGAIN)
        columns[name] = read_numbers(table, name, _AGAIN)
        if (empty := first_true(np.isnan(columns[name]))) is not None:
            raise table.error("the cell is empty", at=empty, column=name, hint=_AGAIN)
    if table.frame.height != rows:
        raise table.error(f"there are {table.frame.height} rows instead of {rows}", hint=_AGAIN)
    return columns
