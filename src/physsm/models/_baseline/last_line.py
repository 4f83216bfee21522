"""Least-squares line through the last points of each origin, and its extrapolation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from physsm._values import Panel
from physsm.models._baseline.origins import Origins, Points, channel_points


class LastLine(NamedTuple):
    """A line for each origin: the time of its last point, the level at that time, the slope.

    For an origin without points, the numbers are arbitrary.
    """

    time: Float[np.ndarray, " origins"]
    level: Float[np.ndarray, " origins"]
    slope: Float[np.ndarray, " origins"]


def extrapolate(
    panel: Panel,
    origins: Origins,
    points: Sequence[int],
    fallback: Float[np.ndarray, " channels"],
    trend: Callable[[int, np.ndarray], np.ndarray],
) -> Float[np.ndarray, "origins steps channels"]:
    """Forecasts level + slope * trend(channel, lead time), by the line through the last
    `points[channel]` measurements; `fallback` for a channel without measurements.
    """
    mean = np.tile(fallback, (*origins.times.shape, 1))
    for channel, most in enumerate(points):
        measured = channel_points(panel, channel, origins)
        if len(measured.times):
            line = last_line(measured, most)
            grown = trend(channel, origins.times - line.time[:, None])
            forecast = line.level[:, None] + line.slope[:, None] * grown
            mean[..., channel] = np.where(measured.exists[:, None], forecast, mean[..., channel])
    return mean


class LastPoints(NamedTuple):
    """Indices of the last points, the latest first, and which of them exist."""

    points: Int[np.ndarray, "origins points"]
    used: Bool[np.ndarray, "origins points"]


def last_points(points: Points, most: int) -> LastPoints:
    """At most the last `most` points of each origin; some origin must have a point."""
    chosen = points.end[:, None] - 1 - np.arange(most)
    used = chosen >= points.begin[:, None]
    return LastPoints(np.clip(chosen, 0, len(points.times) - 1), used)


def last_line(points: Points, most: int) -> LastLine:
    """Least-squares line through the last `most` points; a constant through a single point.

    Times and values are relative to the last point, so that a large offset costs no digits.
    """
    chosen, used = last_points(points, most)
    last = points.last
    t = np.where(used, points.times[chosen] - points.times[last, None], 0)
    x = np.where(used, points.values[chosen] - points.values[last, None], 0)
    slope, level = slope_and_level(t, x, used.astype(float))
    return LastLine(points.times[last], points.values[last] + level, slope)


def slope_and_level(
    t: Float[np.ndarray, "origins points"],
    x: Float[np.ndarray, "origins points"],
    weight: Float[np.ndarray, "origins points"],
) -> tuple[Float[np.ndarray, " origins"], Float[np.ndarray, " origins"]]:
    """Slope of the weighted least-squares line and its value at t = 0; slope 0 at a single t."""
    total = weight.sum(1)
    total = np.where(total > 0, total, 1)
    t_mean, x_mean = (weight * t).sum(1) / total, (weight * x).sum(1) / total
    centred = t - t_mean[:, None]
    square = (weight * centred**2).sum(1)
    slope = (weight * centred * x).sum(1) / np.where(square > 0, square, 1)
    return slope, x_mean - slope * t_mean
