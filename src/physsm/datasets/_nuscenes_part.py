"""Panel of windows of scenes, with the keyframes behind each row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from physsm._errors import DataError
from physsm._values import Layout, Panel
from physsm.data.window import whole_series
from physsm.datasets._dataset import Part, RawRows
from physsm.datasets._nuscenes_scene import PER_KEYFRAME, STEP, Scene
from physsm.datasets._nuscenes_windows import (
    CHANNELS,
    HORIZON,
    NOW,
    ROWS,
    Missing,
    target_rows,
    window_rows,
)


class ChosenWindows(NamedTuple):
    """Windows of one scene: indices of the targets in its tracks, and their current steps."""

    scene: Scene
    agent: Int[np.ndarray, " windows"]
    now: Int[np.ndarray, " windows"]


def make_part(scenes: Iterable[ChosenWindows], count: int, missing: Missing, what: str) -> Part:
    """Part with one series of 81 rows for each window, -2 to 6 s from the current step."""
    if count == 0:
        hint = "download the files again, or name another folder"
        raise DataError(f"the files of nuscenes have no windows for {what}", hint=hint)
    values = np.empty((count, ROWS, len(CHANNELS)))
    number = np.empty((count, ROWS), np.int32)
    names: list[tuple[str, str]] = []
    for scene, agent, now in scenes:
        rows = slice(len(names), len(names) + len(agent))
        values[rows] = target_rows(scene, agent, now, missing.draw(scene))
        _, valid = window_rows(scene.tracks.position, scene.tracks.valid, agent, now)
        # The later of the two keyframes around a row; -1 where there is none.
        later = -(-(now[:, None] + np.arange(-NOW, HORIZON + 1)) // PER_KEYFRAME)
        number[rows] = np.where(valid, later, -1)
        for i, step in zip(agent, now, strict=True):
            recording = f"{scene.name}/{scene.tracks.ids[i]}"
            names.append((recording, f"{recording}@{step // PER_KEYFRAME}"))
    panel = Panel(
        ids=tuple(name for _, name in names),
        times=np.tile(STEP * np.arange(-NOW, HORIZON + 1), (count, 1)),
        values=values,
        controls=np.zeros((count, ROWS, 0)),
        lengths=np.full(count, ROWS),
        channels=CHANNELS,
        layout=Layout(series="window"),
    )
    raw = tuple(
        RawRows(recording, row, before=1) for (recording, _), row in zip(names, number, strict=True)
    )
    return Part(panel, whole_series(panel, HORIZON), raw)
