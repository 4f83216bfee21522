"""What every data set must do; a new file in `datasets` is picked up by itself.

Who shares which samples is found here by walking all windows, one by one: the shares that are
reported elsewhere are computed in another way, and must say the same.
"""

import functools
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
from scipy.io import loadmat, savemat

from physsm import System
from physsm._registry import find, names_in
from physsm.datasets._dataset import (
    Part,
    RawRows,
    share_of_equal_windows,
    share_of_touching_windows,
)
from physsm.datasets._sources import locate, present, read_source
from tests.datasets.test_crazyflie_log import signed
from tests.datasets.test_drone import RECORD

VIDEO = {"series": (3, 2, 2), "steps": 30}
SMALL = {
    ("pendulum", "paper"): VIDEO,
    ("pendulum", "strict"): VIDEO,
    ("pendulum", "states"): {"series": (3, 2, 2), "rows": 30},
    ("drone", "paper"): {"stride": 10},
    ("drone", "strict"): {"stride": 100},
}
# To make these again takes long.
FEWER = {("nuscenes", "paper"): {"limit": 50}, ("nuscenes", "strict"): {"limit": 50}}
# What docs/datasets.md and docs/data_nuscenes.md say of the published splits: the shares of
# validation and test windows that touch a training sample, and of test windows that train too.
PUBLISHED = {
    "covid": (0.0, 0.0, 0.0),
    "drone": (1.0, 1.0, 0.697),
    "nuscenes": (0.989, 0.0, 0.0),
    "pendulum": (0.0, 0.0, 0.0),
}
PROTOCOLS = [
    (name, protocol)
    for name in names_in("datasets")
    for protocol in find("datasets", name, "DATASET").protocols
]
every_protocol = pytest.mark.parametrize(("name", "protocol"), PROTOCOLS)
strict_protocols = pytest.mark.parametrize(
    ("name", "protocol"), [one for one in PROTOCOLS if one[1] != "paper"]
)


