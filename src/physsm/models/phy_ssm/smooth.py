"""States given all measurements of a series, those after them included.

The filter goes forwards and knows at each row what came before. From the last row backwards, what
came after is added (Rauch, Tung and Striebel, 1965). It is done in double precision: it divides by
covariances that the filter has made small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from physsm._values import Panel, Series
from physsm.models.phy_ssm.values import Beliefs

_RIDGE = 1e-12  # relative: keeps the covariance of a component without noise invertible


class Longer(NamedTuple):
    """A panel with further rows, without measurements: where the wanted times are in it, and which
    rows of each series are its own.
    """

    panel: Panel
    place: Int[np.ndarray, "series steps"]
    own: list[Bool[np.ndarray, " rows"]]

    def own_from_right(self, length: int) -> Bool[np.ndarray, "length series"]:
        """The last of these, time-major, for series that end together."""
        found = np.zeros((length, len(self.own)), bool)
        for series, own in enumerate(self.own):
            found[length - len(own) :, series] = own
        return found


def smooth(
    beliefs: Beliefs,
) -> tuple[Float[np.ndarray, "steps series q"], Float[np.ndarray, "steps series q q"]]:
    """Means and covariances of states and series terms at all rows."""
    mean, covariance, predicted, slope, noise = (np.array(part, float) for part in beliefs)
    q = mean.shape[-1]
    for i in range(len(mean) - 2, -1, -1):
        step = slope[i + 1]
        cross = step @ covariance[i]
        prior = cross @ step.swapaxes(-1, -2) + noise[i + 1][..., None] * np.eye(q)
        size = np.trace(prior, axis1=-2, axis2=-1)[..., None, None]
        gain = np.linalg.solve(prior + _RIDGE * size * np.eye(q), cross).swapaxes(-1, -2)
        surprise = mean[i + 1] - predicted[i + 1]
        mean[i] += (gain @ surprise[..., None])[..., 0]
        covariance[i] += gain @ (covariance[i + 1] - prior) @ gain.swapaxes(-1, -2)
    return mean, covariance


def with_rows_at(
    panel: Panel,
    wanted: Float[np.ndarray, "series steps"],
    controls: Callable[[Series, Float[np.ndarray, " rows"]], Float[np.ndarray, "rows controls"]],
) -> Longer:
    """The panel with rows at all wanted times too. `controls` gives those of a series at any
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
