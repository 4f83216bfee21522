"""Tensors for scene encoders: rotated back they are the scene; nothing lost or later is in them."""

import pickle

import numpy as np
import pytest

from physsm._errors import ConfigError
from physsm.datasets._nuscenes_map import VectorMap
from physsm.datasets._nuscenes_scenarionet import scene_from_pickle
from physsm.datasets.nuscenes import LabelRecordings, tensors
from tests.datasets.nuscenes_samples import label_folder, scenario

TURN, SHIFT = 0.7, np.array([300.0, -50.0])
ROTATION = np.array([[np.cos(TURN), -np.sin(TURN)], [np.sin(TURN), np.cos(TURN)]])


class OneScene:
    """The sample scene, turned and shifted, as recordings."""

    def __init__(self, change=None):
        content = scenario()
        for one in content["tracks"].values():
            state, valid = one["state"], one["state"]["valid"][:, None] > 0
            if change:
                change(one)
            moved = state["position"][:, :2] @ ROTATION.T + SHIFT
            state["position"] = np.where(valid, np.pad(moved, ((0, 0), (0, 1))), 0)
            state["velocity"] = state["velocity"] @ ROTATION.T
            state["heading"] = state["heading"] + TURN * valid[:, 0]
        for feature in content["map_features"].values():
            if "polyline" in feature:
                feature["polyline"] = feature["polyline"][:, :2] @ ROTATION.T + SHIFT
        self.only = scene_from_pickle(pickle.dumps(content), "scene.pkl")

    def scene(self, name):
        return self.only

    def map(self, name):
        return VectorMap(self.only.polylines, "scene.pkl")


def back(points, made, window):
    turn = made.heading[window]
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    return points @ rotation.T + made.origin[window]


def test_rotated_back_the_agents_are_where_they_were():
    recordings = OneScene()
    ids = ["scene-0001/b@6", "scene-0001/a@8"]
    made = tensors(recordings, ids, missing=0.0)
    tracks = recordings.only.tracks
    assert made.agents.shape == (2, 32, 21, 39)
    assert made.agents_valid.any(axis=2).sum(axis=1).tolist() == [4, 4]  # the cone is no agent
    for window, now in enumerate((30, 40)):
        slots = made.agents[window]
        found = set()
        for slot in range(4):
            valid = made.agents_valid[window, slot]
            steps = np.arange(now - 20, now + 1)[valid]
            points = back(slots[slot, valid, :2], made, window)
            distance = np.abs(tracks.position[:, steps] - points).max(axis=(1, 2))
            found.add(tracks.ids[int(distance.argmin())])
            assert distance.min() < 1e-4  # single precision
        assert found == {"a", "b", "walker", "ego"}
        np.testing.assert_allclose(slots[0, 20, :2], 0, atol=1e-6)
        nearest = np.linalg.norm(slots[:4, 20, :2], axis=1)
        assert (np.diff(nearest) >= 0).all()


def test_the_features_say_what_they_are():
    made = tensors(OneScene(), ["scene-0001/a@8"], missing=0.0)
    slots, valid = made.agents[0], made.agents_valid[0]
    assert valid[0].all()
    target = slots[0]
    np.testing.assert_allclose(target[:, 0], 0.5 * np.arange(-20, 1), atol=1e-5)
    assert (target[:, 2:6] == 0).all()  # height and size are zeroed
    np.testing.assert_array_equal(target[:, 6:11], np.tile([1, 0, 0, 1, 0], (21, 1)))
    np.testing.assert_array_equal(target[:, 11:32], np.eye(21))
    np.testing.assert_allclose(target[:, 32], 0.1 * np.arange(21), atol=1e-6)
    np.testing.assert_allclose(target[:, 33:35], np.tile([0, 1], (21, 1)), atol=1e-6)
    np.testing.assert_allclose(target[1:, 35:37], np.tile([5, 0], (20, 1)), atol=1e-4)
    assert (target[0, 35:39] == 0).all()  # no row before
    assert np.abs(target[:, 37:39]).max() < 1e-3
    kinds = {tuple(slot[20, 6:11].astype(int)) for slot in slots[1:4]}
    assert kinds == {(1, 0, 0, 0, 0), (0, 1, 0, 0, 0), (1, 0, 0, 0, 1)}
    assert (slots[~valid] == 0).all()
    assert not valid[4:].any()


