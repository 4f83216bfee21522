"""Constant speed and turn rate: an object in a plane continues along its arc.

    p(t) = p + v (exp(iwt) - 1)/(iw),    heading(t) = heading + w t

in complex numbers. The turn rate w is the slope of the directions between the last positions over
time. On an arc this is exact for any gaps: the direction from one point to the next is the heading
halfway. Directions are weighted by their squared lengths, because measurement noise rotates a short
distance more than a long one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, final

import numpy as np
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, Field

from physsm._errors import ConfigError
from physsm._values import Panel
from physsm.models._base import AbstractFitted
from physsm.models._baseline.forecaster import (
    BaselineForecaster,
    common_fields,
    training_parts,
    with_intervals,
)
from physsm.models._baseline.last_line import last_points, slope_and_level
from physsm.models._baseline.origins import Origins, channel_points
from physsm.models._baseline.tracks import (
    AbstractTracks,
    LastPositions,
    Track,
    fit_motion,
    tracks_of,
    with_points,
)
from physsm.models._files import Stored

TurnFrom = Literal["positions", "heading"]


class Config(BaseModel):
    """- `tracks`: the channels of each moving object, as `positions`, `heading` (radians) and
      `velocities`. By default the only two channels are the positions of one.
    - `turn_from`: "heading" takes direction and turn rate from the track's heading channel instead
      of the positions.
    - `least_speed`: a slower track (in the units of the table, such as m/s) continues straight
      ahead, because directions between its positions are noise. It does not apply to a measured
      heading.
    - `points`: candidates for the number of last positions (and headings). For each track the
      number with the least squared distance in validation is chosen.
    - `horizon`: time steps of the forecasts in validation and for the intervals. By default a
      quarter of the median series, at most 100; with fewer than five series a tenth, at most 300.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tracks: tuple[Track, ...] = ()
    turn_from: TurnFrom = "positions"
    least_speed: float = Field(0.5, ge=0, allow_inf_nan=False)
    points: tuple[Annotated[int, Field(ge=2)], ...] = Field((3, 4, 5, 8, 12, 20), min_length=1)
    horizon: int | None = Field(None, ge=1)


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FittedConstantTurnRate(AbstractTracks):
    """Motion along arcs; `turn_from` and `least_speed` are the settings."""

    name: ClassVar[str] = "constant_turn_rate"
    turn_from: TurnFrom
    least_speed: float

    def _turn_rate_and_heading(
        self, panel: Panel, origins: Origins, track: Track, last: LastPositions, time: np.ndarray
    ) -> tuple[Float[np.ndarray, " origins"], Float[np.ndarray, " origins"] | None]:
        if self.turn_from == "heading" and track.heading is not None:
            channel = panel.channels.index(track.heading)
            return _turn_rate_of_heading(panel, channel, origins, last.t.shape[1], time)
        # The speed of the line through all points: noise cancels there, not from point to point.
        _, straight = fit_motion(last, np.zeros(len(time)))
        is_fast = np.abs(straight) >= self.least_speed
        return np.where(is_fast, _turn_rate_of_positions(last), 0), None

    def describe(self) -> dict[str, Any]:
        """The tracks, the chosen number of points of each, and the settings of the turn rate."""
        own = {"turn_from": self.turn_from, "least_speed": self.least_speed}
        return {**super().describe(), **own}

    @classmethod
    def _own_fields(cls, stored: Stored) -> dict[str, Any]:
        own = {name: stored.description[name] for name in ("turn_from", "least_speed")}
        Config.model_validate(own)
        return {**super()._own_fields(stored), **own}


def _turn_rate_of_positions(last: LastPositions) -> Float[np.ndarray, " origins"]:
    """Slope of the directions between successive positions; 0 with fewer than three."""
    moved = np.where(last.used[:, 1:], last.p[:, :-1] - last.p[:, 1:], 0)
    halfway = (last.t[:, :-1] + last.t[:, 1:]) / 2
    turned = np.angle(moved[:, :-1] * moved[:, 1:].conj())
    direction = np.concatenate([np.zeros((len(moved), 1)), -turned.cumsum(1)], 1)
    return slope_and_level(halfway, direction, np.abs(moved) ** 2)[0]


def _turn_rate_of_heading(
    panel: Panel, channel: int, origins: Origins, most: int, time: Float[np.ndarray, " origins"]
) -> tuple[Float[np.ndarray, " origins"], Float[np.ndarray, " origins"]]:
    """Slope of the line through the last headings, and its value at `time`; 0 and NaN without any.

    Jumps of headings by whole turns are removed.
    """
    points = channel_points(panel, channel, origins)
    if not len(points.times):
        return np.zeros(len(time)), np.full(len(time), np.nan)
    chosen, used = last_points(points, most)
    t = np.where(used, points.times[chosen] - points.times[points.last, None], 0)
    raw = points.values[chosen]
    turned = np.where(used[:, 1:], raw[:, :-1] - raw[:, 1:], 0)
    turned = np.angle(np.exp(1j * turned))
    heading = np.concatenate([np.zeros((len(raw), 1)), -turned.cumsum(1)], 1)
    rate, level = slope_and_level(t, heading, used.astype(float))
    at_time = points.values[points.last] + level + rate * (time - points.times[points.last])
    return np.where(points.exists, rate, 0), np.where(points.exists, at_time, np.nan)


@final
class ConstantTurnRate(BaselineForecaster):
    """Motion along the arc of the last positions."""

    name: ClassVar[str] = "constant_turn_rate"
    controls: ClassVar[bool] = False
    Config: ClassVar[type[BaseModel]] = Config
    Fitted: ClassVar[type[AbstractFitted]] = FittedConstantTurnRate

    def fit(self, train: Any, validation: Any = None, *, seed: int = 0) -> FittedConstantTurnRate:
        """Choose the numbers of points, and fit the intervals."""
        config = self.config
        parts = training_parts(train, validation, self.system, config.horizon, seed)
        tracks = tracks_of(config.tracks, parts.train.channels)
        without = [track.positions for track in tracks if track.heading is None]
        if config.turn_from == "heading" and without:
            raise ConfigError(
                f"turn_from is heading, and the track of {' and '.join(without[0])} has none: name "
                "the channel of its heading in the setting tracks"
            )
        fitted = FittedConstantTurnRate(
            **common_fields(parts.train),
            tracks=tracks,
            points=(config.points[0],) * len(tracks),
            turn_from=config.turn_from,
            least_speed=config.least_speed,
        )
        validation = fitted.check(parts.validation)
        fitted = with_points(fitted, config.points, validation, parts.horizon)
        return with_intervals(fitted, parts.train, validation, parts.horizon)


MODEL = ConstantTurnRate
