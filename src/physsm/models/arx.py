"""Vector ARX with ridge penalty: a linear recurrence of all channels with controls.

One step of the recurrence is the median gap of the training series. The last values of a history
are interpolated linearly to a grid of that gap which ends at the last time step. After the last
measurement of a channel its value is constant. One step is

    x[k+1] - x[k] = a + sum over j < lags of (A_j x[k-j] + B_j u[k-j]) + B u[k+1]

so that a large penalty repeats the last value. A time between two grid points has a proportional
part of the step, with the control at that time; it does not depend on later controls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, final

import numpy as np
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, Field

from physsm._values import Panel
from physsm.data.scale import control_moments
from physsm.models._base import AbstractFitted
from physsm.models._baseline.forecaster import (
    AbstractBaseline,
    BaselineForecaster,
    ColumnScales,
    common_fields,
    squared_errors,
    training_parts,
    with_intervals,
)
from physsm.models._baseline.lag_grid import (
    ROUNDING,
    FutureControls,
    LaggedValues,
    known_lags,
    lagged_values,
    next_values,
)
from physsm.models._baseline.origins import Origins, one_step_origins
from physsm.models._baseline.ridge import ridge_weights
from physsm.models._files import Stored

_CHOICE_ORIGINS = 200  # forecasts by which lags and ridge are chosen
_MOST_SAMPLES = 20_000  # of the regression, evenly spaced
_MOST_FEATURES = 1800
_MOST_STEPS = 5000


class Config(BaseModel):
    """- `lags`, `ridges`: candidates. The pair with the least squared error of forecasts over
      `horizon` time steps of the validation part is chosen. Numbers of lags that the training
      series are too short for, or with more than 1800 features, are no candidates, except the
      smallest.
    - `spacing`: gaps from one lag to the next. 50 lags with a spacing of two span 98 gaps.
    - `horizon`: time steps of the forecasts in validation and for the intervals. By default a
      quarter of the median series, at most 100; with fewer than five series a tenth, at most 300.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    lags: tuple[Annotated[int, Field(ge=1)], ...] = Field((1, 2, 3, 5, 8, 12, 20), min_length=1)
    ridges: tuple[Annotated[float, Field(ge=1e-12, allow_inf_nan=False)], ...] = Field(
        (1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0), min_length=1
    )
    spacing: int = Field(1, ge=1)
    horizon: int | None = Field(None, ge=1)


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FittedArx(AbstractBaseline):
    """A recurrence of scaled channels and controls.

    `weights` has a matrix for each number of lags up to the chosen one: a history that is too short
    for the chosen number uses fewer. A matrix has one row for each feature: 1, the controls at the
    end of the step, then channels and controls at its start, one gap before, and so on. With a
    spacing, lags between the fitted ones have weights of zero and count as lags.

    Forecasts are clipped to the range `low` to `high` of the training part, extended to the last
    value of the history where that lies outside, and widened by its own width on both sides. After
    a lead time of 5000 gaps they are constant.
    """

    name: ClassVar[str] = "arx"
    ridge: float
    weights: dict[int, Float[np.ndarray, "_ channels"]]
    control_scales: ColumnScales
    low: Float[np.ndarray, " channels"]
    high: Float[np.ndarray, " channels"]

    def _mean(self, panel: Panel, origins: Origins) -> Float[np.ndarray, "origins steps channels"]:
        gap = self.interface.median_gap
        known = known_lags(panel, origins, gap)
        choices = np.array(sorted(self.weights))
        choice = np.maximum(np.searchsorted(choices, known, "right") - 1, 0)
        mean = np.empty((*origins.times.shape, len(panel.channels)))
        for k, lags in enumerate(choices.tolist()):
            is_part = choice == k
            if is_part.any():
                part = origins.only(is_part)
                past = lagged_values(
                    panel, part, gap, lags, self.channel_scales, self.control_scales
                )
                start = panel.times[part.series, part.step]
                controls = (part.controls - self.control_scales.mean) / self.control_scales.scale
                lead = (part.times - start[:, None]) / gap
                mean[is_part] = self._run(self.weights[lags], past, lead, controls)
        return mean * self.channel_scales.scale + self.channel_scales.mean

    def _run(
        self,
        weights: Float[np.ndarray, "features channels"],
        past: LaggedValues,
        lead: Float[np.ndarray, "origins steps"],
        controls: Float[np.ndarray, "origins steps controls"],
    ) -> Float[np.ndarray, "origins steps channels"]:
        """Run the recurrence; after each node, forecast the times inside the step that follows it.

        `lead` is in gaps; everything else is scaled.
        """
        node = np.clip(np.ceil(lead - ROUNDING) - 1, 0, _MOST_STEPS).astype(np.int64)
        # Origins with the most steps come first, so that those still running are a slice.
        order = np.argsort(-node.max(1, initial=0), kind="stable")
        node, lead, controls = node[order], lead[order], controls[order]
        x, features = past.x[order, 0], past.features()[order]
        last_node = node.max(1, initial=0)
        share = np.clip(lead - node, 0, 1)
        future = FutureControls(past.u[order, 0], lead, controls)
        m, width = controls.shape[2], x.shape[1] + controls.shape[2]
        from_end, from_lags = weights[1 : 1 + m], weights[1 + m :]
        margin = self.high - self.low
        low, high = np.minimum(self.low, x) - margin, np.maximum(self.high, x) + margin
        by_node = np.argsort(node, axis=None, kind="stable")
        nodes = int(last_node.max(initial=0)) + 1
        firsts = np.searchsorted(node.reshape(-1)[by_node], np.arange(nodes + 1))
        forecast = np.empty((*node.shape, x.shape[1]))
        for k in range(nodes):
            running = int(np.searchsorted(-last_node, -k, "right"))
            step = weights[0] + features[:running] @ from_lags
            origin, column = np.unravel_index(by_node[firsts[k] : firsts[k + 1]], node.shape)
            whole = step[origin] + controls[origin, column] @ from_end
            inside = x[origin] + share[origin, column, None] * whole
            forecast[origin, column] = np.clip(inside, low[origin], high[origin])
            future.pass_times(origin)
            running = int(np.searchsorted(-last_node, -k, "left"))
            u = future.at(k + 1, running)
            moved = x[:running] + step[:running] + u @ from_end
            x[:running] = np.clip(moved, low[:running], high[:running])
            features[:running, width:] = features[:running, :-width]
            features[:running, :width] = np.concatenate([x[:running], u], 1)
        result = np.empty_like(forecast)
        result[order] = forecast
        return result

    def describe(self) -> dict[str, Any]:
        """The chosen lags and ridge; with a spacing, lags of zero weight count too."""
        return {"lags": sorted(self.weights), "ridge": self.ridge}

    def _own_arrays(self) -> dict[str, np.ndarray]:
        return {
            **{f"weights_{lags}": weights for lags, weights in self.weights.items()},
            "control_mean": self.control_scales.mean,
            "control_scale": self.control_scales.scale,
            "low": self.low,
            "high": self.high,
        }

    @classmethod
    def _own_fields(cls, stored: Stored) -> dict[str, Any]:
        channels, controls = len(stored.interface.channels), len(stored.interface.controls)
        weights = {}
        for lags in map(int, stored.description["lags"]):
            shape = _width(lags, channels, controls), channels
            weights[lags] = stored.array(f"weights_{lags}", shape)
        if not weights or min(weights) < 1:
            raise ValueError(f"the lags are {stored.description['lags']}")
        return {
            "ridge": float(stored.description["ridge"]),
            "weights": weights,
            "control_scales": ColumnScales(
                stored.array("control_mean", (controls,)),
                stored.array("control_scale", (controls,)),
            ),
            "low": stored.array("low", (channels,)),
            "high": stored.array("high", (channels,)),
        }


