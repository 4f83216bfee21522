"""Vehicle tracks of nuScenes: a context of 2 s and a target of 6 s, at 10 Hz.

A window belongs to one target vehicle at one annotated keyframe, the current step. Its rows are in
the frame of the target at that step: `p` along its heading and `y` to the left of it (m), `psi` the
heading relative to it (rad, without jumps), `v_p` and `v_y` (m/s). Velocities are differences to
the previous row, which reveal nothing of the future; the published ones are differences to the next
row.

nuScenes is licensed under CC BY-NC-SA 4.0, for non-commercial use.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Bool

from physsm._errors import ConfigError
from physsm.data.window import Sizes
from physsm.datasets._dataset import Dataset, Part, Split
from physsm.datasets._nuscenes_index import SOURCE
from physsm.datasets._nuscenes_part import ChosenWindows, make_part
from physsm.datasets._nuscenes_recordings import LabelRecordings, MiniRecordings, Recordings
from physsm.datasets._nuscenes_scene import PER_KEYFRAME, STEP, Scene
from physsm.datasets._nuscenes_tensors import SceneWindows, Tensors, Velocity, make_tensors
from physsm.datasets._nuscenes_windows import (
    CHANNELS,
    CONTEXT,
    HORIZON,
    Missing,
    find_windows,
)

__all__ = [
    "DATASET",
    "LabelRecordings",
    "MiniRecordings",
    "Recordings",
    "Scene",
    "Tensors",
    "tensors",
]

_IN_DOMAIN: Final = 50  # target rows of the paper's training; its test has 60
_MINI_TEST: Final = ("scene-0103", "scene-0916")  # the official validation part of mini
_MINI_VALIDATION: Final = ("scene-0757", "scene-1100")  # every fourth of the other scenes
_SCENES: Final = 613  # scenes published with labels
_EVERY: Final = 5  # in `strict`, every fifth training scene validates
_ID = re.compile(r"(?P<scene>[^/]+)/(?P<track>.+)@(?P<keyframe>\d{1,6})")


def _paper(
    *,
    data_dir: str | Path | None = None,
    seed: int = 0,
    missing: float = 0.05,
    limit: int | None = None,
) -> Split:
    """Split of the paper, as far as published: 80 % and 20 % of the training windows at random."""
    _check(seed, missing, limit)
    labels = LabelRecordings(data_dir)
    trains = np.flatnonzero(_official(labels)[0])
    order = np.random.default_rng(seed).permutation(len(trains))
    validates = np.zeros(len(labels.index.scene), bool)
    validates[trains[order[: len(order) // 5]]] = True
    return _label_split(
        labels,
        validates,
        Missing(missing, seed),
        limit,
        "Validation windows are drawn at random from all training windows, as in the paper: they "
        "overlap with windows that are trained on, 0.5 s apart, and say little.",
    )


def _strict(
    *,
    data_dir: str | Path | None = None,
    seed: int = 0,
    missing: float = 0.05,
    limit: int | None = None,
) -> Split:
    """Split by scene: every fifth official training scene, by name, is for validation."""
    _check(seed, missing, limit)
    labels = LabelRecordings(data_dir)
    rank = np.cumsum(np.array(labels.index.table.official) == "train") - 1
    return _label_split(
        labels,
        rank[labels.index.scene] % _EVERY == _EVERY - 1,
        Missing(missing, seed),
        limit,
        "Every fifth official training scene validates; no scene is in two parts.",
    )


def _mini(
    *,
    data_dir: str | Path | None = None,
    seed: int = 0,
    missing: float = 0.05,
    limit: int | None = None,
) -> Split:
    """Split of the ten scenes with all agents, by scene: six, two, two."""
    _check(seed, missing, limit)
    recordings = MiniRecordings(data_dir)
    held = (*_MINI_VALIDATION, *_MINI_TEST)
    names = tuple(name for name in sorted(recordings.scenes) if name not in held)

    def part(chosen: Sequence[str], what: str) -> Part:
        found = []
        for scene in map(recordings.scene, chosen):
            windows = find_windows(scene)
            used = windows.used
            found.append(ChosenWindows(scene, windows.agent[used], windows.now[used]))
        ends = np.cumsum([0, *(len(windows.agent) for windows in found)])
        selected = _thinned(np.ones(ends[-1], bool), limit)
        thinned = [
            ChosenWindows(scene, agent[selected[a:b]], now[selected[a:b]])
            for (scene, agent, now), (a, b) in zip(found, pairwise(ends), strict=True)
        ]
        return make_part(thinned, int(selected.sum()), Missing(missing, seed), what)

    return _split(
        (part(names, "training"), part(_MINI_VALIDATION, "validation"), part(_MINI_TEST, "test")),
        "Targets are all moving vehicles at all keyframes; mini has no list of the challenge.",
        "Most mini scenes are also among the scenes of paper and strict: do not test there what "
        "was trained here, or the other way round.",
    )


DATASET: Final = Dataset(
    name="nuscenes",
    summary="vehicles in traffic: 2 s of a track are seen, 6 s are forecast",
    system="vehicle",
    protocols={"paper": _paper, "strict": _strict, "mini": _mini},
    sources=(SOURCE, "nuscenes_scenarionet"),
    units={"time": "s"},
)


def tensors(
    recordings: Recordings,
    ids: Sequence[str],
    *,
    seed: int = 0,
    missing: float = 0.05,
    velocity: Velocity = "backward",
) -> Tensors:
    """Tensors of windows for a scene encoder; `ids` are those of a panel's series.

    With the `seed` and the share `missing` of the split, the same observations are missing here.
    Velocity "forward" is the published one, which reveals the next step.
    """
    _check(seed, missing, None)
    if velocity not in ("backward", "forward"):
        raise ConfigError(f"nuscenes: velocity must be backward or forward, but is {velocity!r}")
    by_scene: dict[str, list[tuple[int, str, int]]] = {}
    for place, name in enumerate(ids):
        match = _ID.fullmatch(name)
        if match is None:
            raise ConfigError(f"{name!r} is not a window: write SCENE/TRACK@KEYFRAME")
        row = place, match["track"], int(match["keyframe"]) * PER_KEYFRAME
        by_scene.setdefault(match["scene"], []).append(row)
    chosen = []
    for name, rows in by_scene.items():
        scene = recordings.scene(name)
        agent = np.array([_agent(scene, track, now) for _, track, now in rows])
        place, now = (np.array([row[column] for row in rows]) for column in (0, 2))
        chosen.append(SceneWindows(scene, recordings.map(name), agent, now, place))
    return make_tensors(chosen, Missing(missing, seed), velocity)


def _agent(scene: Scene, track: str, now: int) -> int:
    if track not in scene.tracks.ids:
        raise ConfigError(f"{scene.name} has no track {track!r:.60}")
    agent = scene.tracks.ids.index(track)
    if now >= len(scene.times) or not scene.tracks.valid[agent, now]:
        raise ConfigError(f"{scene.name}/{track} is not annotated at {STEP * now:g} s")
    return agent


def _official(
    labels: LabelRecordings,
) -> tuple[Bool[np.ndarray, " windows"], Bool[np.ndarray, " windows"]]:
    """Masks of the usable windows in the official training and validation scenes."""
    train = np.array(labels.index.table.official)[labels.index.scene] == "train"
    used = labels.index.windows.used
    return train & used, ~train & used


def _label_split(
    labels: LabelRecordings,
    validates: Bool[np.ndarray, " windows"],
    missing: Missing,
    limit: int | None,
    note: str,
) -> Split:
    """Split of the labels; `validates` marks the training windows used for validation."""
    index = labels.index
    train, test = _official(labels)
    parts = train & ~validates, train & validates, test

    def part(chosen: np.ndarray, what: str) -> Part:
        chosen = np.flatnonzero(_thinned(chosen, limit))
        numbers, first = np.unique(index.scene[chosen], return_index=True)
        groups = np.split(chosen, first[1:]) if len(chosen) else []
        scenes = (
            ChosenWindows(
                index.table.scene(int(i)), index.windows.agent[group], index.windows.now[group]
            )
            for i, group in zip(numbers, groups, strict=True)
        )
        return make_part(scenes, len(chosen), missing, what)

    made = [part(*one) for one in zip(parts, ("training", "validation", "test"), strict=True)]
    scenes = len(index.table.scenes)
    lacking = (f"Only {scenes} of the {_SCENES} published scenes are here.",)
    return _split(
        (made[0], made[1], made[2]),
        *(lacking if scenes < _SCENES else ()),
        note,
        "The test part is that of the official validation scenes; the challenge's train_val part "
        "(200 scenes) is not in the files.",
    )


def _split(parts: tuple[Part, Part, Part], *notes: str) -> Split:
    return Split(
        *parts,
        sizes=Sizes(CONTEXT, HORIZON, PER_KEYFRAME),
        unit=np.ones(len(CHANNELS)),
        unit_words="m, rad and m/s",
        tracks=(("p", "y"),),
        in_domain=_IN_DOMAIN,
        notes=(
            *notes,
            "Tracks are straight lines between annotations 0.5 s apart: accelerations and jerks "
            "of the reference are artefacts of that.",
            "Windows were chosen by their whole length: the target is annotated in half of the "
            "rows and goes at least 2 m.",
        ),
    )


def _thinned(chosen: Bool[np.ndarray, " windows"], limit: int | None) -> np.ndarray:
    """Mask of at most `limit` of the chosen windows, evenly spread."""
    places = np.flatnonzero(chosen)
    if limit is not None and len(places) > limit:
        places = places[np.arange(limit) * len(places) // limit]
    thinned = np.zeros(len(chosen), bool)
    thinned[places] = True
    return thinned


def _check(seed: int, missing: float, limit: int | None) -> None:
    _require(seed >= 0, "seed", seed, "0 or more")
    _require(0 <= missing < 1, "missing", missing, "a share from 0 to below 1")
    _require(limit is None or limit >= 1, "limit", limit, "at least 1 window, or None for all")


def _require(holds: bool, setting: str, value: object, rule: str) -> None:
    if not holds:
        raise ConfigError(f"nuscenes: {setting} must be {rule}, but is {value!r}")
