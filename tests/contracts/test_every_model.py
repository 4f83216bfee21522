"""What every forecaster must do; a new file in `models` is picked up by itself.

The data are a driven oscillator, measured at irregular times, with missing cells, in series of
different lengths; a model with physics is given the equations. Each model is fitted once for all
tests of a process, `test_every_network_learns.py` among them, so a network trains until it has
learned something. A baseline that tries many candidates has a class method `test_settings()` with
settings for few of them.
"""

import json
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
import polars as pl
import pytest

from physsm import System
from physsm._arguments import merged
from physsm._errors import ConfigError, DataError, RunError
from physsm._registry import find, names_in
from physsm._values import Forecast, Panel, Query
from physsm.models._base import AbstractFitted, AbstractForecaster, load
from physsm.training.loop import Progress
from tests.models.toy import as_frame, recordings, toy_panel

pytestmark = pytest.mark.parametrize("name", names_in("models"))

TRAIN = (20, 17, 20, 14, 18, 20, 16, 20, 19, 15) * 4
HELD_OUT = (40, 31, 36)
CONTEXTS = (24, 17, 20)
HORIZON = 8
NETWORKS = {  # settings of all networks that have them
    "context": 8,
    "horizon": 4,
    "stride": 2,
    "samples": 2,
    "solver": {"max_steps": 64, "rtol": 1e-2, "atol": 1e-3},
    "training": {"steps": 60, "batch_size": 16, "validations": 3},
}
OWN = {
    "contiformer": {
        "width": 8,
        "training": {"steps": 200, "optimiser": {"learning_rate": 0.02}},
    },
    "latent_ode": {"training": {"steps": 100}},
    "ode2vae": {
        "latent": 4,
        "training": {"steps": 100, "batch_size": 6, "optimiser": {"learning_rate": 0.006}},
    },
    "pi_vae": {
        "training": {"steps": 40, "batch_size": 8, "optimiser": {"learning_rate": 0.01}},
    },
    "s5": {
        "encoder": {"width": 16, "states": 16, "depth": 1},
        "unit": {"width": 16, "states": 16, "depth": 1},
    },
    "sdvae": {"training": {"optimiser": {"learning_rate": 0.01}}},
}
# Once it has learned, its forecasts change by 0.2 standard deviations when times are left out: the
# contract holds for a few training steps, and whether it learns is tested with a fit of its own.
BARELY_TRAINED = {"s5"}


def model_class(name: str) -> type[AbstractForecaster]:
    return find("models", name, "MODEL")


def forecaster(name: str) -> AbstractForecaster:
    model = model_class(name)
    system = System.load("oscillator")
    settings = learning_settings(name) if model.trains else small_settings(name)
    if name in BARELY_TRAINED:
        settings = merged(settings, {"training": {"steps": 10}})
    return model.create(system if model.physics else None, settings)


def small_settings(name: str) -> dict:
    return getattr(model_class(name), "test_settings", dict)()


def learning_settings(name: str) -> dict:
    fields = model_class(name).Config.model_fields
    known = {key: value for key, value in NETWORKS.items() if key in fields}
    return merged(known, OWN.get(name, {}))


@cache
def training() -> tuple[Panel, Panel]:
    return toy_panel(1, TRAIN), toy_panel(2, HELD_OUT)


@lru_cache(maxsize=1)  # a process tests one model after the other: see tests/conftest.py
def fitted_model(name: str) -> AbstractFitted:
    train, validation = training()
    return forecaster(name).fit(train, validation, seed=3)


@cache
def whole() -> Panel:
    return toy_panel(5, HELD_OUT)


def cut(panel: Panel, boundaries=CONTEXTS, steps: int = HORIZON) -> tuple[Panel, Query]:
    """Histories of different lengths, and the rows after them."""
    boundary = np.array(boundaries)
    future = panel.between(boundary, boundary + steps)
    return panel.between(0, boundary), Query(future.times, future.controls, future.lengths)


def forecast(name: str, history: Panel, query: Query, coverage: float | None = 0.9) -> Forecast:
    return fitted_model(name).forecast(history, times=query, coverage=coverage)


class StoppedError(Exception):
    pass


