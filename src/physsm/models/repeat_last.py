"""Last measurement of each channel at all future times."""

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
    """Repeated measurements; only the spread of the errors is fitted."""

    name: ClassVar[str] = "repeat_last"

    def _mean(self, panel: Panel, origins: Origins) -> Float[np.ndarray, "origins steps channels"]:
        values = np.tile(self.channel_scales.mean, (len(origins.step), 1))
        for channel in range(len(panel.channels)):
            points = channel_points(panel, channel, origins)
            values[points.exists, channel] = points.values[points.last[points.exists]]
        return np.repeat(values[:, None], origins.times.shape[1], axis=1)


@final
class RepeatLast(BaselineForecaster):
    """The last measurement; the training mean for a channel without measurements."""

    name: ClassVar[str] = "repeat_last"
    controls: ClassVar[bool] = False
    Config: ClassVar[type[BaseModel]] = HorizonConfig
    Fitted: ClassVar[type[AbstractFitted]] = FittedRepeatLast


MODEL = RepeatLast
