"""Base classes of baselines, and prediction intervals from their own errors.

The spread of a forecast depends on its lead time: the time since the channel was last measured. It
is the root mean square error, at that lead time, of forecasts from many origins of the training
series. The intervals are then calibrated on the validation series, to which no parameter was
fitted.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeVar, cast, final

import numpy as np
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, Field

from physsm._arguments import LARGEST_SEED, whole_number
from physsm._errors import ConfigError, DataError, RunError
from physsm._values import Panel, Query
from physsm.data.scale import channel_moments
from physsm.data.split import default_split
from physsm.data.table import to_panel
from physsm.data.window import Part, default_sizes
from physsm.models._base import AbstractFitted, AbstractForecaster, Prediction
from physsm.models._baseline.origins import (
    Origins,
    channel_points,
    one_step_origins,
    rolling_origins,
    series_ends,
)
from physsm.models._files import Interface, Stored
from physsm.models._intervals import (
    Calibration,
    SpreadByLead,
    calibrate,
    spread_by_lead,
    uncalibrated,
)
from physsm.models._settings import read_config
from physsm.physics.system import System

_ORIGINS = 400  # forecasts for the spread, and for its calibration
_BLOCK = 4096  # origins of one call


@dataclass(frozen=True, eq=False)
class ColumnScales:
    """Mean and scale of columns in training, as `data.scale` gives them."""

    mean: Float[np.ndarray, " columns"]
    scale: Float[np.ndarray, " columns"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AbstractBaseline(AbstractFitted):
    """A fitted baseline. A subclass implements `_mean`, and `describe`, `_own_arrays` and
    `_own_fields` if it has fields of its own.
    """

    interface: Interface
    calibration: Calibration
    channel_scales: ColumnScales
    spread: SpreadByLead

    @abc.abstractmethod
    def _mean(self, panel: Panel, origins: Origins) -> Float[np.ndarray, "origins steps channels"]:
        """Forecasts from many origins, in the units of the table."""

    @final
    def predict_from(self, panel: Panel, origins: Origins) -> Prediction:
        """Forecasts from many origins with their spread."""
        parts = [
            (self._mean(panel, block), self.spread.at(lead_times(panel, block)))
            for block in origins.blocks(_BLOCK)
        ]
        if not parts:
            empty = np.empty((*origins.times.shape, len(panel.channels)))
            return Prediction(mean=empty, spread=empty)
        mean, spread = (np.concatenate(kind) for kind in zip(*parts, strict=True))
        return Prediction(mean=mean, spread=spread * self.channel_scales.scale)

    @final
    def _predict(self, history: Panel, query: Query, wants_spread: bool) -> Prediction:
        return self.predict_from(history, series_ends(history, query))

    @final
    def _one_step(self, history: Panel) -> Prediction:
        origins = one_step_origins(history)
        predicted = self.predict_from(history, origins)
        mean, spread = np.full((2, *history.values.shape), np.nan)
        mean[origins.series, origins.step + 1] = predicted.mean[:, 0]
        spread[origins.series, origins.step + 1] = predicted.spread[:, 0]
        return Prediction(mean=mean, spread=spread)

    def describe(self) -> dict[str, Any]:
        """The choices of the model; none by default."""
        return {}

    def arrays(self) -> dict[str, np.ndarray]:
        """Channel scales, errors by lead time, and the arrays of the model itself."""
        return {
            "mean": self.channel_scales.mean,
            "scale": self.channel_scales.scale,
            "leads": self.spread.leads,
            "errors": self.spread.errors,
            **self._own_arrays(),
        }

    def _own_arrays(self) -> dict[str, np.ndarray]:
        """Arrays of the model itself; none by default."""
        return {}

    @classmethod
    def restore(cls, stored: Stored) -> AbstractBaseline:
        """The inverse of `describe` and `arrays`."""
        channels = len(stored.interface.channels)
        leads = stored.array("leads", (None,))
        restored = cls(
            interface=stored.interface,
            calibration=stored.calibration,
            channel_scales=ColumnScales(
                stored.array("mean", (channels,)), stored.array("scale", (channels,))
            ),
            spread=SpreadByLead(leads, stored.array("errors", (len(leads), channels))),
            **cls._own_fields(stored),
        )
        if stored.description.keys() != restored.describe().keys():
            raise RunError(
                f"{stored.source} does not hold this model: its description has the keys "
                f"{', '.join(stored.description)}"
            )
        return restored

    @classmethod
    def _own_fields(cls, stored: Stored) -> dict[str, Any]:
        """Fields of the model itself, from its file; none by default."""
        return {}


class HorizonConfig(BaseModel):
    """`horizon`: time steps of the forecasts that the intervals are fitted to. By default a quarter
    of the median series, at most 100; with fewer than five series a tenth, at most 300.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    horizon: int | None = Field(None, ge=1)


F = TypeVar("F", bound="BaselineForecaster")


