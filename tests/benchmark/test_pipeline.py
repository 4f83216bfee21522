"""Runs and jobs: one pipeline, and window sizes that are decided once."""

from dataclasses import replace

import numpy as np
import pytest

from physsm._errors import DataError, RunError
from physsm._json import plain
from physsm._registry import find
from physsm._values import Panel, Series
from physsm.benchmark import physics_baselines
from physsm.benchmark.evaluate import BASELINES, score
from physsm.benchmark.evaluation_windows import windows_of_test_part
from physsm.benchmark.experiment import Column, Job, Row
from physsm.benchmark.job import make_split, run_job
from physsm.benchmark.pipeline import prepare, table_data
from physsm.benchmark.report_data import fingerprint
from physsm.benchmark.run import Request, fit_run
from physsm.benchmark.run_folder import load_baselines, run_sizes
from physsm.benchmark.verdict import verdict_on
from physsm.data.window import Part, Sizes, Windows
from physsm.models._base import load
from physsm.models._network.fitted import FittedNetwork
from physsm.physics.system import System
from physsm.training.checkpoint import read_json

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
    sizes = Sizes(context=40, horizon=40, stride=6)
    assert isinstance(run.model, FittedNetwork)
    assert run.model.sizes == run.sizes == run_sizes(run.folder) == sizes
    settings = run.report_data["settings"]
    assert [settings[name] for name in ("context", "horizon", "stride")] == [40, 40, 6]
    assert run.scores[0]["horizon"][-1][1] == 40
    assert list(load_baselines(run.folder)) == list(BASELINES)
    assert_trained_again(run.model)


def assert_trained_again(model: FittedNetwork) -> None:
    """The stored model has seen all rows, the scored one has not; intervals are those of it."""
    scored = model.before_refit
    assert scored is not None
    assert model.calibration == scored.calibration
    assert any(
        not np.array_equal(array, scored.arrays()[name]) for name, array in model.arrays().items()
    )


def test_sizes_in_the_settings_stay():
    prepared = prepare("s5", None, {**OPEN, "horizon": 7}, one_series(400))
    assert prepared.sizes == Sizes(context=40, horizon=7, stride=6)
    assert prepared.forecaster.window_settings.sizes(one_series(90)) == prepared.sizes


def test_parts_of_a_table_have_windows_of_the_decided_sizes():
    sizes = Sizes(context=20, horizon=10, stride=4)
    panel = one_series(200)
    prepared = prepare("s5", None, {**OPEN, "context": 20, "horizon": 10, "stride": 4}, panel)
    data = table_data(panel, prepared, seed=0)
    assert data.whole is panel
    parts = prepared.forecaster.parts(data.train, data.validation)
    for part in (parts.train, parts.validation):
        assert (part.windows.stop - part.windows.boundary == sizes.horizon).all()
        assert (part.windows.boundary - part.windows.start == sizes.context).all()
        assert part.windows.stop.max() == part.panel.lengths.max()
    assert (np.diff(parts.train.windows.boundary) == sizes.stride).all()
    assert len(data.cut_evaluation().history) == parts.validation.windows.number
    with pytest.raises(DataError, match="too few"):
        table_data(one_series(50), prepared, seed=0)


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


ARX = Request(model="arx", settings={}, system=None, seed=0)


def test_the_question_sets_windows_and_baselines_of_every_model(tmp_path):
    """Also of a model without a setting `context`."""
    run = fit_run(replace(ARX, context=0, horizon=60), one_series(300), tmp_path / "run", title="")
    assert (run.sizes.context, run.sizes.horizon) == (2, 60)
    assert run.question is not None
    assert run.question["sentence"] == "Asked: the next 60 time steps from a context of 2."
    assert run.question["given"] is True
    assert read_json(run.folder / "run.json")["question"] == run.question
    assert run.scores[0]["horizon"][-1][1] == 60
    for model in (load(run.folder), *load_baselines(run.folder).values()):
        assert model.fitted_horizon == 60
    chosen = prepare("arx", None, {}, one_series(300)).question
    assert chosen.sentence() == (
        "Asked: the next 30 time steps (chosen: a tenth of the median series, at most 300) from a "
        "context of 30 (chosen: a tenth of the median series, at most 200)."
    )
    half = prepare("arx", None, {"horizon": 7}, one_series(300)).question
    assert half.horizon == 7
    assert half.sentence().startswith("Asked: the next 7 time steps (given) from a context of 30")
    assert not half.is_given
    asked = prepare("s5", None, {**OPEN, "horizon": 7}, one_series(300), context=5, horizon=9)
    assert (asked.settings["context"], asked.settings["horizon"]) == (5, 9)


