"""Flights of the drone: how they are cut, what is derived, and what the published files say."""

import os
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from physsm._errors import ConfigError, DataError
from physsm.datasets._crazyflie_flights import Flight, cut_flights, derive
from physsm.datasets._crazyflie_log import Event
from physsm.datasets._dataset import share_of_equal_windows, share_of_touching_windows
from physsm.datasets.drone import DATASET, flights, paper, strict
from tests.datasets.test_crazyflie_log import log_header, signed

VARIABLES = [
    *(f"{what}.{axis}(f)" for what in ("acc", "gyro") for axis in "xyz"),
    *(f"motor.m{i}(I)" for i in range(1, 5)),
]
RECORD = np.dtype(
    [("event", "<u2"), ("time", "<u8"), ("sensors", "<f4", (6,)), ("motors", "<u4", (4,))]
)


def raw_log(seconds, seed=0, name="fixedFrequency") -> bytes:
    """A log of noise at these times, one record each."""
    random = np.random.default_rng(seed)
    rows = np.zeros(len(seconds), RECORD)
    rows["event"] = 65535
    rows["time"] = np.rint(1e6 * np.asarray(seconds))
    rows["sensors"] = random.normal(size=rows["sensors"].shape)
    rows["motors"] = random.integers(0, 65536, rows["motors"].shape)
    return signed(log_header(2, [(65535, name, VARIABLES)]) + rows.tobytes())


def write_logs(folder, **logs):
    (folder / "drone_crazyflie").mkdir(parents=True)
    for name, content in logs.items():
        (folder / "drone_crazyflie" / name).write_bytes(content)
    return folder


def event(times, **changed) -> Event:
    random = np.random.default_rng(1)
    columns = {variable[:-3]: random.normal(size=len(times)) for variable in VARIABLES}
    return Event(np.asarray(times, float), {**columns, **changed})


def flight(rows=30) -> Flight:
    random = np.random.default_rng(2)
    times = 5 + np.cumsum(random.uniform(0.5e-3, 1.7e-3, rows))
    fields = (random.normal(size=(rows, width)) for width in (3, 3, 4))
    return Flight("log_0", np.arange(rows), times, *fields)


@pytest.fixture(scope="module")
def real():
    folder = os.environ.get("PHYSSM_DATA")
    if not folder or not (Path(folder) / "drone_crazyflie").is_dir():
        pytest.skip("the logs of the drone are not there: set PHYSSM_DATA to their folder")
    return Path(folder)


def test_a_cut_loses_two_samples_at_each_end_and_two_before_a_gap():
    times = np.arange(0, 1000) / 100  # s
    times[500:] += 0.05  # six gaps: a break
    (one, other) = cut_flights("log", event(times), ((2.0, 8.0),))
    inside = np.flatnonzero((times > 2) & (times < 8))
    assert (one.name, other.name) == ("log_0", "log_1")
    np.testing.assert_array_equal(one.number, np.arange(inside[0] + 2, 500 - 2))
    np.testing.assert_array_equal(other.number, np.arange(500, inside[-1] + 1 - 2))
    np.testing.assert_array_equal(one.times, times[one.number])


def test_a_piece_shorter_than_a_hundredth_is_skipped():
    times = np.arange(0, 1000) / 100
    times[500:] += 0.05
    times[506:] += 0.05  # six samples between two breaks
    found = list(cut_flights("log", event(times), ((0.0, 20.0),)))
    assert [one.number[0] for one in found] == [3, 506]  # the sample at 0 s is not inside
    assert list(cut_flights("log", event(times), ((50.0, 60.0),))) == []


def test_units_of_a_flight():
    columns = {"acc.y": np.full(50, 2.0), "gyro.z": np.full(50, 180.0)}
    columns["motor.m3"] = np.full(50, 32768)
    (one,) = cut_flights("log", event(np.arange(50) / 100, **columns), ((-1.0, 1.0),))
    np.testing.assert_allclose(one.acceleration[:, 1], 2 * 9.81)
    np.testing.assert_allclose(one.rate[:, 2], np.pi)
    np.testing.assert_allclose(one.motors[:, 2], 0.5)


