"""Scenes as ScenarioNet writes them: read correctly, and rejected where they are wrong."""

import lzma
import pickle
import tarfile

import numpy as np
import pytest

from physsm._errors import DataError
from physsm.datasets._nuscenes_scenarionet import read_scenes, scene_from_pickle
from tests.datasets.nuscenes_samples import LANE, archive, real_scenes, scenario

# Steps, vehicle tracks, vehicles that move more than 5 m, as counted when the files were collected.
PUBLISHED = {
    "scene-0061": (191, 24, 8),
    "scene-0103": (196, 61, 10),
    "scene-0553": (201, 28, 13),
    "scene-0655": (201, 111, 8),
    "scene-0757": (201, 22, 17),
    "scene-0796": (196, 39, 24),
    "scene-0916": (201, 62, 4),
    "scene-1077": (201, 59, 53),
    "scene-1094": (196, 26, 10),
    "scene-1100": (196, 19, 14),
}


@pytest.mark.parametrize("lists", [False, True])
def test_a_scene_is_read(lists, tmp_path):
    file = tmp_path / "scene.pkl"
    file.write_bytes(pickle.dumps(scenario(lists=lists)))
    (scene,) = read_scenes(file)
    assert (scene.name, scene.map_name) == ("scene-0001", "town")
    np.testing.assert_allclose(scene.times, 0.1 * np.arange(121), atol=1e-12)
    tracks = scene.tracks
    assert tracks.ids == ("a", "b", "walker", "cone", "ego")
    assert tracks.kinds[2:4] == ("PEDESTRIAN", "TRAFFIC_CONE")
    assert tracks.valid.sum(axis=1).tolist() == [121, 111, 121, 121, 121]
    np.testing.assert_allclose(tracks.position[1, 10:, 0], 0.8 * np.arange(10, 121))
    np.testing.assert_array_equal(tracks.size[0], [4.5, 1.9, 1.6])
    assert scene.polylines[0].kind == LANE
    assert [line.points.shape for line in scene.polylines] == [(201, 2), (201, 2)]
    assert np.unique(np.nonzero(scene.targets)[0]).tolist() == [0, 1]  # no ego, no pedestrian
    assert np.unique(np.nonzero(scene.targets)[1] % 5).tolist() == [0]  # keyframes


