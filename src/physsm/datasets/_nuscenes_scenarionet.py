"""Scene files of ScenarioNet and MetaDrive: one pickle each, all agents at 10 Hz, a map."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from jaxtyping import Bool, Float

from physsm._errors import DataError
from physsm.datasets._nuscenes_scene import EGO, PER_KEYFRAME, STEP, Polyline, Scene, Tracks
from physsm.datasets._safe_pickle import read_pickle
from physsm.datasets._tar_archive import tar_members

_MOST_CELLS = 2_000_000  # agents times steps; a scene has about 40,000
_WIDTHS = {"position": 3, "heading": 1, "velocity": 2, "valid": 1}
_SIZES = ("length", "width", "height")
_FARTHEST = 1e6  # m, m/s, rad: published numbers are far smaller


def read_scenes(path: Path) -> Iterator[Scene]:
    """Scenes of a .pkl file, or of all .pkl files in a .tar.xz archive."""
    if path.name.endswith(".tar.xz"):
        is_empty = True
        for name, content in tar_members(path, ".pkl"):
            is_empty = False
            yield scene_from_pickle(content, f"{path}, {name}")
        if is_empty:
            raise DataError("the archive holds no .pkl file", path=str(path))
        return
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"the file cannot be read: {error.strerror}", path=str(path)) from None
    yield scene_from_pickle(content, str(path))


def scene_from_pickle(content: bytes, path: str) -> Scene:
    """Scene of a pickle; errors call the file `path`.

    Targets are the keyframes of vehicles other than the ego: these files have no list of the
    prediction challenge.
    """
    scenario = _Reader(path, read_pickle(content, path), "")
    metadata = scenario.at("metadata")
    times = metadata.at("ts").numbers(None, 1)[:, 0]
    steps = len(times)
    if steps == 0 or np.abs(np.diff(times) - STEP).max(initial=0) > 1e-6:
        metadata.fail("ts must be times in steps of 0.1 s")
    tracks = _tracks(scenario.at("tracks"), steps)
    lines = tuple(_polylines(scenario.at("map_features")))
    agents = zip(tracks.ids, tracks.kinds, strict=True)
    targets = np.array([kind == "VEHICLE" and name != EGO for name, kind in agents], bool)
    keyframe = np.arange(steps) % PER_KEYFRAME == 0
    return Scene(
        name=scenario.at("id").text(),
        map_name=metadata.at("map").text(),
        times=times,
        tracks=tracks,
        targets=tracks.valid & targets[:, None] & keyframe,
        polylines=lines,
    )


class _Reader:
    """Value inside a pickle and the path of keys to it, for errors."""

    def __init__(self, path: str, value: Any, key_path: str):
        self.path, self.value, self.key_path = path, value, key_path

    def fail(self, message: str) -> NoReturn:
        raise DataError(f"{self.key_path or 'the scene'}: {message}", path=self.path)

    def at(self, key: str) -> _Reader:
        if not isinstance(self.value, dict) or key not in self.value:
            self.fail(f"there is no {key!r:.60}")
        return _Reader(self.path, self.value[key], f"{self.key_path}/{key:.60}".lstrip("/"))

    def keys(self) -> list[str]:
        if not isinstance(self.value, dict) or not all(isinstance(key, str) for key in self.value):
            self.fail("must be a dict with text keys")
        return list(self.value)

    def text(self) -> str:
        if not isinstance(self.value, str) or not 0 < len(self.value) <= 100:
            self.fail("must be a text of 1 to 100 characters")
        return self.value

    def numbers(
        self, rows: int | None, columns: int, at_least: bool = False
    ) -> Float[np.ndarray, "rows columns"]:
        """Table of finite numbers; a single column may be a plain list. With `at_least`, further
        columns are dropped.
        """
        if not isinstance(self.value, np.ndarray) and not _is_flat_table(self.value):
            self.fail("must be a table of numbers")
        try:
            table = np.asarray(self.value, float)
        except (ValueError, TypeError, OverflowError):
            self.fail("must be a table of numbers")
        table = table[:, None] if table.ndim == 1 and columns == 1 else table
        fits = table.ndim == 2 and rows in (None, len(table))
        if not fits or not (table.shape[1] == columns or (at_least and table.shape[1] > columns)):
            expected = f"({'any' if rows is None else rows}, {columns})"
            self.fail(f"the shape is {table.shape}, but must be {expected}")
        table = table[:, :columns]
        if not (np.abs(table) < _FARTHEST).all():
            row = int(np.argmin((np.abs(table) < _FARTHEST).all(axis=1)))
            self.fail(f"row {row} holds {table[row]}, which is not finite or far too large")
        return table


def _tracks(tracks: _Reader, steps: int) -> Tracks:
    names = tracks.keys()
    if len(names) * steps > _MOST_CELLS:
        tracks.fail(f"{len(names)} tracks of {steps} steps are more than {_MOST_CELLS} cells")
    columns = {name: np.zeros((len(names), steps, width)) for name, width in _WIDTHS.items()}
    size = np.zeros((len(names), 3))
    kinds = []
    for i, name in enumerate(names):
        track = tracks.at(name)
        kinds.append(track.at("type").text())
        state = track.at("state")
        for field, width in _WIDTHS.items():
            columns[field][i] = state.at(field).numbers(steps, width)
        valid = columns["valid"][i, :, 0]
        if not ((valid == 0) | (valid == 1)).all():
            state.fail("valid must be 0 or 1 in each row")
        # Converters set the size to 0 where a track is not valid; otherwise it is constant.
        size[i] = [_largest(state.at(field).numbers(steps, 1), valid > 0) for field in _SIZES]
    valid = columns["valid"][..., 0] > 0
    return Tracks(
        ids=tuple(names),
        kinds=tuple(kinds),
        position=np.where(valid[..., None], columns["position"][..., :2], 0),
        heading=np.where(valid, columns["heading"][..., 0], 0),
        velocity=np.where(valid[..., None], columns["velocity"], 0),
        valid=valid,
        size=size,
    )


def _is_flat_table(value: Any) -> bool:
    """Whether a list has short rows.

    A pickle may refer to one list many times, so that nested lists could expand to far more numbers
    than the file has.
    """
    return isinstance(value, list | tuple) and all(
        isinstance(row, list | tuple)
        and len(row) <= 3
        and all(isinstance(number, int | float) for number in row)
        for row in value
    )


def _largest(values: Float[np.ndarray, "steps 1"], valid: Bool[np.ndarray, " steps"]) -> float:
    return float(values[valid].max(initial=0))


def _polylines(features: _Reader) -> Iterator[Polyline]:
    """Lines with at least two points. A third column, a yaw or a height, is dropped."""
    for name in features.keys():  # noqa: SIM118, not a dict
        feature = features.at(name)
        kind = feature.at("type").text()
        if "polyline" in feature.value:
            points = feature.at("polyline").numbers(None, 2, at_least=True)
            if len(points) >= 2:
                yield Polyline(kind, points)
