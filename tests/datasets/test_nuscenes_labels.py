"""The challenge's labels: official counts, interpolation, and what is said of wrong rows."""

import numpy as np
import pytest

from physsm._errors import DataError
from physsm.datasets._nuscenes_labels import read_labels
from physsm.datasets._nuscenes_scene import interpolated
from tests.datasets.nuscenes_samples import (
    archive,
    curve,
    label_row,
    label_text,
    real_data,
    real_labels,
    real_scenes,
)


def folder_with(tmp_path, text, name="scene-0001"):
    file = tmp_path / "train" / f"{name}.txt"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return tmp_path


def test_rows_become_tracks_at_10_hz(tmp_path):
    table = read_labels(folder_with(tmp_path, label_text(keyframes=20)))
    assert (table.scenes, table.official) == (("scene-0001",), ("train",))
    scene = table.scene(0)
    assert scene.tracks.ids == ("1", "2", "ego")
    assert scene.tracks.position.shape == (3, 96, 2)
    assert scene.tracks.valid.all()
    keyframes = np.arange(20)
    x, y, heading = curve(keyframes, 1)
    steps = np.arange(96) / 5
    np.testing.assert_allclose(scene.tracks.position[0, :, 0], np.interp(steps, keyframes, x))
    np.testing.assert_allclose(scene.tracks.position[0, :, 1], np.interp(steps, keyframes, y))
    turned = np.interp(steps, keyframes, np.unwrap(heading))
    np.testing.assert_allclose(np.cos(scene.tracks.heading[0]), np.cos(turned), atol=1e-12)
    np.testing.assert_allclose(np.sin(scene.tracks.heading[0]), np.sin(turned), atol=1e-12)
    assert np.abs(np.diff(heading)).max() > 6  # the sample does jump
    assert np.abs(np.diff(scene.tracks.unwrapped)).max() < 0.1
    np.testing.assert_array_equal(scene.tracks.size[0], [4.5, 1.9, 1.6])
    assert np.argwhere(scene.targets)[:, 0].max() == 1  # the ego is none
    assert np.flatnonzero(scene.targets[0]).tolist() == [5 * k for k in range(1, 8)]


def test_nothing_is_interpolated_over_a_gap(tmp_path):
    rows = [label_row(k, 1, 2 * k, 0, 0, 0) for k in (1, 2, 4, 5)]
    scene = read_labels(folder_with(tmp_path, "\n".join(rows))).scene(0)
    valid = scene.tracks.valid[0]
    expected = np.zeros(26, bool)
    expected[5:11] = expected[20:26] = True
    np.testing.assert_array_equal(valid, expected)
    assert (scene.tracks.position[0, ~valid] == 0).all()
    assert (scene.tracks.velocity[0, 10] == 0).all()  # as published: zero before a gap, too
    np.testing.assert_allclose(scene.tracks.velocity[0, 5:10, 0], 4.0)


def test_interpolation_needs_both_keyframes():
    values, valid = interpolated(np.array([[0.0, 1, 2]]), np.array([[True, True, False]]))
    assert valid[0].tolist() == [True] * 6 + [False] * 5
    np.testing.assert_allclose(values[0, :6], [0, 0.2, 0.4, 0.6, 0.8, 1.0])


def test_archive_and_folder_give_the_same(tmp_path):
    folder = folder_with(tmp_path, label_text())
    content = label_text().encode()
    path = archive(tmp_path / "labels.tar.xz", {"label/train/scene-0001.txt": content})
    one, other = read_labels(folder).scene(0), read_labels(path).scene(0)
    np.testing.assert_array_equal(one.tracks.position, other.tracks.position)
    np.testing.assert_array_equal(one.targets, other.targets)


def with_field(field, word):
    words = label_row(3, 1, 5, 6, 0.5, 1).split()
    words[field - 1] = word
    return "\n".join([label_row(2, 1, 5, 6, 0.5, 1), " ".join(words)])


@pytest.mark.parametrize(
    ("field", "name", "word"),
    [
        (1, "keyframe", "1.5"),
        (1, "keyframe", "-1.0"),
        (1, "keyframe", "1e9"),
        (2, "track", "x"),
        (2, "track", "0.5"),
        (3, "class", "Tram"),
        (11, "width", "0.0"),
        (12, "height", "-1"),
        (13, "length", "nan"),
        (14, "x", "1e7"),
        (14, "x", "inf"),
        (16, "y", "12,5"),
        (17, "heading", "90.0"),
        (18, "challenge flag", "2.0"),
    ],
)
def test_wrong_fields_are_named(field, name, word, tmp_path):
    with pytest.raises(DataError) as caught:
        read_labels(folder_with(tmp_path, with_field(field, word)))
    error = caught.value
    assert error.path is not None
    assert error.path.endswith("train/scene-0001.txt")
    assert (error.row, error.column) == (2, f"{field} ({name})")
    assert word in error.message


