"""Benchmark jobs: their results, result files, and interruptions."""

import json
from pathlib import Path

import numpy as np
import pytest

from physsm._errors import ConfigError, RunError
from physsm._registry import find
from physsm.benchmark.experiment import Experiment, Job, experiment_names, jobs, read_experiment
from physsm.benchmark.job import depends_on_seed, make_split, run_job
from physsm.benchmark.pages import to_latex, to_markdown
from physsm.benchmark.runner import run_jobs
from physsm.benchmark.store import KEYS, Store
from physsm.benchmark.summary import cell_text, summarise
from physsm.data.window import cut_windows

RESULTS = Path(__file__).parents[2] / "results"
SMALL = {"series": [6, 3, 4], "rows": 45}
S5 = {**find("models", "s5", "MODEL").test_settings(), "training": {"steps": 8, "validations": 4}}


def make_jobs(*models: str, seeds=(0,), settings=None) -> list[Job]:
    experiment = Experiment.model_validate(
        {
            "title": "small",
            "data": [{"name": "pendulum:states", "settings": SMALL}],
            "row": [{"model": model, "settings": settings or {}} for model in models],
        }
    )
    return list(jobs("small", experiment, seeds, "cpu"))


def test_a_result_has_all_keys_and_the_right_errors(tmp_path):
    (job,) = make_jobs("repeat_last")
    result = run_job(job, tmp_path)
    assert set(KEYS) - {"request"} <= set(result)
    assert result["dataset"] == "pendulum"
    assert result["versions"].keys() >= {"python", "jax", "numpy"}
    assert result["peak_memory"] > 1e7
    assert result["seconds"]["all"] > 0
    json.dumps(result, allow_nan=False)
    metrics = result["metrics"]
    split = make_split(job, None)
    history = split.test.panel.values[:, : split.sizes.context]
    assert split.truth is not None
    target = split.truth.values[:, split.sizes.context :]
    last = [one[~np.isnan(one)][-1] for one in history[..., 0]]
    error = np.abs(target[..., 0] - np.array(last)[:, None]) / split.unit[0]
    assert metrics["extrap_mae"] == pytest.approx(error.mean())
    assert metrics["extrap_rmse"] == pytest.approx(np.sqrt((error**2).mean()))
    assert metrics["horizon"][0][:2] == [0, 1]
    assert list(metrics["channels"]) == ["theta"]


def test_quantiles_are_the_limits_of_intervals():
    split = make_split(make_jobs("arx")[0], None)
    model = find("models", "arx", "MODEL").create(None, {}).fit(split.train.panel)
    history, query, _ = cut_windows(split.test.panel, split.test.windows)
    forecast = model.forecast(history, times=query, coverage=0.9)
    np.testing.assert_allclose(forecast.quantile(0.95), forecast.upper)
    np.testing.assert_allclose(forecast.quantile(0.05), forecast.lower)
    np.testing.assert_allclose(forecast.quantile(0.5), forecast.mean)
    assert (forecast.quantile(0.2) <= forecast.quantile(0.3)).all()
    assert np.isnan(model.forecast(history, times=query, coverage=None).quantile(0.5)).all()
    with pytest.raises(ConfigError, match="level"):
        forecast.quantile(1.0)


def test_seeds_count_where_something_is_drawn():
    seeded, fixed = make_jobs("line")[0], make_jobs("line")[0]
    assert depends_on_seed(seeded)  # the pendulums are drawn
    column = fixed.column.model_copy(update={"name": "drone:strict", "settings": {}})
    assert not depends_on_seed(fixed.model_copy(update={"column": column}))
    trained = make_jobs("s5")[0].model_copy(update={"column": column})
    assert depends_on_seed(trained)


def test_an_interrupted_training_continues_to_the_same_result(tmp_path):
    (job,) = make_jobs("s5", settings=S5)
    whole = run_job(job, tmp_path / "whole")

    class StopError(Exception):
        pass

    def stop(now):
        if now.step == 5:
            raise StopError

    with pytest.raises(StopError):
        run_job(job, tmp_path / "stopped", report=stop)
    steps = []
    resumed = run_job(job, tmp_path / "stopped", report=lambda now: steps.append(now.step))
    assert min(steps) > 0, "it started again"
    assert resumed["metrics"] == whole["metrics"]


def test_an_unknown_setting_of_the_data_is_named(tmp_path):
    (job,) = make_jobs("mean")
    column = job.column.model_copy(update={"settings": {"rowz": 5}})
    with pytest.raises(ConfigError, match="pendulum:states has no setting 'rowz'"):
        run_job(job.model_copy(update={"column": column}), tmp_path)


def test_a_job_that_cannot_be_fitted_says_why(tmp_path):
    (job,) = make_jobs("s5", settings={"horizon": 5000})
    with pytest.raises(ConfigError, match="s5 cannot be fitted to pendulum:states"):
        run_job(job, tmp_path)


