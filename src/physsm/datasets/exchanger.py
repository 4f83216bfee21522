"""Heat exchanger of DaISy: water heated by saturated steam, 4000 rows at 1 Hz.

The channel is the temperature `th` of the water at the outlet (degrees), the control its flow rate
`q`, as commanded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from physsm._errors import ConfigError, DataError
from physsm.data.window import Sizes
from physsm.datasets._dataset import Dataset, Split
from physsm.datasets._number_columns import read_columns
from physsm.datasets._row_parts import Cut, Record, split_records
from physsm.datasets._sources import locate

_SOURCE, _FILE = "daisy", "exchanger.csv"
_ROWS, _VALIDATION, _TEST = 4000, 2400, 3000
_CONTEXTS: Final = (20, 100)


def read_record(path: Path) -> Record:
    """Record of the file; its times `ts` are checked."""
    columns = read_columns(path, ("ts", "q", "th"), _ROWS)
    if not np.array_equal(columns["ts"], np.arange(1, _ROWS + 1)):
        raise DataError(f"the times must be 1 to {_ROWS} s", path=str(path), column="ts")
    return Record(
        name="exchanger", times=columns["ts"], channel=columns["th"], control=columns["q"]
    )


def strict(*, context: int = 100, data_dir: str | Path | None = None) -> Split:
    """Rows 0 to 2399 are for training, 2400 to 2999 for validation, in windows with a target of 200
    rows; the last 1000 rows are one test window: its context, then the target.

    `context` is 100 rows or 20. Errors are in standard deviations of the training part.
    """
    if context not in _CONTEXTS:
        raise ConfigError(f"exchanger: context must be 20 or 100 rows, but is {context}")
    cut = Cut(
        validation=_VALIDATION,
        test=_TEST,
        sizes=Sizes(context=context, horizon=200, stride=20),
        test_sizes=Sizes(context=context, horizon=_ROWS - _TEST - context, stride=1),
    )
    notes = (
        "There is one test window, longer than the targets in training: a score is that of one "
        "simulation.",
    )
    record = read_record(locate(_SOURCE, _FILE, data_dir))
    return split_records([record], ("th", "q"), cut, notes)


DATASET: Final = Dataset(
    name="exchanger",
    summary="a steam heat exchanger: outlet temperature and liquid flow",
    system="exchanger",
    protocols={"strict": strict},
    sources=(_SOURCE,),
    units={"time": "s"},
)
