"""Ball and beam of DaISy: the position of a ball on a beam that is tilted, 1000 rows at 10 Hz.

The channel is the position `y` of the ball, the control the angle `u` of the beam (rad).
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

_SOURCE, _FILE = "daisy", "ball-and-beam.csv"
_ROWS, _RATE = 1000, 10  # rows, rows in a second
_SIZES: Final = Sizes(context=20, horizon=50, stride=5)
_CUT: Final = Cut(validation=600, test=800, sizes=_SIZES, test_sizes=_SIZES)
_NOTES: Final = (
    "The angle was set by a controller that saw the position: the angle of the future, which every "
    "model is given, tells of the position then.",
)


def read_record(path: Path) -> Record:
    """Record of the file, which has no times."""
    columns = read_columns(path, ("u", "y"), _ROWS)
    times = np.arange(_ROWS) / _RATE
    return Record(name="ball_beam", times=times, channel=columns["y"], control=columns["u"])


def strict(*, data_dir: str | Path | None = None) -> Split:
    """Context of 2 s, target of 5 s: rows 0 to 599 are for training, 600 to 799 for validation, 800
    to 999 for the test. Errors are in standard deviations of the training part.
    """
    record = read_record(locate(_SOURCE, _FILE, data_dir))
    return split_records([record], ("y", "u"), _CUT, _NOTES)


DATASET: Final = Dataset(
    name="ball_beam",
    summary="a ball on a tilted beam, under control: its position and the angle",
    system="ball_beam",
    protocols={"strict": strict},
    sources=(_SOURCE,),
    units={"time": "s"},
)
