"""Scores: a fitted model and the classical rows on the same windows of one panel.

`interp_*` is one step ahead inside the context, `extrap_*` the target after it. Errors are in units
of each channel's standard deviation in the training part, so that channels can be averaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from physsm._errors import DataError
from physsm._registry import find
from physsm._values import Panel, Query
from physsm.data.window import Sizes, cut_windows, windows
from physsm.metrics import mae, mse
from physsm.models._base import AbstractFitted

CLASSICAL = ("repeat_last", "line", "arx")

Score = dict[str, Any]


def fit_classical(train: Panel, validation: Panel, seed: int) -> dict[str, AbstractFitted]:
    """The rows that stand beside every model."""
    return {
        name: find("models", name, "MODEL").create(None, {}).fit(train, validation, seed=seed)
        for name in CLASSICAL
    }


def evaluation_windows(panel: Panel, sizes: Sizes) -> tuple[Panel, Query, Panel]:
    """Histories, queries and targets; targets of one series do not overlap."""
    chosen = windows(panel, sizes.context, sizes.horizon, sizes.horizon)
    if not chosen.number:
        raise DataError(
            f"no series is long enough to score: a target of {sizes.horizon} rows and two rows "
            f"before it are needed, and the longest has {int(panel.lengths.max(initial=0))}"
        )
    return cut_windows(panel, chosen)


def score(
    model: AbstractFitted,
    parts: tuple[Panel, Query, Panel],
    scale: tuple[float, ...],
    coverage: float = 0.9,
) -> Score:
    """The errors of one model, and the share of targets inside its intervals."""
    history, query, target = parts
    unit = np.array(scale)
    inside = model.one_step(history, coverage=None).mean / unit
    measured = np.array(history.values)
    measured[:, 0] = np.nan  # nothing is before the first row
    future = model.forecast(history, times=query, coverage=coverage)
    covered = (target.values >= future.lower) & (target.values <= future.upper)
    is_measured = ~np.isnan(target.values)
    return {
        "model": model.name,
        "interp_mae": mae.METRIC(measured / unit, inside),
        "interp_mse": mse.METRIC(measured / unit, inside),
        "extrap_mae": mae.METRIC(target.values / unit, future.mean / unit),
        "extrap_mse": mse.METRIC(target.values / unit, future.mean / unit),
        "coverage": float(covered[is_measured].mean()) if is_measured.any() else None,
    }


def evaluate(
    model: AbstractFitted, classical: Mapping[str, AbstractFitted], panel: Panel, sizes: Sizes
) -> list[Score]:
    """One row for the model and one for each classical forecaster."""
    parts = evaluation_windows(model.check(panel), sizes)
    rows = {model.name: model, **classical}
    return [score(row, parts, model.interface.channel_scale) for row in rows.values()]
