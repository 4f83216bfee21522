"""Data sets and their protocols, which split them into three parts.

A split is plain data. Each part has its windows and, for each row of its panel, the raw sample
behind the row, so that anyone can check which parts share samples.
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
from physsm.data.window import Sizes, largest_sizes


class RawRows(NamedTuple):
    """Raw samples behind the rows of one series.

    `number` is the index of each row's sample in a recording, negative for rows without one. The
    values derived for a row also use `before` samples before its own and `after` samples after it,
    as far as the series has them: series are cut before anything is derived.
    """

    recording: str
    number: Int[np.ndarray, " rows"]
    before: int = 0
    after: int = 0

    def touched(self, rows: slice | Int[np.ndarray, " rows"]) -> Int[np.ndarray, " samples"]:
        """Sorted indices of the samples that rows use."""
        around, exists = self.around(rows)
        return np.unique(around[exists])

    def around(
        self, rows: slice | Int[np.ndarray, " rows"]
    ) -> tuple[Int[np.ndarray, "rows reach"], Bool[np.ndarray, "rows reach"]]:
        """Indices around the sample of each row, and the mask of those that the row uses."""
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
        """Recording of a window, and the indices of all samples that the window uses."""
        series, start, _, stop = (int(column[window]) for column in tuple(self.windows))
        raw = self.raw[series]
        return raw.recording, raw.touched(slice(start, stop))

    def touched(self) -> dict[str, Int[np.ndarray, " samples"]]:
        """Sorted indices of the samples of each recording that any window uses."""
        found: dict[str, list[np.ndarray]] = {}
        for series, raw in enumerate(self.raw):
            rows = np.flatnonzero(self._uses(series))
            if len(rows):
                found.setdefault(raw.recording, []).append(raw.touched(rows))
        return {name: np.unique(np.concatenate(parts)) for name, parts in found.items()}

    def _uses(self, series: int) -> Int[np.ndarray, " rows"]:
        """Number of windows that hold each row of a series."""
        steps = np.zeros(len(self.raw[series].number) + 1, np.int64)
        mine = self.windows.series == series
        np.add.at(steps, self.windows.start[mine], 1)
        np.add.at(steps, self.windows.stop[mine], -1)
        return steps.cumsum()[:-1]


@dataclass(frozen=True, eq=False)
class Split:
    """Parts of a data set under one protocol, and the scale of errors on it.

    - `sizes`: context, horizon and stride of windows, in rows. Targets of the test may be longer.
    - `unit`: scale that divides the errors of each channel; `unit_words` describes it.
    - `truth`: the test panel without noise, if known: errors are then relative to it.
    - `debias`: map from a forecast of noisy values to one of clean values, where noise was clipped.
    - `tracks`: pairs of channels that are positions (x, y) of a moving object, in m.
    - `in_domain`: rows of a target within the trained horizon, if that is shorter.
    - `notes`: remarks for the readers of scores.
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

    @property
    def test_horizon(self) -> int:
        """Rows of the longest target of the test."""
        return largest_sizes(self.test.windows).horizon


@dataclass(frozen=True)
class Dataset:
    """Data set: the built-in system that describes it, and its protocols by name.

    A protocol is a function of keyword settings with defaults; for data sets in files these include
    `data_dir`, the folder to search first. `sources` are the folders of the files (see `_sources`).
    `units` are the units of columns, including the time, that the system does not declare.
    """

    name: str
    summary: str
    system: str
    protocols: Mapping[str, Callable[..., Split]]
    sources: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)

    def split(self, protocol: str, **settings: object) -> Split:
        """Split of a protocol."""
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
            given = ", ".join(f"{key} = {value!r}" for key, value in settings.items())
            if not given:
                raise
            raise ConfigError(f"{where} cannot be made with {given}: {error}") from error


def check_whole(value: object, setting: str, dataset: str, *, least: int) -> None:
    """Raise an error if a setting is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(
            f"{dataset}: {setting} must be a whole number of at least {least}, but is {value!r}"
        )


def share_of_touching_windows(train: Part, other: Part) -> float:
    """Share of windows of another part that use a sample that training uses."""
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
    """Share of windows of another part that are training windows, row by row."""

    def rows(part: Part) -> list[tuple[str, bytes]]:
        return [
            (part.raw[s].recording, part.raw[s].number[a:b].tobytes())
            for s, a, _, b in zip(*tuple(part.windows), strict=True)
        ]

    known = set(rows(train))
    others = rows(other)
    return sum(row in known for row in others) / max(len(others), 1)
