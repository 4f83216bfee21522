"""Every script in examples/ runs with its smallest budget and prints what it found."""

import importlib
import os
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
SHARED = {"small_network", "window_error"}  # no scripts
FILES_OF = {
    "ball_beam": "daisy",
    "ced": "ced",
    "covid": "covid_jhu",
    "drone": "drone_crazyflie",
    "emps": "emps",
    "exchanger": "daisy",
    "lynx_hare": "lynx_hare",
    "nuscenes": "nuscenes_pred_2hz",
}
NAMES = sorted({path.stem for path in FOLDER.glob("*.py")} - SHARED)


@pytest.fixture(scope="module", autouse=True)
def on_the_path():
    """As when a script is started; what was imported is forgotten, one fitted model is shared."""
    before = set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))
    for name in {*NAMES, *SHARED} & (set(sys.modules) - before):
        del sys.modules[name]


@pytest.mark.parametrize("name", NAMES)
def test_example_runs(name, capsys, without_type_checks, monkeypatch, tmp_path):
    source = FILES_OF.get(name)
    if source and not (Path(os.environ.get("PHYSSM_DATA") or "nowhere") / source).is_dir():
        pytest.skip(f"the files of {name} are not there: set PHYSSM_DATA to their folder")
    monkeypatch.chdir(tmp_path)
    importlib.import_module(name).main(quick=True)
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("name", NAMES)
def test_example_is_listed_and_says_what_it_shows(name):
    module = importlib.import_module(name)
    assert module.__doc__
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"{name}.py" in page
    assert "--quick" in (FOLDER / f"{name}.py").read_text(encoding="utf-8")
