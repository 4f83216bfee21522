"""Scores by hand, and report data that the report accepts."""

import json

import numpy as np

from physsm._json import plain
from physsm._values import Panel, Series
from physsm.benchmark import predictions
from physsm.benchmark.evaluate import evaluate, fit_baselines, score
from physsm.benchmark.evaluation_windows import windows_of_panel
from physsm.benchmark.report_data import build_report_data, fingerprint
from physsm.data.window import Sizes
from physsm.report.contents import check_contents
from physsm.report.page import render_page
from tests.models.encode_decode.make import fitted, pendulums

SIZES = Sizes(context=10, horizon=5, stride=5)


def make_panel(seed=0, names=("x",)) -> Panel:
    rng = np.random.default_rng(seed)
    series = []
    for i in range(6):
        times = np.cumsum(rng.uniform(0.5, 1.5, 30))
        values = np.cumsum(rng.standard_normal((30, len(names))), 0)
        values[rng.random(values.shape) < 0.1] = np.nan
        series.append(Series(f"s{i}", times, values, np.zeros((30, 0))))
    return Panel.from_series(series, names)


def test_scores_of_repeat_last_by_hand():
    panel = make_panel()
    model = fit_baselines(panel, make_panel(1), 0)["repeat_last"]
    windows = windows_of_panel(panel, SIZES, np.array([2.0]))
    found = score(model, windows)
    history, target = windows.history, windows.target
    errors, one_step = [], []
    for i in range(len(history)):
        values = history[i].values[:, 0]
        last = values[~np.isnan(values)][-1]
        errors += [abs(x - last) / 2 for x in target[i].values[:, 0] if not np.isnan(x)]
        for k in range(1, len(values)):
            before = values[:k][~np.isnan(values[:k])]
            if len(before) and not np.isnan(values[k]):
                one_step.append(abs(values[k] - before[-1]) / 2)
    np.testing.assert_allclose(found["extrap_mae"], np.mean(errors), rtol=1e-12)
    np.testing.assert_allclose(found["interp_mae"], np.mean(one_step), rtol=0.05)


def test_errors_of_channels_are_in_their_own_units():
    panel = make_panel(names=("x", "y"))
    model = fit_baselines(panel, make_panel(1, names=("x", "y")), 0)["repeat_last"]
    windows = windows_of_panel(panel, SIZES, np.array([2.0, 5.0]))
    found = score(model, windows, {"x": "cm", "?rate": "1/s"})["channel_errors"]
    forecast = model.forecast(windows.history, times=windows.query, coverage=None)
    error = forecast.mean - windows.target.values
    assert list(found) == ["x", "y"]
    assert [errors["unit"] for errors in found.values()] == ["cm", None]
    for channel, errors in enumerate(found.values()):
        np.testing.assert_allclose(errors["mae"], np.nanmean(np.abs(error[..., channel])))
        np.testing.assert_allclose(errors["rmse"], np.sqrt(np.nanmean(error[..., channel] ** 2)))


def test_a_path_is_also_scored_on_the_window_that_it_has_seen(monkeypatch):
    panel = pendulums(4, 15, 0)
    model, unit = fitted(panel), np.array([2.0, 3.0])
    windows = windows_of_panel(panel, SIZES, unit)
    found = score(model, windows)
    error = (model.interpolate(windows.history).mean - windows.history.values) / unit
    np.testing.assert_allclose(found["window_mae"], np.abs(error).mean(), rtol=1e-6)
    np.testing.assert_allclose(found["window_mse"], (error**2).mean(), rtol=1e-6)
    assert found["interp_windows"] == len(windows.history) == 4
    monkeypatch.setattr(predictions, "_MAX_REREAD_STEPS", 20)  # of ten steps a window
    few = score(model, windows)
    assert few["interp_windows"] == 2
    ends = windows.history.select([0, 3])
    error = (model.one_step(ends, coverage=None).mean - ends.values)[:, 1:] / unit
    np.testing.assert_allclose(few["interp_mae"], np.abs(error).mean(), rtol=1e-6)
    assert few["extrap_mae"] == found["extrap_mae"]


def test_targets_do_not_overlap():
    windows = windows_of_panel(make_panel(), SIZES, np.ones(1))
    times = windows.query.times.reshape(6, -1)
    assert all(len(set(row)) == len(row) for row in times)


def test_report_data_of_any_model_make_a_page():
    train, rest = make_panel(), make_panel(1)
    baselines = fit_baselines(train, rest, 0)
    model = baselines.pop("arx")
    evaluation = evaluate(model, baselines, rest, SIZES)
    report_data = build_report_data(
        model,
        rest,
        evaluation,
        title="A <title>",
        settings={"a": {"b": 1}},
    )
    again = check_contents(json.loads(json.dumps(report_data)))
    assert again["settings"] == {"a.b": 1}
    assert "A &lt;title&gt;" in render_page(again)


def test_plain_values_are_json():
    value = {"a": np.array([1.0, np.nan]), "b": (np.float64(2), np.int64(3)), "c": float("inf")}
    assert plain(value) == {"a": [1.0, None], "b": [2.0, 3], "c": None}


def test_the_fingerprint_changes_with_any_value():
    panel, other = make_panel(), make_panel()
    assert fingerprint(panel) == fingerprint(other)
    other.values[2, 3, 0] = 7.0
    assert fingerprint(panel) != fingerprint(other)
