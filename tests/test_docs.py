"""What the documentation shows is true: texts compile, code runs, messages are the real ones."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from physsm import PhysicsError, System
from physsm._arguments import merged
from physsm._registry import find
from physsm.benchmark.experiment import read_experiment
from physsm.models._settings import read_config
from scripts import api_pages, command_page, source_tree
from scripts.benchmark_page import PAGES as WITH_TABLES
from scripts.benchmark_page import with_tables

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
API_PAGES = sorted((ROOT / "docs" / "api").glob("*.md"))
SOURCE = ROOT / "src" / "physsm"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def small_models(monkeypatch):
    """Models are as small as in the contract tests where a page does not give the setting. Their
    pages show calls, not results, and a large network compiles for long; that of the README has its
    full size.
    """

    def with_small_defaults(kind: type[BaseModel], settings: Mapping[str, Any], name: str) -> Any:
        small = getattr(find("models", name, "MODEL"), "test_settings", dict)()
        return read_config(kind, merged(small, settings), name)

    for module in ("phy_ssm.forecaster", "grey_box", "_encode_decode.forecaster"):
        monkeypatch.setattr(f"physsm.models.{module}.read_config", with_small_defaults)
    monkeypatch.setattr("physsm.models._baseline.forecaster.read_config", with_small_defaults)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_physics_texts_compile(page):
    for text in blocks(page, "phys"):
        assert System.parse(text).warnings == ()


@pytest.mark.parametrize("path", WITH_TABLES, ids=lambda path: path.name)
def test_the_tables_of_results_are_what_the_results_say(path):
    page = path.read_text(encoding="utf-8")
    assert with_tables(page) == page, "run scripts/pages"
    assert "<!-- end -->" in page


def test_readme_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    forecast, system = blocks(ROOT / "README.md", "python")
    scope: dict = {}
    exec(forecast, scope)
    assert scope["forecast"].to_frame().columns == ["series", "time", "x", "x_lower", "x_upper"]
    assert (tmp_path / "run" / "model.json").exists()
    exec(system, scope)
    assert scope["system"].invariants == ("S + I + R",)
    assert scope["A"].shape == (3, 3)


def test_the_tutorial_runs_from_a_table_to_a_decision(tmp_path, monkeypatch, small_models):
    monkeypatch.chdir(tmp_path)
    scope: dict = {}
    exec("\n".join(blocks(ROOT / "docs" / "tutorial.md", "python")), scope)
    assert set(scope["errors"]) == {"phy_ssm", "arx", "repeat_last"}
    assert len(scope["answers"]) == 5
    assert scope["soon"].mean.shape == (1, 1, 1)
    assert scope["loaded"].interface.channels == ("T",)


@pytest.mark.usefixtures("small_models")
@pytest.mark.parametrize("page", ["baselines.md", "fitting.md", "methods.md", "metrics.md"])
def test_examples_run_as_they_are_written(page):
    for code in blocks(ROOT / "docs" / page, "python"):
        exec(code, {})


@pytest.mark.usefixtures("small_models")
@pytest.mark.parametrize("page", API_PAGES, ids=lambda page: page.name)
def test_examples_of_the_python_api_run(page):
    for code in blocks(page, "python"):
        exec(code, {})


def test_the_table_that_is_shown_can_be_read(tmp_path):
    (text,) = blocks(ROOT / "docs/benchmarks.md", "toml")
    (tmp_path / "mine.toml").write_text(text)
    _, experiment = read_experiment(str(tmp_path / "mine.toml"))
    assert [column.name for column in experiment.data] == ["covid:strict", "covid:world"]


def test_the_command_line_reference_is_that_of_the_program():
    page = command_page.PAGE.read_text(encoding="utf-8")
    assert page == command_page.page(), "run scripts/pages"


def test_the_source_tree_is_that_of_the_source():
    page = source_tree.PAGE.read_text(encoding="utf-8")
    assert source_tree.with_tree(page) == page, "run scripts/pages"


@pytest.mark.parametrize("family", ["models", "datasets", "metrics"])
def test_the_python_api_lists_every_file_of_a_family(family):
    page = (api_pages.FOLDER / f"{family}.md").read_text(encoding="utf-8")
    assert page == api_pages.pages()[family], "run scripts/pages"


def test_the_tour_names_files_that_exist():
    page = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+\.py)`", page))
    assert len(named) > 20
    assert not [name for name in sorted(named) if not (SOURCE / name).exists()]


def test_shown_messages_are_real():
    with pytest.raises(PhysicsError) as caught:
        System.parse("control torque\ntheta' = omga\nomega' = torque")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert str(caught.value) in readme.replace("my.phys, ", "")
    with pytest.raises(PhysicsError) as caught:
        System.parse("x' = v\n\nv' = -9.81*2x")
    physics = (ROOT / "docs/physics.md").read_text().replace("my.phys, ", "")
    assert str(caught.value) in physics
    with pytest.raises(PhysicsError) as caught:
        System.parse("v' = -?coulomb*sign(v)")
    assert str(caught.value) in physics


def test_column_table_is_true():
    """Each row of the table of the column rule, against the compiled system."""
    page = (ROOT / "docs/physics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]*?) \| `([^`]+)`[^|]*\| `([^`]+)`[^|]*\|$", page, re.MULTILINE)
    checked = 0
    for terms, column, entry in rows:
        for term in re.findall(r"`([^`]+)`", terms.split(" (control")[0]):
            text = f"control u, sp1\nconstant N = 1\nx' = {term}\ny' = 0\nI' = 0\nS' = 0"
            system = System.parse(text)
            places = {(p.row, p.column) for k in system.unknowns for p in k.places}
            known = {(system.names[i], system.names[j]) for i, j in system.structure.A} | {
                (system.names[i], system.controls[j]) for i, j in system.structure.B
            }
            assert ("x", column) in places | known, term
            assert "?" not in entry or ("x", column) in places, term
            checked += 1
    assert checked >= 14
