"""Damped trend: the line through the last measurements, with a slope that decays with time.

The forecast a time t after the last measurement of a channel is

    level + slope * tau * (1 - exp(-t/tau))

with level and slope of the least-squares line there. It starts like the line and converges to
`level + slope*tau`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, final

import numpy as np
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, Field

from physsm._values import Panel
from physsm.models._base import AbstractFitted
from physsm.models._baseline.forecaster import (
    AbstractBaseline,
    BaselineForecaster,
    common_fields,
    squared_errors,
    training_parts,
    with_intervals,
)
from physsm.models._baseline.last_line import extrapolate
from physsm.models._baseline.origins import Origins
from physsm.models._files import Stored

_CHOICE_ORIGINS = 400  # forecasts by which points and damping are chosen


class Config(BaseModel):
    """- `points`: candidates for the number of last measurements that the line is fitted to.
    - `dampings`: candidates for the time constant of the slope, in median gaps of the training
      series. For each channel the pair with the least squared error in validation is chosen.
    - `horizon`: time steps of the forecasts in validation and for the intervals. By default a
      quarter of the median series, at most 100; with fewer than five series a tenth, at most 300.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    points: tuple[Annotated[int, Field(ge=2)], ...] = Field(
        (2, 3, 5, 8, 12, 20, 40, 80), min_length=1
    )
    dampings: tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], ...] = Field(
        (1.0, 3.0, 10.0, 30.0, 100.0), min_length=1
    )
    horizon: int | None = Field(None, ge=1)


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FittedDamped(AbstractBaseline):
    """Damped lines of channels: that of channel c is fitted to the last `points[c]` measurements,
    and its tau is `dampings[c]` median gaps.
    """

    name: ClassVar[str] = "damped"
    points: tuple[int, ...]
    dampings: tuple[float, ...]

    def _mean(self, panel: Panel, origins: Origins) -> Float[np.ndarray, "origins steps channels"]:
        def trend(channel: int, lead: np.ndarray) -> np.ndarray:
            tau = self.dampings[channel] * self.interface.median_gap
            return -tau * np.expm1(-lead / tau)

        return extrapolate(panel, origins, self.points, self.channel_scales.mean, trend)

    def describe(self) -> dict[str, Any]:
        """The chosen settings of each channel."""
        return {"points": list(self.points), "dampings": list(self.dampings)}

    @classmethod
    def _own_fields(cls, stored: Stored) -> dict[str, Any]:
        points = tuple(int(number) for number in stored.description["points"])
        dampings = tuple(float(number) for number in stored.description["dampings"])
        channels = len(stored.interface.channels)
        if not len(points) == len(dampings) == channels or min(points) < 2:
            raise ValueError(f"the numbers of points are {points}, the dampings {dampings}")
        if not all(0 < damping < np.inf for damping in dampings):
            raise ValueError(f"the dampings are {dampings}")
        return {"points": points, "dampings": dampings}


@final
class Damped(BaselineForecaster):
    """Damped trend; the training mean for a channel without measurements."""

    name: ClassVar[str] = "damped"
    controls: ClassVar[bool] = False
    Config: ClassVar[type[BaseModel]] = Config
    Fitted: ClassVar[type[AbstractFitted]] = FittedDamped

    def fit(self, train: Any, validation: Any = None, *, seed: int = 0) -> FittedDamped:
        """Choose points and damping, and fit the intervals."""
        parts = training_parts(train, validation, self.system, self.config.horizon, seed)
        channels = len(parts.train.channels)
        pairs = list(itertools.product(self.config.points, self.config.dampings))
        fields = common_fields(parts.train)
        candidates = [
            FittedDamped(**fields, points=(n,) * channels, dampings=(tau,) * channels)
            for n, tau in pairs
        ]
        validation = candidates[0].check(parts.validation)
        errors = [squared_errors(c, validation, parts.horizon, _CHOICE_ORIGINS) for c in candidates]
        points, dampings = zip(*(pairs[k] for k in np.argmin(errors, axis=0)), strict=True)
        fitted = replace(candidates[0], points=points, dampings=dampings)
        return with_intervals(fitted, parts.train, validation, parts.horizon)


MODEL = Damped
