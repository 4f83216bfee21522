"""What every data set says of itself, and what its protocols make: a split into three parts.

A split is data. Each part names its windows, and for each row of its panel the raw sample that the
row was made from, so that anyone can check who shares what with whom.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from physsm._errors import ConfigError, did_you_mean
from physsm._values import Panel
from physsm.data import window
from physsm.data.window import Sizes


class RawRows(NamedTuple):
    """The raw samples behind the rows of one series: their `number` within a recording, counted
    from 0, and below 0 for rows without one, in which nothing was recorded.

    What is derived for a row also looks at `before` samples before its own and `after` after it, as
    far as the series has them: series are cut before anything is derived.
    """

    recording: str
    number: Int[np.ndarray, " rows"]
    before: int = 0
    after: int = 0

    def touched(self, rows: slice | Int[np.ndarray, " rows"]) -> Int[np.ndarray, " samples"]:
        """The numbers of the samples that rows touch, in order."""
        around, exists = self.around(rows)
        return np.unique(around[exists])

    def around(
        self, rows: slice | Int[np.ndarray, " rows"]
    ) -> tuple[Int[np.ndarray, "rows reach"], Bool[np.ndarray, "rows reach"]]:
        """The numbers before, at and after the sample of each row, and which of them it touches."""
        own = self.number[rows][:, None]
        numbers = own + np.arange(-self.before, self.after + 1)
        last = self.number.max(initial=-1)
        first = self.number[self.number >= 0].min(initial=last)
        return numbers, (own >= 0) & (first <= numbers) & (numbers <= last)


@dataclass(frozen=True, eq=False)
class Part(window.Part):
    """A part of a data set, with the raw samples behind the rows of its series."""

    raw: tuple[RawRows, ...]

    def samples(self, window: int) -> tuple[str, Int[np.ndarray, " samples"]]:
        """The recording of a window, and the numbers of all samples that it touches there."""
        series, start, _, stop = (int(column[window]) for column in tuple(self.windows))
        raw = self.raw[series]
        return raw.recording, raw.touched(slice(start, stop))

    def touched(self) -> dict[str, Int[np.ndarray, " samples"]]:
        """The samples of each recording that any window touches, in order."""
        found: dict[str, list[np.ndarray]] = {}
        for series, raw in enumerate(self.raw):
            rows = np.flatnonzero(self._uses(series))
            if len(rows):
                found.setdefault(raw.recording, []).append(raw.touched(rows))
        return {name: np.unique(np.concatenate(parts)) for name, parts in found.items()}

    def _uses(self, series: int) -> Int[np.ndarray, " rows"]:
        """How many windows hold each row of a series."""
        steps = np.zeros(len(self.raw[series].number) + 1, np.int64)
        mine = self.windows.series == series
        np.add.at(steps, self.windows.start[mine], 1)
        np.add.at(steps, self.windows.stop[mine], -1)
        return steps.cumsum()[:-1]


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
    folders of those files, see `_sources`. `units` are those of columns, the time among them, that
    the system does not know.
    """

    name: str
    summary: str
    system: str
    protocols: Mapping[str, Callable[..., Split]]
    sources: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)

    def split(self, protocol: str, **settings: object) -> Split:
        """The split of a protocol."""
        if protocol not in self.protocols:
            known = ", ".join(self.protocols)
            hint = did_you_mean(protocol, list(self.protocols)) or f"there are {known}"
            raise ConfigError(f"{self.name} has no protocol {protocol!r}: {hint}")
        try:
            return self.protocols[protocol](**settings)
        except (TypeError, ValueError) as error:
            where = f"{self.name}:{protocol}"
            if "unexpected keyword argument" in str(error):
                wrong = str(error).rpartition("argument ")[2].split(".")[0]
                raise ConfigError(f"{where} has no setting {wrong}") from error
            said = ", ".join(f"{key} = {value!r}" for key, value in settings.items())
            if not said:
                raise
            raise ConfigError(f"{where} cannot be made with {said}: {error}") from error


def check_whole(value: object, setting: str, dataset: str, *, least: int) -> None:
    """A setting that must be a whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(
            f"{dataset}: {setting} must be a whole number of at least {least}, but is {value!r}"
        )


def share_of_touching_windows(train: Part, other: Part) -> float:
    """The share of windows of another part that touch a sample which training touches."""
    seen = train.touched()
    touching = np.zeros(other.windows.number, bool)
    for series, raw in enumerate(other.raw):
        mine = other.windows.series == series
        around, exists = raw.around(slice(None))
        known = np.isin(around, seen.get(raw.recording, np.zeros(0, np.int64))) & exists
        before = np.concatenate([[0], known.any(1).cumsum()])
        touching[mine] = before[other.windows.stop[mine]] > before[other.windows.start[mine]]
    return float(touching.mean()) if touching.size else 0.0


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
