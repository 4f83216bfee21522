"""A forecast as a matplotlib figure, for notebooks and scripts."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from physsm._errors import DataError
from physsm._values import Forecast, Panel
from physsm.report.palette import BAND_OPACITY, BOUNDARY, FORECAST, INK

_PANEL = 2.0  # inches
_POINTS = 3.0  # size of a dot


def plot_forecast(forecast: Forecast, history: Panel | None, series: int) -> Figure:
    """One panel per channel: the history's measurements, the mean and its interval."""
    if not -len(forecast.ids) <= series < len(forecast.ids):
        raise DataError(f"there is no series {series}: the forecast has {len(forecast.ids)}")
    name = forecast.ids[series]
    if history is not None and name not in history.ids:
        raise DataError(f"the history has no series {name}")
    channels = len(forecast.channels)
    figure = Figure(figsize=(8, 0.6 + _PANEL * channels), layout="constrained")
    panels = figure.subplots(channels, 1, sharex=True, squeeze=False)[:, 0]
    n = int(forecast.lengths[series])
    times = forecast.times[series, :n]
    for c, axes in enumerate(panels):
        mean, lower, upper = (
            part[series, :n, c] for part in (forecast.mean, forecast.lower, forecast.upper)
        )
        if np.isfinite(lower).any():
            label = f"{forecast.coverage:.0%} interval"
            axes.fill_between(
                times, lower, upper, color=FORECAST, alpha=BAND_OPACITY, lw=0, label=label
            )
        axes.plot(times, mean, color=FORECAST, lw=1.5, label="forecast")
        if history is not None:
            past = history[history.ids.index(name)]
            values = past.values[:, history.channels.index(forecast.channels[c])]
            axes.plot(past.times, values, ".", color=INK, ms=_POINTS, label="measured")
            axes.axvline(past.times[-1], color=BOUNDARY, lw=0.8, ls="--")
        axes.set_ylabel(forecast.channels[c])
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
    panels[0].set_title(f"series {name}", loc="left", fontsize="medium")
    panels[-1].set_xlabel(forecast.layout.time)
    return figure
