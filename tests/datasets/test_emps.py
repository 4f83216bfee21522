"""EMPS: files, faults, thinning, parts, and that the physics fits the drive."""

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat, savemat
from scipy.signal import savgol_filter

from physsm import System
from physsm._errors import ConfigError, DataError
from physsm.datasets.emps import DATASET, read_recording

PAGE = Path(__file__).parents[2] / "docs" / "datasets.md"
SAMPLES = 24841


def content(samples=SAMPLES, shift=0.0):
    """A motion like the drive's, in the variables of the files."""
    t = np.arange(samples)[:, None] / 1000
    return {
        "t": t,
        "qm": 0.12 * (1 - np.cos(t)) + shift,
        "qg": 0.12 * (1 - np.cos(t)),
        "vir": np.sin(3 * t) + t,
        "gtau": np.array([[35.0]]),
    }


def write(folder, name="DATA_EMPS", compressed=True, **changed):
    path = folder / "emps" / f"{name}.mat"
    path.parent.mkdir(exist_ok=True)
    kept = {key: value for key, value in {**content(), **changed}.items() if value is not None}
    savemat(path, kept, do_compression=compressed)
    return path


@pytest.fixture
def both(tmp_path):
    write(tmp_path)
    write(tmp_path, "DATA_EMPS_PULSES", **content(shift=0.5))
    return tmp_path


def test_position_and_force_of_a_file(tmp_path):
    recording = read_recording(write(tmp_path))
    np.testing.assert_allclose(recording.position, content()["qm"][:, 0])
    np.testing.assert_allclose(recording.force, 35 * content()["vir"][:, 0])


@pytest.mark.parametrize("thin", [1, 7, 10, 50])
def test_rows_are_thinned_and_their_force_is_the_mean_up_to_the_next(both, thin):
    split = DATASET.split("strict", thin=thin, data_dir=both)
    raw = content()
    for part, shift in ((split.train, 0.0), (split.validation, 0.0), (split.test, 0.5)):
        (series,), (rows,) = list(part.panel), part.raw
        assert (np.diff(rows.number) == thin).all()
        np.testing.assert_allclose(series.times, rows.number / 1000)
        np.testing.assert_allclose(series.values[:, 0], raw["qm"][rows.number, 0] + shift)
        force = 35 * raw["vir"][:, 0]
        means = [force[k : k + thin].mean() for k in rows.number[:-1]]
        np.testing.assert_allclose(series.controls[:-1, 0], means)
        assert series.controls[-1, 0] == pytest.approx(force[rows.number[-1]])
    assert split.sizes.context * thin == pytest.approx(1000, abs=thin)
    assert split.sizes.horizon * thin == pytest.approx(2000, abs=thin)


def test_the_parts_and_the_gap_between_them(both):
    split = DATASET.split("strict", data_dir=both)
    spans = [part.panel.times[0, [0, -1]] for part in (split.train, split.validation, split.test)]
    np.testing.assert_allclose(spans, [[0, 13.99], [17, 24.84], [14, 24.84]])
    assert split.train.raw[0].recording == split.validation.raw[0].recording
    assert split.test.raw[0].recording != split.train.raw[0].recording
    np.testing.assert_allclose(split.unit, split.train.panel.values[0].std(0))


@pytest.mark.parametrize("thin", [0, 51])
def test_thinning_out_of_range_is_named(thin):
    with pytest.raises(ConfigError, match=f"thin must be 1 to 50 samples, but is {thin}"):
        DATASET.split("strict", thin=thin)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"qm": None}, "has no numbers called qm"),
        ({"qm": "text"}, "has no numbers called qm"),
        ({"gtau": np.ones((2, 1))}, "gtau one number"),
        ({"qm": np.ones((SAMPLES - 1, 1))}, "must be of one length"),
        ({"vir": np.full((SAMPLES, 1), np.nan)}, "vir must be one column of finite numbers"),
        ({"vir": np.ones((SAMPLES, 2))}, "vir must be one column of finite numbers"),
        ({"t": content()["t"] * 2}, "the times must be 1 ms apart"),
        ({"t": content()["t"][::-1]}, "the times must be 1 ms apart"),
    ],
)
def test_wrong_contents_are_named(tmp_path, changed, message):
    path = write(tmp_path, **changed)
    with pytest.raises(DataError, match=message) as caught:
        read_recording(path)
    assert str(path) in str(caught.value)


def test_a_short_recording_is_refused(both):
    write(both, **content(samples=18000))
    with pytest.raises(DataError, match="DATA_EMPS is too short: it has no window after 17000 ms"):
        DATASET.split("strict", data_dir=both)


