"""Small files in the formats of nuScenes, and the real ones where they are."""

import functools
import io
import os
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest

from physsm.datasets._nuscenes_labels import LabelTable, read_labels
from physsm.datasets._nuscenes_scenarionet import read_scenes
from physsm.datasets._nuscenes_scene import Scene

LANE, DIVIDER = "LANE_SURFACE_STREET", "ROAD_LINE_SOLID_SINGLE_YELLOW"


def real_data() -> Path:
    folder = os.environ.get("PHYSSM_DATA")
    if not folder or not (Path(folder) / "nuscenes_pred_2hz").exists():
        pytest.skip("the files of nuScenes are not there: set PHYSSM_DATA to their folder")
    return Path(folder)


@functools.cache
def real_scenes() -> dict[str, Scene]:
    """The ten published scenes; read once, since run-time type checks make that slow."""
    path = "nuscenes_scenarionet/nuscenes_mini_10scenes_scenarionet.tar.xz"
    return {scene.name: scene for scene in read_scenes(real_data() / path)}


@functools.cache
def real_labels() -> LabelTable:
    return read_labels(real_data() / "nuscenes_pred_2hz" / "labels.tar.xz")


def label_row(keyframe, track, x, y, heading, flag, kind="Car"):
    """One row in the order of the published files."""
    unused = ["-1.0"] * 7
    size = ["1.9", "1.6", "4.5"]
    place = [repr(float(x)), "0.0", repr(float(y)), repr(float(heading))]
    row = [f"{float(keyframe)}", f"{float(track)}", kind, *unused, *size, *place]
    return " ".join([*row, f"{float(flag)}", "-1.0", "-1.0"])


def curve(keyframe, track):
    """A car that turns left across the jump of its heading at pi, and gains speed."""
    time = 0.5 * keyframe
    heading = 3.0 + 0.08 * time + 0.1 * track
    heading = (heading + np.pi) % (2 * np.pi) - np.pi
    return 100.0 + 20 * track - 6 * time - 0.2 * time**2, 200.0 + 0.3 * time**2, heading


def label_text(keyframes=25, tracks=(1, 2), ego=True) -> str:
    rows = []
    for k in range(keyframes):
        if ego:
            rows.append(label_row(k, 99, 90.0 - 5 * k, 190.0, 3.1, 1))
        for track in tracks:
            challenge = 1 <= k < keyframes - 12
            rows.append(label_row(k, track, *curve(k, track), challenge))
    return "\n".join(rows) + "\n"


def label_folder(root: Path, train=10, val=2) -> Path:
    """A source folder with scenes 0001 on in train and 0101 on in val, with a map of one lane."""
    source = root / "nuscenes_pred_2hz"
    names = [("train", f"scene-{i + 1:04d}") for i in range(train)]
    names += [("val", f"scene-{i + 101:04d}") for i in range(val)]
    for official, name in names:
        file = source / "label" / official / f"{name}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(label_text())
    share = "share_of_rows_within_8m_of_a_mini_vector_lane"
    (source / "scene_to_map.csv").write_text(
        "scene,map\n" + "".join(f"{name},town\n" for _, name in names)
    )
    (source / "scene_map_coverage.csv").write_text(
        f"scene,split,map,{share}\n"
        + "".join(f"{n},{o},town,{0.5 if n == 'scene-0101' else 1.0}\n" for o, n in names)
    )
    maps = root / "nuscenes_scenarionet"
    maps.mkdir(exist_ok=True)
    lane = np.stack([np.linspace(-100, 200, 301), np.full(301, 200.0)], axis=1)
    np.savez(
        maps / "vector_maps_global.npz",
        town__xy=lane.astype(np.float32),
        town__start=np.array([0, 301], np.int32),
        town__type=np.array([0], np.int8),
        type_names=np.array([LANE, DIVIDER]),
    )
    return root


def track(steps, kind="VEHICLE", speed=5.0, y=0.0, start=0):
    valid = (np.arange(steps) >= start).astype(float)
    x = speed * 0.1 * np.arange(steps) * valid
    velocity = np.zeros((steps, 2))
    velocity[start:-1, 0] = speed
    full = np.ones((steps, 1))
    return {
        "type": kind,
        "state": {
            "position": np.stack([x, y * valid, np.zeros(steps)], axis=1),
            "heading": np.zeros(steps),
            "velocity": velocity,
            "valid": valid,
            "length": 4.5 * full,
            "width": 1.9 * full,
            "height": 1.6 * full,
        },
        "metadata": {"type": "vehicle.car", "track_length": steps},
    }


def scenario(name="scene-0001", steps=121, lists=False):
    """A scene as ScenarioNet writes it: two cars, a pedestrian, a cone and the ego."""
    tracks = {
        "a": track(steps),
        "b": track(steps, speed=8.0, y=3.5, start=10),
        "walker": track(steps, "PEDESTRIAN", speed=1.0, y=-4.0),
        "cone": track(steps, "TRAFFIC_CONE", speed=0.0, y=1.0),
        "ego": track(steps, speed=6.0, y=-3.5),
    }
    lane = np.stack([np.arange(-50.0, 151), np.zeros(201), np.zeros(201)], axis=1)
    line = np.stack([np.arange(-50.0, 151), np.full(201, 1.75)], axis=1)
    features = {
        "1": {"type": LANE, "polyline": lane.tolist() if lists else lane},
        "2": {"type": DIVIDER, "polyline": line},
        "3": {"type": "CROSSWALK", "polygon": line[:3]},
    }
    return {
        "id": name,
        "length": steps,
        "metadata": {"map": "town", "ts": 0.1 * np.arange(steps), "height": -np.inf},
        "tracks": tracks,
        "map_features": features,
        "dynamic_map_states": {},
    }


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:xz") as stream:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            stream.addfile(entry, io.BytesIO(content))
    return path


def mini_folder(root: Path) -> Path:
    folder = root / "nuscenes_scenarionet"
    folder.mkdir(exist_ok=True)
    names = ("0061", "0103", "0553", "0655", "0757", "0796", "0916", "1077", "1094", "1100")
    members = {f"./{n}.pkl": pickle.dumps(scenario(f"scene-{n}")) for n in names}
    archive(folder / "nuscenes_mini_10scenes_scenarionet.tar.xz", members)
    return root
