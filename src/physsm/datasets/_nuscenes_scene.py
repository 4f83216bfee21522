"""Scene of nuScenes at 10 Hz, for all file formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

STEP: Final = 0.1  # s between rows
PER_KEYFRAME: Final = 5  # rows from one annotated keyframe (every 0.5 s) to the next
EGO: Final = "ego"


class Polyline(NamedTuple):
    """Line of the map; `points` in m."""

    kind: str
    points: Float[np.ndarray, "points 2"]


@dataclass(frozen=True, eq=False)
class Tracks:
    """Tracks of agents over steps; numbers are 0 where a track is not valid.

    `position` in m, `heading` in rad, `size` is length, width and height in m as published.
    `velocity` (m/s) is that of ScenarioNet: the difference to the NEXT step, so that it reveals the
    position at the next step.
    """

    ids: tuple[str, ...]
    kinds: tuple[str, ...]
    position: Float[np.ndarray, "agents steps 2"]
    heading: Float[np.ndarray, "agents steps"]
    velocity: Float[np.ndarray, "agents steps 2"]
    valid: Bool[np.ndarray, "agents steps"]
    size: Float[np.ndarray, "agents 3"]

    @property
    def unwrapped(self) -> Float[np.ndarray, "agents steps"]:
        """Headings without jumps by a full turn, also across steps that are not valid."""
        return without_jumps(self.heading, self.valid)


@dataclass(frozen=True, eq=False)
class Scene:
    """Times in s since the start, tracks and the map's lines, in one frame of reference.

    `targets` is true where a forecast may start, by agent and step.
    """

    name: str
    map_name: str
    times: Float[np.ndarray, " steps"]
    tracks: Tracks
    targets: Bool[np.ndarray, "agents steps"]
    polylines: tuple[Polyline, ...] = ()


def without_jumps(
    heading: Float[np.ndarray, "agents steps"], valid: Bool[np.ndarray, "agents steps"]
) -> Float[np.ndarray, "agents steps"]:
    """Headings that differ by less than half a turn from the last valid one."""
    latest = np.maximum.accumulate(np.where(valid, np.arange(valid.shape[1]), 0), axis=1)
    return np.unwrap(np.take_along_axis(heading, latest, axis=1), axis=1)


def interpolated(
    keyframes: Float[np.ndarray, "agents keyframes"], valid: Bool[np.ndarray, "agents keyframes"]
) -> tuple[Float[np.ndarray, "agents steps"], Bool[np.ndarray, "agents steps"]]:
    """Linear interpolation between neighbouring keyframes; a step in between needs both."""
    lower, upper, share = _neighbours(keyframes.shape[1])
    known = valid[:, lower] & (valid[:, upper] | (share == 0))
    between = keyframes[:, lower] + share * (keyframes[:, upper] - keyframes[:, lower])
    return np.where(known, between, 0), known


def forward_difference(
    position: Float[np.ndarray, "agents steps 2"], valid: Bool[np.ndarray, "agents steps"]
) -> Float[np.ndarray, "agents steps 2"]:
    """ScenarioNet's velocity in m/s: the difference to the next step, 0 unless both are valid."""
    both = valid[:, :-1] & valid[:, 1:]
    velocity = np.zeros(position.shape)
    velocity[:, :-1] = np.where(both[..., None], np.diff(position, axis=1) / STEP, 0)
    return velocity


def _neighbours(
    keyframes: int,
) -> tuple[Int[np.ndarray, " steps"], Int[np.ndarray, " steps"], Float[np.ndarray, " steps"]]:
    steps = np.arange(PER_KEYFRAME * (keyframes - 1) + 1)
    lower = steps // PER_KEYFRAME
    return lower, np.minimum(lower + 1, keyframes - 1), (steps % PER_KEYFRAME) / PER_KEYFRAME