def first_validation(name: str) -> Progress:
    """The progress of a new training at its first validation after a step, where it is stopped."""
    seen = []

    def report(progress: Progress) -> None:
        if progress.validation is not None:
            seen.append(replace(progress))
            raise StoppedError

    model: Any = forecaster(name)
    with pytest.raises(StoppedError):
        model.fit(*training(), seed=3, report=report)
    return seen[0]


def assert_same(found: np.ndarray, wanted: np.ndarray, name: str) -> None:
    """Equal to the rounding of single precision, relative to the channels' scale."""
    scale = np.array(fitted_model(name).interface.channel_scale)
    np.testing.assert_allclose(found / scale, wanted / scale, rtol=1e-5, atol=1e-5)


# The interface.


def test_says_what_it_can_take_into_account(name):
    model = model_class(name)
    assert issubclass(model, AbstractForecaster)
    assert model.name == model.Fitted.name == name
    for flag in ("irregular", "missing", "controls", "physics"):
        assert type(getattr(model, flag)) is bool
    assert model.Config.model_config.get("extra") == "forbid"
    assert model.Config.model_config.get("frozen")


def test_unknown_settings_are_refused(name):
    system = System.load("oscillator") if model_class(name).physics else None
    with pytest.raises(ConfigError, match=r"horizons.*horizon"):
        model_class(name).create(system, {"horizons": 3})
    with pytest.raises(ConfigError, match="horizon"):
        model_class(name).create(system, {"horizon": 0})


def test_fitting_and_forecasting_leave_their_input_as_it_was(name):
    history, query = cut(whole())
    forecast(name, history, query)
    fitted_model(name).one_step(history)
    fresh = (toy_panel(1, TRAIN), toy_panel(2, HELD_OUT), cut(toy_panel(5, HELD_OUT))[0])
    for used, wanted in zip((*training(), history), fresh, strict=True):
        for part in ("times", "values", "controls", "lengths"):
            np.testing.assert_array_equal(getattr(used, part), getattr(wanted, part))


def test_same_seed_and_data_give_the_same_model_from_panels_or_frames(name):
    """A network is trained up to its first validation, whose loss must be that of the first
    training to the last bit.
    """
    first_fit = fitted_model(name)
    if first_fit.training is not None and name not in BARELY_TRAINED:
        first = next(row for row in first_fit.training.curve if row["step"])
        assert (first["step"] or 0) > 10
        again = first_validation(name)
        assert (again.step, again.validation) == (first["step"], first["validation"])
        return
    series = recordings(1, TRAIN)
    if model_class(name).physics:  # whose text says which column is a control
        frames = (as_frame(series), as_frame(recordings(2, HELD_OUT)))
        from_panel, from_frame = first_fit, forecaster(name).fit(*frames, seed=3)
    else:  # the validation part is split off by the seed
        bare = [one._replace(controls=np.empty((len(one.times), 0))) for one in series]
        panel, frame = Panel.from_series(bare, ("x", "v")), as_frame(series, with_control=False)
        from_panel, from_frame = (forecaster(name).fit(table, seed=7) for table in (panel, frame))
    assert from_panel.arrays().keys() == from_frame.arrays().keys()
    for key, array in from_panel.arrays().items():
        np.testing.assert_array_equal(array, from_frame.arrays()[key], err_msg=key)
    np.testing.assert_array_equal(
        from_panel.calibration.quantiles, from_frame.calibration.quantiles
    )
    assert from_panel.describe() == from_frame.describe()


def test_history_as_a_frame_gives_the_same_forecast(name):
    history, query = cut(whole())
    frame = as_frame(list(history))
    shuffled_columns = frame.select(["force", "v", "series", "x", "time"])
    future = pl.DataFrame(
        {
            "time": query.times.reshape(-1),
            "series": np.repeat(history.ids, HORIZON),
            "force": query.controls.reshape(-1),
        }
    )
    found = fitted_model(name).forecast(shuffled_columns, times=future)
    wanted = forecast(name, history, query)
    np.testing.assert_array_equal(found.mean, wanted.mean)
    np.testing.assert_array_equal(found.upper, wanted.upper)
    assert found.ids == wanted.ids == history.ids


