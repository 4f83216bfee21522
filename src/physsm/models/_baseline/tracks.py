"""Tracks in a plane: motion with constant speed and turn rate, fitted to the last positions.

A position is the complex number x + iy. With a turn rate w the trajectory around its last point is

    p(t) = p + v (exp(iwt) - 1)/(iw)

which is linear in p and the complex velocity v. Both follow by least squares once w is known. With
w = 0 this is the least-squares line. The forecast does not depend on the orientation of the axes.
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

_CHOICE_ORIGINS = 400  # forecasts by which the number of points is chosen


class Track(BaseModel):
    """The channels of one moving object.

    `positions`: along both axes. `heading`: in radians, from the first axis towards the second.
    `velocities`: along the axes, in units of the positions per unit of time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    positions: tuple[str, str]
    heading: str | None = None
    velocities: tuple[str, str] | None = None

    @property
    def channels(self) -> tuple[str, ...]:
        """All channels of the track."""
        heading = () if self.heading is None else (self.heading,)
        return (*self.positions, *heading, *(self.velocities or ()))


def tracks_of(given: Sequence[Track], channels: Sequence[str]) -> tuple[Track, ...]:
    """The tracks of the settings, checked; by default the only two channels are positions."""
    if not given:
        if len(channels) != 2:
            raise DataError(
                f"a position has two channels, and the table has {', '.join(channels)}",
                hint="name the channels of positions in the setting tracks, or use the model line",
            )
        return (Track(positions=(channels[0], channels[1])),)
    names = [name for track in given for name in track.channels]
    for name in names:
        if name not in channels:
            hint = did_you_mean(name, channels) or f"it has {', '.join(channels)}"
            raise DataError(f"the table has no channel {name} of the setting tracks", hint=hint)
        if names.count(name) > 1:
            raise DataError(f"the channel {name} occurs twice in the setting tracks")
    return tuple(given)


class LastPositions(NamedTuple):
    """The last positions of each origin, the latest first, relative to the latest.

    `t` is relative to the time of the latest. Unused entries are 0.
    """

    t: Float[np.ndarray, "origins points"]
    p: Complex[np.ndarray, "origins points"]
    used: Bool[np.ndarray, "origins points"]


class Motion(NamedTuple):
    """Time, position and velocity of each origin's track at its last point, and its turn rate."""

    time: Float[np.ndarray, " origins"]
    position: Complex[np.ndarray, " origins"]
    velocity: Complex[np.ndarray, " origins"]
    turn_rate: Float[np.ndarray, " origins"]
    exists: Bool[np.ndarray, " origins"]


def displacement(
    turn_rate: Float[np.ndarray, " origins"], t: Float[np.ndarray, "origins steps"]
) -> Complex[np.ndarray, "origins steps"]:
    """Displacement after a time t at velocity 1: (exp(iwt) - 1)/(iw), and t for w = 0."""
    half = turn_rate[:, None] * t / 2
    return t * np.sinc(half / np.pi) * np.exp(1j * half)


def fit_motion(
    last: LastPositions,
    turn_rate: Float[np.ndarray, " origins"],
    heading: Float[np.ndarray, " origins"] | None = None,
) -> tuple[Complex[np.ndarray, " origins"], Complex[np.ndarray, " origins"]]:
    """Least-squares position and velocity at the last point, the position relative to it.

    Where `heading` is not NaN, the velocity has that direction, and only the speed is fitted.
    """
    count = np.maximum(last.used.sum(1), 1)
    moved = np.where(last.used, displacement(turn_rate, last.t), 0)
    moved_mean, p_mean = moved.sum(1) / count, last.p.sum(1) / count
    centred = np.where(last.used, moved - moved_mean[:, None], 0)
    square = (np.abs(centred) ** 2).sum(1)
    velocity = (centred.conj() * last.p).sum(1) / np.where(square > 0, square, 1)
    if heading is not None:
        free = np.isnan(heading)
        direction = np.exp(1j * np.where(free, 0, heading))
        velocity = np.where(free, velocity, direction * (velocity * direction.conj()).real)
    return p_mean - velocity * moved_mean, velocity


def joint_points(panel: Panel, names: tuple[str, str], origins: Origins) -> tuple[Points, Points]:
    """The points of two channels at time steps where both were measured."""
    both = panel.only(names)
    missing = np.isnan(both.values).any(2, keepdims=True)
    both = replace(both, values=np.where(missing, np.nan, both.values))
    return channel_points(both, 0, origins), channel_points(both, 1, origins)


