"""ARX against recurrences whose coefficients are known, and NumPy's least squares."""

import numpy as np
import pytest

from physsm._errors import ConfigError
from physsm._values import Panel, Series
from physsm.models.arx import MODEL
from tests.models.toy import toy_panel

# x[i+1] = A1 x[i] + A2 x[i-1] + b + B0 u[i] + B1 u[i+1], two channels, one control
A1 = np.array([[1.2, 0.1], [-0.2, 0.9]])
A2 = np.array([[-0.5, 0.0], [0.1, -0.3]])
B0, B1, SHIFT = np.array([0.4, -0.2]), np.array([0.1, 0.5]), np.array([2.0, -1.0])
GAP = 0.1


def recurrence(seed: int, series: int, rows: int, noise: float = 0.0, controls: int = 1) -> Panel:
    random = np.random.default_rng(seed)
    made = []
    for k in range(series):
        u = random.normal(size=(rows, controls))
        force = u[:, 0] if controls else np.zeros(rows)
        x = np.zeros((rows, 2))
        x[:2] = random.normal(size=(2, 2)) * 3
        for i in range(1, rows - 1):
            x[i + 1] = A1 @ x[i] + A2 @ x[i - 1] + SHIFT + B0 * force[i] + B1 * force[i + 1]
            x[i + 1] += noise * random.normal(size=2)
        made.append(Series(str(k), 7.0 + GAP * np.arange(rows), x, u))
    return Panel.from_series(made, ("x", "y"), ("u",) if controls else ())


def ahead(panel: Panel, boundary: int) -> tuple[Panel, Panel]:
    return panel.between(0, boundary), panel.between(boundary, panel.lengths)


def forecast(fitted, history: Panel, future: Panel, coverage=0.9):
    return fitted.forecast(history, times=future.times, controls=future.controls, coverage=coverage)


def test_recovers_a_recurrence_with_control_exactly():
    fitted = MODEL.create(None, {}).fit(recurrence(0, 6, 60))
    history, future = ahead(recurrence(9, 3, 50), 20)
    np.testing.assert_allclose(forecast(fitted, history, future).mean, future.values, atol=1e-5)
    one_step = fitted.one_step(history).mean
    np.testing.assert_allclose(one_step[:, 2:], history.values[:, 2:], atol=1e-5)


def test_equals_least_squares_without_ridge():
    """One step ahead, with noise; the regression is written down once more with NumPy."""
    panel = recurrence(1, 6, 40, noise=0.5)
    fitted = MODEL.create(None, {"lags": [2], "ridges": [1e-12]}).fit(panel, panel)
    features, targets = [], []
    for one in panel:
        x, u = one.values, one.controls
        features.append(np.hstack([np.ones((38, 1)), x[1:-1], x[:-2], u[2:], u[1:-1], u[:-2]]))
        targets.append(x[2:])
    weights, *_ = np.linalg.lstsq(np.concatenate(features), np.concatenate(targets), rcond=None)
    found = fitted.one_step(panel).mean
    for k, rows in enumerate(features):
        np.testing.assert_allclose(found[k, 2:], rows @ weights, atol=1e-7)


def test_ridge_solves_its_normal_equations():
    """Least squares with the penalty as further rows, on scaled differences."""
    panel, ridge = recurrence(2, 6, 40, noise=0.5, controls=0), 0.3
    fitted = MODEL.create(None, {"lags": [1], "ridges": [ridge]}).fit(panel, panel)
    scaled = (panel.values - fitted.channel_scales.mean) / fitted.channel_scales.scale
    before, step = scaled[:, :-1].reshape(-1, 2), np.diff(scaled, axis=1).reshape(-1, 2)
    before, step_mean = before - before.mean(0), step.mean(0)
    penalty = np.sqrt(ridge * len(before)) * np.eye(2)
    rows, wanted = np.vstack([before, penalty]), np.vstack([step - step_mean, np.zeros((2, 2))])
    slopes, *_ = np.linalg.lstsq(rows, wanted, rcond=None)
    np.testing.assert_allclose(fitted.weights[1][1:], slopes, atol=1e-9)


