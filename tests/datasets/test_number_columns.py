"""Records of numbers in CSV files: as published, and damaged. Data sets: their parts."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from physsm._errors import ConfigError, DataError
from physsm._registry import find
from physsm.datasets import ball_beam, ced, exchanger
from physsm.datasets._number_columns import read_columns

RECORDS = {
    "DATAUNIF.csv": ("ced", '"u11","u12","z11","z12",', 500),
    "DATAPRBS.csv": ("ced", '"z1","u1","z2","u2","z3","u3",', 500),
    "exchanger.csv": ("daisy", "ts,q,th", 4000),
    "ball-and-beam.csv": ("daisy", "u,y", 1000),
}


def rows_of(name):
    """A number for each cell that tells its row and column."""
    _, header, rows = RECORDS[name]
    names = header.rstrip(",").split(",")
    cells = np.arange(1, rows + 1)[:, None] + np.arange(len(names)) / 10
    end = "," if header.endswith(",") else ""
    return [",".join(f"{cell:.1f}" for cell in row) + end for row in cells]


def write(folder, name, lines=None, header=None):
    source, usual, _ = RECORDS[name]
    path = folder / source / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([header or usual, *(lines or rows_of(name))]) + "\n\n")
    return path


@pytest.fixture
def folder(tmp_path):
    for name in RECORDS:
        write(tmp_path, name)
    return tmp_path


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["", ",", ", "])
def test_a_comma_at_the_end_of_lines_is_no_column(tmp_path, end, newline):
    path = tmp_path / "some.csv"
    lines = ['"a","b"', "1,2", "3,-4e-1", "5,6"]
    path.write_bytes("".join(line + end + newline for line in lines).encode())
    columns = read_columns(path, ["b", "a"], 3)
    assert list(columns) == ["b", "a"]
    np.testing.assert_array_equal(columns["a"], [1, 3, 5])
    np.testing.assert_array_equal(columns["b"], [2, -0.4, 6])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1,2", "3,x", "5,6"], 'row 3, column b: "x" is not a number'),
        (["1,2", ",4", "5,6"], "row 3, column a: the cell is empty"),
        (["1,2", "3,4,5", "5,6"], "row 3: this row has 3 cells"),
        (["1,2", "3", "5,6"], "row 3: this row has 1 cell"),
        (["1,2", "3,4"], "there are 2 rows instead of 3"),
        (["1,2", "3,4", "5,6", "7,8"], "there are 4 rows instead of 3"),
        (["1,2", "3,inf", "5,6"], "row 3, column b"),
    ],
)
def test_damage_is_named_with_its_place(tmp_path, lines, message):
    path = tmp_path / "some.csv"
    path.write_text("\n".join(["a,b", *lines]))
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        read_columns(path, ["a", "b"], 3)
    assert str(path) in str(caught.value)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("a,c\n1,2\n")
    with pytest.raises(DataError, match="there is no column b: there are a, c"):
        read_columns(path, ["a", "b"], 1)
    path.write_text("")
    with pytest.raises(DataError, match="the file is empty"):
        read_columns(path, ["a"], 1)
    with pytest.raises(DataError, match="cannot be read"):
        read_columns(tmp_path, ["a"], 1)


def test_a_truncated_file_is_refused(folder):
    path = folder / "daisy" / "ball-and-beam.csv"
    whole = path.read_bytes().rstrip()
    last_row = whole.rindex(b"\n")
    for length in range(0, last_row, 997):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError):
            ball_beam.read_record(path)


def test_times_of_the_exchanger_are_checked(folder):
    lines = rows_of("exchanger.csv")
    lines[7] = lines[7].replace("8.0", "8.5")
    path = write(folder, "exchanger.csv", lines)
    with pytest.raises(DataError, match="the times must be 1 to 4000 s"):
        exchanger.read_record(path)


def test_records_of_the_drives(folder):
    uniform = ced.read_records(folder / "ced" / "DATAUNIF.csv")
    assert [record.name for record in uniform] == ["DATAUNIF_11", "DATAUNIF_12"]
    assert [record.control[0] for record in uniform] == [1.0, 1.1]
    assert [record.channel[0] for record in uniform] == [1.2, 1.3]
    pulses = ced.read_records(folder / "ced" / "DATAPRBS.csv")
    assert [record.channel[-1] for record in pulses] == [500.0, 500.2, 500.4]
    np.testing.assert_allclose(pulses[0].times[[0, 1, -1]], [0, 0.02, 9.98])


@pytest.mark.parametrize(
    ("name", "settings", "edges", "sizes", "test_horizon"),
    [
        ("ced", {}, [0, 200, 300, 500], (20, 60), 180),
        ("exchanger", {}, [0, 2400, 3000, 4000], (100, 200), 900),
        ("exchanger", {"context": 20}, [0, 2400, 3000, 4000], (20, 200), 980),
        ("ball_beam", {}, [0, 600, 800, 1000], (20, 50), 50),
    ],
)
def test_rows_and_windows_of_the_parts(folder, name, settings, edges, sizes, test_horizon):
    split = find("datasets", name, "DATASET").split("strict", data_dir=folder, **settings)
    for part, start, stop in zip(
        (split.train, split.validation, split.test), edges[:-1], edges[1:], strict=True
    ):
        for raw in part.raw:
            np.testing.assert_array_equal(raw.number, np.arange(start, stop))
        assert part.windows.start.min() == 0
        assert part.windows.stop.max() == stop - start
    assert (split.sizes.context, split.sizes.horizon) == sizes
    assert split.test_horizon == test_horizon
    assert split.in_domain == (sizes[1] if test_horizon > sizes[1] else None)
    if split.in_domain is not None:  # one test window in each record
        np.testing.assert_array_equal(split.test.windows.boundary, sizes[0])
    np.testing.assert_allclose(split.unit, split.train.panel.values.std((0, 1)))


def test_other_contexts_of_the_exchanger_are_refused():
    with pytest.raises(ConfigError, match="context must be 20 or 100 rows, but is 50"):
        exchanger.DATASET.split("strict", context=50)


@pytest.mark.parametrize("name", ["ced", "exchanger", "ball_beam"])
def test_missing_files_are_explained(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PHYSSM_DATA", str(tmp_path))
    monkeypatch.setattr("physsm.datasets._sources.cache_folder", lambda: tmp_path / "cache")
    with pytest.raises(DataError) as caught:
        find("datasets", name, "DATASET").split("strict")
    origin = "nonlinearbenchmark.org" if name == "ced" else "ESAT-SISTA"
    for part in ("no public address", origin, "--data-dir", "PHYSSM_DATA"):
        assert part in str(caught.value)


@pytest.fixture
def real():
    folder = Path(os.environ.get("PHYSSM_DATA") or "nowhere")
    for name, (source, _, _) in RECORDS.items():
        if not (folder / source / name).exists():
            pytest.skip(f"there is no {source}/{name}: set PHYSSM_DATA to the folder of {source}")
    return folder


def test_the_real_records(real):
    test = ced.DATASET.split("strict", data_dir=real).test.panel.values[:, :, 0]
    np.testing.assert_allclose(test.std(1), [0.41, 0.62], atol=0.01)
    amplitudes = [np.abs(r.control).max() for r in ced.read_records(real / "ced" / "DATAPRBS.csv")]
    assert amplitudes == [1, 1.5, 0.5]
    test = exchanger.DATASET.split("strict", data_dir=real).test.panel.values
    assert test.std() == pytest.approx(1.04, abs=0.01)
    ball = ball_beam.read_record(real / "daisy" / "ball-and-beam.csv")
    assert (ball.control[0], ball.channel[0]) == (-0.001963499, -0.004885198)


def test_the_ball_accelerates_with_the_angle(real):
    """Least squares of the second differences: the gain of the angle is positive and clear."""
    ball = ball_beam.read_record(real / "daisy" / "ball-and-beam.csv")
    smooth = np.convolve(ball.channel, np.ones(5) / 5, "valid")
    acceleration = np.diff(smooth, 2) * 100
    columns = np.stack([np.sin(ball.control[3:-3]), np.ones(len(acceleration))], 1)
    gain, _ = np.linalg.lstsq(columns, acceleration, rcond=None)[0]
    assert gain > 0