def _width(lags: int, channels: int, controls: int) -> int:
    """Number of features."""
    return 1 + controls + lags * (channels + controls)


def _range(scaled: Float[np.ndarray, "steps channels"]) -> tuple[np.ndarray, np.ndarray]:
    """Minimum and maximum of each channel; 0 for a channel without measurements."""
    seen = ~np.isnan(scaled)
    low = np.where(seen, scaled, np.inf).min(0, initial=np.inf)
    high = np.where(seen, scaled, -np.inf).max(0, initial=-np.inf)
    return np.where(low <= high, low, 0), np.where(low <= high, high, 0)


def _without_recurrence(train: Panel, lags: int) -> FittedArx:
    """The model with scales and range of the training part, and weights of zero."""
    fields = common_fields(train)
    channels, controls = len(train.channels), len(train.control_names)
    scales = fields["channel_scales"]
    valid = np.arange(train.times.shape[1]) < train.lengths[:, None]
    low, high = _range((train.values[valid] - scales.mean) / scales.scale)
    return FittedArx(
        **fields,
        ridge=1.0,
        weights={lags: np.zeros((_width(lags, channels, controls), channels))},
        control_scales=ColumnScales(*control_moments(train)),
        low=low,
        high=high,
    )


def _candidates(start: FittedArx, train: Panel, config: Config) -> Iterator[FittedArx]:
    """The model with each choice of lags and ridge, fitted to the training part."""
    gap, channels, controls = train.median_gap, len(train.channels), len(train.control_names)
    spacing = gap * config.spacing
    origins = one_step_origins(train)
    chosen = np.linspace(0, len(origins.step) - 1, min(_MOST_SAMPLES, len(origins.step)))
    origins = origins.only(chosen.astype(np.int64))
    known = known_lags(train, origins, spacing)
    candidates = [
        lags
        for lags in config.lags
        if _width(lags, channels, controls) <= _MOST_FEATURES and lags <= known.max(initial=0)
    ]
    widths = {lags: _width(lags, channels, controls) for lags in candidates or [min(config.lags)]}
    past = lagged_values(
        train, origins, spacing, max(widths), start.channel_scales, start.control_scales
    )
    after = next_values(train, origins, gap, start.channel_scales, start.control_scales)
    features = np.concatenate([np.ones((len(known), 1)), after.u, past.features()], 1)
    weights = ridge_weights(features, after.x - past.x[:, 0], known, widths, config.ridges)
    for most, ridge in weights:
        fewer_lags = dict(
            _with_zeros(weights[lags, ridge], lags, config.spacing, controls)
            for lags in widths
            if lags <= most
        )
        yield replace(start, ridge=ridge, weights=fewer_lags)