def test_a_strong_ridge_repeats_the_last_value():
    """With the mean change in a step added, which is not penalised."""
    panel = toy_panel(0, (40,) * 6)
    panel.values[:, 29] = 0.3
    fitted = MODEL.create(None, {"lags": [3], "ridges": [1e9]}).fit(panel)
    history, future = ahead(panel, 30)
    drift = fitted.weights[3][0] * fitted.channel_scales.scale
    gaps = (future.times - history.times[:, -1:]) / fitted.interface.median_gap
    found = forecast(fitted, history, future).mean
    np.testing.assert_allclose(found, 0.3 + drift * gaps[..., None], atol=1e-6)
    assert np.abs(drift).max() < 0.1


def test_leaving_out_times_keeps_the_others_exactly():
    panel = toy_panel(0, (40,) * 6)
    fitted = MODEL.create(None, {}).fit(panel)
    history, future = ahead(panel, 30)
    times, controls = future.times, np.repeat(history.controls[:, -1:], 10, axis=1)
    found = fitted.forecast(history, times=times, controls=controls).mean
    some = fitted.forecast(history, times=times[:, 1::3], controls=controls[:, 1::3]).mean
    np.testing.assert_allclose(some, found[:, 1::3], atol=1e-12)


def test_controls_run_straight_between_the_times_asked_for():
    """Asked for the end alone, it takes the same path as with all points of a ramp."""
    fitted = MODEL.create(None, {}).fit(recurrence(0, 6, 60))
    history, future = ahead(recurrence(5, 2, 30), 20)
    last = history.controls[:, -1:]
    ramp = last + 0.2 * np.arange(1, 11)[:, None]
    dense = fitted.forecast(history, times=future.times, controls=ramp).mean
    sparse = fitted.forecast(history, times=future.times[:, -1:], controls=ramp[:, -1:]).mean
    np.testing.assert_allclose(sparse[:, 0], dense[:, -1], atol=1e-9)


def test_lags_and_ridge_are_chosen_by_validation():
    """An AR(1) whose copies of older values are pure chance: few lags win; of an AR(5), many."""
    random = np.random.default_rng(0)

    def panel(lag: int, factor: float) -> Panel:
        made = []
        for k in range(8):
            x = random.normal(size=(80, 1))
            for i in range(lag, 80):
                x[i] += factor * x[i - lag]
            made.append(Series(str(k), np.arange(80.0), x, np.empty((80, 0))))
        return Panel.from_series(made, ("x",))

    settings = {"lags": [1, 5], "horizon": 5}
    assert MODEL.create(None, settings).fit(panel(1, 0.9)).describe()["lags"] == [1]
    assert MODEL.create(None, settings).fit(panel(5, 0.95)).describe()["lags"] == [1, 5]


def test_beats_repeating_on_an_irregular_oscillator():
    from physsm.models.repeat_last import MODEL as REPEAT

    panel, test = toy_panel(0, (80,) * 12), toy_panel(1, (80,) * 8)
    history, future = ahead(test, 60)
    seen = ~np.isnan(future.values)
    error = {
        model.name: np.abs(
            forecast(model.create(None, {}).fit(panel), history, future).mean - future.values
        )[seen].mean()
        for model in (MODEL, REPEAT)
    }
    assert error["arx"] < 0.35 * error["repeat_last"]


def test_intervals_hold_their_share():
    fitted = MODEL.create(None, {"horizon": 20}).fit(recurrence(0, 40, 60, noise=0.5), seed=1)
    history, future = ahead(recurrence(99, 200, 50, noise=0.5), 30)
    found = forecast(fitted, history, future)
    inside = (found.lower <= future.values) & (future.values <= found.upper)
    assert abs(inside.mean() - 0.9) < 0.03


def test_an_exploding_recurrence_is_held_in_the_range():
    """Trained on growth, it would grow for ever."""
    times = np.arange(30.0)
    growth = [np.exp(0.3 * times + k / 9)[:, None] for k in range(9)]
    panel = Panel.from_series(
        [Series(str(k), times, x, np.empty((30, 0))) for k, x in enumerate(growth)], ("x",)
    )
    fitted = MODEL.create(None, {"lags": [1], "ridges": [1e-10]}).fit(panel)
    found = fitted.forecast(panel, times=30.0 + np.arange(0, 4000, 50.0))
    largest = max(x.max() for x in growth)
    assert np.isfinite(found.mean).all()
    assert found.mean.max() <= 2 * largest
    assert found.mean[0, 0, 0] > growth[0].max()