def test_damaged_files_are_refused(tmp_path):
    path = write(tmp_path, **content(samples=40))
    whole = path.read_bytes()
    ends, place = {128}, 128
    while place < len(whole):
        place += 8 + int.from_bytes(whole[place + 4 : place + 8], "little")
        ends.add(place)
    intact = read_recording(path)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        if length in ends:  # as if the file had fewer variables
            message = "has no numbers called"
        else:
            message = "is not a MATLAB file|is damaged or truncated"
        with pytest.raises(DataError, match=message):
            read_recording(path)
    refused, places = 0, range(8 * 128, 8 * len(whole), 11)
    for place in (*range(0, 8 * 128, 11), *places):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(bytes(damaged))
        try:  # the header is mostly free text, and a few bits of the rest only fill up a byte
            np.testing.assert_array_equal(read_recording(path).force, intact.force)
        except DataError:
            refused += place >= 8 * 128
    assert refused > 0.98 * len(places)
    write(tmp_path, compressed=False)  # has no checksums
    with pytest.raises(DataError, match="damaged or truncated"):
        read_recording(path)
    for path in (tmp_path, tmp_path / "nowhere.mat"):
        with pytest.raises(DataError, match="cannot be read"):
            read_recording(path)


@pytest.fixture(scope="module")
def real():
    folder = Path(os.environ.get("PHYSSM_DATA") or "nowhere")
    if not (folder / "emps" / "DATA_EMPS.mat").exists():
        pytest.skip("the files of EMPS are not there: set PHYSSM_DATA to their folder")
    return folder


def test_pulses_are_part_of_the_voltage(real):
    """The voltage jumps with each pulse: adding the pulses again would count them twice."""
    found = loadmat(real / "emps" / "DATA_EMPS_PULSES.mat")
    pulses = found["pulses_N"][:, 0].astype(float)
    switched = np.flatnonzero(np.diff(pulses))
    assert len(switched) == 49
    jumps = np.diff(found["vir"][:, 0])[switched]
    np.testing.assert_allclose(jumps, np.diff(pulses)[switched], atol=0.5)


def test_both_recordings_follow_one_reference(real):
    plain, pulses = (loadmat(real / "emps" / f"DATA_EMPS{end}.mat") for end in ("", "_PULSES"))
    assert np.abs(plain["qg"] - pulses["qg"]).max() < 1e-12
    assert 1e-4 < np.abs(plain["qm"] - pulses["qm"]).max() < 2e-4


def test_the_system_fits_the_drive(real):
    """Constants of least squares explain most of the slope of the speed, also under pulses."""
    train, test = (read_recording(real / "emps" / f"DATA_EMPS{end}.mat") for end in ("", "_PULSES"))
    system = System.load("emps")

    def terms(recording):
        """Speed, and the terms of its slope in the order of the unknowns."""
        v, a = (
            np.asarray(savgol_filter(recording.position, 41, 3, deriv=order, delta=1e-3))
            for order in (1, 2)
        )
        force = np.asarray(savgol_filter(recording.force, 41, 3))
        friction = v / np.sqrt(v**2 + 0.002**2)
        return v, a, np.stack([force, -v, -friction, np.ones_like(v)], 1)

    v, a, columns = terms(train)
    moving = (np.abs(v) > 0.01) & (np.arange(len(v)) < 14000)
    # The equation in newtons: force = mass*a + viscous*v + coulomb*sign(v) - offset.
    others = np.stack([a, *-columns[:, 1:].T], 1)[moving]
    mass, viscous, coulomb, offset = np.linalg.lstsq(others, columns[moving, 0], rcond=None)[0]
    theta = np.array([1, viscous, coulomb, offset]) / mass
    assert 90 < mass < 105  # kg
    for unknown, value in zip(system.unknowns, theta, strict=True):
        assert unknown.bounds.lower is not None
        assert unknown.bounds.upper is not None
        assert unknown.bounds.lower < value < unknown.bounds.upper
    v, a, columns = terms(test)
    k = int(np.argmax(np.abs(v)))
    drift = system.drift(theta, np.array([test.position[k], v[k]]), columns[k, :1])
    np.testing.assert_allclose(drift, [v[k], columns[k] @ theta], rtol=1e-6)
    moving = np.abs(v) > 0.01
    error = a[moving] - columns[moving] @ theta
    assert error.std() < 0.2 * a[moving].std()


def test_the_code_of_the_page_runs(real, tmp_path, monkeypatch):
    shutil.copy(real / "emps" / "DATA_EMPS.mat", tmp_path)
    monkeypatch.chdir(tmp_path)
    section = PAGE.read_text(encoding="utf-8").split("## EMPS")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    exec(code, {})
    from physsm import read_table

    panel = read_table("emps.csv", controls=["force"])
    train = DATASET.split("strict", data_dir=real).train.panel
    rows = train.times.shape[1] - 1  # the force of the last row of a part has no row after it
    np.testing.assert_allclose(panel.values[:, :rows], train.values[:, :rows])
    np.testing.assert_allclose(panel.controls[:, :rows], train.controls[:, :rows])
