"""Predictions of a model for evaluation windows, computed in blocks of windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from physsm._values import Panel, Query
from physsm.benchmark.evaluation_windows import EvaluationWindows
from physsm.metrics._metric import NOMINAL_COVERAGE, every_score
from physsm.models._base import AbstractFitted

_LEVELS = (np.arange(20) + 0.5) / 20  # of the quantiles that metrics are computed from
_BLOCK = 128  # windows forecast at once
_MAX_REREAD_STEPS = 5_000  # predicted one step ahead by models that reread a window for each step

Values = Float[np.ndarray, "windows steps channels"]


@dataclass(frozen=True, eq=False)
class TargetForecasts:
    """Forecasts of the targets with nominal intervals, NaN after the end of a target.

    `quantile_scores` are the scores of metrics that need quantiles, by key: the quantiles of all
    windows would be too many to hold.
    """

    mean: Values
    lower: Values
    upper: Values
    quantile_scores: dict[str, float]
    warnings: tuple[str, ...]


def forecast_targets(model: AbstractFitted, windows: EvaluationWindows) -> TargetForecasts:
    """Forecasts of all targets."""
    by_quantiles = [score for score in every_score() if score.metric.needs == "quantiles"]
    steps = windows.query.times.shape[1]
    mean, lower, upper = [], [], []
    warnings: dict[str, None] = {}  # in their order, each once
    numbers, block_scores = [], {score.key: [] for score in by_quantiles}
    for chosen, history, query in _blocks(windows):
        future = model.forecast(history, times=query, coverage=NOMINAL_COVERAGE)
        mean.append(_padded(future.mean, steps))
        lower.append(_padded(future.lower, steps))
        upper.append(_padded(future.upper, steps))
        warnings |= dict.fromkeys(future.warnings)
        measured = windows.target.values[chosen, : future.mean.shape[1]] / windows.scale
        numbers.append(int((~np.isnan(measured)).sum()))
        quantiles = np.stack([future.quantile(level) for level in _LEVELS]) / windows.scale
        for score in by_quantiles:
            block_scores[score.key].append(score.metric.function(measured, quantiles, _LEVELS))
    return TargetForecasts(
        mean=np.concatenate(mean),
        lower=np.concatenate(lower),
        upper=np.concatenate(upper),
        quantile_scores={key: _weighted(values, numbers) for key, values in block_scores.items()},
        warnings=tuple(warnings),
    )


def predict_one_step(
    model: AbstractFitted, windows: EvaluationWindows
) -> tuple[Int[np.ndarray, " chosen"], Values]:
    """Predictions one step ahead inside the contexts, and the windows they are of.

    These are all windows, unless the model rereads a window for each step and the steps are too
    many: then they are evenly spaced windows.
    """
    number, steps = windows.history.times.shape
    most = max(_MAX_REREAD_STEPS // steps, 1) if model.predicts_trajectory else number
    chosen = np.unique(np.linspace(0, number - 1, min(most, number)).astype(np.int64))
    parts = [
        model.one_step(windows.history.select(chosen[i : i + _BLOCK]), coverage=None).mean
        for i in range(0, len(chosen), _BLOCK)
    ]
    return chosen, np.concatenate([_padded(part, steps) for part in parts])


def reconstruct_contexts(model: AbstractFitted, windows: EvaluationWindows) -> Values:
    """The contexts as a model reconstructs them after it has seen them as a whole."""
    steps = windows.history.times.shape[1]
    parts = [
        _padded(model.interpolate(history, coverage=None).mean, steps)
        for _, history, _ in _blocks(windows)
    ]
    return np.concatenate(parts)


def _blocks(windows: EvaluationWindows) -> Iterator[tuple[np.ndarray, Panel, Query]]:
    """Windows in blocks, so that the memory of a model does not grow with their number."""
    for first in range(0, len(windows.history), _BLOCK):
        chosen = np.arange(first, min(first + _BLOCK, len(windows.history)))
        steps = int(windows.query.lengths[chosen].max())
        query = Query(
            windows.query.times[chosen, :steps],
            windows.query.controls[chosen, :steps],
            windows.query.lengths[chosen],
        )
        yield chosen, windows.history.select(chosen), query


def _padded(part: np.ndarray, steps: int) -> np.ndarray:
    """The part with NaN after the last step of its block."""
    missing = ((0, 0), (0, steps - part.shape[1]), (0, 0))
    return np.pad(part, missing, constant_values=np.nan)


def _weighted(values: list[float], numbers: list[int]) -> float:
    """Mean over blocks, weighted by their numbers of measured values; NaN if none was measured."""
    known = [(value, number) for value, number in zip(values, numbers, strict=True) if number]
    mean = sum(value * number for value, number in known) / max(sum(numbers), 1)
    return mean if known else float("nan")
