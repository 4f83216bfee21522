"""Parsing, lifting and compiling each built-in system, against importing NumPy."""

from __future__ import annotations

import sys

from sympy.core.cache import clear_cache

from benchmarks.measure import Measure, command_seconds, median_seconds
from physsm import System
from physsm.physics.read import system_names


def measures() -> list[Measure]:
    yardstick = command_seconds([sys.executable, "-c", "import numpy"])
    results = []
    for name in system_names():

        def load(name: str = name) -> None:
            clear_cache()  # SymPy remembers results; a user's first parse has none of them
            System.load(name)

        seconds = median_seconds(load)
        results.append(
            Measure(f"System.load({name!r})", seconds, "import numpy", seconds / yardstick, 3.0)
        )
    return results
