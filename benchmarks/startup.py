"""How long a command takes before it does anything, against importing NumPy."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.measure import Measure, command_seconds


def measures() -> list[Measure]:
    physsm = str(Path(sys.executable).with_name("physsm"))
    yardstick = command_seconds([sys.executable, "-c", "import numpy"])
    commands = {
        "physsm --help": 0.5,
        "physsm systems": None,
        "physsm explain pendulum": 2.0,
        "physsm explain quadrotor --json": 2.0,
    }
    results = []
    for command, limit in commands.items():
        seconds = command_seconds([physsm, *command.split()[1:]])
        results.append(Measure(command, seconds, limit, "import numpy", seconds / yardstick))
    return results
