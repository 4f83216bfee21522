"""Scenes and maps by name, from one of the two sources."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Protocol, runtime_checkable

from physsm._errors import DataError
from physsm.datasets._nuscenes_index import SOURCE, LabelIndex, locate_labels, read_index
from physsm.datasets._nuscenes_map import (
    VectorMap,
    read_covered,
    read_scene_maps,
    read_vector_maps,
)
from physsm.datasets._nuscenes_scenarionet import read_scenes
from physsm.datasets._nuscenes_scene import Scene
from physsm.datasets._sources import data_folders, locate

_MINI_SOURCE = "nuscenes_scenarionet"
_MINI_ARCHIVE = "nuscenes_mini_10scenes_scenarionet.tar.xz"
_MINI_FILES = "sd_nuscenes_v1.0-mini_scene-*.pkl"
_VECTOR_MAPS = "vector_maps_global.npz"


@runtime_checkable
class Recordings(Protocol):
    """Source of scenes and their maps."""

    def scene(self, name: str) -> Scene:
        """One scene at 10 Hz."""
        ...

    def map(self, name: str) -> VectorMap | None:
        """Map of a scene, in the frame of its tracks; None if no map covers it."""
        ...


class LabelRecordings:
    """The 613 scenes of the challenge's training and validation parts, in the global frame.

    Only targets of the challenge and the ego are listed. The vector maps cover 441 scenes; half a
    map would hide roads that exist, so the other scenes have none.
    """

    def __init__(self, data_dir: str | Path | None = None):
        self._data_dir = data_dir
        self.index: LabelIndex = read_index(locate_labels(data_dir))
        self._number = {name: i for i, name in enumerate(self.index.table.scenes)}

    def scene(self, name: str) -> Scene:
        """One scene at 10 Hz, interpolated."""
        if name not in self._number:
            raise DataError(f"there is no scene {name!r:.60} among the labels")
        return self.index.table.scene(self._number[name], self._map_names.get(name, ""))

    def map(self, name: str) -> VectorMap | None:
        """Map of the scene's city, if it covers the scene."""
        return self._maps.get(self._map_names.get(name, "")) if name in self._covered else None

    @functools.cached_property
    def _map_names(self) -> dict[str, str]:
        return read_scene_maps(locate(SOURCE, "scene_to_map.csv", self._data_dir))

    @functools.cached_property
    def _covered(self) -> frozenset[str]:
        return read_covered(locate(SOURCE, "scene_map_coverage.csv", self._data_dir))

    @functools.cached_property
    def _maps(self) -> dict[str, VectorMap]:
        return read_vector_maps(locate(_MINI_SOURCE, _VECTOR_MAPS, self._data_dir))


class MiniRecordings:
    """The ten scenes of nuScenes mini with all agents, each in the frame of its file."""

    def __init__(self, data_dir: str | Path | None = None):
        self.scenes: dict[str, Scene] = {}
        for path in _mini_files(data_dir):
            for scene in read_scenes(path):
                if scene.name in self.scenes:
                    raise DataError(f"{scene.name} occurs twice", path=str(path))
                self.scenes[scene.name] = scene
        self._maps: dict[str, VectorMap] = {}

    def scene(self, name: str) -> Scene:
        """One scene at 10 Hz, as published."""
        if name not in self.scenes:
            known = ", ".join(sorted(self.scenes))
            raise DataError(f"there is no scene {name!r:.60}: there are {known}")
        return self.scenes[name]

    def map(self, name: str) -> VectorMap | None:
        """Map around the scene, with a radius of 500 m."""
        if name not in self._maps:
            self._maps[name] = VectorMap(self.scene(name).polylines, name)
        return self._maps[name]


def _mini_files(data_dir: str | Path | None) -> list[Path]:
    """Archive, or files of the single scenes, from the first of `data_folders` that has either."""
    for folder in data_folders(data_dir):
        archive = folder / _MINI_SOURCE / _MINI_ARCHIVE
        if files := [archive] if archive.exists() else sorted(archive.parent.glob(_MINI_FILES)):
            return files
    return [locate(_MINI_SOURCE, _MINI_ARCHIVE, data_dir)]
