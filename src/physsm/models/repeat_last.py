"""The last measurement of each channel, for all of the future."""

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
from physsm.models._baseline.origins import Origins, channel_points


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FittedRepeatLast(AbstractBaseline):
    """Nothing is learned but the size of the errors."""

    name: ClassVar[str] = "repeat_last"

    def _mean(self, panel: Panel, origins: Origins) -> Float[np.ndarray, "origins steps channels"]:
        values = np.tile(self.usual.mean, (len(origins.row), 1))
        for channel in range(len(panel.channels)):
            points = channel_points(panel, channel, origins)
            known = points.exists
            values[known, channel] = points.values[points.last[known]]
        return np.repeat(values[:, None], origins.times.shape[1], axis=1)


@final
class RepeatLast(BaselineForecaster):
    """Repeat the last measurement; a channel that was never measured has its training mean."""

    name: ClassVar[str] = "repeat_last"
    controls: ClassVar[bool] = False
    Config: ClassVar[type[BaseModel]] = HorizonConfig
    Fitted: ClassVar[type[AbstractFitted]] = FittedRepeatLast


MODEL = RepeatLast