def test_derived_channels_follow_their_definitions():
    one = flight()
    x, u = derive(one, faithful=False, slopes="central")
    np.testing.assert_array_equal(x[:, :3], one.acceleration)
    np.testing.assert_array_equal(x[:, 3:6], one.rate)
    t, w = one.times, one.rate
    for k in range(1, len(t) - 1):  # the slope of the parabola through three samples
        parabola = [np.polyfit(t[k - 1 : k + 2] - t[k], w[k - 1 : k + 2, i], 2) for i in range(3)]
        np.testing.assert_allclose(x[k, 6:], [one[1] for one in parabola], rtol=1e-6)
    backward, _ = derive(one, faithful=False, slopes="backward")
    np.testing.assert_allclose(backward[1:, 6:], np.diff(w, axis=0) / np.diff(t)[:, None])
    assert np.isnan(backward[0, 6:]).all()
    np.testing.assert_array_equal(backward[:, :6], x[:, :6])
    lagged = one.motors[0]
    for k in range(len(t)):
        decay = np.exp(-(t[k] - t[k - 1]) / 0.05) if k else 0.0
        lagged = decay * lagged + (1 - decay) * one.motors[k]
        np.testing.assert_allclose(u[k, :4], lagged, rtol=1e-12)
    m1, m2, m3, m4 = one.motors.T
    np.testing.assert_allclose(u[:, 4], m1 + m2 + m3 + m4)
    np.testing.assert_allclose(u[:, 5], 0.028 * (-m1 - m2 + m3 + m4))
    np.testing.assert_allclose(u[:, 6], 0.028 * (-m1 + m2 + m3 - m4))


def test_the_published_slip_is_along_z_only():
    one = flight()
    plain, _ = derive(one, faithful=False, slopes="central")
    faithful, _ = derive(one, faithful=True, slopes="central")
    np.testing.assert_allclose(faithful[:, 2], plain[:, 2] * 9.18 / 9.81)
    others = [0, 1, *range(3, 9)]
    np.testing.assert_array_equal(faithful[:, others], plain[:, others])


def changed_rows(one, other, slopes):
    """Which rows of channels and controls differ between two flights."""
    before = np.concatenate(derive(one, faithful=True, slopes=slopes), 1)
    after = np.concatenate(derive(other, faithful=True, slopes=slopes), 1)
    return np.flatnonzero(~np.isclose(before, after, rtol=0, atol=0, equal_nan=True).all(1))


@pytest.mark.parametrize("field", ["acceleration", "rate", "motors"])
def test_backward_slopes_never_show_the_next_sample(field):
    one = flight()
    for k in range(len(one.times)):
        values = np.array(getattr(one, field))
        values[k] += 1
        rows = changed_rows(one, replace(one, **{field: values}), "backward")
        assert rows[0] == k
        if field == "acceleration":
            np.testing.assert_array_equal(rows, [k])
        elif field == "rate":
            np.testing.assert_array_equal(rows, np.arange(k, min(k + 2, 30)))


def test_central_slopes_show_the_next_sample():
    one = flight()
    for k in range(1, 29):
        values = np.array(one.rate)
        values[k] += 1
        np.testing.assert_array_equal(
            changed_rows(one, replace(one, rate=values), "central"), [k - 1, k, k + 1]
        )


def test_a_piece_is_cut_before_anything_is_derived():
    one = flight()
    values = np.array(one.rate)
    values[:10] += 1
    other = replace(one, rate=values)
    assert len(changed_rows(one, other, "central"))
    one, other = (each.piece(10, 30, "late") for each in (one, other))
    assert len(changed_rows(one, other, "central")) == 0


def steady(start, stop):
    return np.arange(start, stop, 0.01)


def test_logs_that_cannot_be_flights(tmp_path):
    def cut(content):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        return flights(["log16"], data_dir=write_logs(folder, log16=content))

    good = raw_log(steady(31, 50))
    found = cut(good)
    assert list(found) == ["log16_0", "log16_1"]
    assert [len(one.times) for one in found.values()] == [595, 395]
    with pytest.raises(DataError, match="has no event fixedFrequency; it has trigger"):
        cut(raw_log(steady(31, 50), name="trigger"))
    with pytest.raises(DataError, match="has 1 flights, and there should be 2"):
        cut(raw_log(steady(31, 40)))
    with pytest.raises(DataError, match="has 0 flights"):
        cut(raw_log([]))
    with pytest.raises(DataError, match="record 3: the time does not increase"):
        cut(raw_log([31.0, 31.1, 31.1, 31.2]))
    start, place = len(good) - 4 - 1900 * RECORD.itemsize, 10
    acc_z = start + 7 * RECORD.itemsize + place + 8
    broken = bytearray(good[:-4])
    broken[acc_z : acc_z + 4] = struct.pack("<f", np.nan)
    with pytest.raises(DataError, match="record 8: acc is not a number"):
        cut(signed(bytes(broken)))
    with pytest.raises(DataError, match=r"has no variable gyro\.x"):
        cut(signed(good[:-4].replace(b"gyro.x(f)", b"gyro.w(f)")))


