"""Runs and jobs: one pipeline, and window sizes that are decided once."""

from dataclasses import replace

import numpy as np
import pytest

from physsm._errors import DataError
from physsm._registry import find
from physsm._values import Panel, Series
from physsm.benchmark.evaluate import BASELINES, score
from physsm.benchmark.evaluation_windows import windows_of_test_part
from physsm.benchmark.experiment import Column, Job, Row
from physsm.benchmark.job import make_split, run_job
from physsm.benchmark.pipeline import prepare, table_data
from physsm.benchmark.report_data import plain
from physsm.benchmark.run import Request, fit_run
from physsm.benchmark.run_folder import load_baselines, run_sizes
from physsm.data.window import Part, Sizes, Windows
from physsm.models._network.fitted import FittedNetwork

S5 = {**find("models", "s5", "MODEL").test_settings(), "training": {"steps": 4, "validations": 2}}
OPEN = {name: value for name, value in S5.items() if name not in ("context", "horizon", "stride")}
SMALL = {"series": [6, 3, 4], "rows": 45}


def one_series(rows: int) -> Panel:
    times = np.arange(rows) / 10
    values = np.sin(times)[:, None] + 0.01 * np.random.default_rng(0).standard_normal((rows, 1))
    return Panel.from_series([Series("a", times, values, np.zeros((rows, 0)))], ["x"])


def test_a_run_trains_scores_and_reports_with_the_same_window_sizes(tmp_path):
    request = Request(model="s5", settings=OPEN, system=None, seed=0)
    run = fit_run(request, one_series(400), tmp_path / "run", title="")
    sizes = Sizes(context=66, horizon=33, stride=6)
    assert isinstance(run.model, FittedNetwork)
    assert run.model.sizes == run.sizes == run_sizes(run.folder) == sizes
    settings = run.report_data["settings"]
    assert [settings[name] for name in ("context", "horizon", "stride")] == [66, 33, 6]
    assert run.scores[0]["horizon"][-1][1] == 33
    assert list(load_baselines(run.folder)) == list(BASELINES)


def test_sizes_in_the_settings_stay():
    prepared = prepare("s5", None, {**OPEN, "horizon": 7}, one_series(400))
    assert prepared.sizes == Sizes(context=66, horizon=7, stride=6)
    assert prepared.forecaster.window_settings.sizes(one_series(90)) == prepared.sizes


def test_parts_of_a_table_have_windows_of_the_decided_sizes():
    sizes = Sizes(context=20, horizon=10, stride=4)
    panel = one_series(200)
    prepared = prepare("s5", None, {**OPEN, "context": 20, "horizon": 10, "stride": 4}, panel)
    data = table_data(panel, prepared, seed=0)
    parts = prepared.forecaster.parts(data.train, data.validation)
    for part in (parts.train, parts.validation):
        assert (part.windows.stop - part.windows.boundary == sizes.horizon).all()
        assert (part.windows.boundary - part.windows.start == sizes.context).all()
        assert part.windows.stop.max() == part.panel.lengths.max()
    assert (np.diff(parts.train.windows.boundary) == sizes.stride).all()
    assert len(data.cut_evaluation().history) == parts.validation.windows.number
    with pytest.raises(DataError, match="too few"):
        table_data(one_series(80), prepared, seed=0)


def test_a_run_and_a_job_fit_the_same_model(tmp_path):
    job = Job(
        table="small",
        column=Column(name="pendulum:states", settings=SMALL),
        row=Row(model="s5", settings=S5),
        seed=3,
        budget="cpu",
    )
    result = run_job(job, tmp_path / "job")
    split = make_split(job, None)
    request = Request(model="s5", settings=S5, system=None, seed=3, data="pendulum:states")
    run = fit_run(request, split, tmp_path / "run", title="")
    expected = score(run.model, windows_of_test_part(split), {"theta": "rad"})
    expected.pop("model")
    assert result["metrics"] == plain(expected)


def test_a_network_is_trained_on_windows_of_the_protocol_alone():
    """A fit to windows of a series does not see what lies outside of them."""
    windows = Windows(*(np.array([n]) for n in (0, 10, 40, 60)))
    forecaster = find("models", "s5", "MODEL").create(None, S5)

    def fitted(outside: float) -> dict[str, np.ndarray]:
        panel = one_series(120)
        values = panel.values.copy()
        values[:, :10], values[:, 60:] = outside, -outside
        times = panel.times.copy()
        times[:, 60:] += outside
        part = Part(replace(panel, values=values, times=times), windows)
        return forecaster.fit(part, part, seed=0).arrays()

    parts = forecaster.parts(Part(one_series(120), windows), Part(one_series(120), windows))
    sizes = parts.sizes
    first = 40 - 10 - sizes.context
    assert [int(n[0]) for n in parts.train.windows] == [0, first, 30, 30 + sizes.horizon]
    assert parts.train.panel.lengths.tolist() == [50]
    one, other = fitted(0.0), fitted(1e3)
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)
