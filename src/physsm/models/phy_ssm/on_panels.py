"""A network on panels: tables in and out, in NumPy, around its compiled programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from physsm._values import Panel, Series
from physsm.data.window import Batch, gather, whole_series
from physsm.models._latent.kept import Kept
from physsm.models._latent.rows import Observations
from physsm.models._latent.shapes import rounded_up
from physsm.models.phy_ssm.network import Network


class OnPanels:
    """A network whose functions of rows are called with panels."""

    def __init__(self, network: Network):
        self.network, self.plan = network, network.plan
        self.run = Kept(network)

    def batch(self, panel: Panel) -> Batch:
        """Whole series, scaled, that end together."""
        scaled, length = self.plan.scale(panel), self.length(panel)
        return gather(scaled, whole_series(panel, 0), length, 0, 1.0)

    def length(self, panel: Panel) -> int:
        """The rows of its batch."""
        return rounded_up(int(panel.lengths.max()))

    def over(self, function: Callable[..., Any], panel: Panel, *more: np.ndarray) -> Any:
        """A function of a network, the rows of many series, and further arrays."""
        batch = self.batch(panel)
        rows = (batch.last, batch.seen, batch.controls, batch.gaps)
        return self.run(function, Observations(*map(self.array, rows)), *more)

    def array(self, array: np.ndarray) -> Any:
        """For a program, which takes NumPy's arrays faster than JAX would make its own of them."""
        return np.asarray(array, self.network.dtype)

    def in_units(self, channels: Any) -> Float[np.ndarray, "*shape channels"]:
        """Scaled channels in the units of the table."""
        return self.plan.unscale(np.asarray(channels))

    def states(self, z_ext: Any) -> Float[np.ndarray, "*shape n"] | None:
        """The written states in physical units; none without physics."""
        count = len(self.plan.state_scale)
        return np.asarray(z_ext)[..., :count] * np.array(self.plan.state_scale) if count else None

    def controls_at(
        self, one: Series, times: Float[np.ndarray, " rows"]
    ) -> Float[np.ndarray, "rows controls"]:
        """Controls at times inside a series, as the unit takes them to be between two rows."""
        if self.network.config.control_hold == "start":
            return one.controls[np.searchsorted(one.times, times, side="right") - 1]
        columns = [np.interp(times, one.times, column) for column in one.controls.T]
        return np.array(columns).reshape(one.controls.shape[1], len(times)).T


def series_first(steps: Any, panel: Panel, first: int = 0) -> Float[np.ndarray, "series rows ..."]:
    """Time-major rows that end together → series first, rows that begin together; NaN after the
    last. `first` is the row of each series that is the first of `steps`.
    """
    steps = np.asarray(steps)
    rows = np.arange(panel.times.shape[1])[None, :] - first
    place = rows + len(steps) - (panel.lengths[:, None] - first)
    found = steps[np.clip(place, 0, len(steps) - 1), np.arange(len(panel))[:, None]]
    inside = (rows >= 0) & (rows < panel.lengths[:, None] - first)
    return np.where(inside[..., None], found, np.nan)