def test_a_validation_table_leaves_the_whole_table_for_training(tmp_path):
    table, other = one_series(100), one_series(70)
    request = replace(ARX, validation=other, context=10, horizon=15)
    run = fit_run(request, table, tmp_path / "run", title="")
    assert run.report_data["data"]["fingerprint"] == fingerprint(other)
    note = read_json(run.folder / "run.json")["request"]
    assert note["validation"] == fingerprint(other)
    assert not fit_run(request, table, tmp_path / "run", title="", resume=True).is_new
    changed = replace(request, validation=one_series(71))
    with pytest.raises(RunError, match="differs in validation table"):
        fit_run(changed, table, tmp_path / "run", title="", resume=True)
    renamed = replace(request, validation=replace(other, channels=("y",)))
    with pytest.raises(DataError, match="validation: the table has no channel x"):
        fit_run(renamed, table, tmp_path / "new", title="")
    assert not (tmp_path / "new").exists()


def test_baselines_with_physics_stand_beside_a_run_with_a_system(tmp_path, monkeypatch):
    """One that cannot be fitted is left out with a sentence."""

    class Fitting(find("models", "line", "MODEL")):
        @classmethod
        def create(cls, system, settings):
            return super().create(system, {"horizon": settings["horizon"]})

    class Refusing(Fitting):
        def fit(self, train, validation=None, *, seed=0):
            raise DataError("the state v has no channel", hint="measure it")

    kinds = {"least_squares": Fitting, "sindy": Refusing}
    monkeypatch.setattr(physics_baselines, "PHYSICS_BASELINES", tuple(kinds))
    monkeypatch.setattr(physics_baselines, "find", lambda package, name, what: kinds[name])
    stages = []
    run = fit_run(
        replace(ARX, system=System.parse("x' = ?*x")),
        one_series(120),
        tmp_path / "run",
        title="",
        stage=stages.append,
    )
    names = [row["model"] for row in run.scores]
    assert names == ["arx", *(n for n in BASELINES if n != "arx"), "least_squares"]
    expected = "sindy is left out of the comparison: the state v has no channel."
    assert run.left_out == [expected]
    assert "fitting the baseline sindy" in stages
    assert "scoring arx" in stages
    again = fit_run(
        replace(ARX, system=System.parse("x' = ?*x")),
        one_series(120),
        tmp_path / "run",
        title="",
        resume=True,
    )
    assert again.left_out == [expected]


def test_a_model_worse_than_the_mean_says_so():
    mean, good = {"model": "mean", "extrap_mae": 0.8}, {"model": "arx", "extrap_mae": 0.7}
    assert verdict_on([good, mean], "the validation part") is None
    assert verdict_on([mean, good], "the validation part") is None
    bad = {"model": "phy_ssm", "extrap_mae": 1.25}
    says = verdict_on([bad, good, mean], "the validation part")
    assert says is not None
    assert says.startswith("phy_ssm is worse than a constant, the mean of each channel")
    assert "1.25" in says
    assert "0.8" in says
    nothing = verdict_on([{**bad, "extrap_mae": float("nan")}, mean], "these windows")
    assert nothing is not None
    assert "not a number" in nothing


def test_a_model_far_worse_than_a_baseline_says_so():
    rows = [
        {"model": name, "extrap_mae": error}
        for name, error in (("phy_ssm", 0.3), ("mean", 0.8), ("arx", 0.1), ("sindy", 0.01))
    ]
    says = verdict_on(rows, "the validation part")
    assert says is not None
    assert says.startswith(
        "arx is far better than phy_ssm on the validation part: its extrap MAE is 0.1"
    )
    rows[2]["extrap_mae"] = 0.2
    assert verdict_on(rows, "the validation part") is None