def test_archives_are_read_whatever_their_members_are_called(tmp_path):
    names = ["../../etc/a.pkl", "/b.pkl", "./c.pkl"]
    members = {n: pickle.dumps(scenario(f"scene-000{i}")) for i, n in enumerate(names)}
    path = archive(tmp_path / "scenes.tar.xz", {**members, "readme.txt": b"no scene"})
    assert [scene.name for scene in read_scenes(path)] == ["scene-0000", "scene-0001", "scene-0002"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["scenes.tar.xz"]


def changed(way, value):
    scene = scenario(steps=31)
    place = scene
    for key in way[:-1]:
        place = place[key]
    if value is None:
        del place[way[-1]]
    else:
        place[way[-1]] = value
    return scene


def nested(depth):
    rows = [1.0]
    for _ in range(depth):
        rows = [rows] * 10
    return rows


STATE = ("tracks", "a", "state")
WRONG = {
    "no tracks": (("tracks",), None, "no 'tracks'"),
    "no state": (STATE, None, "tracks/a: there is no 'state'"),
    "no heading": ((*STATE, "heading"), None, "no 'heading'"),
    "no valid": ((*STATE, "valid"), None, "no 'valid'"),
    "tracks as a list": (("tracks",), [1], "must be a dict"),
    "numbers as keys": (("tracks",), {1: {}}, "must be a dict with text keys"),
    "too short": ((*STATE, "position"), np.zeros((30, 3)), r"shape is \(30, 3\)"),
    "too narrow": ((*STATE, "position"), np.zeros((31, 2)), r"must be \(31, 3\)"),
    "not a number": ((*STATE, "position"), np.full((31, 3), np.nan), "row 0 holds"),
    "infinite": ((*STATE, "heading"), np.full(31, np.inf), "not finite"),
    "too far": ((*STATE, "velocity"), np.full((31, 2), 1e9), "far too large"),
    "valid 2": ((*STATE, "valid"), np.full(31, 2.0), "valid must be 0 or 1"),
    "text": ((*STATE, "heading"), "abc", "table of numbers"),
    "texts": ((*STATE, "heading"), [["a"]] * 31, "table of numbers"),
    "unfolding lists": ((*STATE, "position"), nested(12), "table of numbers"),
    "uneven lists": (("map_features", "1", "polyline"), [[1.0], [1.0, 2.0]], "table of numbers"),
    "thin line": (("map_features", "1", "polyline"), np.zeros((3, 1)), "shape"),
    "other steps": (("metadata", "ts"), 0.2 * np.arange(31), "0.1 s"),
    "no steps": (("metadata", "ts"), np.zeros(0), "0.1 s"),
    "kind": (("tracks", "a", "type"), 7, "text"),
    "name": (("id",), "", "text"),
    "map": (("metadata", "map"), "x" * 200, "text"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_scenes_are_refused_with_the_place(name):
    way, value, message = WRONG[name]
    content = pickle.dumps(changed(way, value))
    with pytest.raises(DataError, match=message) as caught:
        scene_from_pickle(content, "a.pkl")
    assert caught.value.path == "a.pkl"


def test_one_state_under_many_names_takes_no_memory(monkeypatch):
    monkeypatch.setattr("physsm.datasets._nuscenes_scenarionet._MOST_CELLS", 1000)
    scene = scenario(steps=101)
    scene["tracks"] = {str(i): scene["tracks"]["a"] for i in range(10)}
    with pytest.raises(DataError, match="10 tracks of 101 steps"):
        scene_from_pickle(pickle.dumps(scene), "a.pkl")


def test_missing_and_wrong_files_are_data_errors(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        list(read_scenes(tmp_path / "none.pkl"))
    with pytest.raises(DataError, match="cannot be read"):
        list(read_scenes(tmp_path / "none.tar.xz"))
    with pytest.raises(DataError, match=r"no \.pkl file"):
        list(read_scenes(archive(tmp_path / "a.tar.xz", {"x.txt": b""})))
    (tmp_path / "b.tar.xz").write_bytes(lzma.compress(b"no tar at all" * 100))
    with pytest.raises(DataError, match="cannot be read"):
        list(read_scenes(tmp_path / "b.tar.xz"))


def test_archives_that_unpack_to_too_much_are_refused(tmp_path, monkeypatch):
    path = archive(tmp_path / "bomb.tar.xz", {"a.pkl": bytes(3_000_000)})
    monkeypatch.setattr("physsm.datasets._tar_archive._LARGEST", 1_000_000)
    with pytest.raises(DataError, match="more than 1000000 bytes"):
        list(read_scenes(path))


def test_damaged_archives_give_data_errors(tmp_path):
    path = archive(tmp_path / "a.tar.xz", {"a.pkl": pickle.dumps(scenario(steps=21))})
    content = path.read_bytes()
    for length in np.linspace(0, len(content) - 1, 60).astype(int):
        path.write_bytes(content[:length])
        with pytest.raises(DataError):
            list(read_scenes(path))
    rng = np.random.default_rng(1)
    for place in rng.integers(len(content), size=150):
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(bytes(damaged))
        with pytest.raises(DataError):
            list(read_scenes(path))


def test_hostile_archives_give_scenes_or_data_errors(tmp_path):
    """Damage below the checksum of xz, as someone would make it who means harm."""
    path = archive(tmp_path / "a.tar.xz", {"a.pkl": b"\x80\x04.", "b.txt": b"x" * 600})
    content = lzma.decompress(path.read_bytes())
    rng = np.random.default_rng(3)
    for _ in range(200):
        damaged = bytearray(content[: rng.integers(1, len(content))])
        for place in rng.integers(min(len(damaged), 1600), size=3):
            damaged[place] = rng.integers(256)
        path.write_bytes(lzma.compress(bytes(damaged), preset=0))
        with pytest.raises(DataError):
            list(read_scenes(path))


def test_sparse_members_are_refused(tmp_path):
    entry = tarfile.TarInfo("a.pkl")
    entry.type, entry.size = tarfile.GNUTYPE_SPARSE, 0
    header = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
    header[483:495] = b"77777777777\0"  # the size that is claimed, 8 GB
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header[:512])
    path = tmp_path / "a.tar.xz"
    path.write_bytes(lzma.compress(bytes(header) + bytes(1024)))
    with pytest.raises(DataError, match="sparse"):
        list(read_scenes(path))


def test_a_scene_without_agents_has_no_targets():
    scene = scene_from_pickle(pickle.dumps(changed(("tracks",), {})), "a.pkl")
    assert scene.targets.shape == (0, 31)


def test_damaged_pickles_give_a_scene_or_a_data_error():
    content = pickle.dumps(scenario(steps=21))
    rng = np.random.default_rng(2)
    for _ in range(60):
        damaged = bytearray(content)
        damaged[rng.integers(len(content))] ^= 1 << rng.integers(8)
        try:
            scene_from_pickle(bytes(damaged), "a.pkl")
        except DataError as error:
            assert "a.pkl" in str(error)


def test_the_published_scenes_have_the_published_counts():
    found = {}
    for scene in real_scenes().values():
        tracks = scene.tracks
        vehicle = np.array([kind == "VEHICLE" for kind in tracks.kinds])
        far = 0
        for position, valid in zip(tracks.position[vehicle], tracks.valid[vehicle], strict=True):
            way = np.linalg.norm(position[valid] - position[valid][:1], axis=-1)
            far += way.max() > 5
        found[scene.name] = len(scene.times), int(vehicle.sum()), far
        assert len(scene.polylines) > 400
    assert found == PUBLISHED
