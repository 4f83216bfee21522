"""Speed of a track and its differences, for the errors of speed, acceleration and jerk.

With positions p[i] and one gap h between all steps:

    speed          v[i] = |p[i+1] - p[i]| / h
    acceleration   a[i] = (v[i+1] - v[i]) / h
    jerk           j[i] = (a[i+1] - a[i]) / h

Acceleration and jerk are those along the track: a turn at constant speed has none.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm._errors import ConfigError
from physsm.metrics._means import mean_over_windows


def motion_error(
    measured: Float[np.ndarray, "windows steps 2"],
    predicted: Float[np.ndarray, "windows steps 2"],
    *,
    differences: int,
    gap: float,
    smooth: int,
) -> float:
    """The mean absolute error of the speed after `differences` differences: 0, 1 or 2.

    First the mean over each window's valid values, then over windows. A value is valid where all
    the points it is made of were measured in both coordinates. Units: m/s, m/s^2 or m/s^3.
    """
    if not (np.isfinite(gap) and gap > 0):
        raise ConfigError(f"the gap must be a positive number of seconds, not {gap!r}")
    if smooth < 1:
        raise ConfigError(f"the points to smooth over must be at least 1, not {smooth!r}")
    # A forecast that grew beyond all bounds has infinite points: its score is NaN, silently.
    with np.errstate(invalid="ignore"):
        expected = _motion(measured, differences, gap, smooth)
        errors = np.abs(_motion(predicted, differences, gap, smooth) - expected)
    return mean_over_windows(errors, ~np.isnan(expected))


def _motion(
    positions: Float[np.ndarray, "windows steps 2"], differences: int, gap: float, smooth: int
) -> Float[np.ndarray, "windows values"]:
    """NaN wherever a point that takes part is NaN; empty where there are too few steps."""
    speed = np.linalg.norm(np.diff(_smoothed(positions, smooth), axis=1), axis=-1) / gap
    return np.diff(speed, n=differences, axis=1) / gap**differences


def _smoothed(
    positions: Float[np.ndarray, "windows steps 2"], points: int
) -> Float[np.ndarray, "windows values 2"]:
    """Means of `points` consecutive positions, for each place where that many fit."""
    if positions.shape[1] < points:
        return positions[:, :0]
    return np.lib.stride_tricks.sliding_window_view(positions, points, axis=1).mean(axis=-1)