@dataclass(frozen=True, eq=False, kw_only=True)
class AbstractTracks(AbstractBaseline):
    """A fitted model of tracks: a motion is fitted to the last `points[k]` positions of track k.

    A subclass implements the turn rate. The track's heading and velocities turn at that rate. All
    other channels, and positions that were never measured together, repeat their last measurement.
    """

    tracks: tuple[Track, ...]
    points: tuple[int, ...]

    @abc.abstractmethod
    def _turn_rate_and_heading(
        self, panel: Panel, origins: Origins, track: Track, last: LastPositions, time: np.ndarray
    ) -> tuple[Float[np.ndarray, " origins"], Float[np.ndarray, " origins"] | None]:
        """The turn rate, and the measured heading at the `time` of each origin's last position.

        The heading is NaN where it was not measured, and None if the model reads no headings.
        """

    def _motion(self, panel: Panel, origins: Origins, track: Track, most: int) -> Motion:
        x, y = joint_points(panel, track.positions, origins)
        if not len(x.times):
            zeros = np.zeros(len(origins.step))
            return Motion(
                time=zeros,
                position=zeros + 0j,
                velocity=zeros + 0j,
                turn_rate=zeros,
                exists=x.exists,
            )
        chosen, used = last_points(x, most)
        t = np.where(used, x.times[chosen] - x.times[x.last, None], 0)
        p = (
            x.values[chosen]
            - x.values[x.last, None]
            + 1j * (y.values[chosen] - y.values[x.last, None])
        )
        last = LastPositions(t, np.where(used, p, 0), used)
        time = x.times[x.last]
        turn_rate, heading = self._turn_rate_and_heading(panel, origins, track, last, time)
        position, velocity = fit_motion(last, turn_rate, heading)
        position += x.values[x.last] + 1j * y.values[x.last]
        return Motion(
            time=time,
            position=position,
            velocity=velocity,
            turn_rate=turn_rate,
            exists=x.exists,
        )

    def _mean(self, panel: Panel, origins: Origins) -> Float[np.ndarray, "origins steps channels"]:
        mean, last_time = self._last_values(panel, origins)
        for track, most in zip(self.tracks, self.points, strict=True):
            motion = self._motion(panel, origins, track, most)
            lead = origins.times - motion.time[:, None]
            position = motion.velocity[:, None] * displacement(motion.turn_rate, lead)
            position += motion.position[:, None]
            _write_pair(mean, panel, track.positions, position, motion.exists)
            if track.heading is not None:
                channel = panel.channels.index(track.heading)
                lead = origins.times - last_time[:, [channel]]
                mean[..., channel] += motion.turn_rate[:, None] * lead
            if track.velocities is not None:
                x, y = joint_points(panel, track.velocities, origins)
                if len(x.times):
                    lead = origins.times - x.times[x.last, None]
                    last = (x.values[x.last] + 1j * y.values[x.last])[:, None]
                    turned = last * np.exp(1j * motion.turn_rate[:, None] * lead)
                    _write_pair(mean, panel, track.velocities, turned, x.exists)
        return mean

    def _last_values(
        self, panel: Panel, origins: Origins
    ) -> tuple[Float[np.ndarray, "origins steps channels"], Float[np.ndarray, "origins channels"]]:
        """The last measurement of each channel, repeated, and its time; the training mean and 0
        without one.
        """
        mean = np.empty((*origins.times.shape, len(panel.channels)))
        last_time = np.zeros((len(origins.step), len(panel.channels)))
        for channel in range(len(panel.channels)):
            points = channel_points(panel, channel, origins)
            fallback = self.channel_scales.mean[channel]
            mean[..., channel] = fallback
            if len(points.times):
                last = last_line(points, 1)
                repeated = np.where(points.exists, last.level, fallback)
                mean[..., channel], last_time[:, channel] = repeated[:, None], last.time
        return mean, last_time

    def describe(self) -> dict[str, Any]:
        """The tracks, and the chosen number of points of each."""
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


def _write_pair(
    mean: np.ndarray,
    panel: Panel,
    names: tuple[str, str],
    values: Complex[np.ndarray, "origins steps"],
    exists: np.ndarray,
) -> None:
    """Write complex values into two channels of `mean`, where they exist."""
    for name, part in zip(names, (np.real(values), np.imag(values)), strict=True):
        channel = panel.channels.index(name)
        mean[..., channel] = np.where(exists[:, None], part, mean[..., channel])


T = TypeVar("T", bound=AbstractTracks)


def with_points(fitted: T, choices: Sequence[int], validation: Panel, horizon: int) -> T:
    """The model with, for each track, the number of points of least squared distance in validation.

    The error of both axes is in the unit of the table and not in their scales, so that the choice
    does not depend on the orientation of the axes.
    """
    tracks = len(fitted.tracks)
    errors = [
        squared_errors(
            replace(fitted, points=(most,) * tracks), validation, horizon, _CHOICE_ORIGINS
        )
        * fitted.channel_scales.scale**2
        for most in choices
    ]
    chosen = []
    for track in fitted.tracks:
        axes = [validation.channels.index(name) for name in track.positions]
        chosen.append(choices[int(np.argmin([error[axes].sum() for error in errors]))])
    return replace(fitted, points=tuple(chosen))
