"""Prediction intervals: the spread of a model, calibrated on the validation part.

This is split conformal prediction with scaled residuals. A calibration holds, for each channel,
quantiles of the distances |measured - mean|/spread on the validation part. An interval with a
given coverage is the mean plus and minus that quantile times the spread.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from jaxtyping import Float

_SMALLEST = 1e-9  # spread in the channel's scale: an interval must not have the width zero
_FINE_LEADS = 8  # in median gaps; longer lead times share bins that grow by an eighth
_ENOUGH = 5  # errors in a bin
_ENOUGH_TO_CALIBRATE = 20  # distances
LEVELS = np.linspace(0, 1, 201)
_GAUSSIAN_LAST = 4.0  # the last quantile of |N(0, 1)| is infinite


@dataclass(frozen=True, eq=False)
class Calibration:
    """Quantiles of the scaled distances at `LEVELS`, for each channel."""

    quantiles: Float[np.ndarray, "channels levels"]

    def factor(self, coverage: float) -> Float[np.ndarray, " channels"]:
        """Factor of each channel's spread: half the width of an interval with this coverage."""
        return np.array([np.interp(coverage, LEVELS, own) for own in self.quantiles])

    def to_json(self) -> Any:
        """Plain lists."""
        return self.quantiles.tolist()


def uncalibrated(channels: int) -> Calibration:
    """The calibration of a Gaussian."""
    inner = [NormalDist().inv_cdf((1 + level) / 2) for level in LEVELS[:-1]]
    quantiles = np.minimum(np.array([*inner, _GAUSSIAN_LAST]), _GAUSSIAN_LAST)
    return Calibration(np.tile(quantiles, (channels, 1)))


def calibrate(
    measured: Float[np.ndarray, "series steps channels"],
    mean: Float[np.ndarray, "series steps channels"],
    spread: Float[np.ndarray, "series steps channels"],
) -> Calibration:
    """Calibration by forecasts of the validation part; NaN in `measured` does not count.

    A channel with few distances has the quantiles of a Gaussian.
    """
    gaussian = uncalibrated(measured.shape[-1])
    quantiles = []
    for channel, fallback in enumerate(gaussian.quantiles):
        x, expected, std = (part[..., channel] for part in (measured, mean, spread))
        seen = np.isfinite(x) & np.isfinite(expected)
        distance = np.abs(x - expected)[seen] / std[seen]
        if distance.size < _ENOUGH_TO_CALIBRATE:
            quantiles.append(fallback)
            continue
        # The factor (n + 1)/n makes the coverage that of a new measurement.
        n = distance.size
        levels = np.minimum(LEVELS * (n + 1) / n, 1.0)
        quantiles.append(np.quantile(distance, levels))
    return Calibration(np.array(quantiles))


@dataclass(frozen=True, eq=False)
class SpreadByLead:
    """Root mean square errors at some lead times, in units of the channel's scale, not decreasing.

    Between these lead times the spread is interpolated, before the first it is constant, and after
    the last it grows with the square root of the lead time, like the error of a random walk.
    """

    leads: Float[np.ndarray, " bins"]
    errors: Float[np.ndarray, "bins channels"]

    def at(
        self, lead: Float[np.ndarray, "origins steps channels"]
    ) -> Float[np.ndarray, "origins steps channels"]:
        """Spread at lead times; at least the scale at NaN (a channel without measurements)."""
        is_unmeasured = np.isnan(lead)
        known = np.where(is_unmeasured, self.leads[-1], lead)
        inside = np.stack(
            [np.interp(known[..., k], self.leads, one) for k, one in enumerate(self.errors.T)], -1
        )
        grown = inside * np.sqrt(np.maximum(known / self.leads[-1], 1))
        return np.where(is_unmeasured, np.maximum(grown, 1), grown)


def spread_by_lead(
    error: Float[np.ndarray, "origins steps channels"],
    lead: Float[np.ndarray, "origins steps channels"],
    gap: float,
) -> SpreadByLead:
    """Spread from errors (NaN: not measured) in units of the scale.

    Lead times are binned; `gap` is the median gap.
    """
    seen = ~np.isnan(error) & ~np.isnan(lead)
    bins = _bins(np.where(seen, lead, gap) / gap)
    count = int(bins.max(initial=0)) + 1
    total = np.bincount(bins[seen], minlength=count)
    centres = np.bincount(bins[seen], lead[seen], minlength=count) / np.maximum(total, 1)
    used = total > 0
    if not used.any():
        return SpreadByLead(np.array([gap]), np.ones((1, error.shape[-1])))
    columns = []
    for k in range(error.shape[-1]):
        own = seen[..., k]
        number = np.bincount(bins[own, k], minlength=count)
        square = np.bincount(bins[own, k], error[own, k] ** 2, minlength=count)
        enough = number >= np.clip(number.max(), 1, _ENOUGH)
        if not enough.any():
            columns.append(np.ones(int(used.sum())))
            continue
        root = np.sqrt(square[enough] / number[enough])
        filled = np.interp(centres[used], centres[enough], root)
        columns.append(np.maximum.accumulate(np.maximum(filled, _SMALLEST)))
    return SpreadByLead(centres[used], np.stack(columns, -1))


def _bins(lead: np.ndarray) -> np.ndarray:
    """The bin of each lead time in gaps: a bin per gap at first, then bins growing by an eighth."""
    fine = np.rint(lead)
    coarse = np.log(np.maximum(lead, _FINE_LEADS) / _FINE_LEADS) / np.log(1.125)
    bins = np.where(fine <= _FINE_LEADS, fine, _FINE_LEADS + 1 + np.floor(coarse))
    return bins.astype(np.int64)
