"""Times inside a history, and the linear interpolation of models that have no other."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from physsm._errors import DataError
from physsm._values import Panel
from physsm.data.times import as_numbers


def inside_times(panel: Panel, times: Any) -> Float[np.ndarray, "series steps"]:
    """Times inside each series' history, checked; its own times if none are given."""
    if times is None:
        return panel.times
    wanted = as_numbers(times, panel.layout)
    if wanted.ndim not in (1, 2) or (wanted.ndim == 2 and len(wanted) != len(panel)):
        raise DataError(
            f"the times have the shape {wanted.shape}; they must be (steps,), or "
            f"({len(panel)}, steps) for the series of the history"
        )
    wanted = np.broadcast_to(wanted, (len(panel), wanted.shape[-1])).copy()
    first, last = panel.times[:, :1], panel.times[np.arange(len(panel)), panel.lengths - 1][:, None]
    outside = ~((first <= wanted) & (wanted <= last))
    if outside.any():
        series, step = np.argwhere(outside)[0]
        raise DataError(
            f"the time {wanted[series, step]:g} lies outside the history of series "
            f"{panel.ids[series]}, {first[series, 0]:g} to {last[series, 0]:g}",
            hint="interpolate inside the history, and forecast after it",
        )
    return wanted


def linear_interpolation(
    panel: Panel, wanted: Float[np.ndarray, "series steps"]
) -> Float[np.ndarray, "series steps channels"]:
    """Channels at times inside each series, interpolated linearly between its measurements; NaN for
    a channel without measurements.
    """
    values = np.full((*wanted.shape, len(panel.channels)), np.nan)
    for i, one in enumerate(panel):
        for channel in range(len(panel.channels)):
            seen = ~np.isnan(one.values[:, channel])
            if seen.any():
                values[i, :, channel] = np.interp(
                    wanted[i], one.times[seen], one.values[seen, channel]
                )
    return values
