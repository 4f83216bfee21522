"""Pelts of lynx and hare bought by the Hudson Bay Company from 1900 to 1920, in thousands.

One series of 21 years: an example of a user's small table, not a benchmark.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from physsm._errors import DataError
from physsm._values import Panel
from physsm.data.csv_text import parse_csv
from physsm.data.scale import channel_moments
from physsm.data.table import make_panel
from physsm.data.window import Sizes, windows
from physsm.datasets._dataset import Dataset, Part, RawRows, Split
from physsm.datasets._sources import locate

_SOURCE, _FILE = "lynx_hare", "hudson-bay-lynx-hare.csv"
_YEARS: Final = np.arange(1900, 1921)
_SIZES: Final = Sizes(context=3, horizon=2, stride=1)
# First and last years. Training has one cycle of eleven years, the other parts one window each.
_PARTS: Final = ((1900, 1910), (1911, 1915), (1916, 1920))


def read_pelts(path: Path) -> Panel:
    """Panel of one series of 21 years with the channels `hare` and `lynx` (thousands)."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise DataError(f"the file cannot be read: {error.strerror}", path=str(path)) from error
    # Comments become empty lines, which are skipped, so that row numbers are those of the file.
    content = b"\n".join(b"" if line.startswith(b"#") else line for line in lines)
    table = parse_csv(content, str(path))
    panel = make_panel(table, "Year", None, ["Hare", "Lynx"], [], "s")
    if not np.array_equal(panel.times[0], _YEARS):
        raise DataError(f"the years must be {_YEARS[0]} to {_YEARS[-1]}, each once", path=str(path))
    wrong = ~(panel.values[0] > 0)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise DataError(
            "a number of pelts must be positive",
            path=str(path),
            row=int(table.rows[row]),
            column=panel.channels[column],
        )
    return replace(panel, channels=("hare", "lynx"))


def strict(*, data_dir: str | Path | None = None) -> Split:
    """Context of three years, target of two: training to 1910, validation 1911 to 1915, test 1916
    to 1920. Errors are in standard deviations of the training years.
    """
    panel = read_pelts(locate(_SOURCE, _FILE, data_dir))
    train, validation, test = (_part(panel, first, last) for first, last in _PARTS)
    _, scale = channel_moments(train.panel)
    return Split(
        train,
        validation,
        test,
        _SIZES,
        unit=scale,
        unit_words="the standard deviation in the years to 1910",
        notes=("There is one test window of two years: scores are an example, not evidence.",),
    )


DATASET: Final = Dataset(
    name="lynx_hare",
    summary="pelts of lynx and hare, yearly, 1900 to 1920",
    system="lotka_volterra",
    protocols={"strict": strict},
    sources=(_SOURCE,),
)


def _part(panel: Panel, first: int, last: int) -> Part:
    rows = np.arange(first, last + 1) - _YEARS[0]
    piece = replace(panel.between(int(rows[0]), int(rows[-1]) + 1), ids=(f"{first}-{last}",))
    chosen = windows(piece, _SIZES.context, _SIZES.horizon, _SIZES.stride)
    return Part(piece, chosen, (RawRows("hudson_bay", rows),))
