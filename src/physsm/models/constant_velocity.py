"""Constant velocity: an object in a plane continues straight ahead.

    p(t) = p + v t

with position and velocity of the least-squares line through the last positions. The model `line`
treats its channels one by one. Here the two axes are one position: measured together, with one
number of points for both, chosen by the distance between forecast and measurement. A forecast
therefore does not depend on the orientation of the axes. Heading and velocities repeat their last
measurement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import numpy as np
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, Field

from physsm._values import Panel
from physsm.models._base import AbstractFitted
from physsm.models._baseline.forecaster import (
    BaselineForecaster,
    common_fields,
    training_parts,
    with_intervals,
)
from physsm.models._baseline.origins import Origins
from physsm.models._baseline.tracks import (
    AbstractTracks,
    LastPositions,
    Track,
    tracks_of,
    with_points,
)


class Config(BaseModel):
    """- `tracks`: the channels of each moving object, as `positions`, `heading` and `velocities`.
      By default the only two channels are the positions of one.
    - `points`: candidates for the number of last positions that the line is fitted to. For each
      track the number with the least squared distance in validation is chosen.
    - `horizon`: time steps of the forecasts in validation and for the intervals. By default a
      quarter of the median series, at most 100; with fewer than five series a tenth, at most 300.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tracks: tuple[Track, ...] = ()
    points: tuple[Annotated[int, Field(ge=2)], ...] = Field((2, 3, 5, 8, 12, 20), min_length=1)
    horizon: int | None = Field(None, ge=1)


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FittedConstantVelocity(AbstractTracks):
    """Straight motion: the turn rate is zero."""

    name: ClassVar[str] = "constant_velocity"

    def _turn_rate_and_heading(
        self, panel: Panel, origins: Origins, track: Track, last: LastPositions, time: np.ndarray
    ) -> tuple[Float[np.ndarray, " origins"], Float[np.ndarray, " origins"] | None]:
        return np.zeros(len(time)), None


@final
class ConstantVelocity(BaselineForecaster):
    """Straight motion at the velocity of the last positions."""

    name: ClassVar[str] = "constant_velocity"
    controls: ClassVar[bool] = False
    Config: ClassVar[type[BaseModel]] = Config
    Fitted: ClassVar[type[AbstractFitted]] = FittedConstantVelocity

    def fit(self, train: Any, validation: Any = None, *, seed: int = 0) -> FittedConstantVelocity:
        """Choose the numbers of points, and fit the intervals."""
        parts = training_parts(train, validation, self.system, self.config.horizon, seed)
        tracks = tracks_of(self.config.tracks, parts.train.channels)
        fitted = FittedConstantVelocity(
            **common_fields(parts.train), tracks=tracks, points=(2,) * len(tracks)
        )
        validation = fitted.check(parts.validation)
        fitted = with_points(fitted, self.config.points, validation, parts.horizon)
        return with_intervals(fitted, parts.train, validation, parts.horizon)


MODEL = ConstantVelocity
