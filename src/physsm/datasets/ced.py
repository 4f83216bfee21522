"""Coupled electric drives (Wigren and Schoukens 2017): a pulley driven by two motors over a belt.

The channel `z` is the speed of the pulley by a pulse counter, which does not see the direction: it
is the absolute speed, with noise and in steps (scaled ticks). The control `u` is the voltage of
both motors (V). Each record has 500 rows at 50 Hz.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from physsm.data.window import Sizes
from physsm.datasets._dataset import Dataset, Split
from physsm.datasets._number_columns import read_columns
from physsm.datasets._row_parts import Cut, Record, split_records
from physsm.datasets._sources import locate

_SOURCE = "ced"
# Records of each file by the ends of their column names: z11 and u11, and so on.
_FILES: Final = {"DATAUNIF.csv": ("11", "12"), "DATAPRBS.csv": ("1", "2", "3")}
_ROWS, _RATE = 500, 50  # rows of a record, rows in a second
_CONTEXT, _TEST = 20, 300
_CUT: Final = Cut(
    validation=200,
    test=_TEST,
    sizes=Sizes(context=_CONTEXT, horizon=60, stride=5),
    test_sizes=Sizes(context=_CONTEXT, horizon=_ROWS - _TEST - _CONTEXT, stride=1),
)
_NOTES: Final = (
    "Each record has one test window of 3.6 s, three times as long as the targets in training: a "
    "score is that of a few simulations.",
)


def read_records(path: Path) -> list[Record]:
    """Records of one of the two files, by its name."""
    ends = _FILES[path.name]
    columns = read_columns(path, [kind + end for end in ends for kind in "zu"], _ROWS)
    return [
        Record(
            name=f"{path.stem}_{end}",
            times=np.arange(_ROWS) / _RATE,
            channel=columns[f"z{end}"],
            control=columns[f"u{end}"],
        )
        for end in ends
    ]


def strict(*, data_dir: str | Path | None = None) -> Split:
    """The two records with uniformly distributed steps of the voltage.

    Of each, rows 0 to 199 are for training, 200 to 299 for validation, in windows with a context of
    20 rows and a target of 60; from row 300 on there is one test window: rows 300 to 319 are its
    context, 320 to 499 its target. The benchmark's usual split at row 300 leaves no gap.

    Errors are in standard deviations of the training part.
    """
    return _split("DATAUNIF.csv", data_dir)


def prbs(*, data_dir: str | Path | None = None) -> Split:
    """The three records with binary pulses of the voltage (±1, ±1.5 and ±0.5 V), cut as in
    `strict`. The pulley turns both ways, which the counter does not see.
    """
    return _split("DATAPRBS.csv", data_dir)


DATASET: Final = Dataset(
    name="ced",
    summary="coupled electric drives: the absolute speed of a pulley on a flexible belt",
    system="ced",
    protocols={"strict": strict, "prbs": prbs},
    sources=(_SOURCE,),
    units={"time": "s"},
)


def _split(file: str, data_dir: str | Path | None) -> Split:
    records = read_records(locate(_SOURCE, file, data_dir))
    return split_records(records, ("z", "u"), _CUT, _NOTES)
