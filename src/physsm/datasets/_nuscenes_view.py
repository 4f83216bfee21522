"""View of a scene for a plot: one target, other agents and the map, in the target's frame."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from physsm._errors import DataError
from physsm.datasets._nuscenes_recordings import LabelRecordings, Recordings
from physsm.datasets._nuscenes_windows import (
    NOW,
    find_windows,
    into_frame,
    window_rows,
)


@dataclass(frozen=True, eq=False)
class SceneView:
    """Positions in m, NaN where missing; origin and heading are the target's at its current step.

    `others` are the tracks of other agents in the same 8 s, `map_lines` the lines of the map
    nearby.
    """

    title: str
    context: Float[np.ndarray, "past 2"]
    future: Float[np.ndarray, "steps 2"]
    others: list[Float[np.ndarray, "_ 2"]]
    map_lines: list[Float[np.ndarray, "_ 2"]]


def view_scene(name: str, track: str | None, data_dir: str | Path | None = None) -> SceneView:
    """View of the window of a track (None: of any track) in which the target moves most."""
    recordings = LabelRecordings(data_dir)
    scene = recordings.scene(name)
    tracks, windows = scene.tracks, find_windows(scene)
    fits = np.array([track in (None, tracks.ids[agent]) for agent in windows.agent], bool)
    chosen = np.flatnonzero(windows.used & fits)
    if not len(chosen):
        known = ", ".join(sorted({tracks.ids[agent] for agent in windows.agent[windows.used]}))
        raise DataError(f"{name} has no target {track!r}: there are {known or 'none'}")
    best = int(chosen[np.argmax(windows.moved[chosen])])
    agent, now = int(windows.agent[best]), int(windows.now[best])
    everyone = np.arange(len(tracks.ids))
    position, valid = window_rows(
        tracks.position, tracks.valid, everyone, np.full(len(everyone), now)
    )
    origin, heading = tracks.position[agent, now], float(tracks.heading[agent, now])
    turned = into_frame(position[None], origin[None], np.array([heading]))[0]
    turned = np.where(valid[..., None], turned, np.nan)
    others = [turned[i] for i in everyone if i != agent and valid[i].any()]
    return SceneView(
        title=f"nuScenes {name}, track {tracks.ids[agent]}, {scene.times[now]:.1f} s",
        context=turned[agent, : NOW + 1],
        future=turned[agent, NOW + 1 :],
        others=others,
        map_lines=_lines_near(recordings, name, origin, heading),
    )


def _lines_near(
    recordings: Recordings, name: str, origin: np.ndarray, heading: float
) -> list[np.ndarray]:
    """Lines of the map near the target; None without map files or coverage of the scene."""
    try:
        around = recordings.map(name)
    except DataError:
        return []
    if around is None:
        return []
    near = around.near(origin, heading)
    return [line[seen] for line, seen in zip(near.points, near.valid, strict=True)]
