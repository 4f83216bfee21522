"""The training mean of each channel, for all of the future: what any forecast must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from jaxtyping import Float
from pydantic import BaseModel

from physsm._values import Panel
from physsm.models._base import AbstractFitted
from physsm.models._classical import (
    AbstractClassical,
    ClassicalForecaster,
    HorizonConfig,
    common_fields,
    training_parts,
    with_intervals,
)
from physsm.models._past import Origins


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class FittedMean(AbstractClassical):
    """The means are part of what every classical model stores."""

    name: ClassVar[str] = "mean"

    def _mean(self, panel: Panel, origins: Origins) -> Float[np.ndarray, "origins steps channels"]:
        return np.tile(self.usual.mean, (*origins.times.shape, 1))

    def describe(self) -> dict[str, Any]:
        """It has no settings of its own."""
        return {}


@final
class Mean(ClassicalForecaster):
    """The training mean; the history does not matter."""

    name: ClassVar[str] = "mean"
    controls: ClassVar[bool] = False
    looks_back: ClassVar[bool] = False
    Config: ClassVar[type[BaseModel]] = HorizonConfig
    Fitted: ClassVar[type[AbstractFitted]] = FittedMean

    def fit(self, train: Any, validation: Any = None, *, seed: int = 0) -> FittedMean:
        """Measure the errors, for the intervals."""
        parts = training_parts(train, validation, self.system, self.config.horizon, seed)
        fitted = FittedMean(**common_fields(parts.train))
        return with_intervals(fitted, parts.train, fitted.check(parts.validation), parts.horizon)


MODEL = Mean
