"""Mean absolute error."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm.metrics._kinds import Kind
from physsm.metrics._means import mean_over_samples


def mean_absolute_error(
    measured: Float[np.ndarray, "*cells"], predicted: Float[np.ndarray, "*cells"]
) -> float:
    """The mean of |measured - predicted| over the cells that were measured; NaN if none was.

    Both in the same units: scale them first where channels have different ones. A predicted NaN
    where something was measured makes the score NaN: a model cannot leave out what is hard.
    """
    return mean_over_samples(np.abs(measured - predicted)[~np.isnan(measured)])


METRIC = mean_absolute_error
KIND: Kind = "point"
