"""Parts of evaluation windows, with measurements and predictions as metrics need them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from physsm.benchmark.evaluation_windows import EvaluationWindows
from physsm.benchmark.predictions import (
    TargetForecasts,
    Values,
    predict_one_step,
    reconstruct_contexts,
)
from physsm.metrics._metric import Part, Score
from physsm.models._base import AbstractFitted

_SMOOTH = 5  # points between two keyframes of a recorded track, which are on one line


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowPart:
    """Measurements and predictions of one part of the windows, in the units of its metrics.

    `debiased` is None where the data set knows no bias. Only the target has `lower`, `upper` and
    `quantile_scores`; only positions have a `gap`, the time step in s.
    """

    measured: Values
    predicted: Values
    debiased: Values | None = None
    lower: Values | None = None
    upper: Values | None = None
    quantile_scores: Mapping[str, float] = field(default_factory=dict)
    gap: float | None = None

    def value(self, score: Score) -> float | None:
        """The score on this part; None where the part lacks what its variant needs."""
        function, variant = score.metric.function, score.column.variant
        if score.metric.needs == "quantiles":
            return self.quantile_scores[score.key]
        if score.metric.needs == "interval":
            return function(self.measured, self.lower, self.upper)
        if score.metric.needs == "motion":
            smooth = _SMOOTH if variant == "smooth" else 1
            return function(self.measured, self.predicted, gap=self.gap, smooth=smooth)
        if variant == "median":
            return self._median(score)
        if variant == "debiased":
            return None if self.debiased is None else function(self.measured, self.debiased)
        return function(self.measured, self.predicted)

    def _median(self, score: Score) -> float:
        """Median of the windows' own scores, which a few diverging forecasts do not dominate."""
        each = (slice(i, i + 1) for i in range(len(self.measured)))
        values = [score.metric.function(self.measured[i], self.predicted[i]) for i in each]
        known = [value for value in values if np.isfinite(value)]
        return float(np.median(known)) if known else float("nan")


def target_parts(forecasts: TargetForecasts, windows: EvaluationWindows) -> dict[Part, WindowPart]:
    """The target after the context, and where channels are positions, their tracks."""
    unit = windows.scale
    target = WindowPart(
        measured=windows.target.values / unit,
        predicted=forecasts.mean / unit,
        debiased=_debiased(windows, forecasts.mean),
        lower=forecasts.lower / unit,
        upper=forecasts.upper / unit,
        quantile_scores=forecasts.quantile_scores,
    )
    parts: dict[Part, WindowPart] = {"extrap": target}
    for pair in windows.tracks:
        parts |= _track_parts(windows, pair, forecasts.mean)
    return parts


def context_parts(
    model: AbstractFitted, windows: EvaluationWindows
) -> tuple[dict[Part, WindowPart], int]:
    """The context one step ahead, and as a whole for models that see it so; and the number of
    windows predicted one step ahead.
    """
    chosen, predicted = predict_one_step(model, windows)
    measured = np.array(windows.reference.values[chosen])
    measured[:, 0] = np.nan  # nothing was measured before the first step
    parts: dict[Part, WindowPart] = {"interp": _context_part(windows, measured, predicted)}
    if model.predicts_trajectory:
        whole = reconstruct_contexts(model, windows)
        parts["window"] = _context_part(windows, windows.reference.values, whole)
    return parts, len(chosen)


def _context_part(windows: EvaluationWindows, measured: Values, predicted: Values) -> WindowPart:
    return WindowPart(
        measured=measured / windows.scale,
        predicted=predicted / windows.scale,
        debiased=_debiased(windows, predicted),
    )


def _debiased(windows: EvaluationWindows, predicted: Values) -> Values | None:
    return None if windows.debias is None else windows.debias(predicted) / windows.scale


def _track_parts(
    windows: EvaluationWindows, pair: tuple[str, str], mean: Values
) -> dict[Part, WindowPart]:
    """Positions in m: up to the longest lead time of the training (`in`), and after it (`out`)."""
    columns = [windows.target.channels.index(name) for name in pair]
    measured, predicted = windows.target.values[..., columns], mean[..., columns]
    reach = windows.in_domain or measured.shape[1]
    ranges: dict[Part, slice] = {"in": slice(0, reach), "out": slice(reach, None)}
    return {
        part: WindowPart(
            measured=measured[:, steps],
            predicted=predicted[:, steps],
            gap=windows.target.median_gap,
        )
        for part, steps in ranges.items()
        if measured[:, steps].shape[1]
    }
