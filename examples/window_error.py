"""The error of a fitted model on the test windows of a data set, for the examples of data sets."""

from __future__ import annotations

import numpy as np

from physsm.data.window import cut_windows
from physsm.datasets._dataset import Split
from physsm.models._base import AbstractFitted


def window_error(fitted: AbstractFitted, split: Split, windows: int | None = None) -> float:
    """Mean absolute error after the context, in standard deviations of the training part.

    `windows` takes so many test windows, evenly spread, instead of all.
    """
    every = split.test.windows
    number = min(windows or every.number, every.number)
    chosen = every[np.linspace(0, every.number - 1, number).astype(int)]
    history, query, target = cut_windows(split.test.panel, chosen)
    forecast = fitted.forecast(history, times=query.times, controls=query.controls, coverage=None)
    scale = np.nanstd(split.train.panel.values, axis=(0, 1))
    return float(np.nanmean(np.abs(forecast.mean - target.values) / scale))