# Forecasts.


def test_forecasts_irregular_times_with_missing_cells(name):
    history, query = cut(whole())
    assert np.isnan(history.values[0]).any()
    assert np.unique(np.diff(query.times[0]).round(6)).size > 1
    found = forecast(name, history, query)
    shape = (len(history), HORIZON, 2)
    assert found.mean.shape == found.lower.shape == found.upper.shape == shape
    assert found.channels == ("x", "v")
    for part in (found.mean, found.lower, found.upper):
        assert np.isfinite(part).all()
    np.testing.assert_array_equal(found.times, query.times)


def test_series_of_different_lengths_do_not_touch_each_other(name):
    history, query = cut(whole())
    query = replace(query, lengths=np.array([8, 3, 5]))
    together = forecast(name, history, query)
    steps = fitted_model(name).one_step(history)
    for i in range(len(history)):
        own = Query(query.times[i : i + 1], query.controls[i : i + 1], query.lengths[i : i + 1])
        alone = forecast(name, history.select([i]), own)
        rows = int(query.lengths[i])
        assert_same(together.mean[i, :rows], alone.mean[0, :rows], name)
        assert_same(together.upper[i, :rows], alone.upper[0, :rows], name)
        one = fitted_model(name).one_step(history.select([i]))
        assert_same(steps.mean[i, : CONTEXTS[i]], one.mean[0, : CONTEXTS[i]], name)


def test_later_times_do_not_change_earlier_ones(name):
    history, query = cut(whole())
    found = forecast(name, history, query)
    for steps in (1, 5):
        first = Query(
            query.times[:, :steps],
            query.controls[:, :steps],
            np.full(len(history), steps),
        )
        assert_same(forecast(name, history, first).mean, found.mean[:, :steps], name)


