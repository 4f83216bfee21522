"""The least-squares line through the last points of each origin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from physsm._values import Panel
from physsm.models._baseline.origins import Origins, Points, channel_points


class LastLine(NamedTuple):
    """A line for each origin: its time of reference (the last point), its level then, its slope.

    Where an origin has no point, the numbers mean nothing.
    """

    time: Float[np.ndarray, " origins"]
    level: Float[np.ndarray, " origins"]
    slope: Float[np.ndarray, " origins"]


def continued(
    panel: Panel,
    origins: Origins,
    points: Sequence[int],
    otherwise: Float[np.ndarray, " channels"],
    reach: Callable[[int, np.ndarray], np.ndarray],
) -> Float[np.ndarray, "origins steps channels"]:
    """Forecasts level + slope * reach(channel, time since the last point), by the line through the
    last `points` of each channel; `otherwise` where it has none.
    """
    mean = np.tile(otherwise, (*origins.times.shape, 1))
    for channel, most in enumerate(points):
        found = channel_points(panel, channel, origins)
        if len(found.times):
            line = last_line(found, most)
            ahead = reach(channel, origins.times - line.time[:, None])
            there = line.level[:, None] + line.slope[:, None] * ahead
            mean[..., channel] = np.where(found.exists[:, None], there, mean[..., channel])
    return mean


class LastPoints(NamedTuple):
    """The places of the last points, the latest first, and where there is one at all."""

    place: Int[np.ndarray, "origins points"]
    used: Bool[np.ndarray, "origins points"]


def last_points(points: Points, most: int) -> LastPoints:
    """At most the last `most` points of each origin; there must be a point somewhere."""
    place = points.end[:, None] - 1 - np.arange(most)
    used = place >= points.begin[:, None]
    return LastPoints(np.clip(place, 0, len(points.times) - 1), used)


def last_line(points: Points, most: int) -> LastLine:
    """Least squares through the last `most` points; one point gives a constant.

    Times and values count from the last point, which keeps their digits under a huge offset.
    """
    place, used = last_points(points, most)
    last = points.last
    t = np.where(used, points.times[place] - points.times[last, None], 0)
    x = np.where(used, points.values[place] - points.values[last, None], 0)
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
