"""Targets of nuScenes' prediction challenge at 2 Hz, in one text file per scene.

20 fields to a row: keyframe, track, class, seven unused, width, height, length, x, z, y, heading,
challenge flag, two unused. Only targets of the challenge, around their windows, and the ego (track
99) are listed: parked cars, pedestrians and other traffic are absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, NoReturn

import numpy as np
from jaxtyping import Bool, Float, Int

from physsm._errors import DataError
from physsm.datasets._nuscenes_scene import (
    EGO,
    PER_KEYFRAME,
    STEP,
    Scene,
    Tracks,
    forward_difference,
    interpolated,
    without_jumps,
)
from physsm.datasets._tar_archive import tar_members

_FIELDS: Final = 20
_NAMES: Final = {
    0: "keyframe",
    1: "track",
    2: "class",
    10: "width",
    11: "height",
    12: "length",
    13: "x",
    15: "y",
    16: "heading",
    17: "challenge flag",
}
_NUMBERS: Final = [field for field in _NAMES if field != 2]
_CLASSES: Final = ("Car", "Truck", "Bus", "Construction", "Emergency")
_EGO_TRACK: Final = 99
_LAST_KEYFRAME: Final = 400  # a scene has about 40
_SCENE = re.compile(r"scene-\d{4}")


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Rows of all files, by scene, then track, then keyframe; lengths in m, global frame.

    Rows `first[i]` to `first[i + 1]` are those of `scenes[i]`, which is in the part `official[i]`
    of the challenge. `challenge` is never true for the ego.
    """

    scenes: tuple[str, ...]
    official: tuple[str, ...]
    first: Int[np.ndarray, " scenes_and_end"]
    track: Int[np.ndarray, " rows"]
    keyframe: Int[np.ndarray, " rows"]
    position: Float[np.ndarray, "rows 2"]
    heading: Float[np.ndarray, " rows"]
    size: Float[np.ndarray, "rows 3"]
    challenge: Bool[np.ndarray, " rows"]

    def scene(self, number: int, map_name: str = "") -> Scene:
        """Scene at 10 Hz: positions on straight lines between keyframes, headings along the shorter
        arc, as in ScenarioNet.
        """
        rows = slice(int(self.first[number]), int(self.first[number + 1]))
        tracks, which, agent = np.unique(self.track[rows], return_index=True, return_inverse=True)
        keyframe = self.keyframe[rows]
        shape = (len(tracks), int(keyframe.max()) + 1)

        def dense(column: np.ndarray) -> np.ndarray:
            table = np.zeros(shape, column.dtype)
            table[agent, keyframe] = column
            return table

        known = dense(np.ones(len(agent), bool))
        x, valid = interpolated(dense(self.position[rows, 0]), known)
        y, _ = interpolated(dense(self.position[rows, 1]), known)
        heading, _ = interpolated(without_jumps(dense(self.heading[rows]), known), known)
        position = np.stack([x, y], axis=-1)
        targets = np.zeros(valid.shape, bool)
        targets[:, ::PER_KEYFRAME] = dense(self.challenge[rows])
        return Scene(
            name=self.scenes[number],
            map_name=map_name,
            times=STEP * np.arange(valid.shape[1]),
            tracks=Tracks(
                ids=tuple(EGO if track == _EGO_TRACK else str(track) for track in tracks),
                kinds=("VEHICLE",) * len(tracks),
                position=position,
                heading=heading,
                velocity=forward_difference(position, valid),
                valid=valid,
                size=self.size[rows][which],
            ),
            targets=targets,
        )