@pytest.fixture(scope="module", autouse=True)
def quick(tmp_path_factory):
    """An index of the test's own, so that none is left behind; and no checks of types at every
    call, because there are many windows.
    """
    folder = tmp_path_factory.mktemp("cache")
    jaxtyping.config.update("jaxtyping_disable", True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("physsm.datasets._nuscenes_index.cache_folder", lambda: folder)
        yield
    jaxtyping.config.update("jaxtyping_disable", False)


def make(name, protocol, **settings):
    dataset = find("datasets", name, "DATASET")
    for source in map(read_source, dataset.sources):
        if missing := {file.path for file in source.needed} - set(present(source)):
            pytest.skip(f"{source.name} has no {min(missing)}: set PHYSSM_DATA to its folder")
    return dataset.split(protocol, **{**SMALL.get((name, protocol), {}), **settings})


@functools.cache
def split_of(name, protocol):
    return make(name, protocol)


@pytest.fixture
def split(name, protocol):
    return split_of(name, protocol)


def parts(split):
    return split.train, split.validation, split.test


def walk(part: Part) -> dict[str, set[int]]:
    """The samples that any window of a part touches, by recording."""
    found: dict[str, set[int]] = {}
    for window in range(part.windows.number):
        recording, samples = part.samples(window)
        found.setdefault(recording, set()).update(samples.tolist())
    return found


def share_that_touches(seen: dict[str, set[int]], part: Part) -> float:
    touching = 0
    for window in range(part.windows.number):
        recording, samples = part.samples(window)
        touching += not seen.get(recording, set()).isdisjoint(samples.tolist())
    return touching / part.windows.number


def test_rows_without_a_sample_touch_none():
    raw = RawRows("one", np.array([-1, -1, 3, 4, -1, 6, -1]), before=1)
    assert raw.touched(slice(None)).tolist() == [3, 4, 5, 6]
    assert raw.touched(slice(0, 2)).tolist() == []
    assert raw.touched(np.array([3, 6])).tolist() == [3, 4]
    assert RawRows("one", np.array([2, 4]), after=1).touched(slice(None)).tolist() == [2, 3, 4]


@pytest.mark.parametrize("name", names_in("datasets"))
def test_is_named_after_its_file_and_describes_itself(name):
    dataset = find("datasets", name, "DATASET")
    assert dataset.name == name
    assert dataset.summary
    assert System.load(dataset.system).warnings == ()
    assert "strict" in dataset.protocols
    assert all(protocol.__doc__ for protocol in dataset.protocols.values())


@every_protocol
def test_windows_lie_inside_their_series(split):
    for part in parts(split):
        series, start, boundary, stop = tuple(part.windows)
        assert part.windows.number > 0
        assert 0 <= series.min() <= series.max() < len(part.panel)
        assert (start >= 0).all()
        assert (start < boundary).all()
        assert (boundary < stop).all()
        assert (stop <= part.panel.lengths[series]).all()
        assert (boundary - start == split.sizes.context).all()
        if part is split.test and split.test_horizon > split.sizes.horizon:
            assert split.in_domain == split.sizes.horizon
        else:
            assert (stop - boundary == split.sizes.horizon).all()


@every_protocol
def test_every_row_has_a_time_and_a_sample(split):
    for part in parts(split):
        assert len(part.raw) == len(part.panel)
        for one, raw in zip(part.panel, part.raw, strict=True):
            assert len(one.times) == len(raw.number)
            assert (np.diff(one.times) > 0).all()
            assert np.isfinite(one.times).all()
            assert np.isfinite(one.controls).all()
            recorded = raw.number[raw.number >= 0]
            assert (np.diff(recorded) >= 0).all()
            assert np.isnan(one.values[raw.number < 0]).all()


@every_protocol
def test_units_and_notes_can_be_shown(split):
    channels = len(split.train.panel.channels)
    assert split.unit.shape == (channels,)
    assert (split.unit > 0).all()
    assert np.isfinite(split.unit).all()
    assert split.unit_words
    assert all(part.panel.channels == split.train.panel.channels for part in parts(split))
    if split.truth is not None:
        np.testing.assert_array_equal(split.truth.times, split.test.panel.times)


@strict_protocols
def test_parts_share_no_sample(split):
    train, validation, test = (walk(part) for part in parts(split))
    for one, other in ((train, validation), (train, test), (validation, test)):
        for recording in one.keys() & other.keys():
            assert one[recording].isdisjoint(other[recording]), recording
    assert share_of_touching_windows(split.train, split.validation) == 0
    assert share_of_touching_windows(split.train, split.test) == 0


@pytest.mark.parametrize("name", [name for name, protocol in PROTOCOLS if protocol == "paper"])
def test_published_splits_share_what_the_page_says(name):
    split = split_of(name, "paper")
    seen = walk(split.train)
    validation, test, equal = PUBLISHED[name]
    for part, expected in ((split.validation, validation), (split.test, test)):
        walked = share_that_touches(seen, part)
        assert walked == pytest.approx(expected, abs=5e-4)
        assert share_of_touching_windows(split.train, part) == pytest.approx(walked, abs=1e-12)
    # Windows further apart than published are other draws.
    assert share_of_equal_windows(split.train, split.test) == pytest.approx(equal, abs=0.03)


@every_protocol
def test_splitting_again_gives_the_same(name, protocol):
    fewer = FEWER.get((name, protocol))
    one = make(name, protocol, **fewer) if fewer else split_of(name, protocol)
    other = make(name, protocol, **(fewer or {}))
    np.testing.assert_array_equal(one.unit, other.unit)
    for first, second in zip(parts(one), parts(other), strict=True):
        assert first.panel.ids == second.panel.ids
        for field in ("times", "values", "controls", "lengths"):
            np.testing.assert_array_equal(getattr(first.panel, field), getattr(second.panel, field))
        for mine, theirs in zip(tuple(first.windows), tuple(second.windows), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        for raw, again in zip(first.raw, second.raw, strict=True):
            assert raw.recording == again.recording
            np.testing.assert_array_equal(raw.number, again.number)


def altered_logs(split, folder: Path):
    """The test flights tremble three times as much."""
    for log, samples in split.test.touched().items():
        content = locate("drone_crazyflie", log).read_bytes()
        start = (len(content) - 4) % RECORD.itemsize  # the header is shorter than three records
        start += next(
            k * RECORD.itemsize
            for k in range(4)
            if content[start + k * RECORD.itemsize :][:2] == b"\xff\xff"
        )
        rows = np.frombuffer(content[start:-4], RECORD).copy()
        rows["sensors"][samples] *= 3
        write(folder / log, signed(content[:start] + rows.tobytes()))


def altered_countries(split, folder: Path):
    """A third of the infected of the test countries are removed."""
    for country in split.test.panel.ids:
        name = f"sir_data_{country}.csv"
        header, *rows = locate("covid_sir8", name).read_text().splitlines()
        for i, row in enumerate(rows):
            day, susceptible, infected, removed = row.split(",")
            moved = int(float(infected)) // 3
            infected, removed = int(float(infected)) - moved, int(float(removed)) + moved
            rows[i] = f"{day},{susceptible},{infected},{removed}"
        write(folder / name, "\n".join([header, *rows]).encode())


def altered_populations(split, folder: Path):
    """The test countries have a thousandth more people."""
    name = "UID_ISO_FIPS_LookUp_Table.csv"
    rows = locate("covid_jhu", name).read_text().splitlines()
    for i, row in enumerate(rows):
        before, _, people = row.rpartition(",")
        if any(before.endswith(f",{country}") for country in split.test.panel.ids):
            rows[i] = f"{before},{round(1.001 * int(people))}"
    write(folder / name, "\n".join(rows).encode())


def altered_pelts(split, folder: Path):
    """Twice as many pelts in the test years."""
    name = "hudson-bay-lynx-hare.csv"
    rows = locate("lynx_hare", name).read_text().splitlines()
    for i, row in enumerate(rows):
        year, *pelts = row.split(",")
        if year.isdigit() and int(year) in split.test.panel.times:
            rows[i] = ",".join([year, *(str(2 * float(number)) for number in pelts)])
    write(folder / name, "\n".join(rows).encode())


def altered_drive(split, folder: Path):
    """The drive moves twice as far."""
    name = "DATA_EMPS_PULSES.mat"
    found = loadmat(locate("emps", name))
    folder.mkdir()
    kept = {key: found[key] for key in ("t", "vir", "gtau")}
    savemat(folder / name, {**kept, "qm": 2 * found["qm"]}, do_compression=True)


def altered_rows(source: str, name: str, column: int):
    """A column of a file of numbers is twice as large in the rows of the test."""

    def alter(split, folder: Path):
        (rows,) = {tuple(samples.tolist()) for samples in split.test.touched().values()}
        lines = locate(source, name).read_text().splitlines()
        for row in rows:
            cells = lines[row + 1].split(",")
            cells[column] = str(2 * float(cells[column]))
            lines[row + 1] = ",".join(cells)
        write(folder / name, "\n".join(lines).encode())

    return alter


def write(path: Path, content: bytes):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)


ALTERED = {
    ("ball_beam", "strict"): ("daisy", altered_rows("daisy", "ball-and-beam.csv", 1)),
    ("ced", "strict"): ("ced", altered_rows("ced", "DATAUNIF.csv", 2)),
    ("ced", "prbs"): ("ced", altered_rows("ced", "DATAPRBS.csv", 0)),
    ("covid", "strict"): ("covid_sir8", altered_countries),
    ("covid", "world"): ("covid_jhu", altered_populations),
    ("covid", "further"): ("covid_jhu", altered_populations),
    ("drone", "strict"): ("drone_crazyflie", altered_logs),
    ("emps", "strict"): ("emps", altered_drive),
    ("exchanger", "strict"): ("daisy", altered_rows("daisy", "exchanger.csv", 2)),
    ("lynx_hare", "strict"): ("lynx_hare", altered_pelts),
}
MORE_SERIES = {("pendulum", "strict"), ("pendulum", "states")}


@strict_protocols
def test_no_statistic_has_seen_the_test_part(name, protocol, tmp_path):
    split = split_of(name, protocol)
    if (name, protocol) in ALTERED:
        source, alter = ALTERED[name, protocol]
        alter(split, tmp_path / source)
        other = make(name, protocol, data_dir=tmp_path)
    elif (name, protocol) in MORE_SERIES:
        other = make(name, protocol, series=(3, 2, 5))
    else:
        np.testing.assert_array_equal(split.unit, 1.0)  # else say above how the test part changes
        return
    assert not np.array_equal(split.test.panel.values, other.test.panel.values, equal_nan=True)
    np.testing.assert_array_equal(split.train.panel.values, other.train.panel.values)
    np.testing.assert_array_equal(split.unit, other.unit)
