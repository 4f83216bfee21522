"""Readers hold little beside what is asked for: at most three times the raw files they read, of
archives three times what is in them.
"""

import os
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from physsm._registry import find
from physsm.datasets._dataset import Split

SMALL = 200_000  # bytes that any reader may need


def asked_for(split: Split) -> int:
    """The bytes of a split, of arrays that parts share only once."""
    arrays = {}
    for part in (split.train, split.validation, split.test):
        panel = part.panel
        held = (panel.times, panel.values, panel.controls, *part.windows)
        for array in (*held, *(raw.number for raw in part.raw)):
            arrays[id(array)] = array.nbytes
    return sum(arrays.values())


def unpacked_size(path: Path) -> int:
    if path.suffix != ".xz":
        return path.stat().st_size
    with tarfile.open(path) as archive:
        return sum(member.size for member in archive)


@pytest.mark.parametrize(
    ("name", "protocol", "settings", "files"),
    [
        ("drone", "strict", {}, "drone_crazyflie/log1[56]"),
        ("drone", "paper", {}, "drone_crazyflie/log1[56]"),
        ("covid", "paper", {}, "covid_sir8/*.csv"),
        ("covid", "world", {}, "covid_jhu/*.csv"),
        ("nuscenes", "strict", {"limit": 200}, "nuscenes_pred_2hz/labels.tar.xz"),
        ("nuscenes", "mini", {}, "nuscenes_scenarionet/*.tar.xz"),
        ("emps", "strict", {}, "emps/*.mat"),
        ("lynx_hare", "strict", {}, "lynx_hare/*"),
        ("ced", "strict", {}, "ced/DATAUNIF.csv"),
        ("exchanger", "strict", {}, "daisy/exchanger.csv"),
        ("ball_beam", "strict", {}, "daisy/ball-and-beam.csv"),
    ],
)
@pytest.mark.usefixtures("without_type_checks")  # they take memory, too
def test_peak_memory(name, protocol, settings, files, tmp_path, monkeypatch):
    folder = Path(os.environ.get("PHYSSM_DATA") or "nowhere")
    raw = sum(map(unpacked_size, folder.glob(files)))
    if not raw:
        pytest.skip(f"the files of {name} are not there: set PHYSSM_DATA to their folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # no index of before
    dataset = find("datasets", name, "DATASET")
    tracemalloc.start()
    try:
        split = dataset.split(protocol, **settings)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * raw + asked_for(split) + SMALL
