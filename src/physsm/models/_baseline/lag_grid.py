"""Histories on a regular grid that ends at their last row, and controls on its continuation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from physsm._values import Panel
from physsm.models._baseline.forecaster import Usual
from physsm.models._baseline.origins import (
    Origins,
    brackets,
    channel_points,
    columns_between,
    control_points,
    straight_between,
)

ROUNDING = 1e-6  # of a gap: what floating point may leave between a row and its grid point
_WIDEST_HOLE = 4.0  # in median widths: a line over a longer one is no measurement


class LookBack(NamedTuple):
    """Scaled channels and controls at an origin's last row, one gap before it, and so on."""

    x: Float[np.ndarray, "origins lags channels"]
    u: Float[np.ndarray, "origins lags controls"]

    def rows(self) -> Float[np.ndarray, "origins features"]:
        """One row for each origin, the latest first: channels, controls, channels, ..."""
        both = np.concatenate([self.x, self.u], 2)
        return both.reshape(len(both), both.shape[1] * both.shape[2])


def look_back(
    panel: Panel, origins: Origins, gap: float, lags: int, usual: Usual, usual_controls: Usual
) -> LookBack:
    """The history of each origin on a grid that ends at its last row.

    A channel that was not measured before has its mean; before the first row all is as there.
    """
    end = panel.times[origins.series, origins.row]
    grid = end[:, None] - gap * np.arange(lags)
    channels, controls = range(len(panel.channels)), range(len(panel.control_names))
    columns = [channel_points(panel, k, origins) for k in channels]
    columns += [control_points(panel, k, origins) for k in controls]
    x, u = np.split(columns_between(columns, origins, grid), [len(channels)], axis=2)
    x = np.where(np.isnan(x), 0, (x - usual.mean) / usual.scale)
    return LookBack(x, (u - usual_controls.mean) / usual_controls.scale)


class ControlPath:
    """The controls of the future along straight lines between the times at which they are given,
    from the last row of the history on. It is walked forwards, one grid point after another.
    """

    def __init__(self, now: np.ndarray, ahead: np.ndarray, controls: np.ndarray):
        self._ahead = np.concatenate([np.zeros((len(ahead), 1)), ahead], 1)
        self._controls = np.concatenate([now[:, None], controls], 1)
        self._passed = np.zeros(len(ahead), np.int64)

    def pass_times(self, origin: Int[np.ndarray, " served"]) -> None:
        """The next time of each of these origins is no longer ahead; one may come repeatedly."""
        self._passed += np.bincount(origin, minlength=len(self._passed))

    def at(self, node: int, running: int) -> Float[np.ndarray, "running controls"]:
        """At a grid point, of the first `running` origins, which have a time ahead."""
        origin = np.arange(running)
        left = self._passed[:running]
        before, after = self._ahead[origin, left], self._ahead[origin, left + 1]
        share = np.clip((node - before) / (after - before), 0, 1)[:, None]
        u, u_after = self._controls[origin, left], self._controls[origin, left + 1]
        return u + share * (u_after - u)


def known_lags(panel: Panel, origins: Origins, gap: float) -> Int[np.ndarray, " origins"]:
    """How many grid points, the last row included, lie inside each history."""
    end = panel.times[origins.series, origins.row]
    inside = (end - panel.times[origins.series, 0]) / gap
    return 1 + np.floor(np.minimum(inside, 1e9) + ROUNDING).astype(np.int64)


class LookAhead(NamedTuple):
    """Scaled channels and controls one gap after an origin; NaN for a channel not known then."""

    x: Float[np.ndarray, "origins channels"]
    u: Float[np.ndarray, "origins controls"]


def look_ahead(
    panel: Panel, origins: Origins, gap: float, usual: Usual, usual_controls: Usual
) -> LookAhead:
    """What a step from each origin should lead to, along straight lines between the rows.

    A channel is known there if it was measured before the origin and lies between measurements
    that are not unusually far apart.
    """
    wanted = (panel.times[origins.series, origins.row] + gap)[:, None]
    whole = origins._replace(row=panel.lengths[origins.series] - 1)
    x = np.full((len(wanted), len(panel.channels)), np.nan)
    u = np.empty((len(wanted), len(panel.control_names)))
    for k in range(x.shape[1]):
        points = channel_points(panel, k, whole)
        if len(points.times):
            left, right = (points.times[place] for place in brackets(points, whole, wanted))
            width = right - left
            narrow = width <= _WIDEST_HOLE * (np.median(width[width > 0]) if width.any() else 0)
            near = np.minimum(np.abs(wanted - left), np.abs(right - wanted)) <= ROUNDING * gap
            between = (left - ROUNDING * gap <= wanted) & (wanted <= right + ROUNDING * gap)
            known = (narrow | near) & between & channel_points(panel, k, origins).exists[:, None]
            x[:, k] = np.where(known, straight_between(points, whole, wanted), np.nan)[:, 0]
    for k in range(u.shape[1]):
        u[:, k] = straight_between(control_points(panel, k, whole), whole, wanted)[:, 0]
    return LookAhead(
        (x - usual.mean) / usual.scale, (u - usual_controls.mean) / usual_controls.scale
    )
