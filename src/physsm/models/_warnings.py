"""Warnings of a forecast: a lead time beyond the fit, and values that are not finite."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool

from physsm._values import Forecast, Panel

_FAR = 2  # horizons of the fit
_ROUNDING = 1e-6  # of a time step


def forecast_warnings(
    forecast: Forecast, history: Panel, horizon: int | None, median_gap: float
) -> tuple[str, ...]:
    """Sentences on a forecast of a history. `horizon` and `median_gap` are those of the fit; None
    for a model that was fitted for no horizon.
    """
    found = [_too_far(forecast, history, horizon, median_gap), _not_a_number(forecast)]
    return tuple(sentence for sentence in found if sentence is not None)


def _too_far(
    forecast: Forecast, history: Panel, horizon: int | None, median_gap: float
) -> str | None:
    """A sentence if the lead time, counted in time steps of the fit, exceeds twice its horizon."""
    has_steps = (forecast.lengths > 0) & (history.lengths > 0)
    if horizon is None or not has_steps.any():
        return None
    series = np.flatnonzero(has_steps)
    last = forecast.times[series, forecast.lengths[series] - 1]
    now = history.times[series, history.lengths[series] - 1]
    steps = float((last - now).max()) / median_gap
    if not steps > _FAR * horizon + _ROUNDING:
        return None
    return (
        f"the forecast reaches {steps:.0f} time steps ahead; the model was fitted for {horizon}: "
        f"errors and intervals beyond about {_FAR * horizon} were never checked; fit it for a "
        "longer horizon"
    )


def _not_a_number(forecast: Forecast) -> str | None:
    """A sentence if a mean, or the end of an interval, is not a finite number."""
    valid = forecast.valid[..., None]
    ends = np.isfinite(forecast.lower) & np.isfinite(forecast.upper)
    for name, is_finite, asked in (
        ("values", np.isfinite(forecast.mean), True),
        ("intervals", ends, not np.isnan(forecast.coverage)),
    ):
        if asked and (wrong := valid & ~is_finite).any():
            return f"{_counted(wrong, forecast)}: these {name} are not finite numbers"
    return None


def _counted(wrong: Bool[np.ndarray, "series steps channels"], forecast: Forecast) -> str:
    """How many cells of the forecast are wrong, and the first of them."""
    series = int(wrong.any((1, 2)).argmax())
    step = int(wrong[series].any(-1).argmax())
    channel = forecast.channels[int(wrong[series, step].argmax())]
    place = f"series {forecast.ids[series]}, time {forecast.times[series, step]:g}"
    cells = int(forecast.lengths.sum()) * len(forecast.channels)
    return f"{int(wrong.sum())} of {cells} forecast cells, from {place}, channel {channel} on"
