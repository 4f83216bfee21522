"""Training mean of each channel at all future times: the least that a forecast must beat."""

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
    """Means of the channels, which every baseline stores."""

    name: ClassVar[str] = "mean"

    def _mean(self, panel: Panel, origins: Origins) -> Float[np.ndarray, "origins steps channels"]:
        return np.tile(self.channel_scales.mean, (*origins.times.shape, 1))


@final
class Mean(BaselineForecaster):
    """The training mean, whatever the history."""

    name: ClassVar[str] = "mean"
    controls: ClassVar[bool] = False
    uses_history: ClassVar[bool] = False
    Config: ClassVar[type[BaseModel]] = HorizonConfig
    Fitted: ClassVar[type[AbstractFitted]] = FittedMean


MODEL = Mean
