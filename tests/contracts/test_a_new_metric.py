"""A new metric is one file: every place that shows or checks scores then has it."""

import io
import json
import sys
from dataclasses import asdict, replace

import numpy as np
import pytest
from rich.console import Console

import physsm.metrics
from physsm._errors import RunError
from physsm._json import plain
from physsm._values import Panel, Series
from physsm.benchmark.evaluate import fit_baselines, score
from physsm.benchmark.evaluation_windows import windows_of_panel
from physsm.benchmark.experiment import Experiment
from physsm.benchmark.pages import to_latex, to_markdown
from physsm.benchmark.store import KEYS, Store
from physsm.benchmark.summary import summarise
from physsm.cli.bench_table import sheet_grid
from physsm.cli.tables import score_table
from physsm.data.window import Sizes
from physsm.report.contents import check_contents
from physsm.report.page import render_page
from tests.report.sample import sample_contents

FILE = '''
"""Largest measurement: a metric for this test."""

import numpy as np

from physsm.metrics._metric import Column, Metric


def largest(measured, *predictions, **options):
    """The largest measurement."""
    return float(np.nanmax(np.abs(measured)))


METRIC = Metric(
    function=largest,
    description="largest of all measurements",
    needs="{needs}",
    unit="furlong",
    direction="higher",
    columns=(Column(key="{part}_largest", heading="largest {part}", part="{part}"),),
)
'''
PARTS = {
    "values": "extrap",
    "interval": "extrap",
    "quantiles": "extrap",
    "positions": "in",
    "motion": "in",
}
SCALE = 2.0


@pytest.fixture(params=PARTS)
def part(request, tmp_path, monkeypatch):
    """The part of the windows that a new metric is about, once its file is in the folder."""
    (tmp_path / "largest.py").write_text(
        FILE.format(needs=request.param, part=PARTS[request.param])
    )
    monkeypatch.setattr(physsm.metrics, "__path__", [*physsm.metrics.__path__, str(tmp_path)])
    yield PARTS[request.param]
    sys.modules.pop("physsm.metrics.largest", None)
    physsm.metrics.__dict__.pop("largest", None)


def shown(table) -> str:
    console = Console(width=400, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def result(label: str, metrics) -> dict:
    return {
        **dict.fromkeys(KEYS),
        "dataset": "drone",
        "protocol": "strict",
        "budget": "cpu",
        "label": label,
        "seed": 0,
        "test_windows": 3,
        "unit_of_errors": "the standard deviation",
        "notes": [],
        "request": "",
        "metrics": metrics,
        "seconds": {"fit": 2.0},
    }


def test_evaluation_computes_it(part):
    rng = np.random.default_rng(0)
    series = [
        Series(f"s{i}", np.arange(30.0), rng.standard_normal((30, 2)), np.zeros((30, 0)))
        for i in range(3)
    ]
    panel = Panel.from_series(series, ("x", "y"))
    model = fit_baselines(panel, panel, 0)["repeat_last"]
    sizes = Sizes(context=10, horizon=5, stride=5)
    windows = replace(windows_of_panel(panel, sizes, np.full(2, SCALE)), tracks=(("x", "y"),))
    values = json.loads(json.dumps(plain(score(model, windows))))
    scale = SCALE if part == "extrap" else 1.0
    expected = np.abs(windows.target.values).max() / scale
    assert values[f"{part}_largest"] == pytest.approx(expected)
    assert "extrap_mae" in values


def test_the_terminal_shows_it(part):
    key = f"{part}_largest"
    table = score_table([{"model": "a", key: 1.5}, {"model": "b", key: 2.5}])
    assert f"largest {part} (furlong)" in shown(table)
    assert list(table.columns[1].cells) == ["1.5000", "[bold]2.5000[/bold]"]  # higher is better


def test_the_report_shows_and_checks_it(part):
    contents = sample_contents()
    contents["scores"][1][f"{part}_largest"] = 2.71828
    page = render_page(check_contents(json.loads(json.dumps(contents))))
    assert f"Largest {part} (furlong)" in page
    assert "<strong>2.718</strong>" in page
    assert f"Largest {part}: largest of all measurements; higher is better." in page
    contents["scores"][1][f"{part}_largest"] = "much"
    with pytest.raises(RunError, match=rf"scores\[1\].{part}_largest should be a number"):
        check_contents(contents)


def test_pages_of_benchmarks_show_it(part):
    key, heading = f"{part}_largest", f"largest {part} (furlong)"
    sheets = summarise([result("a", {key: 1.5}), result("b", {key: 2.5})])
    assert key in asdict(sheets[0])["columns"]
    assert heading in shown(sheet_grid(sheets[0]))
    assert f"| model | {heading} |" in to_markdown(sheets)
    assert "| `b` | **2.500** |" in to_markdown(sheets)
    assert r"b & \textbf{2.500}" in to_latex(sheets)
    assert heading in to_latex(sheets)


def test_result_files_are_checked_for_it(part, tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()
    experiment = Experiment.model_validate(
        {"title": "t", "data": [{"name": "drone:strict"}], "row": [{"model": "line"}]}
    )
    (folder / "a.json").write_text(json.dumps(result("a", {f"{part}_largest": 1.5})))
    assert Store(folder).results("small", experiment) == ([], ["a.json"])
    (folder / "a.json").write_text(json.dumps(result("a", {f"{part}_largest": "much"})))
    with pytest.raises(RunError, match="was changed"):
        Store(folder).results("small", experiment)


def test_the_package_lists_it(part):
    assert "largest" in dir(physsm.metrics)