def label_files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each text file of the archive, or of the folders train and val."""
    if not path.is_dir():
        yield from tar_members(path, ".txt")
        return
    for file in sorted(path.glob("*/*.txt")):
        try:
            yield file.relative_to(path).as_posix(), file.read_bytes()
        except OSError as error:
            raise DataError(f"the file cannot be read: {error.strerror}", path=str(file)) from None


def read_labels(path: Path) -> LabelTable:
    """Labels of labels.tar.xz, or of a folder with files such as train/scene-0001.txt."""
    scenes = {}
    for name, content in label_files(path):
        key = PurePosixPath(name).stem, PurePosixPath(name).parent.name
        if not _SCENE.fullmatch(key[0]) or key[1] not in ("train", "val"):
            raise DataError(
                "the name must be like train/scene-0001.txt or val/scene-0003.txt",
                path=f"{path}, {name}",
            )
        if key[0] in scenes:
            raise DataError(f"{key[0]} occurs twice", path=str(path))
        scenes[key[0]] = key[1], _columns(content, f"{path}, {name}")
    if not scenes:
        raise DataError("there is no scene, such as train/scene-0001.txt", path=str(path))
    ordered = sorted(scenes)
    return _table(ordered, [scenes[name][0] for name in ordered], [scenes[n][1] for n in ordered])


def _table(scenes: list[str], official: list[str], columns: Iterable[np.ndarray]) -> LabelTable:
    parts = list(columns)
    rows = np.concatenate(parts)
    by_name = dict(zip(_NUMBERS, rows.T, strict=True))
    track = by_name[1].astype(np.int32)
    return LabelTable(
        scenes=tuple(scenes),
        official=tuple(official),
        first=np.cumsum([0, *map(len, parts)]),
        track=track,
        keyframe=by_name[0].astype(np.int32),
        position=np.stack([by_name[13], by_name[15]], axis=1),
        heading=by_name[16].copy(),
        size=np.stack([by_name[12], by_name[10], by_name[11]], axis=1),
        challenge=(by_name[17] == 1) & (track != _EGO_TRACK),
    )


def _columns(content: bytes, path: str) -> Float[np.ndarray, "rows columns"]:
    """Checked fields `_NUMBERS` of one file, by track and keyframe."""
    try:
        text = content.decode("ascii")
    except UnicodeDecodeError as error:
        row = content.count(b"\n", 0, error.start) + 1
        raise DataError("there is a character that is not ASCII", path=path, row=row) from None
    lines = text.splitlines()
    if not lines:
        raise DataError("the file is empty", path=path, hint="download the file again")
    words = [line.split() for line in lines]
    for row, fields in enumerate(words, 1):
        if len(fields) != _FIELDS:
            raise DataError(f"it has {len(fields)} fields, not {_FIELDS}", path=path, row=row)
        if fields[2] not in _CLASSES:
            _fail(f"it is {fields[2]!r:.40}, not one of {', '.join(_CLASSES)}", path, row, 2)
    table = _numbers(words)
    _check(table, words, path)
    order = np.lexsort((table[:, 0], table[:, 1]))
    table = table[order]
    twice = np.flatnonzero((np.diff(table[:, :2], axis=0) == 0).all(axis=1))
    if len(twice):
        row = int(max(order[twice[0]], order[twice[0] + 1])) + 1
        raise DataError("its track has another row at this keyframe", path=path, row=row)
    return table


def _numbers(words: list[list[str]]) -> Float[np.ndarray, "rows columns"]:
    """Cells as numbers, NaN where a cell is not a number."""
    cells = np.array([[fields[j] for j in _NUMBERS] for fields in words])
    try:
        return cells.astype(float)
    except ValueError:
        return np.vectorize(_number, otypes=[float])(cells)


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return np.nan


def _check(table: np.ndarray, words: list[list[str]], path: str) -> None:
    """Raise an error at the first invalid cell, in the order of rows."""
    keyframe, track, width, height, length, x, y, heading, flag = table.T
    whole = table[:, :2] == np.round(table[:, :2])
    good = np.stack(
        [
            whole[:, 0] & (keyframe >= 0) & (keyframe <= _LAST_KEYFRAME),
            whole[:, 1] & (track >= 0) & (track < 1e9),
            *((side > 0) & (side < 100) for side in (width, height, length)),
            *(np.abs(coordinate) < 1e5 for coordinate in (x, y)),
            np.abs(heading) < 7,
            (flag == 0) | (flag == 1),
        ],
        axis=1,
    )
    if good.all():
        return
    rules = (
        f"a whole number from 0 to {_LAST_KEYFRAME}",
        "a whole number",
        *("a length in m, above 0 and below 100",) * 3,
        *("a coordinate in m, within 100 km",) * 2,
        "an angle in rad, from -pi to pi",
        "0.0 or 1.0",
    )
    row, column = np.argwhere(~good)[0]
    field = _NUMBERS[column]
    _fail(f"it is {words[row][field]!r:.40}, not {rules[column]}", path, int(row) + 1, field)


def _fail(message: str, path: str, row: int, field: int) -> NoReturn:
    raise DataError(message, path=path, row=row, column=f"{field + 1} ({_NAMES[field]})")
