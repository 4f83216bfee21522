"""Evaluation: the scores of a fitted model and the baselines on the same windows.

Scores of the context (`interp_*`, `window_*`) and of the target (`extrap_*`) are in the scale of
the windows, usually each channel's standard deviation in the training part, so that channels can
be averaged; `channel_errors` are in the units of the channels. Scores of positions (`in_*`,
`out_*`) are in m and s. The metrics declare which scores there are: see `physsm.metrics._metric`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from physsm._registry import find
from physsm._values import Panel
from physsm.benchmark.evaluation_windows import EvaluationWindows, windows_of_panel
from physsm.benchmark.predictions import TargetForecasts, forecast_targets
from physsm.benchmark.window_parts import WindowPart, context_parts, target_parts
from physsm.data.window import Part, Sizes
from physsm.metrics._metric import every_score
from physsm.metrics._slices import by_channel, by_horizon
from physsm.metrics.mae import mae
from physsm.metrics.rmse import rmse
from physsm.models._base import AbstractFitted

BASELINES = ("repeat_last", "mean", "line", "damped", "arx")

NO_UNITS: Mapping[str, str] = MappingProxyType({})

Score = dict[str, Any]  # the scores of one model by key, and its name

_MAX_CHANNELS = 32  # with scores of their own


class Evaluation(NamedTuple):
    """Scores of models on windows, in their order, and the forecasts of each that were scored."""

    windows: EvaluationWindows
    scores: list[Score]
    forecasts: Mapping[str, TargetForecasts]


def fit_baselines(
    train: Panel | Part, validation: Panel | Part, seed: int, horizon: int | None = None
) -> dict[str, AbstractFitted]:
    """Fitted baselines, which every model is compared with.

    They choose their settings and calibrate their intervals for `horizon`, by default their own.
    """
    rows = {name: find("models", name, "MODEL") for name in BASELINES}
    return {
        name: row.create(None, {"horizon": horizon}).fit(train, validation, seed=seed)
        for name, row in rows.items()
    }


def evaluate(
    model: AbstractFitted, baselines: Mapping[str, AbstractFitted], panel: Panel, sizes: Sizes
) -> Evaluation:
    """Scores of the model, then of each baseline."""
    scale = np.array(model.interface.channel_scale)
    windows = windows_of_panel(model.check(panel), sizes, scale)
    units = {} if model.system is None else model.system.units
    return score_all(beside(model, baselines), windows, units)


def beside(
    model: AbstractFitted, baselines: Mapping[str, AbstractFitted]
) -> dict[str, AbstractFitted]:
    """The model first, then the baselines except one of the same name."""
    return {model.name: model, **{k: row for k, row in baselines.items() if k != model.name}}


def score(
    model: AbstractFitted, windows: EvaluationWindows, units: Mapping[str, str] = NO_UNITS
) -> Score:
    """Scores of one model by key, for all metrics that the windows and the model allow.

    `horizon` and `channels` hold the extrapolation MAE by tenths of the horizon and by channel,
    `channel_errors` the extrapolation MAE and RMSE of each channel without a scale. `units` are the
    units of channels, where they are known.
    """
    return _score(model, forecast_targets(model, windows), windows, units)


def _score(
    model: AbstractFitted,
    forecasts: TargetForecasts,
    windows: EvaluationWindows,
    units: Mapping[str, str],
) -> Score:
    contexts, interp_windows = context_parts(model, windows)
    parts = {**contexts, **target_parts(forecasts, windows)}
    values: Score = {"model": model.name, "interp_windows": interp_windows}
    for each in every_score():
        part = parts.get(each.column.part)
        if part is not None and (value := part.value(each)) is not None:
            values[each.key] = value
    target = parts["extrap"]
    by_tenths = by_horizon(mae, target.measured, target.predicted)
    values["horizon"] = [[*steps, value] for steps, value in by_tenths]
    if len(windows.target.channels) <= _MAX_CHANNELS:
        errors = by_channel(mae, target.measured, target.predicted)
        values["channels"] = dict(zip(windows.target.channels, errors, strict=True))
        values["channel_errors"] = _channel_errors(target, windows, units)
    return values


def score_all(
    models: Mapping[str, AbstractFitted],
    windows: EvaluationWindows,
    units: Mapping[str, str] = NO_UNITS,
    stage: Callable[[str], None] = lambda _: None,
) -> Evaluation:
    """Scores of each model, under the names they are given; `stage` is told which one is next."""
    scores, forecasts = [], {}
    for name, model in models.items():
        stage(f"scoring {name}")
        forecasts[name] = forecast_targets(model, windows)
        scores.append({**_score(model, forecasts[name], windows, units), "model": name})
    return Evaluation(windows, scores, forecasts)


def _channel_errors(
    target: WindowPart, windows: EvaluationWindows, units: Mapping[str, str]
) -> dict[str, dict[str, float | str | None]]:
    """MAE and RMSE of each channel in its own unit, which is None where it is not known."""
    errors = (
        by_channel(metric, target.measured * windows.scale, target.predicted * windows.scale)
        for metric in (mae, rmse)
    )
    return {
        name: {"mae": absolute, "rmse": squared, "unit": units.get(name)}
        for name, absolute, squared in zip(windows.target.channels, *errors, strict=True)
    }
