"""Constant velocity: a thing in a plane goes on straight ahead.

    p(t) = p + v t

with position and velocity of the least-squares line through the last positions. `line` treats its
channels one by one; here the two axes are one position: measured together, with one number of
points for both, chosen by the distance between forecast and measurement. A forecast therefore does
not depend on where the axes point. Heading and velocities stay as last measured.
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
from physsm.models._baseline.tracks import AbstractTracks, Track, Trail, tracks_of, with_points


class Config(BaseModel):
    """- `tracks`: the channels of each moving thing, as `positions`, `heading` and `velocities`;
      by default the only two channels are the positions of one.
    - `points`: how many of the last positions the line may go through; for each track the number
      with the least squared distance in validation is taken.
    - `horizon`: rows ahead that count in validation and behind the intervals; by default a quarter
      of the median series (with fewer than five series a twelfth), at most 100.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tracks: tuple[Track, ...] = ()
    points: tuple[Annotated[int, Field(ge=2)], ...] = Field((2, 3, 5, 8, 12, 20), min_length=1)
    horizon: int | None = Field(None, ge=1)


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FittedConstantVelocity(AbstractTracks):
    """Nothing turns."""

    name: ClassVar[str] = "constant_velocity"

    def _turn(
        self, panel: Panel, origins: Origins, track: Track, trail: Trail, time: np.ndarray
    ) -> tuple[Float[np.ndarray, " origins"], Float[np.ndarray, " origins"] | None]:
        return np.zeros(len(time)), None


@final
class ConstantVelocity(BaselineForecaster):
    """Straight ahead at the velocity of the last positions."""

    name: ClassVar[str] = "constant_velocity"
    controls: ClassVar[bool] = False
    Config: ClassVar[type[BaseModel]] = Config
    Fitted: ClassVar[type[AbstractFitted]] = FittedConstantVelocity

    def fit(self, train: Any, validation: Any = None, *, seed: int = 0) -> FittedConstantVelocity:
        """Choose the numbers of points, and measure the errors for the intervals."""
        parts = training_parts(train, validation, self.system, self.config.horizon, seed)
        tracks = tracks_of(self.config.tracks, parts.train.channels)
        fitted = FittedConstantVelocity(
            **common_fields(parts.train), tracks=tracks, points=(2,) * len(tracks)
        )
        held_out = fitted.check(parts.validation)
        fitted = with_points(fitted, self.config.points, held_out, parts.horizon)
        return with_intervals(fitted, parts.train, held_out, parts.horizon)


MODEL = ConstantVelocity
