"""A linear recurrence of all channels with controls: vector ARX with ridge.

The recurrence steps over the median gap of the training series. From each history the last values
are taken on a grid of that gap which ends at its last row, along straight lines between the
measurements (a channel not measured at the end stays as it was). One step adds

    x[k+1] - x[k] = a + sum over j < lags of (A_j x[k-j] + B_j u[k-j]) + B u[k+1]

so that a strong ridge gives the last value again. A time between two grid points gets that share of
the step, with the control as it is then; nothing of it depends on controls after that time.
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
    Usual,
    common_fields,
    squared_errors,
    training_parts,
    with_intervals,
)
from physsm.models._baseline.lag_grid import (
    ROUNDING,
    ControlPath,
    LookBack,
    known_lags,
    look_ahead,
    look_back,
)
from physsm.models._baseline.origins import Origins, next_rows
from physsm.models._baseline.ridge import ridge_weights
from physsm.models._files import Stored

_CHOICE_ORIGINS = 200  # forecasts that decide about lags and ridge
_MOST_ROWS = 20_000  # of the regression, evenly chosen
_MOST_FEATURES = 1800
_MOST_STEPS = 5000


class Config(BaseModel):
    """- `lags`, `ridges`: what may be chosen; the pair with the least squared error of forecasts
      over `horizon` rows of the validation part is taken. Lags that the training series are too
      short for, or with more than 1800 features, are not tried, except the smallest.
    - `spacing`: gaps from one lag to the next. 50 lags by two reach 98 gaps back.
    - `horizon`: rows ahead that count in validation and behind the intervals; by default a quarter
      of the median series (with fewer than five series a twelfth), at most 100.
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
    """The recurrence in scaled channels and controls.

    `weights` holds it for each number of lags up to the chosen one: a history that is too short
    for that is continued with fewer. Each has one row for each feature: 1, the controls at the end
    of the step, then channels and controls at its start, one gap before, and so on. Lags that were
    fitted some gaps apart have zeros between them, and count with these.

    Forecasts stay inside the range `low` to `high` of the training part, extended to the last value
    of the history where that lies outside, and widened by its own width on both sides. More than
    5000 gaps ahead they stay as they are.
    """

    name: ClassVar[str] = "arx"
    ridge: float
    weights: dict[int, Float[np.ndarray, "_ channels"]]
    usual_controls: Usual
    low: Float[np.ndarray, " channels"]
    high: Float[np.ndarray, " channels"]

    def _mean(self, panel: Panel, origins: Origins) -> Float[np.ndarray, "origins steps channels"]:
        gap = self.interface.median_gap
        known = known_lags(panel, origins, gap)
        choices = np.array(sorted(self.weights))
        choice = np.maximum(np.searchsorted(choices, known, "right") - 1, 0)
        mean = np.empty((*origins.times.shape, len(panel.channels)))
        for k, lags in enumerate(choices.tolist()):
            mine = choice == k
            if mine.any():
                part = Origins(*(field[mine] for field in origins))
                past = look_back(panel, part, gap, lags, self.usual, self.usual_controls)
                start = panel.times[part.series, part.row]
                controls = (part.controls - self.usual_controls.mean) / self.usual_controls.scale
                ahead = (part.times - start[:, None]) / gap
                mean[mine] = self._run(self.weights[lags], past, ahead, controls)
        return mean * self.usual.scale + self.usual.mean

    def _run(
        self,
        weights: Float[np.ndarray, "features channels"],
        past: LookBack,
        ahead: Float[np.ndarray, "origins steps"],
        controls: Float[np.ndarray, "origins steps controls"],
    ) -> Float[np.ndarray, "origins steps channels"]:
        """Run the recurrence, and from each node serve the times that lie in the step after it.

        `ahead` is in gaps; everything else is scaled.
        """
        node = np.clip(np.ceil(ahead - ROUNDING) - 1, 0, _MOST_STEPS).astype(np.int64)
        # Origins with the most steps come first, so that those still running are a slice.
        order = np.argsort(-node.max(1, initial=0), kind="stable")
        node, ahead, controls = node[order], ahead[order], controls[order]
        x, rows = past.x[order, 0], past.rows()[order]
        last_node = node.max(1, initial=0)
        share = np.clip(ahead - node, 0, 1)
        path = ControlPath(past.u[order, 0], ahead, controls)
        m, width = controls.shape[2], x.shape[1] + controls.shape[2]
        from_end, from_rows = weights[1 : 1 + m], weights[1 + m :]
        margin = self.high - self.low
        low, high = np.minimum(self.low, x) - margin, np.maximum(self.high, x) + margin
        by_node = np.argsort(node, axis=None, kind="stable")
        nodes = int(last_node.max(initial=0)) + 1
        firsts = np.searchsorted(node.reshape(-1)[by_node], np.arange(nodes + 1))
        served = np.empty((*node.shape, x.shape[1]))
        for k in range(nodes):
            running = int(np.searchsorted(-last_node, -k, "right"))
            step = weights[0] + rows[:running] @ from_rows
            origin, column = np.unravel_index(by_node[firsts[k] : firsts[k + 1]], node.shape)
            whole = step[origin] + controls[origin, column] @ from_end
            there = x[origin] + share[origin, column, None] * whole
            served[origin, column] = np.clip(there, low[origin], high[origin])
            path.pass_times(origin)
            running = int(np.searchsorted(-last_node, -k, "left"))
            u = path.at(k + 1, running)
            moved = x[:running] + step[:running] + u @ from_end
            x[:running] = np.clip(moved, low[:running], high[:running])
            rows[:running, width:] = rows[:running, :-width]
            rows[:running, :width] = np.concatenate([x[:running], u], 1)
        result = np.empty_like(served)
        result[order] = served
        return result

    def describe(self) -> dict[str, Any]:
        """What was chosen; lags that are some gaps apart count with the gaps between."""
        return {"lags": sorted(self.weights), "ridge": self.ridge}

    def _own_arrays(self) -> dict[str, np.ndarray]:
        return {
            **{f"weights_{lags}": found for lags, found in self.weights.items()},
            "control_mean": self.usual_controls.mean,
            "control_scale": self.usual_controls.scale,
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
            "usual_controls": Usual(
                stored.array("control_mean", (controls,)),
                stored.array("control_scale", (controls,)),
            ),
            "low": stored.array("low", (channels,)),
            "high": stored.array("high", (channels,)),
        }


