"""Figure of a forecast, for notebooks and scripts: one panel for each channel.

At the root, because `Forecast.plot` draws it without a report.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from physsm._palette import BAND_OPACITY, BOUNDARY, FORECAST, INK

_PANEL_HEIGHT = 2.0  # inches
_DOT_SIZE = 3.0  # points


class ChannelCurves(NamedTuple):
    """Curves of one channel of one series; `past_times` is empty without a history."""

    name: str
    times: Float[np.ndarray, " steps"]
    mean: Float[np.ndarray, " steps"]
    lower: Float[np.ndarray, " steps"]
    upper: Float[np.ndarray, " steps"]
    past_times: Float[np.ndarray, " past"]
    past_values: Float[np.ndarray, " past"]


def draw_forecast(
    channels: Sequence[ChannelCurves], title: str, time_label: str, coverage: float
) -> Figure:
    """Figure with the measurements of the history, the mean forecast and its interval."""
    figure = Figure(figsize=(8, 0.6 + _PANEL_HEIGHT * len(channels)), layout="constrained")
    panels = figure.subplots(len(channels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, channel in zip(panels, channels, strict=True):
        if np.isfinite(channel.lower).any():
            axes.fill_between(
                channel.times,
                channel.lower,
                channel.upper,
                color=FORECAST,
                alpha=BAND_OPACITY,
                lw=0,
                label=f"{coverage:.0%} interval",
            )
        axes.plot(channel.times, channel.mean, color=FORECAST, lw=1.5, label="forecast")
        if channel.past_times.size:
            axes.plot(
                channel.past_times,
                channel.past_values,
                ".",
                color=INK,
                ms=_DOT_SIZE,
                label="measured",
            )
            axes.axvline(channel.past_times[-1], color=BOUNDARY, lw=0.8, ls="--")
        axes.set_ylabel(channel.name)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
    panels[0].set_title(title, loc="left", fontsize="medium")
    panels[-1].set_xlabel(time_label)
    return figure
