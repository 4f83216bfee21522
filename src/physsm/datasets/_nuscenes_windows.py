"""Windows of 21 + 60 rows around a target agent, in that agent's own frame.

The current row (20) is a keyframe. Rows between keyframes lie on a line to the next keyframe, so a
window that were cut elsewhere would show a piece of its own future.
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
MOVED: Final = 2.0  # m that a target must go within its window
VALID_ROWS: Final = ROWS / 2  # of its window in which it must be annotated


class Found(NamedTuple):
    """Windows of one scene: the target's place in the tracks, the step that is its current one,
    how many of the 81 rows are valid, and the way in m between valid neighbours.
    """

    agent: Int[np.ndarray, " windows"]
    now: Int[np.ndarray, " windows"]
    valid: Int[np.ndarray, " windows"]
    moved: Float[np.ndarray, " windows"]

    @property
    def used(self) -> Bool[np.ndarray, " windows"]:
        """Which windows pass the filter: valid in half of the rows, and moving."""
        return (self.valid >= VALID_ROWS) & (self.moved >= MOVED)


@dataclass(frozen=True)
class Missing:
    """Observations that are lost at random: a share of the agent-steps of every history."""

    share: float = 0.05
    seed: int = 0

    def draw(self, scene: Scene) -> Bool[np.ndarray, "agents steps"]:
        """Which observations of a scene are lost, the same in all windows that hold them."""
        # Each scene has random numbers of its own: what is lost does not depend on what is read.
        rng = np.random.default_rng([self.seed, zlib.crc32(scene.name.encode())])
        return rng.random(scene.tracks.valid.shape) < self.share


def find_windows(scene: Scene) -> Found:
    """One window for each target step of a scene."""
    agent, now = np.nonzero(scene.targets & scene.tracks.valid)
    position, valid = window_rows(scene.tracks.position, scene.tracks.valid, agent, now)
    both = valid[:, 1:] & valid[:, :-1]
    way = np.linalg.norm(np.diff(position, axis=1), axis=-1)
    return Found(agent, now, valid.sum(axis=1), (way * both).sum(axis=1))


def window_rows(
    values: Float[np.ndarray, "agents steps *more"],
    valid: Bool[np.ndarray, "agents steps"],
    agent: Int[np.ndarray, " windows"],
    now: Int[np.ndarray, " windows"],
) -> tuple[Float[np.ndarray, "windows 81 *more"], Bool[np.ndarray, "windows 81"]]:
    """The rows of windows, and which are valid: those outside the scene are not."""
    steps = now[:, None] + np.arange(-NOW, HORIZON + 1)
    inside = (steps >= 0) & (steps < valid.shape[1])
    steps = np.clip(steps, 0, valid.shape[1] - 1)
    return values[agent[:, None], steps], valid[agent[:, None], steps] & inside


def kept(lost: Bool[np.ndarray, "*more 81"]) -> Bool[np.ndarray, "*more 81"]:
    """Which rows are not lost: the current one and those of the future never are."""
    return ~lost | (np.arange(ROWS) >= NOW)


def into_frame(
    points: Float[np.ndarray, "windows *more 2"],
    origin: Float[np.ndarray, "windows 2"],
    heading: Float[np.ndarray, " windows"],
) -> Float[np.ndarray, "windows *more 2"]:
    """Coordinates along and across (to the left of) the heading, from the origin on."""
    shape = (len(points),) + (1,) * (points.ndim - 2)
    shifted = points - origin.reshape(*shape, 2)
    cos, sin = np.cos(heading).reshape(shape), np.sin(heading).reshape(shape)
    along = cos * shifted[..., 0] + sin * shifted[..., 1]
    across = cos * shifted[..., 1] - sin * shifted[..., 0]
    return np.stack([along, across], axis=-1)


def backward_velocity(
    position: Float[np.ndarray, "*more steps 2"], seen: Bool[np.ndarray, "*more steps"]
) -> Float[np.ndarray, "*more steps 2"]:
    """Velocity in m/s from the row before: NaN unless both rows are seen."""
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
    """The channels p, y, psi, v_p, v_y of the targets: m, m, rad, m/s, m/s; NaN where not seen.

    Velocities are differences of positions that are seen, never of what was lost.
    """
    tracks: Tracks = scene.tracks
    heading = tracks.unwrapped
    position, valid = window_rows(tracks.position, tracks.valid, agent, now)
    missing, _ = window_rows(lost.astype(float), tracks.valid, agent, now)
    seen = valid & kept(missing > 0)
    turned, _ = window_rows(heading, tracks.valid, agent, now)
    local = into_frame(position, tracks.position[agent, now], heading[agent, now])
    local = np.where(seen[..., None], local, np.nan)
    psi = np.where(seen, turned - heading[agent, now][:, None], np.nan)
    return np.concatenate([local, psi[..., None], backward_velocity(local, seen)], axis=-1)
