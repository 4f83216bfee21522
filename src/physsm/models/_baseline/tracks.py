"""Positions in a plane: a motion with constant speed and turn rate through the last of them.

A position is the complex number x + iy. With a turn rate w the path around its last point is

    p(t) = p + v (exp(iwt) - 1)/(iw)

which is linear in p and the complex velocity v: both follow by least squares once w is known, and
without a turn this is the straight line through the points. Nothing depends on where the axes of
the plane point.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Bool, Complex, Float
from pydantic import BaseModel, ConfigDict

from physsm._errors import DataError, did_you_mean
from physsm._values import Panel
from physsm.models._baseline.forecaster import AbstractBaseline, squared_errors
from physsm.models._baseline.last_line import last_line, last_points
from physsm.models._baseline.origins import Origins, Points, channel_points
from physsm.models._files import Stored

_CHOICE_ORIGINS = 400  # forecasts that decide how many points are used


class Track(BaseModel):
    """The channels of one moving thing.

    `positions`: along the two axes. `heading`: in radians, from the first axis towards the second.
    `velocities`: along the axes, in units of the positions per unit of time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    positions: tuple[str, str]
    heading: str | None = None
    velocities: tuple[str, str] | None = None

    @property
    def channels(self) -> tuple[str, ...]:
        """All its channels."""
        heading = () if self.heading is None else (self.heading,)
        return (*self.positions, *heading, *(self.velocities or ()))


def tracks_of(written: Sequence[Track], channels: Sequence[str]) -> tuple[Track, ...]:
    """The tracks as written; without any, the only two channels are positions."""
    if not written:
        if len(channels) != 2:
            raise DataError(
                f"a position has two channels, and the table has {', '.join(channels)}",
                hint="name those of positions in the setting tracks, or take the model line",
            )
        return (Track(positions=(channels[0], channels[1])),)
    names = [name for track in written for name in track.channels]
    for name in names:
        if name not in channels:
            hint = did_you_mean(name, channels) or f"it has {', '.join(channels)}"
            raise DataError(f"the table has no channel {name} of the setting tracks", hint=hint)
        if names.count(name) > 1:
            raise DataError(f"the channel {name} is twice in the setting tracks")
    return tuple(written)


class Trail(NamedTuple):
    """The last positions of each origin, the latest first, relative to the very last.

    `t` counts from the time of the last, too. Unused places are 0.
    """

    t: Float[np.ndarray, "origins points"]
    p: Complex[np.ndarray, "origins points"]
    used: Bool[np.ndarray, "origins points"]


class Motion(NamedTuple):
    """Where each origin's track was at its last point, its velocity then and its turn rate."""

    time: Float[np.ndarray, " origins"]
    position: Complex[np.ndarray, " origins"]
    velocity: Complex[np.ndarray, " origins"]
    turn_rate: Float[np.ndarray, " origins"]
    exists: Bool[np.ndarray, " origins"]


def arc(
    turn_rate: Float[np.ndarray, " origins"], t: Float[np.ndarray, "origins steps"]
) -> Complex[np.ndarray, "origins steps"]:
    """The way in a time t at velocity 1: (exp(iwt) - 1)/(iw), and t without a turn."""
    half = turn_rate[:, None] * t / 2
    return t * np.sinc(half / np.pi) * np.exp(1j * half)


def through(
    trail: Trail,
    turn_rate: Float[np.ndarray, " origins"],
    heading: Float[np.ndarray, " origins"] | None = None,
) -> tuple[Complex[np.ndarray, " origins"], Complex[np.ndarray, " origins"]]:
    """Least-squares position and velocity at the last point, the position relative to it.

    A NaN in `heading` leaves the direction free; elsewhere only the speed along it is fitted.
    """
    count = np.maximum(trail.used.sum(1), 1)
    way = np.where(trail.used, arc(turn_rate, trail.t), 0)
    way_mean, p_mean = way.sum(1) / count, trail.p.sum(1) / count
    centred = np.where(trail.used, way - way_mean[:, None], 0)
    square = (np.abs(centred) ** 2).sum(1)
    velocity = (centred.conj() * trail.p).sum(1) / np.where(square > 0, square, 1)
    if heading is not None:
        free = np.isnan(heading)
        ahead = np.exp(1j * np.where(free, 0, heading))
        velocity = np.where(free, velocity, ahead * (velocity * ahead.conj()).real)
    return p_mean - velocity * way_mean, velocity


def paired(panel: Panel, names: tuple[str, str], origins: Origins) -> tuple[Points, Points]:
    """The points of two channels where both were measured."""
    both = panel.only(names)
    missing = np.isnan(both.values).any(2, keepdims=True)
    both = replace(both, values=np.where(missing, np.nan, both.values))
    return channel_points(both, 0, origins), channel_points(both, 1, origins)


