"""What the classical forecasters share: their fitted form, and intervals from their own errors.

The spread of a forecast depends on its lead: the time since the channel was last measured. It is
the root mean square error, at such leads, of forecasts that start at many rows of the training
series; the level of the intervals is then calibrated on the validation series, which no parameter
was fitted to.
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
from physsm.models._base import AbstractFitted, AbstractForecaster, Prediction, read_config
from physsm.models._baseline.origins import Origins, channel_points, ends, next_rows, rolling
from physsm.models._files import Interface, Stored
from physsm.models._intervals import (
    Calibration,
    SpreadByLead,
    calibrate,
    spread_by_lead,
    uncalibrated,
)
from physsm.physics.system import System

_ORIGINS = 400  # behind the spread, and behind its calibration
_BLOCK = 4096  # origins forecast at once


@dataclass(frozen=True, eq=False)
class Usual:
    """Mean and scale of columns in training, as `data.scale` gives them."""

    mean: Float[np.ndarray, " columns"]
    scale: Float[np.ndarray, " columns"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AbstractBaseline(AbstractFitted):
    """A fitted classical forecaster: it implements `_mean`, and its own settings in a file."""

    interface: Interface
    calibration: Calibration
    usual: Usual
    spread: SpreadByLead

    @abc.abstractmethod
    def _mean(self, panel: Panel, origins: Origins) -> Float[np.ndarray, "origins steps channels"]:
        """The forecasts from many origins, in the units of the table."""

    @final
    def predict_from(self, panel: Panel, origins: Origins) -> Prediction:
        """Forecasts from many origins with their spread."""
        parts = [
            (self._mean(panel, block), self.spread.at(leads(panel, block)))
            for block in origins.blocks(_BLOCK)
        ]
        if not parts:
            nothing = np.empty((*origins.times.shape, len(panel.channels)))
            return Prediction(nothing, nothing)
        mean, spread = (np.concatenate(kind) for kind in zip(*parts, strict=True))
        return Prediction(mean, spread * self.usual.scale)

    @final
    def _predict(self, history: Panel, query: Query, wants_spread: bool) -> Prediction:
        return self.predict_from(history, ends(history, query))

    @final
    def _one_step(self, history: Panel) -> Prediction:
        origins = next_rows(history)
        found = self.predict_from(history, origins)
        mean, spread = np.full((2, *history.values.shape), np.nan)
        mean[origins.series, origins.row + 1] = found.mean[:, 0]
        spread[origins.series, origins.row + 1] = found.spread[:, 0]
        return Prediction(mean, spread)

    def describe(self) -> dict[str, Any]:
        """What the model chose; nothing by default."""
        return {}

    def arrays(self) -> dict[str, np.ndarray]:
        """Statistics of the training part, and the errors by lead."""
        return {
            "mean": self.usual.mean,
            "scale": self.usual.scale,
            "leads": self.spread.leads,
            "errors": self.spread.errors,
            **self._own_arrays(),
        }

    def _own_arrays(self) -> dict[str, np.ndarray]:
        """The arrays of the model itself; none by default."""
        return {}

    @classmethod
    def restore(cls, stored: Stored) -> AbstractBaseline:
        """The inverse of `describe` and `arrays`."""
        channels = len(stored.interface.channels)
        leads = stored.array("leads", (None,))
        restored = cls(
            interface=stored.interface,
            calibration=stored.calibration,
            usual=Usual(stored.array("mean", (channels,)), stored.array("scale", (channels,))),
            spread=SpreadByLead(leads, stored.array("errors", (len(leads), channels))),
            **cls._own_fields(stored),
        )
        if stored.description.keys() != restored.describe().keys():
            raise RunError(
                f"{stored.source} does not hold this model: it says {', '.join(stored.description)}"
            )
        return restored

    @classmethod
    def _own_fields(cls, stored: Stored) -> dict[str, Any]:
        """The fields of the model itself, from its file; none by default."""
        return {}


class HorizonConfig(BaseModel):
    """`horizon`: rows ahead behind the intervals; by default a quarter of the median series (with
    fewer than five series a twelfth), at most 100.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    horizon: int | None = Field(None, ge=1)


F = TypeVar("F", bound="BaselineForecaster")


class BaselineForecaster(AbstractForecaster):
    """Settings of a classical model. Of a system it takes the names of the controls."""

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
        """Measure the errors, for the intervals; models that learn more do it themselves."""
        parts = training_parts(train, validation, self.system, self.config.horizon, seed)
        fitted = cast(type[AbstractBaseline], self.Fitted)(**common_fields(parts.train))
        return with_intervals(fitted, parts.train, fitted.check(parts.validation), parts.horizon)


class PhysicsBaseline(BaselineForecaster):
    """Settings of a baseline around the equations of a system. `without_system` says what to do
    where none is given.
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


def leads(panel: Panel, origins: Origins) -> Float[np.ndarray, "origins steps channels"]:
    """The time from each channel's latest measurement to the times asked for; NaN without one."""
    lead = np.full((*origins.times.shape, len(panel.channels)), np.nan)
    for channel in range(len(panel.channels)):
        points = channel_points(panel, channel, origins)
        if len(points.times):
            ahead = origins.times - points.times[points.last, None]
            lead[..., channel] = np.where(points.exists[:, None], ahead, np.nan)
    return lead


class TrainingParts(NamedTuple):
    """The training panel, a validation table, and the horizon of choices and intervals."""

    train: Panel
    validation: Any
    horizon: int


def training_parts(
    train: Any, validation: Any, system: System | None, horizon: int | None, seed: int
) -> TrainingParts:
    """The panels of tables or Parts; a validation part is split off if none is given.

    A data frame has the controls of the physics. By default the horizon and the split are those
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
    """The fields of every classical model before its intervals are known."""
    channels = len(train.channels)
    return {
        "interface": Interface.of(train),
        "calibration": uncalibrated(channels),
        "usual": Usual(*channel_moments(train)),
        "spread": SpreadByLead(np.array([train.median_gap]), np.ones((1, channels))),
    }


def squared_errors(
    fitted: AbstractBaseline, panel: Panel, horizon: int, origins: int
) -> Float[np.ndarray, " channels"]:
    """Mean squared error of forecasts over `horizon` rows, in units of each channel's scale.

    A channel that was not measured there has the mean of the others.
    """
    starts, measured = rolling(panel, horizon, origins)
    error = ((measured - fitted._mean(panel, starts)) / fitted.usual.scale) ** 2
    count = (~np.isnan(error)).sum((0, 1))
    if not count.any():
        raise DataError(
            "the validation part has no measurement after another, so it cannot decide anything",
            hint="hand over a validation table with longer series",
        )
    mean = np.nansum(error, axis=(0, 1)) / np.maximum(count, 1)
    return np.where(count > 0, mean, mean[count > 0].mean())


def with_intervals(fitted: C, train: Panel, validation: Panel, horizon: int) -> C:
    """The model with the spread of its errors in training, calibrated on the validation part."""
    origins, measured = rolling(train, horizon, _ORIGINS)
    error = (measured - fitted._mean(train, origins)) / fitted.usual.scale
    lead = leads(train, origins)
    fitted = replace(fitted, spread=spread_by_lead(error, lead, train.median_gap))
    origins, measured = rolling(validation, horizon, _ORIGINS)
    found = fitted.predict_from(validation, origins)
    return replace(fitted, calibration=calibrate(measured, found.mean, found.spread))