class BaselineForecaster(AbstractForecaster):
    """Settings of a baseline. Of a system, only the names of the controls are used."""

    irregular: ClassVar[bool] = True
    missing: ClassVar[bool] = True
    physics: ClassVar[bool] = False

    def __init__(self, system: System | None, config: Any):
        self.system = system
        self.config = config

    @classmethod
    def create(cls: type[F], system: System | None, settings: Mapping[str, Any]) -> F:
        """A forecaster from settings."""
        return cls(system, read_config(cls.Config, settings, cls.name))

    def fit(self, train: Any, validation: Any = None, *, seed: int = 0) -> AbstractBaseline:
        """Fit the intervals. A baseline with parameters overrides this."""
        parts = training_parts(train, validation, self.system, self.config.horizon, seed)
        fitted = cast(type[AbstractBaseline], self.Fitted)(**common_fields(parts.train))
        return with_intervals(fitted, parts.train, fitted.check(parts.validation), parts.horizon)


class PhysicsBaseline(BaselineForecaster):
    """Settings of a baseline around the equations of a system. `without_system` is the error where
    no system is given.
    """

    controls: ClassVar[bool] = True
    physics: ClassVar[bool] = True
    without_system: ClassVar[str]

    @classmethod
    def create(cls: type[F], system: System | None, settings: Mapping[str, Any]) -> F:
        """A forecaster from a system and settings."""
        if system is None:
            raise ConfigError(cls.without_system)  # type: ignore[attr-defined]
        return super().create(system, settings)  # type: ignore[misc]


C = TypeVar("C", bound=AbstractBaseline)


def lead_times(panel: Panel, origins: Origins) -> Float[np.ndarray, "origins steps channels"]:
    """Time from each channel's latest measurement to the times to forecast; NaN without one."""
    lead = np.full((*origins.times.shape, len(panel.channels)), np.nan)
    for channel in range(len(panel.channels)):
        points = channel_points(panel, channel, origins)
        if len(points.times):
            since_last = origins.times - points.times[points.last, None]
            lead[..., channel] = np.where(points.exists[:, None], since_last, np.nan)
    return lead


class TrainingParts(NamedTuple):
    """Training panel, validation table, and the horizon of validation forecasts and intervals."""

    train: Panel
    validation: Any
    horizon: int


def training_parts(
    train: Any, validation: Any, system: System | None, horizon: int | None, seed: int
) -> TrainingParts:
    """Panels of tables or Parts; a validation part is split off if none is given.

    A data frame is read with the controls of the physics. The default horizon and split are those
    of the models with windows.
    """
    whole_number(seed, "seed", 0, LARGEST_SEED)
    given = train.panel if isinstance(train, Part) else train
    names = None if system is None or isinstance(given, Panel) else list(system.controls)
    panel = to_panel(given, controls=names)
    sizes = default_sizes(panel)
    if validation is None:
        panel, validation = default_split(panel, seed, sizes.context + sizes.horizon)
    if isinstance(validation, Part):
        validation = validation.panel
    return TrainingParts(panel, validation, horizon or sizes.horizon)


def common_fields(train: Panel) -> dict[str, Any]:
    """Fields of every baseline, with the intervals still to be fitted."""
    channels = len(train.channels)
    return {
        "interface": Interface.of(train),
        "calibration": uncalibrated(channels),
        "channel_scales": ColumnScales(*channel_moments(train)),
        "spread": SpreadByLead(np.array([train.median_gap]), np.ones((1, channels))),
    }


def squared_errors(
    fitted: AbstractBaseline, panel: Panel, horizon: int, origins: int
) -> Float[np.ndarray, " channels"]:
    """Mean squared error of forecasts over `horizon` time steps, in units of each channel's scale.

    A channel without measurements at these steps has the mean of the others.
    """
    starts, measured = rolling_origins(panel, horizon, origins)
    error = ((measured - fitted._mean(panel, starts)) / fitted.channel_scales.scale) ** 2
    count = (~np.isnan(error)).sum((0, 1))
    if not count.any():
        raise DataError(
            "the validation part has no measurement after a forecast origin, so settings cannot be "
            "chosen by it",
            hint="give a validation table with longer series",
        )
    mean = np.nansum(error, axis=(0, 1)) / np.maximum(count, 1)
    return np.where(count > 0, mean, mean[count > 0].mean())


def with_intervals(fitted: C, train: Panel, validation: Panel, horizon: int) -> C:
    """The model with the spread of its training errors, calibrated on the validation part."""
    origins, measured = rolling_origins(train, horizon, _ORIGINS)
    error = (measured - fitted._mean(train, origins)) / fitted.channel_scales.scale
    lead = lead_times(train, origins)
    fitted = replace(
        fitted,
        spread=spread_by_lead(error, lead, train.median_gap),
        interface=replace(fitted.interface, horizon=horizon),
    )
    origins, measured = rolling_origins(validation, horizon, _ORIGINS)
    predicted = fitted.predict_from(validation, origins)
    return replace(fitted, calibration=calibrate(measured, predicted.mean, predicted.spread))