def test_far_futures_end():
    fitted = MODEL.create(None, {}).fit(recurrence(0, 6, 40))
    history, _ = ahead(recurrence(1, 2, 20), 10)
    found = fitted.forecast(history, times=[1e3, 1e12], controls=np.zeros((2, 1)))
    assert np.isfinite(found.mean).all()
    assert np.isfinite(found.upper).all()


def test_constant_and_unmeasured_channels_and_huge_offsets_stay_finite():
    random = np.random.default_rng(0)
    made = []
    for k in range(6):
        x = np.stack([np.full(30, 3.0), 1e9 + random.normal(size=30), np.full(30, np.nan)], 1)
        made.append(Series(str(k), 1.7e9 + np.arange(30.0), x, np.full((30, 1), 5.0)))
    panel = Panel.from_series(made, ("constant", "far", "never"), ("steady",))
    fitted = MODEL.create(None, {}).fit(panel)
    found = fitted.forecast(panel, horizon=5, controls=np.full((6, 5, 1), 5.0))
    np.testing.assert_allclose(found.mean[..., 0], 3.0)
    np.testing.assert_allclose(found.mean[..., 1], 1e9, atol=5)
    for part in (found.mean, found.lower, found.upper):
        assert np.isfinite(part).all()


def test_series_of_one_row_teach_nothing_and_harm_nothing():
    panel = recurrence(0, 6, 40)
    fitted = MODEL.create(None, {"lags": [2]}).fit(panel.between(0, 1), panel)
    history, future = ahead(panel, 10)
    found = forecast(fitted, history, future).mean
    np.testing.assert_allclose(found, np.repeat(history.values[:, -1:], 30, axis=1))


def far_apart(seed: int) -> Panel:
    """x[i+1] = 0.5 x[i] - 0.7 x[i-4] + 1, which a lag of four gaps decides."""
    random = np.random.default_rng(seed)
    made = []
    for k in range(8):
        x = random.normal(size=(60, 1)) * 3
        for i in range(4, 59):
            x[i + 1] = 0.5 * x[i] - 0.7 * x[i - 4] + 1
        made.append(Series(str(k), np.arange(60.0), x, np.empty((60, 0))))
    return Panel.from_series(made, ("x",))


def test_spaced_lags_recover_a_recurrence_over_many_gaps_and_have_zeros_between():
    settings = {"lags": [2], "ridges": [1e-12], "spacing": 4}
    fitted = MODEL.create(None, settings).fit(far_apart(0))
    assert fitted.describe()["lags"] == [5]
    np.testing.assert_allclose(fitted.weights[5][1:, 0], [-0.5, 0, 0, 0, -0.7], atol=1e-9)
    history, future = ahead(far_apart(5), 20)
    np.testing.assert_allclose(forecast(fitted, history, future).mean, future.values, atol=1e-6)
    near = MODEL.create(None, {**settings, "spacing": 1}).fit(far_apart(0))
    assert np.abs(forecast(near, history, future).mean - future.values).max() > 0.1


def test_spaced_lags_take_controls_along():
    """Of the recurrence with control, offsets 0 and 2: against NumPy's least squares."""
    panel = recurrence(1, 6, 40, noise=0.5)
    settings = {"lags": [2], "ridges": [1e-12], "spacing": 2}
    fitted = MODEL.create(None, settings).fit(panel, panel)
    features, targets = [], []
    for one in panel:
        x, u = one.values, one.controls
        parts = [np.ones((37, 1)), x[2:-1], x[:-3], u[3:], u[2:-1], u[:-3]]
        features.append(np.hstack(parts))
        targets.append(x[3:])
    weights, *_ = np.linalg.lstsq(np.concatenate(features), np.concatenate(targets), rcond=None)
    found = fitted.one_step(panel).mean
    for k, rows in enumerate(features):
        np.testing.assert_allclose(found[k, 3:], rows @ weights, atol=1e-7)


def test_settings_are_checked():
    for wrong in (
        {"lags": [0]},
        {"ridges": [0.0]},
        {"ridges": []},
        {"spacing": 0},
        {"lags": "many"},
    ):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            MODEL.create(None, wrong)
