"""Error of the acceleration along tracks."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm.metrics._kinematics import motion_columns, motion_error
from physsm.metrics._metric import Metric


def acceleration_error(
    measured: Float[np.ndarray, "windows steps 2"],
    predicted: Float[np.ndarray, "windows steps 2"],
    *,
    gap: float,
    smooth: int = 1,
) -> float:
    """Mean absolute error of the acceleration along the track, in m/s^2; NaN without a valid value.

    With positions p in m and the time step `gap` h in s, v[i] = |p[i+1] - p[i]| / h and
    a[i] = (v[i+1] - v[i]) / h, where all three points were measured. The mean is over the valid a
    of a window, then over windows, as in `ade`.

    A measured track that was interpolated linearly between sparser points has acceleration only at
    those, and too much of it there. `smooth` above 1 first replaces positions by the means of that
    many consecutive ones (an odd number centres each mean on a point), where all of them were
    measured: with as many as there are gaps between the sparser points, each jump of the speed is
    spread over the time that it took.

    A predicted NaN in one of these points makes the score NaN.
    """
    return motion_error(measured, predicted, differences=1, gap=gap, smooth=smooth)


METRIC = Metric(
    function=acceleration_error,
    description="mean absolute error of the acceleration",
    needs="motion",
    unit="m/s²",
    order=90,
    columns=motion_columns("acceleration"),
)