def test_jobs_run_once_in_their_own_processes_and_failures_stop_nothing(tmp_path):
    store = Store(tmp_path / "small")
    asked = [*make_jobs("no_such_model"), *make_jobs("repeat_last", "mean")]
    started = []

    def run():
        return run_jobs(
            asked,
            store,
            data_dir=None,
            started=lambda job: started.append(job.row.name),
            ended=lambda outcome: None,
            report=lambda now: None,
        )

    assert [outcome.state for outcome in run()] == ["failed", "done", "done"]
    assert [outcome.state for outcome in run()] == ["failed", "known", "known"]
    assert started == ["no_such_model", "repeat_last", "mean", "no_such_model"]
    assert len(list(store.folder.glob("*.json"))) == 2


def test_other_settings_are_another_result(tmp_path):
    store = Store(tmp_path)
    before, after = make_jobs("line")[0], make_jobs("line", settings={"points": [3]})[0]
    store.write(before, result("line", 0, 0.5))
    assert store.has(before)
    assert not store.has(after)


def test_a_foreign_file_among_the_results_is_an_error(tmp_path):
    (tmp_path / "notes.json").write_text("[1]")
    with pytest.raises(RunError, match=r"notes\.json is not a result"):
        Store(tmp_path).results("small", EXPERIMENT)


@pytest.mark.parametrize("name", experiment_names())
def test_stored_results_of_the_repository_belong_to_jobs(name):
    table, experiment = read_experiment(name)
    results, others = Store(RESULTS / table).results(table, experiment)
    assert results
    assert not others


EXPERIMENT = Experiment.model_validate(
    {
        "title": "t",
        "data": [{"name": "drone:strict"}],
        "row": [{"model": "line", "label": "a"}],
    }
)


def test_results_of_other_settings_are_left_out(tmp_path):
    store = Store(tmp_path)
    (asked,) = jobs("small", EXPERIMENT, [0], "cpu")
    store.write(asked, result("a", 0, 0.5))
    row = asked.row.model_copy(update={"settings": {"points": [3]}})
    store.write(asked.model_copy(update={"row": row, "seed": 1}), result("a", 1, 0.7))
    store.write(
        asked.model_copy(update={"row": row.model_copy(update={"label": "gone"})}),
        result("gone", 0, 0.1),
    )
    found, others = store.results("small", EXPERIMENT)
    assert [one["seed"] for one in found] == [0]
    assert others == ["drone-strict-a-cpu-1.json", "drone-strict-gone-cpu-0.json"]


@pytest.mark.parametrize(
    "change",
    [
        {"metrics": [1]},
        {"metrics": {"extrap_mae": "low"}},
        {"seconds": 3},
        {"label": 5},
        {"notes": "x"},
        {"test_windows": None},
    ],
)
def test_a_result_that_was_changed_by_hand_is_an_error(tmp_path, change):
    (asked,) = jobs("small", EXPERIMENT, [0], "cpu")
    Store(tmp_path).write(asked, {**result("a", 0, 0.5), **change})
    with pytest.raises(RunError, match=r"was changed"):
        Store(tmp_path).results("small", EXPERIMENT)


def test_two_programs_do_not_run_the_same_jobs(tmp_path):
    with (
        Store(tmp_path).locked(),
        pytest.raises(RunError, match="another program"),
        Store(tmp_path).locked(),
    ):
        pass


def result(label: str, seed: int, mae: float | None, coverage=0.8, protocol="strict"):
    return {
        **dict.fromkeys(KEYS),
        "dataset": "drone",
        "protocol": protocol,
        "budget": "cpu",
        "label": label,
        "seed": seed,
        "ablation": None,
        "test_windows": 1370,
        "unit_of_errors": "the standard deviation",
        "notes": ["Read this."],
        "metrics": {"extrap_mae": mae, "coverage": coverage},
        "seconds": {"fit": 2.0},
    }


def test_a_summary_has_means_and_spreads_best_first():
    results = [
        result("a", 0, 0.5),
        result("a", 1, 0.7, coverage=0.7),
        result("b_c", 0, 0.3, coverage=0.99),
        result("b_c", 1, 0.3, coverage=0.99),
        result("broken", 0, None),
        result("a", 0, 0.1, protocol="paper"),
    ]
    strict, paper = summarise(results)
    assert (strict.protocol, paper.protocol) == ("strict", "paper")
    assert [line.label for line in strict.lines] == ["b_c", "a", "broken"]
    first, second, broken = (line.cells["extrap_mae"] for line in strict.lines)
    assert first is not None
    assert second is not None
    assert first.is_best
    assert not second.is_best
    assert second.mean == pytest.approx(0.6)
    assert second.spread == pytest.approx(0.1 * np.sqrt(2))
    assert cell_text(second) == "0.600 ± 0.141"
    assert broken is None
    nearest = [line.label for line in strict.lines if line.cells["coverage"].is_best]  # type: ignore[union-attr]
    assert nearest == ["b_c"]  # nearest to 90 %, not the least


def test_pages_hold_what_the_summary_says():
    sheets = summarise([result("b_c", 0, 0.25), result("a", 0, 0.5)])
    markdown = to_markdown(sheets)
    assert "### drone, strict (1,370 test windows)" in markdown
    assert "| `b_c` | **0.250** | " in markdown
    assert "Read this." in markdown
    latex = to_latex(sheets)
    assert r"b\_c & \textbf{0.250}" in latex
    assert latex.count(r"\\") == 3
