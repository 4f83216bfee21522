"""Windows of 21 + 60 rows around a target agent, in the frame of that agent.

The current row (20) is a keyframe. Rows between keyframes are interpolated towards the next
keyframe, so a window cut elsewhere would reveal a part of its future.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from physsm.datasets._nuscenes_scene import STEP, Scene, Tracks

CONTEXT: Final = 21
HORIZON: Final = 60
ROWS: Final = CONTEXT + HORIZON
NOW: Final = CONTEXT - 1
CHANNELS: Final = ("p", "y", "psi", "v_p", "v_y")
MOVED: Final = 2.0  # m that a target must move within its window
VALID_ROWS: Final = ROWS / 2  # share of its window in which it must be annotated


class SceneTargets(NamedTuple):
    """Windows of one scene: index of the target in the tracks, current step, number of valid rows
    among the 81, and distance in m between valid neighbours.
    """

    agent: Int[np.ndarray, " windows"]
    now: Int[np.ndarray, " windows"]
    valid: Int[np.ndarray, " windows"]
    moved: Float[np.ndarray, " windows"]

    @property
    def used(self) -> Bool[np.ndarray, " windows"]:
        """Mask of windows that pass the filter: valid in half of the rows, and moving."""
        return (self.valid >= VALID_ROWS) & (self.moved >= MOVED)


@dataclass(frozen=True)
class Missing:
    """Observations removed at random: a share of the agent-steps of every history."""

    share: float = 0.05
    seed: int = 0

    def draw(self, scene: Scene) -> Bool[np.ndarray, "agents steps"]:
        """Mask of the removed observations of a scene, the same in all windows that hold them."""
        # Each scene has its own random numbers, so that the mask does not depend on other scenes.
        rng = np.random.default_rng([self.seed, zlib.crc32(scene.name.encode())])
        return rng.random(scene.tracks.valid.shape) < self.share


def find_windows(scene: Scene) -> SceneTargets:
    """One window for each target step of a scene."""
    agent, now = np.nonzero(scene.targets & scene.tracks.valid)
    position, valid = window_rows(scene.tracks.position, scene.tracks.valid, agent, now)
    both = valid[:, 1:] & valid[:, :-1]
    way = np.linalg.norm(np.diff(position, axis=1), axis=-1)
    return SceneTargets(agent, now, valid.sum(axis=1), (way * both).sum(axis=1))


def window_rows(
    values: Float[np.ndarray, "agents steps *more"],
    valid: Bool[np.ndarray, "agents steps"],
    agent: Int[np.ndarray, " windows"],
    now: Int[np.ndarray, " windows"],
) -> tuple[Float[np.ndarray, "windows 81 *more"], Bool[np.ndarray, "windows 81"]]:
    """Rows of windows, and the mask of valid rows; rows outside the scene are not valid."""
    steps = now[:, None] + np.arange(-NOW, HORIZON + 1)
    in_scene = (steps >= 0) & (steps < valid.shape[1])
    steps = np.clip(steps, 0, valid.shape[1] - 1)
    return values[agent[:, None], steps], valid[agent[:, None], steps] & in_scene


def not_removed(lost: Bool[np.ndarray, "*more 81"]) -> Bool[np.ndarray, "*more 81"]:
    """Mask of the rows that are not removed; the current and future rows never are."""
    return ~lost | (np.arange(ROWS) >= NOW)


def into_frame(
    points: Float[np.ndarray, "windows *more 2"],
    origin: Float[np.ndarray, "windows 2"],
    heading: Float[np.ndarray, " windows"],
) -> Float[np.ndarray, "windows *more 2"]:
    """Coordinates along and across (to the left of) the heading, relative to the origin."""
    shape = (len(points),) + (1,) * (points.ndim - 2)
    shifted = points - origin.reshape(*shape, 2)
    cos, sin = np.cos(heading).reshape(shape), np.sin(heading).reshape(shape)
    along = cos * shifted[..., 0] + sin * shifted[..., 1]
    across = cos * shifted[..., 1] - sin * shifted[..., 0]
    return np.stack([along, across], axis=-1)


def backward_velocity(
    position: Float[np.ndarray, "*more steps 2"], seen: Bool[np.ndarray, "*more steps"]
) -> Float[np.ndarray, "*more steps 2"]:
    """Velocity in m/s from the previous row: NaN unless both rows are seen."""
    velocity = np.full(position.shape, np.nan)
    both = seen[..., 1:] & seen[..., :-1]
    velocity[..., 1:, :] = np.where(both[..., None], np.diff(position, axis=-2) / STEP, np.nan)
    return velocity


def target_rows(
    scene: Scene,
    agent: Int[np.ndarray, " windows"],
    now: Int[np.ndarray, " windows"],
    lost: Bool[np.ndarray, "agents steps"],
) -> Float[np.ndarray, "windows 81 5"]:
    """Channels p, y, psi, v_p, v_y of the targets: m, m, rad, m/s, m/s; NaN where not seen.

    Velocities are differences of seen positions only.
    """
    tracks: Tracks = scene.tracks
    heading = tracks.unwrapped
    position, valid = window_rows(tracks.position, tracks.valid, agent, now)
    missing, _ = window_rows(lost.astype(float), tracks.valid, agent, now)
    seen = valid & not_removed(missing > 0)
    turned, _ = window_rows(heading, tracks.valid, agent, now)
    local = into_frame(position, tracks.position[agent, now], heading[agent, now])
    local = np.where(seen[..., None], local, np.nan)
    psi = np.where(seen, turned - heading[agent, now][:, None], np.nan)
    return np.concatenate([local, psi[..., None], backward_velocity(local, seen)], axis=-1)