def test_wrong_files_are_refused(tmp_path):
    good = label_row(1, 1, 0, 0, 0, 0)
    for text, message, row in [
        (good + "\n" + good, "another row at this keyframe", 2),
        (good + "\n1 2 3", "3 fields, not 20", 2),
        (good + "\n\n" + good, "0 fields", 2),
        (good.encode() + b"\n\xff\xfe", "not ASCII", 2),
        ("", "empty", None),
    ]:
        with pytest.raises(DataError, match=message) as caught:
            read_labels(folder_with(tmp_path, text))
        assert caught.value.row == row
    for name in ("scene-1", "notes", "scene-00011"):
        other = tmp_path / name
        other.mkdir()
        with pytest.raises(DataError, match="the name must be"):
            read_labels(folder_with(other, good, name))
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match="there is no scene, such as train"):
        read_labels(empty)
    twice = {"train/scene-0001.txt": good.encode(), "val/scene-0001.txt": good.encode()}
    with pytest.raises(DataError, match="twice"):
        read_labels(archive(tmp_path / "a.tar.xz", twice))


def test_damaged_files_give_a_table_or_a_data_error(tmp_path):
    content = label_text(keyframes=4, tracks=(1,)).encode()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        damaged = bytearray(content[: rng.integers(len(content) + 1)])
        for place in rng.integers(max(len(damaged), 1), size=2 * bool(damaged)):
            damaged[place] ^= 1 << rng.integers(8)
        try:
            read_labels(folder_with(tmp_path, bytes(damaged)))
        except DataError:
            refused += 1
    assert refused > 200


def test_the_official_counts():
    table = real_labels()
    train = np.repeat(np.array(table.official) == "train", np.diff(table.first))
    assert [table.official.count(part) for part in ("train", "val")] == [475, 138]
    assert table.challenge[train].sum() == 32_186
    assert table.challenge[~train].sum() == 9_041


def test_the_complete_windows():
    """4 past and 12 future keyframes, of challenge rows and of other listed rows."""
    table = real_labels()
    scene = np.repeat(np.arange(len(table.scenes)), np.diff(table.first))
    key = (scene.astype(np.int64) * 1000 + table.track) * 1000 + table.keyframe
    known = set(key[table.track != 99].tolist())
    complete = np.array([all(k + i in known for i in range(-4, 13)) for k in key.tolist()])
    train = np.array(table.official)[scene] == "train"
    assert (complete[train].sum(), complete[~train].sum()) == (26_472, 7_477)
    complete &= table.challenge
    assert (complete[train].sum(), complete[~train].sum()) == (25_341, 7_121)


def test_labels_equal_the_published_10_hz_tracks():
    """The labels are global, the pickle is local: one shift must map all tracks exactly."""
    table = real_labels()
    ours = table.scene(table.scenes.index("scene-0103")).tracks
    theirs = real_scenes()["scene-0103"].tracks
    lines = (real_data() / "nuscenes_scenarionet" / "global_offsets.csv").read_text().splitlines()
    offset = np.array(next(x for x in lines if x.startswith("scene-0103")).split(",")[2:], float)
    shifts = []
    for i in range(len(ours.ids) - 1):  # the last is the ego, which is no interpolation there
        rows = np.flatnonzero(ours.valid[i])
        distance = np.abs(theirs.position[:, rows] + offset - ours.position[i, rows]).max((1, 2))
        best = int(distance.argmin())
        assert theirs.valid[best, rows].all()
        shifts.append(ours.position[i, rows] - theirs.position[best, rows])
        np.testing.assert_allclose(ours.heading[i, rows], theirs.heading[best, rows], atol=1e-9)
        np.testing.assert_allclose(
            ours.velocity[i, rows[:-1]], theirs.velocity[best, rows[:-1]], atol=1e-9
        )
    shift = np.concatenate(shifts)
    assert len(shifts) == 5
    np.testing.assert_allclose(shift, shift[:1].repeat(len(shift), axis=0), atol=1e-9, rtol=0)
    np.testing.assert_allclose(shift[0], offset, atol=1e-6)  # the table has six digits
