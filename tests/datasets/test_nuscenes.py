"""The protocols of nuScenes: windows, frames, what is missing, and who shares what."""

import pickle
import shutil

import numpy as np
import pytest

from physsm._errors import ConfigError, DataError
from physsm.data.window import windows
from physsm.datasets._dataset import share_of_equal_windows, share_of_touching_windows
from physsm.datasets._nuscenes_index import read_index
from physsm.datasets.nuscenes import DATASET, LabelRecordings, MiniRecordings, tensors
from tests.datasets.nuscenes_samples import (
    archive,
    curve,
    label_folder,
    label_text,
    mini_folder,
    real_data,
    scenario,
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of the test's own, and no files but the test's unless it asks for others."""
    folder = tmp_path / "cache"
    for module in ("_nuscenes_index", "_sources"):
        monkeypatch.setattr(f"physsm.datasets.{module}.cache_folder", lambda: folder)
    return folder / "index"


@pytest.fixture
def labels(tmp_path):
    return label_folder(tmp_path)


def parts(split):
    return split.train, split.validation, split.test


def scenes(part):
    return {raw.recording.split("/")[0] for raw in part.raw}


def test_windows_are_series_of_81_rows(labels):
    split = DATASET.split("strict", data_dir=labels)
    assert (split.sizes.context, split.sizes.horizon) == (21, 60)
    assert (split.in_domain, split.tracks) == (50, (("p", "y"),))
    assert len(split.unit) == 5
    # 12 keyframes of each of two tracks in each scene are targets of the challenge.
    assert [len(part.panel) for part in parts(split)] == [8 * 24, 2 * 24, 2 * 24]
    for part in parts(split):
        panel = part.panel
        assert panel.channels == ("p", "y", "psi", "v_p", "v_y")
        np.testing.assert_allclose(panel.times[0], 0.1 * np.arange(-20, 61), atol=1e-12)
        for ours, cut in zip(part.windows, windows(panel, 21, 60, split.sizes.stride), strict=True):
            np.testing.assert_array_equal(ours, cut)


def test_rotated_back_a_window_is_the_labels(labels):
    split = DATASET.split("strict", data_dir=labels, missing=0.0)
    panel = split.test.panel
    for name, values in zip(panel.ids, panel.values, strict=True):
        track, now = (int(word) for word in name.split("/")[1].split("@"))
        x, y, heading = curve(np.arange(25), track)
        origin, turn = np.array([x[now], y[now]]), heading[now]
        rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        keyframes = np.arange(max(now - 4, 0), now + 13)
        rows = 20 + 5 * (keyframes - now)
        points = values[rows, :2] @ rotation.T + origin
        np.testing.assert_allclose(points, np.stack([x, y], axis=1)[keyframes], atol=1e-9)
        turned = np.unwrap(heading)
        np.testing.assert_allclose(values[rows, 2], (turned - turned[now])[keyframes], atol=1e-9)
        np.testing.assert_allclose(values[20, :3], 0, atol=1e-9)
        assert np.isnan(values[: rows[0]]).all()  # before the first keyframe there is nothing
        seen = values[rows[0] :]
        np.testing.assert_allclose(seen[1:, 3:], np.diff(seen[:, :2], axis=0) / 0.1, atol=1e-9)
        assert np.isnan(seen[0, 3:]).all()


def test_the_context_does_not_look_ahead(labels, tmp_path):
    """Other keyframes after the current one change no row of the context."""
    before = DATASET.split("strict", data_dir=labels).test.panel
    now = 6
    file = labels / "nuscenes_pred_2hz" / "label" / "val" / "scene-0101.txt"
    rows = [line.split() for line in label_text().splitlines()]
    for row in rows:
        if float(row[0]) > now:
            row[13] = repr(float(row[13]) + 30.0)
    file.write_text("\n".join(" ".join(row) for row in rows))
    after = DATASET.split("strict", data_dir=labels).test.panel
    window = before.ids.index(f"scene-0101/1@{now}")
    np.testing.assert_array_equal(before.values[window, :21], after.values[window, :21])
    assert np.abs(before.values[window, 21:] - after.values[window, 21:]).max() > 5


def test_missing_rows_are_of_the_history_only(labels):
    whole = DATASET.split("paper", data_dir=labels, missing=0.0)
    thin = DATASET.split("paper", data_dir=labels, missing=0.2)
    for one, other in zip(parts(whole), parts(thin), strict=True):
        known = np.isfinite(one.panel.values[..., 0])
        seen = np.isfinite(other.panel.values[..., 0])
        np.testing.assert_array_equal(seen[:, 20:], known[:, 20:])
        assert not (seen & ~known).any()
        assert 0.1 < 1 - seen[:, :20].sum() / known[:, :20].sum() < 0.3
        values = other.panel.values
        np.testing.assert_array_equal(np.isfinite(values[..., :3]).all(axis=2), seen)
        both = seen[:, 1:] & seen[:, :-1]
        np.testing.assert_array_equal(np.isfinite(values[:, 1:, 3]), both)
    again = DATASET.split("paper", data_dir=labels, missing=0.2)
    np.testing.assert_array_equal(again.test.panel.values, thin.test.panel.values)
    other = DATASET.split("paper", data_dir=labels, missing=0.2, seed=1)
    assert not np.array_equal(other.test.panel.values, thin.test.panel.values, equal_nan=True)


def test_five_percent_are_missing_by_default(labels):
    panel = DATASET.split("strict", data_dir=labels).train.panel
    now = np.array([int(name.split("@")[1]) for name in panel.ids])
    share = np.isnan(panel.values[now >= 4, :20, 0]).mean()
    assert 0.03 < share < 0.07


def test_panels_and_tensors_miss_the_same(labels):
    panel = DATASET.split("strict", data_dir=labels).test.panel
    made = tensors(LabelRecordings(labels), panel.ids)
    seen = np.isfinite(panel.values[:, :21, 0])
    np.testing.assert_array_equal(made.agents_valid[:, 0], seen)
    history = panel.values[:, :21, :2][seen]
    np.testing.assert_allclose(made.agents[:, 0, :, :2][seen], history, atol=1e-4)
    future = np.nan_to_num(panel.values[:, 21:])
    np.testing.assert_allclose(made.target, future, atol=1e-4)


def test_strict_shares_no_scene_and_paper_shares_samples(labels):
    strict = DATASET.split("strict", data_dir=labels)
    train, validation, test = (scenes(part) for part in parts(strict))
    assert validation == {"scene-0005", "scene-0010"}
    assert len(train | validation | test) == len(train) + len(validation) + len(test)
    assert share_of_touching_windows(strict.train, strict.validation) == 0
    assert share_of_touching_windows(strict.train, strict.test) == 0
    paper = DATASET.split("paper", data_dir=labels)
    assert [len(part.panel) for part in parts(paper)] == [192, 48, 48]
    assert share_of_equal_windows(paper.train, paper.validation) == 0
    assert share_of_touching_windows(paper.train, paper.validation) == 1
    assert share_of_touching_windows(paper.train, paper.test) == 0
    assert "overlap" in " ".join(paper.notes)
    assert any("train_val" in note for note in paper.notes)


def test_raw_rows_cover_the_keyframes_that_a_window_looks_at(labels):
    part = DATASET.split("strict", data_dir=labels).test
    for window, name in enumerate(part.panel.ids):
        now = int(name.split("@")[1])
        recording, samples = part.samples(window)
        assert recording == name.split("@")[0]
        used = set(range(max(now - 4, 0), now + 13))
        # A row is said to look at the keyframe before its own, which the first one does not.
        assert used <= set(samples[samples >= 0].tolist()) <= used | {now - 5}
        number = part.raw[window].number
        assert number[20] == now  # the context ends at a keyframe and claims none after it
        assert number[:21].max() == now
        np.testing.assert_array_equal(number < 0, np.arange(81) < 20 - 5 * now)


def test_limits_are_spread_evenly(labels):
    every = DATASET.split("strict", data_dir=labels)
    some = DATASET.split("strict", data_dir=labels, limit=20)
    assert [len(part.panel) for part in parts(some)] == [20, 20, 20]
    places = [every.train.panel.ids.index(name) for name in some.train.panel.ids]
    assert set(np.diff(places)) <= {9, 10}
    np.testing.assert_array_equal(every.train.panel.values[places], some.train.panel.values)


def test_targets_must_move(labels):
    for file in (labels / "nuscenes_pred_2hz" / "label").glob("*/scene-000*.txt"):
        rows = [line.split() for line in label_text().splitlines()]
        for row in rows:
            if row[1] == "1.0":
                row[13], row[15] = "10.0", "20.0"
        file.write_text("\n".join(" ".join(row) for row in rows))
    split = DATASET.split("strict", data_dir=labels)
    moving = {raw.recording for part in parts(split) for raw in part.raw}
    assert "scene-0001/2" in moving
    assert "scene-0001/1" not in moving
    assert "scene-0010/1" in moving


def test_the_index_is_kept_and_damaged_ones_are_built_again(labels, cache, monkeypatch):
    path = labels / "nuscenes_pred_2hz" / "label"
    built = read_index(path)
    (file,) = cache.iterdir()
    content = file.read_bytes()

    def refuse(*_):
        raise AssertionError("the labels are read again")

    with monkeypatch.context() as patch:
        patch.setattr("physsm.datasets._nuscenes_index.read_labels", refuse)
        kept = read_index(path)
    np.testing.assert_array_equal(kept.table.position, built.table.position)
    np.testing.assert_array_equal(kept.windows.moved, built.windows.moved)
    assert kept.table.scenes == built.table.scenes
    damage = [b"", content[:100], content[:-1], bytes(1000), content[:5000] + b"x" + content[5001:]]
    for wrong in damage:
        file.write_bytes(wrong)
        again = read_index(path)
        np.testing.assert_array_equal(again.table.position, built.table.position)
        assert file.read_bytes() == content
    (path / "train" / "scene-0001.txt").write_text(label_text(keyframes=20))
    assert len(read_index(path).scene) < len(built.scene)
    assert len(list(cache.iterdir())) == 2


def test_a_cache_that_cannot_be_written_does_no_harm(labels, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert len(DATASET.split("strict", data_dir=labels).test.panel) == 48


def test_mini_is_split_by_scene(tmp_path):
    split = DATASET.split("mini", data_dir=mini_folder(tmp_path))
    assert [len(scenes(part)) for part in parts(split)] == [6, 2, 2]
    assert scenes(split.test) == {"scene-0103", "scene-0916"}
    assert share_of_touching_windows(split.train, split.test) == 0
    assert {raw.recording.split("/")[1] for raw in split.train.raw} == {"a", "b"}
    known = np.isfinite(split.train.panel.values[..., 0]).sum(axis=1)
    assert known.min() >= 35  # half of 81 rows, some of the history lost
    assert len(DATASET.split("mini", data_dir=tmp_path, limit=7).test.panel) == 7
    recordings = MiniRecordings(tmp_path)
    assert recordings.map("scene-0103") is recordings.map("scene-0103")
    with pytest.raises(DataError, match="there are scene-0061"):
        recordings.scene("scene-9999")
    twice = {name: pickle.dumps(scenario()) for name in ("a.pkl", "b.pkl")}
    path = tmp_path / "nuscenes_scenarionet" / "nuscenes_mini_10scenes_scenarionet.tar.xz"
    archive(path, twice)
    with pytest.raises(DataError, match="scene-0001 occurs twice"):
        MiniRecordings(tmp_path)
    archive(path, {"a.pkl": pickle.dumps(scenario("scene-0103"))})
    with pytest.raises(DataError, match="no windows for training"):
        DATASET.split("mini", data_dir=tmp_path)


def test_mini_is_read_from_single_files_too(tmp_path):
    folder = tmp_path / "nuscenes_scenarionet"
    folder.mkdir()
    for name in ("scene-0061", "scene-0103"):
        file = folder / f"sd_nuscenes_v1.0-mini_{name}.pkl"
        file.write_bytes(pickle.dumps(scenario(name)))
    (folder / "other.pkl").write_bytes(b"is not read")
    assert list(MiniRecordings(tmp_path).scenes) == ["scene-0061", "scene-0103"]


def test_what_cannot_be_used_is_said(labels, tmp_path, monkeypatch):
    monkeypatch.delenv("PHYSSM_DATA", raising=False)
    for settings, message in [
        ({"seed": -1}, "seed must be"),
        ({"missing": 1.0}, "missing must be"),
        ({"limit": 0}, "limit must be"),
    ]:
        for protocol in DATASET.protocols:
            with pytest.raises(ConfigError, match=message):
                DATASET.split(protocol, data_dir=labels, **settings)
    for protocol in DATASET.protocols:
        with pytest.raises(DataError, match="physsm data get"):
            DATASET.split(protocol, data_dir=tmp_path / "nowhere")
    shutil.rmtree(labels / "nuscenes_pred_2hz" / "label" / "val")
    with pytest.raises(DataError, match="no windows for test"):
        DATASET.split("strict", data_dir=labels)


def test_the_published_windows():
    data = real_data()
    strict = DATASET.split("strict", data_dir=data)
    assert len(strict.train.panel) + len(strict.validation.panel) == 32_186
    assert len(strict.test.panel) == 9_041
    assert np.isfinite(strict.test.panel.values[:, 21:]).all()  # targets are complete
    assert np.isfinite(strict.test.panel.values[:, 20, :3]).all()
    paper = DATASET.split("paper", data_dir=data, limit=100)
    assert [len(part.panel) for part in parts(paper)] == [100, 100, 100]
    train, validation, test = (scenes(part) for part in parts(strict))
    assert (len(train), len(validation), len(test)) == (380, 95, 138)
    assert len(train | validation | test) == 613
    ours = strict.test.panel.values
    complete = np.array([(raw.number >= 0).all() for raw in strict.test.raw])
    assert complete.sum() == 7_121
    assert abs(np.isnan(ours[complete, :20, 0]).mean() - 0.05) < 0.005
    assert np.abs(np.diff(ours[..., 2], axis=1))[:, 20:].max() < 0.3  # rad in 0.1 s, no jumps
