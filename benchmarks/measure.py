"""One measured number and the limit that it must keep."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """`seconds` is the median of several runs; `ratio` compares it with the yardstick.

    The limit is a ratio, which a slow or busy machine does not change much.
    """

    name: str
    seconds: float
    yardstick: str
    ratio: float
    limit: float | None

    @property
    def is_met(self) -> bool:
        """Whether the ratio is within its limit."""
        return self.limit is None or self.ratio <= self.limit


def median_seconds(job: Callable[[], object], runs: int = 7) -> float:
    """Run once to warm up, then time `runs` runs."""
    job()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return sorted(times)[runs // 2]


def command_seconds(command: Sequence[str]) -> float:
    """The time of a whole process, from start to end."""
    return median_seconds(lambda: subprocess.run(command, check=True, capture_output=True))
