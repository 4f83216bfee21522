"""Scores: a fitted model and the classical rows on the same windows.

`interp_*` is one step ahead inside the context, `extrap_*` the target after it. `window_*` is how
far a model that follows one path is from the context, which it has seen as a whole: the paper's
interpolation for such models. Errors are in the trial's units, usually each channel's standard
deviation in the training part, so that channels can be averaged. Where channels are positions,
their errors are in m and s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from physsm._registry import find
from physsm._values import Forecast, Panel, Query
from physsm.benchmark.summary import WANTED_COVERAGE
from physsm.benchmark.trial import Trial, panel_trial
from physsm.data.window import Sizes
from physsm.metrics import (
    acceleration_error,
    ade,
    coverage,
    crps,
    fde,
    jerk_error,
    mae,
    mse,
    rmse,
    speed_error,
)
from physsm.metrics._slices import by_channel, by_horizon
from physsm.models._base import AbstractFitted

CLASSICAL = ("repeat_last", "mean", "line", "damped", "arx")

Score = dict[str, Any]

_LEVELS = (np.arange(20) + 0.5) / 20  # of the quantiles behind the CRPS
_BLOCK = 128  # windows forecast at once
_ROWS_READ_AGAIN = 5_000  # predicted one step ahead, by models that read a window for each of them
_SMOOTH = 5  # points: those of a line between two keyframes of a recorded track


def fit_classical(
    train: Panel, validation: Panel, seed: int, horizon: int | None = None
) -> dict[str, AbstractFitted]:
    """The rows that stand beside every model; `horizon` is what their choices and intervals are
    for, by default their own.
    """
    rows = {name: find("models", name, "MODEL") for name in CLASSICAL}
    return {
        name: row.create(None, {"horizon": horizon}).fit(train, validation, seed=seed)
        for name, row in rows.items()
    }


def evaluate(
    model: AbstractFitted, classical: Mapping[str, AbstractFitted], panel: Panel, sizes: Sizes
) -> list[Score]:
    """One row for the model and one for each classical forecaster."""
    unit = np.array(model.interface.channel_scale)
    trial = panel_trial(model.check(panel), sizes, unit)
    return score_all(beside(model, classical), trial)


def beside(
    model: AbstractFitted, classical: Mapping[str, AbstractFitted]
) -> dict[str, AbstractFitted]:
    """The model first, then the classical rows; one of the same name is left out."""
    return {model.name: model, **{k: row for k, row in classical.items() if k != model.name}}


def score(model: AbstractFitted, trial: Trial) -> Score:
    """All metrics of one model. `channels` and `horizon` hold its extrapolation MAE by channel, and
    by tenths of the horizon.
    """
    future, lower, upper, crps_value = _predictions(model, trial)
    chosen, inside = _one_step_ahead(model, trial)
    unit, target = trial.unit, trial.target.values
    measured = np.array(trial.inside.values[chosen])
    measured[:, 0] = np.nan  # nothing is before the first row
    scaled = target / unit, future / unit
    found: Score = {
        "model": model.name,
        "interp_windows": len(chosen),
        "interp_mae": mae.METRIC(measured / unit, inside / unit),
        "interp_mse": mse.METRIC(measured / unit, inside / unit),
        "interp_rmse": rmse.METRIC(measured / unit, inside / unit),
        "extrap_mae": mae.METRIC(*scaled),
        "extrap_mse": mse.METRIC(*scaled),
        "extrap_rmse": rmse.METRIC(*scaled),
        "extrap_mae_median": _median_over_windows(*scaled),
        "extrap_crps": crps_value,
        "coverage": coverage.METRIC(target, lower, upper),
        "horizon": [[*steps, value] for steps, value in by_horizon(mae.METRIC, *scaled)],
    }
    if len(trial.target.channels) <= 32:
        errors = by_channel(mae.METRIC, *scaled)
        found["channels"] = dict(zip(trial.target.channels, errors, strict=True))
    if trial.debias is not None:
        found["interp_mae_debiased"] = mae.METRIC(measured / unit, trial.debias(inside) / unit)
        found["extrap_mae_debiased"] = mae.METRIC(scaled[0], trial.debias(future) / unit)
        found["extrap_mse_debiased"] = mse.METRIC(scaled[0], trial.debias(future) / unit)
    if model.follows_path:
        seen = _inside_windows(model, trial)
        found["window_mae"] = mae.METRIC(trial.inside.values / unit, seen / unit)
        found["window_mse"] = mse.METRIC(trial.inside.values / unit, seen / unit)
    for pair in trial.tracks:
        found |= _track_scores(trial, pair, future)
    return found


def score_all(models: Mapping[str, AbstractFitted], trial: Trial) -> list[Score]:
    """One row for each model, by the names they are given."""
    return [{**score(model, trial), "model": name} for name, model in models.items()]


def _predictions(
    model: AbstractFitted, trial: Trial
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """The future, the limits of its interval, and the CRPS of its quantiles, which are too many to
    be kept for all windows.
    """
    means, lower, upper = [], [], []
    scores, weights = [], []
    for chosen, history, query in _blocks(trial):
        future = model.forecast(history, times=query, coverage=WANTED_COVERAGE)
        means.append(_padded(future.mean, trial))
        lower.append(_padded(future.lower, trial))
        upper.append(_padded(future.upper, trial))
        measured = trial.target.values[chosen, : future.mean.shape[1]] / trial.unit
        weights.append(int((~np.isnan(measured)).sum()))
        scores.append(crps.METRIC(measured, _quantiles(future) / trial.unit, _LEVELS))
    known = [(score, weight) for score, weight in zip(scores, weights, strict=True) if weight]
    mean = sum(score * weight for score, weight in known) / max(sum(weights), 1)
    future, low, high = (np.concatenate(part) for part in (means, lower, upper))
    return future, low, high, mean if known else float("nan")


def _one_step_ahead(model: AbstractFitted, trial: Trial) -> tuple[np.ndarray, np.ndarray]:
    """Each row of windows from those before it, and which windows these are: all, unless the model
    reads a window for each row and these are very many. Then they are evenly chosen.
    """
    number, rows = trial.history.times.shape
    most = max(_ROWS_READ_AGAIN // rows, 1) if model.follows_path else number
    chosen = np.unique(np.linspace(0, number - 1, min(most, number)).astype(np.int64))
    parts = [
        model.one_step(trial.history.select(chosen[i : i + _BLOCK]), coverage=None).mean
        for i in range(0, len(chosen), _BLOCK)
    ]
    return chosen, np.concatenate([_lengthened(part, rows) for part in parts])


def _inside_windows(model: AbstractFitted, trial: Trial) -> np.ndarray:
    """What a model makes of windows that it has seen as a whole."""
    rows = trial.history.times.shape[1]
    parts = [
        _lengthened(model.interpolate(history, coverage=None).mean, rows)
        for _, history, _ in _blocks(trial)
    ]
    return np.concatenate(parts)


def _blocks(trial: Trial) -> Iterator[tuple[np.ndarray, Panel, Query]]:
    """Windows in blocks: what a model needs for them does not grow with their number."""
    for first in range(0, len(trial.history), _BLOCK):
        chosen = np.arange(first, min(first + _BLOCK, len(trial.history)))
        steps = int(trial.query.lengths[chosen].max())
        query = Query(
            trial.query.times[chosen, :steps],
            trial.query.controls[chosen, :steps],
            trial.query.lengths[chosen],
        )
        yield chosen, trial.history.select(chosen), query


def _quantiles(future: Forecast) -> Float[np.ndarray, "levels series steps channels"]:
    return np.stack([future.quantile(level) for level in _LEVELS])


def _padded(part: np.ndarray, trial: Trial) -> np.ndarray:
    return _lengthened(part, trial.query.times.shape[1])


def _lengthened(part: np.ndarray, steps: int) -> np.ndarray:
    """NaN after the last step of a block."""
    missing = ((0, 0), (0, steps - part.shape[1]), (0, 0))
    return np.pad(part, missing, constant_values=np.nan)


def _median_over_windows(measured: np.ndarray, predicted: np.ndarray) -> float:
    """The median of the windows' own errors, which a few that run away do not decide."""
    errors = [mae.METRIC(*pair) for pair in zip(measured, predicted, strict=True)]
    known = [error for error in errors if np.isfinite(error)]
    return float(np.median(known)) if known else float("nan")


def _track_scores(trial: Trial, pair: tuple[str, str], future: np.ndarray) -> Score:
    """Displacements and motions of positions: up to the row that models were trained to reach
    (`in_`), and after it (`out_`).
    """
    columns = [trial.target.channels.index(name) for name in pair]
    measured, predicted = trial.target.values[..., columns], future[..., columns]
    gap, reach = trial.target.median_gap, trial.in_domain or measured.shape[1]
    motions: dict[str, Callable[..., float]] = {
        "speed": speed_error.METRIC,
        "acceleration": acceleration_error.METRIC,
        "jerk": jerk_error.METRIC,
    }
    found: Score = {}
    for name, rows in (("in", slice(0, reach)), ("out", slice(reach, None))):
        there = measured[:, rows], predicted[:, rows]
        if there[0].shape[1]:
            found[f"{name}_ade"], found[f"{name}_fde"] = ade.METRIC(*there), fde.METRIC(*there)
            for motion, metric in motions.items():
                found[f"{name}_{motion}"] = metric(*there, gap=gap)
                found[f"{name}_{motion}_smooth"] = metric(*there, gap=gap, smooth=_SMOOTH)
    return found
