"""Panels with further time steps, at which nothing was measured: for interpolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from physsm._values import Panel, Series


class Longer(NamedTuple):
    """A panel with further time steps without measurements: the places of the wanted times in it,
    and which steps of each series are its own.
    """

    panel: Panel
    place: Int[np.ndarray, "series steps"]
    own: list[Bool[np.ndarray, " steps"]]

    def own_from_right(self, length: int) -> Bool[np.ndarray, "length series"]:
        """`own`, time-major, for series that end together."""
        aligned = np.zeros((length, len(self.own)), bool)
        for series, own in enumerate(self.own):
            aligned[length - len(own) :, series] = own
        return aligned


def with_steps_at(
    panel: Panel,
    wanted: Float[np.ndarray, "series steps"],
    controls: Callable[[Series, np.ndarray], Any],
) -> Longer:
    """The panel with time steps at all wanted times too; `controls` gives those of a series at any
    times.
    """
    longer, places, own = [], [], []
    for one, at in zip(panel, wanted, strict=True):
        times = np.union1d(one.times, at)
        values = np.full((len(times), len(panel.channels)), np.nan)
        values[np.searchsorted(times, one.times)] = one.values
        longer.append(Series(one.id, times, values, controls(one, times)))
        places.append(np.searchsorted(times, at))
        own.append(np.isin(times, one.times))
    whole = Panel.from_series(longer, panel.channels, panel.control_names)
    return Longer(whole, np.stack(places), own)
