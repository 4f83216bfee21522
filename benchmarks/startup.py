"""How long a command takes before it does anything, against importing NumPy."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.measure import Measure, command_seconds


def measures() -> list[Measure]:
    physsm = str(Path(sys.executable).with_name("physsm"))
    yardstick = command_seconds([sys.executable, "-c", "import numpy"])
    # On a machine where NumPy takes 0.1 s: half a second for help, two for an explanation.
    commands = {
        "physsm --help": 5.0,
        "physsm systems": 20.0,
        "physsm explain pendulum": 20.0,
        "physsm explain quadrotor --json": 20.0,
    }
    results = []
    for command, limit in commands.items():
        seconds = command_seconds([physsm, *command.split()[1:]])
        results.append(Measure(command, seconds, "import numpy", seconds / yardstick, limit))
    return results