def _with_zeros(
    weights: Float[np.ndarray, "_ channels"], lags: int, spacing: int, controls: int
) -> tuple[int, Float[np.ndarray, "_ channels"]]:
    """Weights of lags with a `spacing`, as weights of all lags that they span."""
    channels = weights.shape[1]
    span = (lags - 1) * spacing + 1
    by_lag = np.zeros((span, channels + controls, channels))
    by_lag[::spacing] = weights[1 + controls :].reshape(lags, channels + controls, channels)
    return span, np.concatenate([weights[: 1 + controls], by_lag.reshape(-1, channels)])


@final
class Arx(BaselineForecaster):
    """Vector ARX: linear autoregression of all channels with controls."""

    name: ClassVar[str] = "arx"
    controls: ClassVar[bool] = True
    Config: ClassVar[type[BaseModel]] = Config
    Fitted: ClassVar[type[AbstractFitted]] = FittedArx

    @classmethod
    def test_settings(cls) -> dict[str, Any]:
        """Few candidates, for tests of the interface."""
        return {"lags": [1, 3], "ridges": [1e-6, 1e-2]}

    def fit(self, train: Any, validation: Any = None, *, seed: int = 0) -> FittedArx:
        """Fit all candidates, choose one by validation, and fit its intervals."""
        parts = training_parts(train, validation, self.system, self.config.horizon, seed)
        start = _without_recurrence(parts.train, min(self.config.lags))
        validation = start.check(parts.validation)

        def error(candidate: FittedArx) -> float:
            errors = squared_errors(candidate, validation, parts.horizon, _CHOICE_ORIGINS)
            return float(errors.mean())

        best = min(_candidates(start, parts.train, self.config), key=error)
        return with_intervals(best, parts.train, validation, parts.horizon)


MODEL = Arx