@dataclass(frozen=True, eq=False, kw_only=True)
class AbstractTracks(AbstractBaseline):
    """A fitted model of tracks. Through the last `points[k]` positions of track k goes a motion;
    a subclass says how it turns.

    The track's heading turns with it, and so do its velocities. All other channels, and positions
    that were never measured together, stay as last measured.
    """

    tracks: tuple[Track, ...]
    points: tuple[int, ...]

    @abc.abstractmethod
    def _turn(
        self, panel: Panel, origins: Origins, track: Track, trail: Trail, time: np.ndarray
    ) -> tuple[Float[np.ndarray, " origins"], Float[np.ndarray, " origins"] | None]:
        """The turn rate, and the heading at each origin's last position (`time`) if it is known
        from elsewhere than the positions; NaN where it is not.
        """

    def _motion(self, panel: Panel, origins: Origins, track: Track, most: int) -> Motion:
        x, y = paired(panel, track.positions, origins)
        if not len(x.times):
            nothing = np.zeros(len(origins.row))
            return Motion(nothing, nothing + 0j, nothing + 0j, nothing, x.exists)
        place, used = last_points(x, most)
        t = np.where(used, x.times[place] - x.times[x.last, None], 0)
        p = (
            x.values[place]
            - x.values[x.last, None]
            + 1j * (y.values[place] - y.values[x.last, None])
        )
        trail = Trail(t, np.where(used, p, 0), used)
        time = x.times[x.last]
        turn_rate, heading = self._turn(panel, origins, track, trail, time)
        position, velocity = through(trail, turn_rate, heading)
        position += x.values[x.last] + 1j * y.values[x.last]
        return Motion(time, position, velocity, turn_rate, x.exists)

    def _mean(self, panel: Panel, origins: Origins) -> Float[np.ndarray, "origins steps channels"]:
        mean = np.empty((*origins.times.shape, len(panel.channels)))
        since = np.zeros((len(origins.row), len(panel.channels)))
        for channel in range(len(panel.channels)):
            points = channel_points(panel, channel, origins)
            mean[..., channel] = self.usual.mean[channel]
            if len(points.times):
                last = last_line(points, 1)
                held = np.where(points.exists, last.level, self.usual.mean[channel])
                mean[..., channel], since[:, channel] = held[:, None], last.time
        for track, most in zip(self.tracks, self.points, strict=True):
            motion = self._motion(panel, origins, track, most)
            ahead = origins.times - motion.time[:, None]
            there = motion.velocity[:, None] * arc(motion.turn_rate, ahead)
            there += motion.position[:, None]
            self._place(mean, panel, track.positions, there, motion.exists)
            if track.heading is not None:
                channel = panel.channels.index(track.heading)
                ahead = origins.times - since[:, [channel]]
                mean[..., channel] += motion.turn_rate[:, None] * ahead
            if track.velocities is not None:
                x, y = paired(panel, track.velocities, origins)
                if len(x.times):
                    ahead = origins.times - x.times[x.last, None]
                    last = (x.values[x.last] + 1j * y.values[x.last])[:, None]
                    turned = last * np.exp(1j * motion.turn_rate[:, None] * ahead)
                    self._place(mean, panel, track.velocities, turned, x.exists)
        return mean

    @staticmethod
    def _place(
        mean: np.ndarray,
        panel: Panel,
        names: tuple[str, str],
        values: Complex[np.ndarray, "origins steps"],
        exists: np.ndarray,
    ) -> None:
        for name, part in zip(names, (np.real(values), np.imag(values)), strict=True):
            channel = panel.channels.index(name)
            mean[..., channel] = np.where(exists[:, None], part, mean[..., channel])

    def describe(self) -> dict[str, Any]:
        """The tracks, and the chosen numbers of points."""
        return {
            "tracks": [track.model_dump(mode="json") for track in self.tracks],
            "points": list(self.points),
        }

    @classmethod
    def _own_fields(cls, stored: Stored) -> dict[str, Any]:
        tracks = tuple(Track.model_validate(track) for track in stored.description["tracks"])
        tracks = tracks_of(tracks, stored.interface.channels)
        points = tuple(int(number) for number in stored.description["points"])
        if len(points) != len(tracks) or min(points) < 2:
            raise ValueError(f"the numbers of points are {points}")
        return {"tracks": tracks, "points": points}


T = TypeVar("T", bound=AbstractTracks)


def with_points(fitted: T, choices: Sequence[int], validation: Panel, horizon: int) -> T:
    """The model with the number of points, for each track, that has the least squared distance.

    Both axes count in their own unit, and not in their scales: a turned frame would choose the
    same.
    """
    tracks = len(fitted.tracks)
    errors = [
        squared_errors(
            replace(fitted, points=(most,) * tracks), validation, horizon, _CHOICE_ORIGINS
        )
        * fitted.usual.scale**2
        for most in choices
    ]
    chosen = []
    for track in fitted.tracks:
        axes = [validation.channels.index(name) for name in track.positions]
        chosen.append(choices[int(np.argmin([error[axes].sum() for error in errors]))])
    return replace(fitted, points=tuple(chosen))
