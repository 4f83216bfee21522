"""Intervals that hold: a model's own spread, stretched until it covers what validation showed.

This is split conformal prediction with scaled residuals. For each channel the distances
|measured - mean|/spread on the validation part are kept as quantiles; an interval with a wanted
coverage is the mean plus and minus that quantile times the spread.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from jaxtyping import Float

_SMALLEST = 1e-9  # of the channel's scale: an interval must not have the width zero
_FINE_LEADS = 8  # in median gaps; longer leads share bins that grow by an eighth
_ENOUGH = 5  # errors in a bin
LEVELS = np.linspace(0, 1, 201)
_GAUSSIAN_LAST = 4.0  # the last quantile of |N(0, 1)| is infinite


@dataclass(frozen=True, eq=False)
class Calibration:
    """Quantiles of the scaled distances at `LEVELS`, one row per channel."""

    quantiles: Float[np.ndarray, "channels levels"]

    def factor(self, coverage: float) -> Float[np.ndarray, " channels"]:
        """What the spread of each channel is multiplied by."""
        return np.array([np.interp(coverage, LEVELS, row) for row in self.quantiles])

    def to_json(self) -> Any:
        """Plain lists."""
        return self.quantiles.tolist()


def uncalibrated(channels: int) -> Calibration:
    """The factors of a Gaussian."""
    inner = [NormalDist().inv_cdf((1 + level) / 2) for level in LEVELS[:-1]]
    row = np.minimum(np.array([*inner, _GAUSSIAN_LAST]), _GAUSSIAN_LAST)
    return Calibration(np.tile(row, (channels, 1)))


def calibrate(
    measured: Float[np.ndarray, "series steps channels"],
    mean: Float[np.ndarray, "series steps channels"],
    spread: Float[np.ndarray, "series steps channels"],
) -> Calibration:
    """From forecasts of the validation part; cells that are NaN in `measured` do not count."""
    plain = uncalibrated(measured.shape[-1])
    rows = []
    for channel, otherwise in enumerate(plain.quantiles):
        x, expected, reach = (part[..., channel] for part in (measured, mean, spread))
        seen = np.isfinite(x) & np.isfinite(expected)
        distance = np.abs(x - expected)[seen] / reach[seen]
        if distance.size < 20:
            rows.append(otherwise)
            continue
        # One more than the number of samples: the quantile that a new measurement stays below.
        n = distance.size
        levels = np.minimum(LEVELS * (n + 1) / n, 1.0)
        rows.append(np.quantile(distance, levels))
    return Calibration(np.array(rows))


@dataclass(frozen=True, eq=False)
class SpreadByLead:
    """Root mean square errors at some leads, in units of the channel's scale; never decreasing.

    Between these leads it is interpolated, before the first it is as there, and beyond the last
    it grows with the square root of the lead, as the error of a random walk does.
    """

    leads: Float[np.ndarray, " bins"]
    errors: Float[np.ndarray, "bins channels"]

    def at(
        self, lead: Float[np.ndarray, "origins steps channels"]
    ) -> Float[np.ndarray, "origins steps channels"]:
        """At given leads; for NaN (a channel that was never measured) at least the scale."""
        unknown = np.isnan(lead)
        known = np.where(unknown, self.leads[-1], lead)
        inside = np.stack(
            [np.interp(known[..., k], self.leads, row) for k, row in enumerate(self.errors.T)], -1
        )
        grown = inside * np.sqrt(np.maximum(known / self.leads[-1], 1))
        return np.where(unknown, np.maximum(grown, 1), grown)


def spread_by_lead(
    error: Float[np.ndarray, "origins steps channels"],
    lead: Float[np.ndarray, "origins steps channels"],
    gap: float,
) -> SpreadByLead:
    """From errors (NaN: not measured) in units of the scale. Leads are binned in median gaps."""
    seen = ~np.isnan(error) & ~np.isnan(lead)
    place = _bins(np.where(seen, lead, gap) / gap)
    count = int(place.max(initial=0)) + 1
    everywhere = np.bincount(place[seen], minlength=count)
    centres = np.bincount(place[seen], lead[seen], minlength=count) / np.maximum(everywhere, 1)
    used = everywhere > 0
    if not used.any():
        return SpreadByLead(np.array([gap]), np.ones((1, error.shape[-1])))
    columns = []
    for k in range(error.shape[-1]):
        mine = seen[..., k]
        number = np.bincount(place[mine, k], minlength=count)
        square = np.bincount(place[mine, k], error[mine, k] ** 2, minlength=count)
        enough = number >= np.clip(number.max(), 1, _ENOUGH)
        if not enough.any():
            columns.append(np.ones(int(used.sum())))
            continue
        root = np.sqrt(square[enough] / number[enough])
        filled = np.interp(centres[used], centres[enough], root)
        columns.append(np.maximum.accumulate(np.maximum(filled, _SMALLEST)))
    return SpreadByLead(centres[used], np.stack(columns, -1))


def _bins(gaps_ahead: np.ndarray) -> np.ndarray:
    """The bin of each lead: one per gap at first, then in steps of an eighth."""
    fine = np.rint(gaps_ahead)
    coarse = np.log(np.maximum(gaps_ahead, _FINE_LEADS) / _FINE_LEADS) / np.log(1.125)
    place = np.where(fine <= _FINE_LEADS, fine, _FINE_LEADS + 1 + np.floor(coarse))
    return place.astype(np.int64)
