"""What each kind of metric is called with; every file of metrics says its own in `KIND`."""

from __future__ import annotations

from typing import Literal

# point         METRIC(measured, predicted): arrays of one shape, any
# track         METRIC(measured, predicted): positions (windows, steps, 2) in m
# motion        METRIC(measured, predicted, gap=..., smooth=...): the same, and the gap in s
# interval      METRIC(measured, lower, upper): arrays of one shape, any
# distribution  METRIC(measured, quantiles, levels): quantiles (levels, ...), the rest as measured
Kind = Literal["point", "track", "motion", "interval", "distribution"]
