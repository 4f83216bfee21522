"""The map: resampled lines, pieces found as a search through all of them finds them."""

import numpy as np
import pytest

from physsm._errors import DataError
from physsm.datasets._nuscenes_map import (
    KINDS,
    VectorMap,
    read_columns,
    read_covered,
    read_scene_maps,
    read_vector_maps,
)
from physsm.datasets._nuscenes_scene import Polyline
from tests.datasets.nuscenes_samples import DIVIDER, LANE, label_folder, real_data

SHARE = "share_of_rows_within_8m_of_a_mini_vector_lane"


def town(seed=0, lines=1000):
    """Crooked lines all over a square of 600 m."""
    rng = np.random.default_rng(seed)
    made = []
    for i in range(lines):
        turns = np.cumsum(rng.normal(0, 0.2, 40)) + rng.uniform(0, 6)
        steps = rng.uniform(0.5, 3, 40)[:, None] * np.stack([np.cos(turns), np.sin(turns)], 1)
        kind = list(KINDS)[i % 4]
        made.append(Polyline(kind, rng.uniform(-300, 300, 2) + np.cumsum(steps, axis=0)))
    return made


def test_lines_are_resampled_to_half_a_metre_and_keep_their_ends():
    bent = np.array([[0.0, 0.0], [10.0, 0.0], [10.0, 0.1], [10.0, 6.0]])
    made = VectorMap([Polyline(LANE, bent), Polyline(DIVIDER, bent[::-1] + 50.0)], "map")
    assert made.points.shape == (4, 30, 2)
    assert made.valid.sum(axis=1).tolist() == [30, 3, 30, 3]
    assert made.kind.tolist() == [2, 2, 11, 11]
    first = made.points[:2][made.valid[:2]]
    np.testing.assert_allclose(first[[0, -1]], bent[[0, -1]])
    np.testing.assert_allclose(np.abs(np.diff(first, axis=0)).sum(axis=1), 0.5, atol=1e-9)
    np.testing.assert_allclose(made.points[2, 0], [60, 56])


def test_lines_without_length_and_unknown_kinds_are_left_out():
    point = np.ones((3, 2))
    line = np.array([[0.0, 0.0], [0.1, 0.0]])
    made = VectorMap([Polyline(LANE, point), Polyline("X", line), Polyline(LANE, line)], "map")
    assert made.points.shape == (1, 30, 2)
    np.testing.assert_allclose(made.points[0, :2], line)
    nothing = VectorMap([], "map").near(np.zeros(2), 0.0)
    assert nothing.points.shape == (0, 30, 2)


@pytest.mark.parametrize("seed", range(3))
def test_the_nearest_pieces_are_those_of_a_full_search(seed):
    made = VectorMap(town(), "map")
    rng = np.random.default_rng(seed)
    origin, heading = rng.uniform(-200, 200, 2), float(rng.uniform(-np.pi, np.pi))
    turn = np.array([[np.cos(heading), np.sin(heading)], [-np.sin(heading), np.cos(heading)]])
    found = []
    for points, valid, kind in zip(made.points, made.valid, made.kind, strict=True):
        local = [turn @ (point - origin) for point in points[valid]]
        inside = [p for p in local if abs(p[0] - 30) <= 100 and abs(p[1]) <= 100]
        if inside:
            found.append((np.linalg.norm(np.mean(inside, axis=0) - [30, 0]), kind, inside))
    found.sort(key=lambda one: one[0])
    near = made.near(origin, heading)
    assert len(near.kind) == min(384, len(found)) == 384
    for i, (_, kind, inside) in enumerate(found[:384]):
        assert near.kind[i] == kind
        np.testing.assert_allclose(near.points[i][near.valid[i]], inside, atol=1e-9)
    assert (near.points[~near.valid] == 0).all()


def test_lines_longer_than_any_city_are_refused():
    endless = np.array([[-9e5, 0.0], [9e5, 0.0]] * 10)
    with pytest.raises(DataError, match="longer"):
        VectorMap([Polyline(LANE, endless)], "map")


def test_maps_are_read_from_their_file(tmp_path):
    path = label_folder(tmp_path) / "nuscenes_scenarionet" / "vector_maps_global.npz"
    made = read_vector_maps(path)
    assert list(made) == ["town"]
    assert made["town"].valid.sum() == 601


def save(path, **changes):
    arrays = {
        "town__xy": np.zeros((5, 2), np.float32),
        "town__start": np.array([0, 2, 5]),
        "town__type": np.array([0, 1]),
        "type_names": np.array([LANE, DIVIDER]),
    } | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"town__xy": np.zeros((5, 3))},
        {"town__xy": np.full((5, 2), np.nan)},
        {"town__xy": np.array([None] * 5)},
        {"town__start": np.array([0, 2, 9])},
        {"town__start": np.array([0, 4, 2, 5])},
        {"town__start": None},
        {"town__type": np.array([0, 7])},
        {"town__type": np.array([0])},
        {"type_names": None},
    ],
)
def test_wrong_map_files_are_refused(changes, tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        read_vector_maps(save(tmp_path / "maps.npz", **changes))


def test_damaged_map_files_give_maps_or_data_errors(tmp_path):
    content = save(tmp_path / "good.npz").read_bytes()
    path = tmp_path / "bad.npz"
    for length in range(0, len(content), 20):
        path.write_bytes(content[:length])
        with pytest.raises(DataError):
            read_vector_maps(path)
    rng = np.random.default_rng(0)
    for place in rng.integers(len(content), size=200):
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(bytes(damaged))
        try:
            read_vector_maps(path)
        except DataError as error:
            assert "bad.npz" in str(error)


def test_tables_of_scenes_are_checked(tmp_path):
    root = label_folder(tmp_path) / "nuscenes_pred_2hz"
    assert read_scene_maps(root / "scene_to_map.csv")["scene-0001"] == "town"
    covered = read_covered(root / "scene_map_coverage.csv")
    assert "scene-0102" in covered
    assert "scene-0101" not in covered
    path = tmp_path / "a.csv"
    for text, message in [
        ("scene,split\nscene-1,train\n", SHARE),
        (f"scene,{SHARE}\nscene-1,much\n", "row 2"),
        (f"scene,{SHARE}\nscene-1,nan\n", "'nan'"),
        (f"scene,{SHARE}\n,1.0\n", "row 2, column scene"),
        (f"scene,{SHARE}\nscene-1\n", "row 2"),
        ("", "column scene"),
    ]:
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            read_covered(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="cannot be read"):
        read_columns(path, "scene")
    with pytest.raises(DataError, match="cannot be read"):
        read_columns(tmp_path / "none.csv", "scene")


def test_the_published_maps():
    root = real_data()
    maps = read_vector_maps(root / "nuscenes_scenarionet" / "vector_maps_global.npz")
    assert len(maps) == 4
    assert len(read_covered(root / "nuscenes_pred_2hz" / "scene_map_coverage.csv")) == 441
    scenes = read_scene_maps(root / "nuscenes_pred_2hz" / "scene_to_map.csv")
    assert len(scenes) == 850
    assert set(scenes.values()) == set(maps)
