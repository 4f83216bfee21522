"""Tensors for scene encoders: all agents and the map around windows, in the target's frame.

Features of an agent at a step, 39: position 3, size 3, one-hot of vehicle, pedestrian, cyclist, the
target, the ego (5), one-hot of the step (21) and its time in s since the window's start, sine and
cosine of the heading, velocity 2, acceleration 2. Height and size are 0. Features of a map point,
29: position 3, direction from the previous point 3, previous point 3, one-hot of the kind 20.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float32, Int

from physsm.datasets._nuscenes_map import PIECES, POINTS, NearPieces, VectorMap
from physsm.datasets._nuscenes_scene import EGO, STEP, Scene
from physsm.datasets._nuscenes_windows import (
    CHANNELS,
    CONTEXT,
    HORIZON,
    Missing,
    backward_velocity,
    into_frame,
    not_removed,
    target_rows,
    window_rows,
)

AGENTS: Final = 32
AGENT_FEATURES: Final = 39
MAP_FEATURES: Final = 29
_KINDS: Final = ("VEHICLE", "PEDESTRIAN", "CYCLIST")

Velocity = Literal["backward", "forward"]


class SceneWindows(NamedTuple):
    """Windows of one scene: targets, their current steps, and their slots in the tensors."""

    scene: Scene
    map: VectorMap | None
    agent: Int[np.ndarray, " windows"]
    now: Int[np.ndarray, " windows"]
    slot: Int[np.ndarray, " windows"]


@dataclass(frozen=True, eq=False)
class Tensors:
    """Features of windows, 0 where not valid.

    `target` holds p, y, psi, v_p, v_y of the future rows. Global position = `origin` + rotation by
    `heading` of the position here. `has_map` is false where the scene has no vector map.
    """

    agents: Float32[np.ndarray, "windows 32 21 39"]
    agents_valid: Bool[np.ndarray, "windows 32 21"]
    map: Float32[np.ndarray, "windows 384 30 29"]
    map_valid: Bool[np.ndarray, "windows 384 30"]
    target: Float32[np.ndarray, "windows 60 5"]
    target_valid: Bool[np.ndarray, "windows 60 5"]
    origin: Float[np.ndarray, "windows 2"]
    heading: Float[np.ndarray, " windows"]
    has_map: Bool[np.ndarray, " windows"]


def make_tensors(chosen: Sequence[SceneWindows], missing: Missing, velocity: Velocity) -> Tensors:
    """Tensors of windows, scene by scene; 1.3 MB for each window, most of it the map.

    Velocity is "backward" (from the previous step) or "forward" (to the next step, as in
    ScenarioNet). The latter reveals the next position of the target; it exists to reproduce
    results that were made with it.
    """
    count = sum(len(windows.agent) for windows in chosen)
    tensors = Tensors(
        agents=np.zeros((count, AGENTS, CONTEXT, AGENT_FEATURES), np.float32),
        agents_valid=np.zeros((count, AGENTS, CONTEXT), bool),
        map=np.zeros((count, PIECES, POINTS, MAP_FEATURES), np.float32),
        map_valid=np.zeros((count, PIECES, POINTS), bool),
        target=np.zeros((count, HORIZON, len(CHANNELS)), np.float32),
        target_valid=np.zeros((count, HORIZON, len(CHANNELS)), bool),
        origin=np.zeros((count, 2)),
        heading=np.zeros(count),
        has_map=np.zeros(count, bool),
    )
    for windows in chosen:
        _fill(tensors, windows, missing, velocity)
    return tensors


def _fill(tensors: Tensors, windows: SceneWindows, missing: Missing, velocity: Velocity) -> None:
    scene, lines, agent, now, slot = windows
    lost = missing.draw(scene)
    tensors.origin[slot] = scene.tracks.position[agent, now]
    tensors.heading[slot] = scene.tracks.heading[agent, now]
    future = target_rows(scene, agent, now, lost)[:, CONTEXT:]
    tensors.target_valid[slot] = np.isfinite(future)
    tensors.target[slot] = np.nan_to_num(future)
    tensors.has_map[slot] = lines is not None
    for i, (target, step) in enumerate(zip(agent, now, strict=True)):
        origin, heading = scene.tracks.position[target, step], scene.tracks.heading[target, step]
        near, seen, features = _agents(scene, int(target), int(step), lost, velocity)
        tensors.agents[slot[i], :near] = features
        tensors.agents_valid[slot[i], :near] = seen
        if lines is not None:
            pieces = lines.near(origin, float(heading))
            tensors.map[slot[i], : len(pieces.kind)] = _map_features(pieces)
            tensors.map_valid[slot[i], : len(pieces.kind)] = pieces.valid


def _agents(
    scene: Scene, target: int, now: int, lost: Bool[np.ndarray, "agents steps"], velocity: Velocity
) -> tuple[int, Bool[np.ndarray, "near 21"], Float[np.ndarray, "near 21 39"]]:
    """Features of the target, then of up to 31 agents by distance when they were last seen."""
    tracks = scene.tracks
    every = np.arange(len(tracks.ids))
    at = np.full(len(every), now)
    position, valid = window_rows(tracks.position, tracks.valid, every, at)
    missing, _ = window_rows(lost.astype(float), tracks.valid, every, at)
    seen = (valid & not_removed(missing > 0))[:, :CONTEXT]
    moving = np.array([kind in _KINDS for kind in tracks.kinds])
    local = into_frame(
        position[None, :, :CONTEXT], tracks.position[[target], now], tracks.heading[[target], now]
    )[0]
    latest = np.max(np.where(seen, np.arange(CONTEXT), 0), axis=1)
    distance = np.linalg.norm(local[every, latest], axis=-1)
    distance[~(seen.any(axis=1) & moving)] = np.inf
    distance[target] = -1.0
    near = np.argsort(distance, kind="stable")[: min(AGENTS, int(np.isfinite(distance).sum()))]
    seen, local = seen[near], local[near]

    heading, _ = window_rows(tracks.heading, tracks.valid, near, at[near])
    heading = heading[:, :CONTEXT] - tracks.heading[target, now]
    if velocity == "backward":
        moved = backward_velocity(local, seen)
    else:
        published, _ = window_rows(tracks.velocity, tracks.valid, near, at[near])
        none = np.zeros((1, 2))
        turned = into_frame(published[None, :, :CONTEXT], none, tracks.heading[[target], now])[0]
        moved = np.where(seen[..., None], turned, np.nan)
    faster = np.full(moved.shape, np.nan)
    faster[:, 1:] = np.diff(moved, axis=1) / STEP

    kinds = [[tracks.kinds[i] == kind for kind in _KINDS] for i in near]
    roles = [[i == target, tracks.ids[i] == EGO] for i in near]
    features = np.zeros((len(near), CONTEXT, AGENT_FEATURES))
    features[..., :2] = local
    features[..., 6:11] = np.concatenate([kinds, roles], axis=1)[:, None]
    features[..., 11:32] = np.eye(CONTEXT)
    features[..., 32] = STEP * np.arange(CONTEXT)
    features[..., 33], features[..., 34] = np.sin(heading), np.cos(heading)
    features[..., 35:37] = np.nan_to_num(moved)
    features[..., 37:39] = np.nan_to_num(faster)
    return len(near), seen, features * seen[..., None]


def _map_features(pieces: NearPieces) -> Float[np.ndarray, "pieces 30 29"]:
    """Features of map points; the first valid point of a piece is its own previous point."""
    points, kind, valid = pieces
    before = points.copy()
    both = valid[:, 1:] & valid[:, :-1]
    before[:, 1:][both] = points[:, :-1][both]
    step = points - before
    length = np.linalg.norm(step, axis=-1, keepdims=True)
    features = np.zeros((*valid.shape, MAP_FEATURES))
    features[..., :2] = points
    features[..., 3:5] = step / np.maximum(length, 1e-9)
    features[..., 6:8] = before
    features[np.arange(len(kind)), :, 9 + kind] = 1
    return features * valid[..., None]