def _width(lags: int, channels: int, controls: int) -> int:
    return 1 + controls + lags * (channels + controls)


def _span(scaled: Float[np.ndarray, "rows channels"]) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest of each channel; 0 for one that was never measured."""
    seen = ~np.isnan(scaled)
    low = np.where(seen, scaled, np.inf).min(0, initial=np.inf)
    high = np.where(seen, scaled, -np.inf).max(0, initial=-np.inf)
    return np.where(low <= high, low, 0), np.where(low <= high, high, 0)


def _without_recurrence(train: Panel, lags: int) -> FittedArx:
    """Scales and range of the training part; the recurrence stands still."""
    fields = common_fields(train)
    channels, controls = len(train.channels), len(train.control_names)
    level = fields["usual"]
    valid = np.arange(train.times.shape[1]) < train.lengths[:, None]
    low, high = _span((train.values[valid] - level.mean) / level.scale)
    return FittedArx(
        **fields,
        ridge=1.0,
        weights={lags: np.zeros((_width(lags, channels, controls), channels))},
        usual_controls=Usual(*control_moments(train)),
        low=low,
        high=high,
    )


def _candidates(start: FittedArx, train: Panel, config: Config) -> Iterator[FittedArx]:
    """The model with each choice of lags and ridge, fitted to the training part."""
    gap, channels, controls = train.median_gap, len(train.channels), len(train.control_names)
    apart = gap * config.spacing
    origins = next_rows(train)
    chosen = np.linspace(0, len(origins.row) - 1, min(_MOST_ROWS, len(origins.row)))
    origins = Origins(*(field[chosen.astype(np.int64)] for field in origins))
    known = known_lags(train, origins, apart)
    tried = [
        lags
        for lags in config.lags
        if _width(lags, channels, controls) <= _MOST_FEATURES and lags <= known.max(initial=0)
    ]
    widths = {lags: _width(lags, channels, controls) for lags in tried or [min(config.lags)]}
    past = look_back(train, origins, apart, max(widths), start.usual, start.usual_controls)
    after = look_ahead(train, origins, gap, start.usual, start.usual_controls)
    features = np.concatenate([np.ones((len(known), 1)), after.u, past.rows()], 1)
    weights = ridge_weights(features, after.x - past.x[:, 0], known, widths, config.ridges)
    for most, ridge in weights:
        up_to = dict(
            _spaced_out(weights[lags, ridge], lags, config.spacing, controls)
            for lags in widths
            if lags <= most
        )
        yield replace(start, ridge=ridge, weights=up_to)


def _spaced_out(
    weights: Float[np.ndarray, "_ channels"], lags: int, spacing: int, controls: int
) -> tuple[int, Float[np.ndarray, "_ channels"]]:
    """Weights of lags `spacing` gaps apart as those of as many lags as the gaps they span."""
    channels = weights.shape[1]
    span = (lags - 1) * spacing + 1
    by_lag = np.zeros((span, channels + controls, channels))
    by_lag[::spacing] = weights[1 + controls :].reshape(lags, channels + controls, channels)
    rows = by_lag.reshape(-1, channels)
    return span, np.concatenate([weights[: 1 + controls], rows])


@final
class Arx(BaselineForecaster):
    """Linear autoregression of all channels with controls."""

    name: ClassVar[str] = "arx"
    controls: ClassVar[bool] = True
    Config: ClassVar[type[BaseModel]] = Config
    Fitted: ClassVar[type[AbstractFitted]] = FittedArx

    @classmethod
    def test_settings(cls) -> dict[str, Any]:
        """Few candidates, for tests of the interface."""
        return {"lags": [1, 3], "ridges": [1e-6, 1e-2]}

    def fit(self, train: Any, validation: Any = None, *, seed: int = 0) -> FittedArx:
        """Fit all candidates, choose one, and measure its errors for the intervals."""
        parts = training_parts(train, validation, self.system, self.config.horizon, seed)
        start = _without_recurrence(parts.train, min(self.config.lags))
        held_out = start.check(parts.validation)

        def error(candidate: FittedArx) -> float:
            errors = squared_errors(candidate, held_out, parts.horizon, _CHOICE_ORIGINS)
            return float(errors.mean())

        best = min(_candidates(start, parts.train, self.config), key=error)
        return with_intervals(best, parts.train, held_out, parts.horizon)


MODEL = Arx
