"""The training mean of each channel, for all of the future: what any forecast must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float
from pydantic import BaseModel

from physsm._values import Panel
from physsm.models._base import AbstractFitted
from physsm.models._baseline.forecaster import (
    AbstractBaseline,
    BaselineForecaster,
    HorizonConfig,
)
from physsm.models._baseline.origins import Origins


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FittedMean(AbstractBaseline):
    """The means are part of what every classical model stores."""

    name: ClassVar[str] = "mean"

    def _mean(self, panel: Panel, origins: Origins) -> Float[np.ndarray, "origins steps channels"]:
        return np.tile(self.usual.mean, (*origins.times.shape, 1))


@final
class Mean(BaselineForecaster):
    """The training mean; the history does not matter."""

    name: ClassVar[str] = "mean"
    controls: ClassVar[bool] = False
    looks_back: ClassVar[bool] = False
    Config: ClassVar[type[BaseModel]] = HorizonConfig
    Fitted: ClassVar[type[AbstractFitted]] = FittedMean


MODEL = Mean
