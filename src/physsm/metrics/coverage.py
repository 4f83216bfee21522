"""Coverage of intervals."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm.metrics._kinds import Kind
from physsm.metrics._means import mean_over_samples


def interval_coverage(
    measured: Float[np.ndarray, "*cells"],
    lower: Float[np.ndarray, "*cells"],
    upper: Float[np.ndarray, "*cells"],
) -> float:
    """The share of the measured cells with lower <= measured <= upper; NaN if none was measured.

    Between 0 and 1, and best where it equals what the intervals promise. A NaN bound of a measured
    cell makes it NaN; an infinite bound holds everything on its side.
    """
    bounded = ~(np.isnan(lower) | np.isnan(upper))
    inside = np.where(bounded, (lower <= measured) & (measured <= upper), np.nan)
    return mean_over_samples(inside[~np.isnan(measured)])


METRIC = interval_coverage
KIND: Kind = "interval"
