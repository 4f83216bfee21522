"""Least-squares line through the last measurements of each channel."""

from __future__ import annotations

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

_CHOICE_ORIGINS = 400  # forecasts by which the number of points is chosen


class Config(BaseModel):
    """- `points`: candidates for the number of last measurements that the line is fitted to. For
      each channel the number with the least squared error in validation is chosen.
    - `horizon`: time steps of the forecasts in validation and for the intervals. By default a
      quarter of the median series, at most 100; with fewer than five series a tenth, at most 300.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    points: tuple[Annotated[int, Field(ge=2)], ...] = Field(
        (2, 3, 5, 8, 12, 20, 40, 80), min_length=1
    )
    horizon: int | None = Field(None, ge=1)


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FittedLine(AbstractBaseline):
    """Lines of channels: that of channel c is fitted to the last `points[c]` measurements."""

    name: ClassVar[str] = "line"
    points: tuple[int, ...]

    def _mean(self, panel: Panel, origins: Origins) -> Float[np.ndarray, "origins steps channels"]:
        return extrapolate(
            panel, origins, self.points, self.channel_scales.mean, lambda _, lead: lead
        )

    def describe(self) -> dict[str, Any]:
        """The chosen number of points of each channel."""
        return {"points": list(self.points)}

    @classmethod
    def _own_fields(cls, stored: Stored) -> dict[str, Any]:
        points = tuple(int(number) for number in stored.description["points"])
        if len(points) != len(stored.interface.channels) or min(points) < 2:
            raise ValueError(f"the numbers of points are {points}")
        return {"points": points}


@final
class Line(BaselineForecaster):
    """Line through the last measurements; the training mean for a channel without measurements."""

    name: ClassVar[str] = "line"
    controls: ClassVar[bool] = False
    Config: ClassVar[type[BaseModel]] = Config
    Fitted: ClassVar[type[AbstractFitted]] = FittedLine

    def fit(self, train: Any, validation: Any = None, *, seed: int = 0) -> FittedLine:
        """Choose the numbers of points, and fit the intervals."""
        parts = training_parts(train, validation, self.system, self.config.horizon, seed)
        channels = len(parts.train.channels)
        fitted = FittedLine(
            **common_fields(parts.train), points=(self.config.points[0],) * channels
        )
        validation = fitted.check(parts.validation)
        candidates = [replace(fitted, points=(n,) * channels) for n in self.config.points]
        errors = [squared_errors(c, validation, parts.horizon, _CHOICE_ORIGINS) for c in candidates]
        best = np.argmin(errors, axis=0)
        fitted = replace(fitted, points=tuple(self.config.points[k] for k in best))
        return with_intervals(fitted, parts.train, validation, parts.horizon)


MODEL = Line