def test_targets_are_the_future_in_the_same_frame():
    recordings = OneScene()
    made = tensors(recordings, ["scene-0001/a@8", "scene-0001/a@16"])
    position = recordings.only.tracks.position[0]
    np.testing.assert_allclose(back(made.target[0, :, :2], made, 0), position[41:101], atol=1e-4)
    np.testing.assert_allclose(made.target[0, :, 3], 5.0, atol=1e-4)
    assert made.target_valid[0].all()
    assert made.target_valid[1].all(axis=1).tolist() == [True] * 40 + [False] * 20  # the scene ends
    assert (made.target[1, 40:] == 0).all()


def test_the_map_is_in_the_same_frame():
    made = tensors(OneScene(), ["scene-0001/a@8"])
    points, valid = made.map[0], made.map_valid[0]
    assert made.has_map.all()
    assert valid.any(axis=1).sum() == 28  # two lines of 401 points, just within reach
    lane = points[..., 9 + 2] == 1
    np.testing.assert_allclose(points[lane & valid][:, 1], 0, atol=1e-4)
    divider = points[..., 9 + 11] == 1
    np.testing.assert_allclose(points[divider & valid][:, 1], 1.75, atol=1e-4)
    assert (points[..., 9:].sum(axis=-1) == valid).all()
    along = points[valid]
    assert along[:, 0].min() >= -70
    assert along[:, 0].max() <= 130
    first = valid & ~np.pad(valid, ((0, 0), (1, 0)))[:, :-1]
    np.testing.assert_array_equal(points[first][:, :3], points[first][:, 6:9])
    assert (points[first][:, 3:6] == 0).all()
    later = points[valid & ~first]
    np.testing.assert_allclose(later[:, 0] - later[:, 6], 0.5, atol=1e-4)
    np.testing.assert_allclose(later[:, 3:6], np.tile([1, 0, 0], (len(later), 1)), atol=1e-4)
    assert (points[~valid] == 0).all()


def after(step):
    def change(one):
        one["state"]["position"][step + 1 :, 1] += 3.0
        one["state"]["velocity"][step:, 1] += 7.0

    return change


def test_the_history_knows_nothing_of_the_future():
    name = "scene-0001/a@8"
    plain = tensors(OneScene(), [name])
    other = tensors(OneScene(after(40)), [name])
    np.testing.assert_array_equal(plain.agents, other.agents)
    assert np.abs(plain.target - other.target).max() > 1
    leaky = [
        tensors(scene, [name], velocity="forward") for scene in (OneScene(), OneScene(after(40)))
    ]
    difference = np.abs(leaky[0].agents - leaky[1].agents).max(axis=(0, 1, 3))
    assert (difference[:20] < 1e-6).all()
    assert difference[20] > 1  # the published velocity of the current step is that of the next


def test_lost_observations_leave_nothing_behind():
    names = ["scene-0001/a@8"]
    whole = tensors(OneScene(), names, missing=0.0)
    thin = tensors(OneScene(), names, missing=0.3, seed=1)
    assert thin.agents_valid[0, :, 20].sum() == 4  # the current step is never lost
    share = thin.agents_valid[0, :4, :20].sum() / whole.agents_valid[0, :4, :20].sum()
    assert 0.55 < share < 0.85
    assert (thin.agents[~thin.agents_valid] == 0).all()
    both = thin.agents_valid[..., 1:] & thin.agents_valid[..., :-1]
    assert (thin.agents[:, :, 1:, 35:37][~both] == 0).all()
    np.testing.assert_array_equal(thin.target, whole.target)


def test_labels_have_only_listed_agents_and_a_map_where_one_covers(tmp_path, monkeypatch):
    monkeypatch.setattr("physsm.datasets._nuscenes_index.cache_folder", lambda: tmp_path / "cache")
    recordings = LabelRecordings(label_folder(tmp_path))
    made = tensors(recordings, ["scene-0101/1@6", "scene-0001/2@6"])
    assert made.agents_valid.any(axis=2).sum(axis=1).tolist() == [3, 3]
    assert made.has_map.tolist() == [False, True]
    assert made.map_valid.any(axis=(1, 2)).tolist() == [False, True]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a", "SCENE/TRACK@KEYFRAME"),
        ("scene-0001/z@8", "no track 'z'"),
        ("scene-0001/b@1", "not annotated at 0.5 s"),
        ("scene-0001/b@999", "not annotated"),
    ],
)
def test_windows_that_are_not_there_are_refused(name, message):
    with pytest.raises(ConfigError, match=message):
        tensors(OneScene(), [name])


def test_wrong_settings_are_refused(without_type_checks):
    with pytest.raises(ConfigError, match="velocity must be"):
        tensors(OneScene(), [], velocity="sideways")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="missing must be"):
        tensors(OneScene(), [], missing=1.0)