def test_leaving_out_times_keeps_the_others(name):
    """Under a steady control, and up to the error of an integrator with longer steps."""
    if not model_class(name).irregular:
        pytest.skip("the model does not follow irregular times")
    history, query = cut(whole())
    last = history.controls[np.arange(len(history)), history.lengths - 1]
    steady = np.repeat(last[:, None], HORIZON, axis=1)
    all_times = forecast(name, history, replace(query, controls=steady)).mean
    some = Query(query.times[:, 1::2], steady[:, 1::2], np.full(len(history), HORIZON // 2))
    difference = forecast(name, history, some).mean - all_times[:, 1::2]
    scale = np.array(fitted_model(name).interface.channel_scale)
    assert (np.abs(difference) < 0.05 * scale).all()


def test_future_controls_matter_exactly_if_the_flag_says_so(name):
    history, query = cut(whole())
    found = forecast(name, history, query).mean
    other = forecast(name, history, replace(query, controls=query.controls + 3.0)).mean
    if model_class(name).controls:
        assert (np.abs(other - found)[:, -1] > 1e-4).any()
    else:
        np.testing.assert_array_equal(other, found)


def test_targets_cannot_be_seen(name):
    panel = whole()
    changed = panel.values.copy()
    rows = np.arange(panel.times.shape[1])
    changed[rows[None, :] >= np.array(CONTEXTS)[:, None]] = 1e3
    before, after = cut(panel), cut(replace(panel, values=changed))
    np.testing.assert_array_equal(forecast(name, *before).mean, forecast(name, *after).mean)


@pytest.mark.parametrize("row", [1, 7, 23])
@pytest.mark.parametrize("filling", [np.nan, 50.0])
def test_one_step_sees_only_rows_before(name, row, filling):
    panel = whole()
    values, controls = panel.values.copy(), panel.controls.copy()
    values[:, row:], controls[:, row + 1 :] = filling, -7.0
    changed = replace(panel, values=values, controls=controls)
    found = fitted_model(name).one_step(changed).mean[:, : row + 1]
    wanted = fitted_model(name).one_step(panel).mean[:, : row + 1]
    assert np.isnan(wanted[:, 0]).all()
    assert np.isfinite(wanted[:, 1:]).all()
    assert_same(found, wanted, name)


def test_one_step_sees_the_row_just_before(name):
    if not model_class(name).uses_history:
        pytest.skip("the model reads no history")
    panel = whole()
    values = panel.values.copy()
    values[:, 10] += 5.0
    found = fitted_model(name).one_step(replace(panel, values=values)).mean[:, 11]
    wanted = fitted_model(name).one_step(panel).mean[:, 11]
    assert (np.abs(found - wanted) > 1e-6).any(1).all()


@pytest.mark.parametrize("rows", [1, 2])
def test_forecasts_from_the_shortest_histories(name, rows):
    history, query = cut(whole(), (rows,) * 3)
    found = forecast(name, history, query)
    assert np.isfinite(found.mean).all()
    assert np.isfinite(found.upper - found.lower).all()


def test_forecasts_a_channel_that_was_not_measured(name):
    history, query = cut(whole())
    values = history.values.copy()
    values[:, :, 1] = np.nan
    values[0] = np.nan
    found = forecast(name, replace(history, values=values), query)
    assert np.isfinite(found.mean).all()
    assert np.isfinite(found.upper - found.lower).all()


def test_follows_a_horizon_at_the_median_gap(name):
    history, _ = cut(whole())
    controls = np.zeros((len(history), 4, 1))
    found = fitted_model(name).forecast(history, horizon=4, controls=controls)
    gaps = [np.median(np.diff(one.times)) for one in history]
    last = [one.times[-1] for one in history]
    expected = np.array(last)[:, None] + np.outer(gaps, [1, 2, 3, 4])
    np.testing.assert_allclose(found.times, expected)
    query = Query(found.times, controls, found.lengths)
    np.testing.assert_array_equal(forecast(name, history, query).mean, found.mean)


def test_interpolates_inside_the_history(name):
    history, _ = cut(whole())
    middle = np.stack([one.times[[3, 4]].mean(keepdims=True) for one in history])
    assert np.isfinite(fitted_model(name).interpolate(history, times=middle).mean).all()
    at_rows = fitted_model(name).interpolate(history)
    assert np.isfinite(at_rows.mean[at_rows.valid]).all()


# Intervals.


def test_intervals_hold_the_mean_and_grow_with_coverage(name):
    history, query = cut(whole())
    narrow = forecast(name, history, query, coverage=0.5)
    wide = forecast(name, history, query, coverage=0.95)
    np.testing.assert_array_equal(narrow.mean, wide.mean)
    assert (narrow.lower <= narrow.mean).all()
    assert (narrow.mean <= narrow.upper).all()
    assert (wide.lower < narrow.lower).all()
    assert (wide.upper > narrow.upper).all()


def test_intervals_can_be_left_out(name):
    history, query = cut(whole())
    bare = forecast(name, history, query, coverage=None)
    np.testing.assert_array_equal(bare.mean, forecast(name, history, query).mean)
    assert np.isnan(bare.lower).all()
    assert np.isnan(bare.upper).all()


# Files.


def test_saved_and_loaded_gives_equal_forecasts(name, tmp_path):
    fitted = fitted_model(name)
    fitted.save(tmp_path / "run")
    loaded = load(tmp_path / "run")
    assert type(loaded) is type(fitted)
    assert loaded.interface == fitted.interface
    history, query = cut(whole())
    found, wanted = loaded.forecast(history, times=query), forecast(name, history, query)
    for part in ("mean", "lower", "upper"):
        np.testing.assert_array_equal(getattr(found, part), getattr(wanted, part))
    np.testing.assert_array_equal(loaded.one_step(history).mean, fitted.one_step(history).mean)


@pytest.fixture
def run(name, tmp_path):
    fitted_model(name).save(tmp_path)
    return tmp_path


def change_json(run, change) -> None:
    content = json.loads((run / "model.json").read_text())
    change(content)
    (run / "model.json").write_text(json.dumps(content))


@pytest.mark.parametrize("file", ["model.json", "model.safetensors"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_truncated_files_are_refused(name, run, file, share):
    content = (run / file).read_bytes()
    (run / file).write_bytes(content[: int(share * len(content))])
    with pytest.raises(RunError, match=file.replace(".", r"\.")):
        load(run)


@pytest.mark.parametrize("file", ["model.json", "model.safetensors"])
def test_missing_and_foreign_files_are_refused(name, run, file):
    for content in (b"\x00\x01garbage", b"[1, 2]", b'{"weights": 3}'):
        (run / file).write_bytes(content)
        with pytest.raises(RunError):
            load(run)
    (run / file).unlink()
    with pytest.raises(RunError):
        load(run)


def test_a_changed_number_is_noticed(name, run):
    content = bytearray((run / "model.safetensors").read_bytes())
    content[-5] ^= 1
    (run / "model.safetensors").write_bytes(bytes(content))
    with pytest.raises(RunError, match="damaged"):
        load(run)


def test_a_channel_may_be_empty_in_the_history(name):
    history, query = cut(whole())
    frame = as_frame(list(history)).with_columns(x=pl.lit(None, pl.Float64))
    found = fitted_model(name).forecast(frame, times=query)
    assert np.isfinite(found.mean).all()


def test_newer_format_is_refused_by_name(name, run):
    change_json(run, lambda content: content.update(format=99, version="9.9"))
    with pytest.raises(RunError, match=r"format 99.*9\.9"):
        load(run)


def test_an_older_format_is_refused_in_one_sentence(name, run):
    change_json(run, lambda content: content.update(format=1, version="0.0"))
    with pytest.raises(RunError, match=r"has format 1, written by physsm 0\.0.*reads format 2"):
        load(run)


@pytest.mark.parametrize("part", ["interface", "calibration", "description", "model"])
def test_changed_files_are_refused(name, run, part):
    change_json(run, lambda content: content.update({part: {"else": [1]}}))
    with pytest.raises(RunError):
        load(run)


def test_other_columns_than_the_arrays_are_refused(name, run):
    change_json(run, lambda content: content["interface"].update(channels=["x"]))
    with pytest.raises(RunError):
        load(run)


# Bad calls.


def test_bad_futures_are_refused(name):
    fitted = fitted_model(name)
    history, _ = cut(whole())
    force = np.zeros((3, 2, 1))
    last = history.times[:, -1:]
    later = last + np.array([1.0, 2.0])
    with pytest.raises(ConfigError, match="horizon"):
        fitted.forecast(history, horizon=0)
    with pytest.raises(DataError, match="say which times"):
        fitted.forecast(history)
    with pytest.raises(DataError, match="not both"):
        fitted.forecast(history, horizon=2, times=later, controls=force)
    with pytest.raises(DataError, match="after the history"):
        fitted.forecast(history, times=later - 2.0, controls=force)
    with pytest.raises(DataError, match="increasing"):
        fitted.forecast(history, times=later[:, ::-1], controls=force)
    with pytest.raises(DataError, match="force"):
        fitted.forecast(history, horizon=2)
    with pytest.raises(DataError, match="force"):
        fitted.forecast(history, times=later)
    with pytest.raises(DataError, match="finite"):
        fitted.forecast(history, times=later, controls=force * np.nan)


@pytest.mark.parametrize("coverage", [2.0, 1.0, 0.0, -0.5])
def test_bad_coverage_is_refused(name, coverage):
    history, query = cut(whole())
    with pytest.raises(ConfigError, match="coverage"):
        fitted_model(name).forecast(history, times=query, coverage=coverage)


def test_missing_columns_are_refused(name):
    history, query = cut(whole())
    with pytest.raises(DataError, match="no channel v"):
        fitted_model(name).forecast(history.only(["x"]), times=query)
    without_force = replace(history, controls=history.controls[:, :, :0], control_names=())
    with pytest.raises(DataError, match="no control force"):
        fitted_model(name).forecast(without_force, times=query)
    with pytest.raises(DataError, match="force"):
        fitted_model(name).forecast(as_frame(list(history), with_control=False), times=query)


def test_times_outside_the_history_are_not_interpolated(name):
    history, _ = cut(whole())
    for outside in (history.times[:, :1] - 1, history.times[:, -1:] + 1):
        with pytest.raises(DataError, match="inside the history"):
            fitted_model(name).interpolate(history, times=outside)
    with pytest.raises(DataError, match=r"\(3, steps\)"):
        fitted_model(name).interpolate(history, times=np.ones((2, 1)))
