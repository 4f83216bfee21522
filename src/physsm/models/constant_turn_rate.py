"""Constant speed and turn rate: a thing in a plane goes on along the arc that it is on.

    p(t) = p + v (exp(iwt) - 1)/(iw),    heading(t) = heading + w t

in complex numbers. The turn rate w comes from the directions between the last positions: on an arc,
the direction from one point to the next is the heading halfway, whatever the gaps, so that the
slope of these directions over time is w exactly. Directions count by the squares of their lengths,
because measurement noise turns a short way more than a long one.
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
    Track,
    Trail,
    through,
    tracks_of,
    with_points,
)
from physsm.models._files import Stored

TurnFrom = Literal["positions", "heading"]


class Config(BaseModel):
    """- `tracks`: the channels of each moving thing, as `positions`, `heading` (radians) and
      `velocities`; by default the only two channels are the positions of one.
    - `turn_from`: "heading" takes the direction and its rate from the track's heading channel
      instead of the positions.
    - `least_speed`: below it (0.5 in the units of the table, such as m/s) a track goes straight on:
      directions between positions are noise then. A measured heading is not: there it has no part.
    - `points`: how many of the last positions (and headings) may be used; for each track the number
      with the least squared distance in validation is taken.
    - `horizon`: rows ahead that count in validation and behind the intervals; by default a quarter
      of the median series (with fewer than five series a twelfth), at most 100.
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
    """`least_speed` as in the settings."""

    name: ClassVar[str] = "constant_turn_rate"
    turn_from: TurnFrom
    least_speed: float

    def _turn(
        self, panel: Panel, origins: Origins, track: Track, trail: Trail, time: np.ndarray
    ) -> tuple[Float[np.ndarray, " origins"], Float[np.ndarray, " origins"] | None]:
        if self.turn_from == "heading" and track.heading is not None:
            channel = panel.channels.index(track.heading)
            return _turn_of_heading(panel, channel, origins, trail.t.shape[1], time)
        # The speed of the straight line: noise cancels there, and does not along the way.
        _, straight = through(trail, np.zeros(len(time)))
        is_fast = np.abs(straight) >= self.least_speed
        return np.where(is_fast, _turn_of_positions(trail), 0), None

    def describe(self) -> dict[str, Any]:
        """The tracks, the chosen numbers of points, and where the turn comes from."""
        own = {"turn_from": self.turn_from, "least_speed": self.least_speed}
        return {**super().describe(), **own}

    @classmethod
    def _own_fields(cls, stored: Stored) -> dict[str, Any]:
        own = {name: stored.description[name] for name in ("turn_from", "least_speed")}
        Config.model_validate(own)
        return {**super()._own_fields(stored), **own}


def _turn_of_positions(trail: Trail) -> Float[np.ndarray, " origins"]:
    """The slope of the directions between successive positions; 0 with fewer than three."""
    way = np.where(trail.used[:, 1:], trail.p[:, :-1] - trail.p[:, 1:], 0)
    halfway = (trail.t[:, :-1] + trail.t[:, 1:]) / 2
    turned = np.angle(way[:, :-1] * way[:, 1:].conj())
    direction = np.concatenate([np.zeros((len(way), 1)), -turned.cumsum(1)], 1)
    return slope_and_level(halfway, direction, np.abs(way) ** 2)[0]


def _turn_of_heading(
    panel: Panel, channel: int, origins: Origins, most: int, time: Float[np.ndarray, " origins"]
) -> tuple[Float[np.ndarray, " origins"], Float[np.ndarray, " origins"]]:
    """Slope of the last headings and their line at `time`; 0 and NaN without any.

    Headings that jump by whole turns are made continuous.
    """
    points = channel_points(panel, channel, origins)
    if not len(points.times):
        return np.zeros(len(time)), np.full(len(time), np.nan)
    place, used = last_points(points, most)
    t = np.where(used, points.times[place] - points.times[points.last, None], 0)
    raw = points.values[place]
    turned = np.where(used[:, 1:], raw[:, :-1] - raw[:, 1:], 0)
    turned = np.angle(np.exp(1j * turned))
    heading = np.concatenate([np.zeros((len(raw), 1)), -turned.cumsum(1)], 1)
    rate, level = slope_and_level(t, heading, used.astype(float))
    there = points.values[points.last] + level + rate * (time - points.times[points.last])
    return np.where(points.exists, rate, 0), np.where(points.exists, there, np.nan)


@final
class ConstantTurnRate(BaselineForecaster):
    """On along the arc of the last positions."""

    name: ClassVar[str] = "constant_turn_rate"
    controls: ClassVar[bool] = False
    Config: ClassVar[type[BaseModel]] = Config
    Fitted: ClassVar[type[AbstractFitted]] = FittedConstantTurnRate

    def fit(self, train: Any, validation: Any = None, *, seed: int = 0) -> FittedConstantTurnRate:
        """Choose the numbers of points, and measure the errors for the intervals."""
        config = self.config
        parts = training_parts(train, validation, self.system, config.horizon, seed)
        tracks = tracks_of(config.tracks, parts.train.channels)
        without = [track.positions for track in tracks if track.heading is None]
        if config.turn_from == "heading" and without:
            raise ConfigError(
                f"turn_from is heading, and the track of {' and '.join(without[0])} has none: "
                "write its channel into the setting tracks, as heading"
            )
        fitted = FittedConstantTurnRate(
            **common_fields(parts.train),
            tracks=tracks,
            points=(config.points[0],) * len(tracks),
            turn_from=config.turn_from,
            least_speed=config.least_speed,
        )
        held_out = fitted.check(parts.validation)
        fitted = with_points(fitted, config.points, held_out, parts.horizon)
        return with_intervals(fitted, parts.train, held_out, parts.horizon)


MODEL = ConstantTurnRate
