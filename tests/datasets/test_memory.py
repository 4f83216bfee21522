"""Readers hold little beside what is asked for: at most three times the raw files they read, of
archives three times what is in them.
"""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SMALL = 200_000  # bytes that any reader may need
SPLITS = [
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
]


def unpacked_size(path: Path) -> int:
    if path.suffix != ".xz":
        return path.stat().st_size
    with tarfile.open(path) as archive:
        return sum(member.size for member in archive)


def raw_files(pattern: str) -> list[Path]:
    return list(Path(os.environ.get("PHYSSM_DATA") or "nowhere").glob(pattern))


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> dict[str, dict[str, int]]:
    """Peaks of all splits whose files are there, by name and protocol."""
    splits = [split[:3] for split in SPLITS if raw_files(split[3])]
    file = tmp_path_factory.mktemp("memory") / "peaks.json"
    command = [sys.executable, "-m", "tests.datasets.peak_memory", json.dumps(splits), str(file)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=250)
    assert result.returncode == 0, result.stderr
    names = [f"{name} {protocol}" for name, protocol, _ in splits]
    return dict(zip(names, json.loads(file.read_text()), strict=True))


@pytest.mark.parametrize(("name", "protocol", "settings", "files"), SPLITS)
def test_peak_memory(name, protocol, settings, files, measured):
    raw = sum(map(unpacked_size, raw_files(files)))
    if not raw:
        pytest.skip(f"the files of {name} are not there: set PHYSSM_DATA to their folder")
    found = measured[f"{name} {protocol}"]
    assert found["peak"] < 3 * raw + found["asked_for"] + SMALL