def test_a_damaged_log_never_makes_a_split(tmp_path):
    """Re-signed damage anywhere is refused, or changes numbers and nothing else."""
    good = raw_log(steady(31, 50))
    folder = write_logs(tmp_path, log16=good)
    random = np.random.default_rng(3)
    for _ in range(60):
        body = bytearray(good[:-4])
        body[random.integers(1, len(body))] ^= 1 << random.integers(8)
        (folder / "drone_crazyflie" / "log16").write_bytes(signed(bytes(body)))
        try:
            found = flights(["log16"], data_dir=folder)
        except DataError:
            continue
        assert len(found) == 2
        for one in found.values():
            for faithful in (False, True):
                x, u = derive(one, faithful=faithful, slopes="central")
                assert np.isfinite(u).all()
                assert np.isfinite(x).all()


def test_settings_out_of_range_are_named():
    for protocol in (paper, strict):
        with pytest.raises(ConfigError, match="stride must be a whole number of at least 1"):
            protocol(stride=0)
    with pytest.raises(ConfigError, match="drone has no log 'log11': there are log10, log15"):
        flights(["log11"])


def test_row_counts_are_the_published_ones(real):
    found = flights(["log10", "log15", "log16"], data_dir=real)
    assert {name: len(one.times) for name, one in found.items()} == {
        "log10_0": 30292,
        "log15_0": 6439,
        "log15_1": 19313,
        "log15_2": 9207,
        "log16_0": 6054,
        "log16_1": 4035,
    }
    assert found["log15_1"].times[[0, -1]] == pytest.approx([61.384807, 80.508784], abs=1e-6)


def test_derived_arrays_equal_the_published_ones(real):
    reference = np.load(real / "drone_crazyflie" / "reference_log16_flight_1.npz")
    one = flights(["log16"], data_dir=real)["log16_1"]
    x, u = derive(one, faithful=True, slopes="central")
    for ours, published in (
        (one.times - one.times[0], reference["timestamps"]),
        (one.motors, reference["rpm_setpoints"]),
        (x[:, :3], reference["acceleration"]),
        (x[:, 3:6], reference["omega"]),
        (x[:, 6:], reference["domega"]),
        (u[:, :4], reference["rpms"]),
        (u[:, 4], reference["thrust_values"][:, 2]),
        (u[:, 5:], reference["geometric_torque_values"][:, :2]),
    ):
        np.testing.assert_allclose(ours, published, rtol=0, atol=1e-9)


def test_the_published_split_is_full_of_training_windows(real):
    split = paper(data_dir=real)
    counts = [part.windows.number for part in (split.train, split.validation, split.test)]
    assert sum(counts) == 40048
    assert counts == [28034, 4004, 8010]
    assert share_of_equal_windows(split.train, split.test) == pytest.approx(0.697, abs=5e-4)
    assert share_of_touching_windows(split.train, split.test) == 1
    assert any("Seven in ten" in note for note in split.notes)


def test_the_published_unit_is_that_of_the_pooled_training_windows(real):
    split = paper(data_dir=real, stride=400)
    cells = [
        split.train.panel.values[series, start:stop]
        for series, start, _, stop in zip(*tuple(split.train.windows), strict=True)
    ]
    np.testing.assert_allclose(split.unit, np.concatenate(cells).std(0), rtol=1e-9)
    backward = paper(data_dir=real, stride=400, slopes="backward")
    assert np.isfinite(backward.unit).all()


def test_strict_parts_are_flights(real):
    split = strict(data_dir=real, slopes="backward")
    assert split.train.panel.ids == ("log15_0", "log15_1", "log16_0")
    assert split.validation.panel.ids == ("log16_1a",)
    assert split.test.panel.ids == ("log15_2", "log16_1b")
    assert [part.windows.number for part in (split.train, split.validation, split.test)] == [
        1154,
        41,
        370,
    ]
    assert split.notes == ()
    assert len(strict(data_dir=real).notes) == 1
    np.testing.assert_allclose(
        split.unit,
        np.nanstd(np.concatenate([one.values for one in split.train.panel]), axis=0),
    )


def test_a_copy_that_is_cut_off_is_refused(real, tmp_path):
    folder = tmp_path / "drone_crazyflie"
    folder.mkdir()
    for log in ("log15", "log16"):
        shutil.copy(real / "drone_crazyflie" / log, folder / log)
    whole = (folder / "log15").read_bytes()
    (folder / "log15").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="its checksum is wrong"):
        DATASET.split("strict", data_dir=tmp_path)
