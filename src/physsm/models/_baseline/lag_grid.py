"""Histories on a regular grid that ends at the origin, and future controls on the same grid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from physsm._values import Panel
from physsm.models._baseline.forecaster import ColumnScales
from physsm.models._baseline.origins import (
    Origins,
    brackets,
    channel_points,
    control_points,
    interpolate,
    interpolate_columns,
)

ROUNDING = 1e-6  # of a gap: rounding error between a time step and its grid point
_WIDEST_HOLE = 4.0  # in median widths: interpolation over a wider hole is no measurement


class LaggedValues(NamedTuple):
    """Scaled channels and controls at the origin, one gap before it, and so on."""

    x: Float[np.ndarray, "origins lags channels"]
    u: Float[np.ndarray, "origins lags controls"]

    def features(self) -> Float[np.ndarray, "origins features"]:
        """One vector for each origin, the latest lag first: channels, controls, channels, ..."""
        both = np.concatenate([self.x, self.u], 2)
        return both.reshape(len(both), both.shape[1] * both.shape[2])


def lagged_values(
    panel: Panel,
    origins: Origins,
    gap: float,
    lags: int,
    channel_scales: ColumnScales,
    control_scales: ColumnScales,
) -> LaggedValues:
    """The history of each origin on a grid that ends at its last time step.

    A channel without measurements has its mean. Before the first time step, values are constant.
    """
    end = panel.times[origins.series, origins.step]
    grid = end[:, None] - gap * np.arange(lags)
    channels, controls = range(len(panel.channels)), range(len(panel.control_names))
    columns = [channel_points(panel, k, origins) for k in channels]
    columns += [control_points(panel, k, origins) for k in controls]
    x, u = np.split(interpolate_columns(columns, origins, grid), [len(channels)], axis=2)
    x = np.where(np.isnan(x), 0, (x - channel_scales.mean) / channel_scales.scale)
    return LaggedValues(x, (u - control_scales.mean) / control_scales.scale)


class FutureControls:
    """Future controls, interpolated linearly between the origin and the times they are given at.

    It is read forwards, one grid point after another. `ahead` are the lead times in gaps.
    """

    def __init__(self, now: np.ndarray, ahead: np.ndarray, controls: np.ndarray):
        self._ahead = np.concatenate([np.zeros((len(ahead), 1)), ahead], 1)
        self._controls = np.concatenate([now[:, None], controls], 1)
        self._passed = np.zeros(len(ahead), np.int64)

    def pass_times(self, origin: Int[np.ndarray, " passed"]) -> None:
        """Move each of these origins on by one time; an origin may occur repeatedly."""
        self._passed += np.bincount(origin, minlength=len(self._passed))

    def at(self, node: int, running: int) -> Float[np.ndarray, "running controls"]:
        """Controls at a grid point, of the first `running` origins, which have times left."""
        origin = np.arange(running)
        left = self._passed[:running]
        before, after = self._ahead[origin, left], self._ahead[origin, left + 1]
        weight = np.clip((node - before) / (after - before), 0, 1)[:, None]
        u, u_after = self._controls[origin, left], self._controls[origin, left + 1]
        return u + weight * (u_after - u)


def known_lags(panel: Panel, origins: Origins, gap: float) -> Int[np.ndarray, " origins"]:
    """Number of grid points inside each history, the origin included."""
    end = panel.times[origins.series, origins.step]
    inside = (end - panel.times[origins.series, 0]) / gap
    return 1 + np.floor(np.minimum(inside, 1e9) + ROUNDING).astype(np.int64)


class NextValues(NamedTuple):
    """Scaled channels and controls one gap after an origin; NaN for an unknown channel."""

    x: Float[np.ndarray, "origins channels"]
    u: Float[np.ndarray, "origins controls"]


def next_values(
    panel: Panel,
    origins: Origins,
    gap: float,
    channel_scales: ColumnScales,
    control_scales: ColumnScales,
) -> NextValues:
    """Targets of one step from each origin, interpolated linearly between time steps.

    A channel is known if it was measured before the origin and lies between measurements without
    a wide hole. The measurements after the origin are read here.
    """
    wanted = (panel.times[origins.series, origins.step] + gap)[:, None]
    whole = origins._replace(step=panel.lengths[origins.series] - 1)
    x = np.full((len(wanted), len(panel.channels)), np.nan)
    u = np.empty((len(wanted), len(panel.control_names)))
    for k in range(x.shape[1]):
        points = channel_points(panel, k, whole)
        if len(points.times):
            left, right = (points.times[index] for index in brackets(points, whole, wanted))
            width = right - left
            narrow = width <= _WIDEST_HOLE * (np.median(width[width > 0]) if width.any() else 0)
            near = np.minimum(np.abs(wanted - left), np.abs(right - wanted)) <= ROUNDING * gap
            between = (left - ROUNDING * gap <= wanted) & (wanted <= right + ROUNDING * gap)
            known = (narrow | near) & between & channel_points(panel, k, origins).exists[:, None]
            x[:, k] = np.where(known, interpolate(points, whole, wanted), np.nan)[:, 0]
    for k in range(u.shape[1]):
        u[:, k] = interpolate(control_points(panel, k, whole), whole, wanted)[:, 0]
    return NextValues(
        (x - channel_scales.mean) / channel_scales.scale,
        (u - control_scales.mean) / control_scales.scale,
    )
