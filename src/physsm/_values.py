"""Values that all parts exchange: `Panel` in, `Query` for the future, `Forecast` out.

All are NumPy arrays, padded at the end to a common length, in the units of the user's table. Times
are float64: a float32 cannot resolve the milliseconds of a long series.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from physsm._errors import ConfigError, DataError
from physsm._layout import Layout, TimeUnit

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["Forecast", "Layout", "Panel", "Query", "Series", "TimeUnit", "Unknowns"]


class Series(NamedTuple):
    """One series without padding. Shapes (steps,), (steps, channels), (steps, controls)."""

    id: str
    times: Float[np.ndarray, " steps"]
    values: Float[np.ndarray, "steps channels"]
    controls: Float[np.ndarray, "steps controls"]


@dataclass(frozen=True, eq=False)
class Panel:
    """Several series, each with its own times: the in-memory form of a table.

    Step i of a series is its i-th time. A channel that was not measured then is NaN. After the
    last step of a series (`lengths`), its last time and controls are repeated and values are NaN.
    Make one with `physsm.read_table`, `physsm.to_panel` or `Panel.from_series`.
    """

    ids: tuple[str, ...]
    times: Float[np.ndarray, "series steps"]
    values: Float[np.ndarray, "series steps channels"]
    controls: Float[np.ndarray, "series steps controls"]
    lengths: Int[np.ndarray, " series"]
    channels: tuple[str, ...]
    control_names: tuple[str, ...] = ()
    layout: Layout = field(default_factory=Layout)

    @classmethod
    def from_series(
        cls,
        series: Sequence[Series],
        channels: Sequence[str],
        control_names: Sequence[str] = (),
        layout: Layout | None = None,
    ) -> Panel:
        """Panel of series, padded to one length; `data.table` checks the values, not this."""
        lengths = np.array([len(one.times) for one in series], np.int64)
        steps = int(lengths.max(initial=0))
        times = np.zeros((len(series), steps))
        precision = np.result_type(np.float32, *(one.values for one in series))
        values = np.full((len(series), steps, len(channels)), np.nan, precision)
        controls = np.zeros((len(series), steps, len(control_names)))
        for i, one in enumerate(series):
            rows = np.minimum(np.arange(steps), len(one.times) - 1)
            times[i], controls[i] = one.times[rows], one.controls[rows]
            values[i, : lengths[i]] = one.values
        return cls(
            ids=tuple(one.id for one in series),
            times=times,
            values=values,
            controls=controls,
            lengths=lengths,
            channels=tuple(channels),
            control_names=tuple(control_names),
            layout=layout or Layout(),
        )

    def __repr__(self) -> str:
        """Summary in one line: series, rows, columns, share of measured cells, times."""
        rows, cells = int(self.lengths.sum()), int(self.lengths.sum()) * len(self.channels)
        parts = [f"{len(self)} series, {rows} rows", f"channels {', '.join(self.channels)}"]
        parts += [f"controls {', '.join(self.control_names)}"] if self.control_names else []
        parts += [f"{self.observed.sum() / cells:.0%} of the cells measured"] if cells else []
        if rows:
            origin = self.layout.origin
            unit = f" {self.layout.time_unit} since {origin}" if origin else ""
            parts.append(f"times {self.times.min():g} to {self.times.max():g}{unit}")
        return f"Panel({'; '.join(parts)})"

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Series]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i: int) -> Series:
        """One series without its padding, as views of the arrays."""
        n = int(self.lengths[i])
        return Series(self.ids[i], self.times[i, :n], self.values[i, :n], self.controls[i, :n])

    @property
    def observed(self) -> Bool[np.ndarray, "series steps channels"]:
        """Mask of measured cells."""
        return ~np.isnan(self.values)

    @property
    def gaps(self) -> Float[np.ndarray, " gaps"]:
        """All gaps `t[i+1] - t[i]` of all series, in one array."""
        within = np.arange(1, self.times.shape[1]) < self.lengths[:, None]
        return np.diff(self.times, axis=1)[within]

    @property
    def median_gap(self) -> float:
        """Median gap; 1 where no series has two steps."""
        return float(np.median(self.gaps)) if self.gaps.size else 1.0

    def select(self, indices: Sequence[int] | Int[np.ndarray, " chosen"]) -> Panel:
        """Panel of the chosen series."""
        return self._from(self[int(i)] for i in indices)

    def between(
        self, start: Int[np.ndarray, " series"] | int, stop: Int[np.ndarray, " series"] | int
    ) -> Panel:
        """Panel of the steps `start` to `stop` (exclusive) of each series."""
        starts = np.broadcast_to(np.asarray(start), (len(self),))
        stops = np.broadcast_to(np.asarray(stop), (len(self),))
        return self._from(
            Series(one.id, one.times[a:b], one.values[a:b], one.controls[a:b])
            for one, a, b in zip(self, starts, stops, strict=True)
        )

    def only(self, channels: Sequence[str]) -> Panel:
        """Panel of the chosen channels, in the order given."""
        columns = [self.channels.index(name) for name in channels]
        return replace(self, values=self.values[:, :, columns], channels=tuple(channels))

    def _from(self, series: Iterator[Series]) -> Panel:
        return Panel.from_series(list(series), self.channels, self.control_names, self.layout)


@dataclass(frozen=True, eq=False)
class Query:
    """Times to forecast and the controls at these times, padded like a `Panel`."""

    times: Float[np.ndarray, "series steps"]
    controls: Float[np.ndarray, "series steps controls"]
    lengths: Int[np.ndarray, " series"]


@dataclass(frozen=True, eq=False)
class Unknowns:
    """Learned unknowns over time, in physical units, with their standard deviation over the states.

    `mean` and `std` have shape (series, steps, unknowns); steps after `lengths` are padding.
    """

    names: tuple[str, ...]
    ids: tuple[str, ...]
    times: Float[np.ndarray, "series steps"]
    lengths: np.ndarray
    mean: Float[np.ndarray, "series steps unknowns"]
    std: Float[np.ndarray, "series steps unknowns"]


@dataclass(frozen=True, eq=False)
class Forecast:
    """Forecast of several series, in the units of the table.

    A share `coverage` of the measurements should lie between `lower` and `upper`. `states` and
    `unknowns` are None for a model without physics. Steps after `lengths` are padding. `quantile`
    reads `spread` (the scale of the errors), `distances` (the quantiles of the absolute errors, in
    units of `spread`, at evenly spaced levels) and `limits` (the range of each channel).
    """

    ids: tuple[str, ...]
    times: Float[np.ndarray, "series steps"]
    lengths: Int[np.ndarray, " series"]
    channels: tuple[str, ...]
    mean: Float[np.ndarray, "series steps channels"]
    lower: Float[np.ndarray, "series steps channels"]
    upper: Float[np.ndarray, "series steps channels"]
    coverage: float
    layout: Layout = field(default_factory=Layout)
    state_names: tuple[str, ...] = ()
    states: Float[np.ndarray, "series steps states"] | None = None
    unknown_names: tuple[str, ...] = ()
    unknowns: Float[np.ndarray, "series steps unknowns"] | None = None
    warnings: tuple[str, ...] = ()
    spread: Float[np.ndarray, "series steps channels"] | None = None
    distances: Float[np.ndarray, "channels levels"] | None = None
    limits: tuple[np.ndarray, np.ndarray] | None = None

    def __repr__(self) -> str:
        """Summary in one line: series, times, channels, intervals."""
        times = int(self.lengths.sum())
        without = np.isnan(self.coverage)
        intervals = "without intervals" if without else f"{self.coverage:.0%} intervals"
        return (
            f"Forecast({len(self.ids)} series, {times} times; channels "
            f"{', '.join(self.channels)}; {intervals})"
        )

    def quantile(self, level: float) -> Float[np.ndarray, "series steps channels"]:
        """Quantile of the forecast at `level`; NaN without intervals.

        Errors are assumed to be symmetric about the mean, as the intervals are.
        """
        if not 0 < level < 1:
            raise ConfigError(f"the level is {level} and must be between 0 and 1")
        if self.spread is None or self.distances is None or self.limits is None:
            return np.full_like(self.mean, np.nan)
        grid = np.linspace(0, 1, self.distances.shape[1])
        distance = np.array([np.interp(abs(2 * level - 1), grid, row) for row in self.distances])
        return np.clip(self.mean + np.sign(level - 0.5) * distance * self.spread, *self.limits)

    @property
    def valid(self) -> Bool[np.ndarray, "series steps"]:
        """Mask of the steps that are no padding."""
        return np.arange(self.times.shape[1]) < self.lengths[:, None]

    def to_frame(self) -> pl.DataFrame:
        """Table with the series and time columns of the history's table, then, for each channel,
        `NAME`, `NAME_lower` and `NAME_upper`.
        """
        parts = {"": self.mean, "_lower": self.lower, "_upper": self.upper}
        columns = [
            (f"{name}{ending}", part[:, :, k])
            for k, name in enumerate(self.channels)
            for ending, part in parts.items()
        ]
        return self.layout.long_frame(self.ids, self.times, self.lengths, columns)

    def plot(self, history: Panel | None = None, series: int = 0) -> Figure:
        """Matplotlib figure of one series: means, intervals and, if given, its history."""
        from physsm._forecast_plot import ChannelCurves, draw_forecast

        if not -len(self.ids) <= series < len(self.ids):
            raise DataError(f"there is no series {series}: the forecast has {len(self.ids)}")
        name = self.ids[series]
        if history is not None and name not in history.ids:
            raise DataError(f"the history has no series {name}")
        past = history[history.ids.index(name)] if history is not None else None
        n = int(self.lengths[series])
        curves = [
            ChannelCurves(
                name=channel,
                times=self.times[series, :n],
                mean=self.mean[series, :n, k],
                lower=self.lower[series, :n, k],
                upper=self.upper[series, :n, k],
                past_times=np.empty(0) if past is None else past.times,
                past_values=np.empty(0)
                if history is None or past is None
                else past.values[:, history.channels.index(channel)],
            )
            for k, channel in enumerate(self.channels)
        ]
        return draw_forecast(curves, f"series {name}", self.layout.time, self.coverage)
