"""What every data set says of itself, and what its protocols make: a split into three parts.

A split is data. Each part names its windows, and for each row of its panel the raw sample that the
row was made from, so that anyone can check who shares what with whom.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from physsm._errors import ConfigError, did_you_mean
from physsm._values import Panel
from physsm.data.window import Sizes, Windows


class RawRows(NamedTuple):
    """The raw samples behind the rows of one series: `number` within the recording
    `recording`. A row also looks at `before` samples before its own and `after` after it.
    """

    recording: str
    number: Int[np.ndarray, " rows"]
    before: int = 0
    after: int = 0


@dataclass(frozen=True, eq=False)
class Part:
    """Training, validation or test: a panel, windows of it, and the raw samples of its series."""

    panel: Panel
    windows: Windows
    raw: tuple[RawRows, ...]

    def samples(self, window: int) -> tuple[str, Int[np.ndarray, " samples"]]:
        """The recording of a window, and the numbers of all samples that it touches there."""
        series, start, _, stop = (int(column[window]) for column in tuple(self.windows))
        raw = self.raw[series]
        around = np.arange(-raw.before, raw.after + 1)
        touched = raw.number[start:stop, None] + around
        return raw.recording, np.unique(touched)

    def touched(self) -> dict[str, Bool[np.ndarray, " samples"]]:
        """For each recording, which of its samples any window touches (sample -1 is left out)."""
        found: dict[str, np.ndarray] = {}
        for window in range(self.windows.number):
            recording, samples = self.samples(window)
            samples = samples[samples >= 0]
            known = found.get(recording, np.zeros(0, bool))
            lacking = int(samples.max(initial=-1)) + 1 - len(known)
            if lacking > 0:
                known = np.concatenate([known, np.zeros(max(lacking, len(known)), bool)])
            known[samples] = True
            found[recording] = known
        return found


@dataclass(frozen=True, eq=False)
class Split:
    """The parts of a data set under one protocol, and how errors on it are expressed.

    - `sizes`: rows that a model sees, rows that it forecasts, rows between windows.
    - `unit`: what errors of each channel are divided by; `unit_words` says what that is.
    - `truth`: the test panel without noise, where it is known: then errors are taken against it.
    - `debias`: takes a forecast of noisy values to one of clean values, where noise was cut off.
    - `tracks`: pairs of channels that are positions (x, y) of something that moves, in m.
    - `in_domain`: rows of a target that models were trained to reach, where that is not all.
    - `notes`: what a reader of scores must know.
    """

    train: Part
    validation: Part
    test: Part
    sizes: Sizes
    unit: Float[np.ndarray, " channels"]
    unit_words: str
    truth: Panel | None = None
    debias: Callable[[np.ndarray], np.ndarray] | None = None
    tracks: tuple[tuple[str, str], ...] = ()
    in_domain: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dataset:
    """A data set: the built-in system that describes it, and its protocols by name.

    A protocol is called with settings as keywords, all of which have defaults; those of data sets
    that are read from files take `data_dir`, where to look for them first. `sources` are the
    folders of those files, see `_sources`.
    """

    name: str
    summary: str
    system: str
    protocols: Mapping[str, Callable[..., Split]]
    sources: tuple[str, ...] = ()

    def split(self, protocol: str, **settings: object) -> Split:
        """The split of a protocol."""
        if protocol not in self.protocols:
            known = ", ".join(self.protocols)
            hint = did_you_mean(protocol, list(self.protocols)) or f"there are {known}"
            raise ConfigError(f"{self.name} has no protocol {protocol!r}: {hint}")
        return self.protocols[protocol](**settings)


def share_of_touching_windows(train: Part, other: Part) -> float:
    """The share of windows of another part that touch a sample which training touches."""
    seen = train.touched()
    count = 0
    for window in range(other.windows.number):
        recording, samples = other.samples(window)
        known = seen.get(recording, np.zeros(0, bool))
        inside = samples[(samples >= 0) & (samples < len(known))]
        count += bool(known[inside].any())
    return count / max(other.windows.number, 1)


def share_of_equal_windows(train: Part, other: Part) -> float:
    """The share of windows of another part that are windows of training, row by row."""

    def rows(part: Part) -> list[tuple[str, bytes]]:
        return [
            (part.raw[s].recording, part.raw[s].number[a:b].tobytes())
            for s, a, _, b in zip(*tuple(part.windows), strict=True)
        ]

    known = set(rows(train))
    others = rows(other)
    return sum(row in known for row in others) / max(len(others), 1)
