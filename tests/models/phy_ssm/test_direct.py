"""The direct path: a linear recurrence on its own, and beside the physics."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import physsm
from physsm import PhySSM, System
from physsm._values import Panel, Series
from physsm.data.window import Sizes
from physsm.models._network.observations import Observations
from physsm.models._network.scales import Plan, data_plan, physics_plan
from physsm.models.phy_ssm.fit_linear_bypass import OFFSETS, _free_runs, fit_direct, is_regular
from physsm.models.phy_ssm.forecaster import FittedPhySSM
from physsm.models.phy_ssm.linear_bypass import DirectPath, PathInputs, features

# A hidden spring; what is measured are two mixtures of its states, so that no channel is a state.
HIDDEN = "control push\nz' = w\nw' = -?k*z - ?c*w + push\nunknown ?k, ?c constant"


def mixtures(rows=80, series=6, seed=0, gap_spread=0.0) -> Panel:
    rng = np.random.default_rng(seed)
    made = []
    for i in range(series):
        gaps = 0.1 * (1 + gap_spread * rng.uniform(-1, 1, rows))
        push = np.cos(np.cumsum(gaps) + i)
        z, w, values = rng.standard_normal(), 0.0, []
        for gap, u in zip(gaps, push, strict=True):
            values.append([z + 0.2 * w, w - z])
            z, w = z + gap * w, w + gap * (-4 * z - 0.3 * w + u)
        made.append(Series(str(i), np.cumsum(gaps), np.array(values), push[:, None]))
    return Panel.from_series(made, ["a", "b"], ["push"])


def path_and_rows(offsets=(0, 1, 3), steps=12, seed=0):
    panel = mixtures(series=1)
    plan = data_plan(panel, False, True)
    plan = Plan(**{**vars(plan), "offsets": offsets})
    rng = np.random.default_rng(seed)
    weights = 0.1 * rng.standard_normal((features(plan, len(offsets)), 2))
    path = DirectPath(PathInputs(plan))
    path = jax.tree.map(lambda leaf: jnp.asarray(weights), path)
    rows = Observations(
        last=jnp.asarray(rng.standard_normal((steps, 2))),
        seen=jnp.ones((steps, 2)),
        controls=jnp.asarray(rng.standard_normal((steps, 1))),
        gaps=jnp.asarray(rng.uniform(0.8, 1.2, steps)),
    )
    return path, plan, weights, rows


def by_hand(weights, plan, rows, decoded, row):
    """Row `row` from those before it, term by term."""
    u = (np.asarray(rows.controls) - plan.control_shift[0]) / plan.control_scale[0]
    both = np.concatenate([np.asarray(rows.last), u], 1)
    slope = weights[0] + u[row] @ weights[1:2]
    for k, offset in enumerate(plan.offsets):
        slope = slope + both[max(row - 1 - offset, 0)] @ weights[2 + 3 * k : 5 + 3 * k]
    slope = slope + 0.05 * np.asarray(decoded[row - 1])
    return np.asarray(rows.last[row - 1]) + float(rows.gaps[row]) * slope


def test_the_observed_part_is_the_recurrence_term_by_term():
    path, plan, weights, rows = path_and_rows()
    decoded = jnp.asarray(np.random.default_rng(1).standard_normal((11, 2)))
    found = path.predict(rows, decoded)
    for row in range(1, 12):
        np.testing.assert_allclose(found[row - 1], by_hand(weights, plan, rows, decoded, row))


@given(st.integers(1, 11))
def test_a_future_goes_on_as_the_observed_part_would(boundary):
    """If the rows after a boundary were what the path says, it would predict just those."""
    path, plan, weights, rows = path_and_rows()
    decoded = jnp.asarray(np.random.default_rng(1).standard_normal((11, 2)))
    past = jax.tree.map(lambda leaf: leaf[:boundary], rows)
    lags = path.last_rows(past)
    future = path.run(lags, decoded[boundary - 1 :], rows.controls[boundary:], rows.gaps[boundary:])
    imagined = rows._replace(last=jnp.concatenate([rows.last[:boundary], future]))
    for row in range(boundary, 12):
        again = by_hand(weights, plan, imagined, decoded, row)
        np.testing.assert_allclose(future[row - boundary], again, rtol=1e-9)


def test_the_first_rows_have_a_memory_of_their_own():
    _, plan, weights, rows = path_and_rows()
    plan = Plan(**{**vars(plan), "short": 1})
    short = 0.1 * np.random.default_rng(2).standard_normal((features(plan, 1), 2))
    path = eqx.tree_at(
        lambda p: (p.direct_run, p.direct_next, p.direct_short),
        DirectPath(PathInputs(plan)),
        (jnp.asarray(weights / 2), jnp.asarray(weights), jnp.asarray(short)),
    )
    decoded = jnp.zeros((11, 2))
    found = path.predict(rows, decoded)
    brief = Plan(**{**vars(plan), "offsets": plan.offsets[:1]})
    for row in range(1, 12):
        expected = (
            by_hand(short, brief, rows, decoded, row)
            if row <= 3
            else by_hand(weights, plan, rows, decoded, row)
        )
        np.testing.assert_allclose(found[row - 1], expected)
    past = jax.tree.map(lambda leaf: leaf[:2], rows)
    future = path.run(path.last_rows(past), decoded[1:], rows.controls[2:], rows.gaps[2:])
    imagined = rows._replace(last=jnp.concatenate([rows.last[:2], future]))
    for row in range(2, 12):
        used, memory = (short, brief) if row <= 3 else (weights / 2, plan)
        again = by_hand(used, memory, imagined, decoded, row)
        np.testing.assert_allclose(future[row - 2], again, rtol=1e-9)


def test_the_next_row_and_those_after_it_have_weights_of_their_own():
    path, plan, weights, rows = path_and_rows()
    decoded = jnp.asarray(np.random.default_rng(1).standard_normal((11, 2)))
    path = eqx.tree_at(lambda p: p.direct_next, path, jnp.asarray(3 * weights))
    past = jax.tree.map(lambda leaf: leaf[:8], rows)
    future = path.run(path.last_rows(past), decoded[7:], rows.controls[8:], rows.gaps[8:])
    np.testing.assert_allclose(future[0], path.predict(rows, decoded)[7])
    imagined = rows._replace(last=jnp.concatenate([rows.last[:8], future]))
    np.testing.assert_allclose(future[0], by_hand(3 * weights, plan, imagined, decoded, 8))
    for row in range(9, 12):
        again = by_hand(weights, plan, imagined, decoded, row)
        np.testing.assert_allclose(future[row - 8], again, rtol=1e-9)


def test_rows_one_by_one_are_all_rows_at_once():
    path, _, _, rows = path_and_rows()
    lags = path.start()
    for i in range(12):
        row = jax.tree.map(lambda leaf, i=i: leaf[i], rows)
        lags = path.after(lags, row, jnp.asarray(float(i > 0)))
    np.testing.assert_array_equal(lags, path.last_rows(rows))


def test_padding_before_a_series_changes_nothing():
    path, _, _, rows = path_and_rows()
    padded = jax.tree.map(lambda leaf: jnp.concatenate([jnp.zeros_like(leaf[:5]), leaf]), rows)
    np.testing.assert_array_equal(path.last_rows(padded), path.last_rows(rows))
    decoded = jnp.zeros((16, 2))
    np.testing.assert_array_equal(
        path.predict(padded, decoded)[5:], path.predict(rows, decoded[5:])
    )


def test_points_between_rows_lie_on_the_way():
    path, _, _, rows = path_and_rows()
    lags, u = path.last_rows(rows), jnp.ones((3, 1))
    whole = path.run(lags, jnp.zeros((1, 2)), u[:1], jnp.ones(1))
    parts = path.run(lags, jnp.zeros((3, 2)), u, jnp.array([0.25, 0.2, 0.55]))
    now = lags[0, :2]
    np.testing.assert_allclose(parts[0], now + 0.25 * (whole[0] - now))
    np.testing.assert_allclose(parts[2], whole[0])


@pytest.mark.parametrize("parts", [2, 3, 10])
def test_a_future_does_not_depend_on_further_times_that_are_asked_for(parts):
    path, _, _, rows = path_and_rows()
    lags, steps = path.last_rows(rows), 6
    u = jnp.ones((steps * parts, 1))
    fine = path.run(lags, jnp.zeros((steps * parts, 2)), u, jnp.full(steps * parts, 1 / parts))
    coarse = path.run(lags, jnp.zeros((steps, 2)), u[:steps], jnp.ones(steps))
    np.testing.assert_allclose(fine[parts - 1 :: parts], coarse, rtol=1e-9)


def test_a_long_gap_counts_as_two():
    path, _, _, rows = path_and_rows()
    gaps = rows.gaps.at[5].set(50.0)
    far, near = (
        path.predict(rows._replace(gaps=gap), jnp.zeros((11, 2)))[4]
        for gap in (gaps, gaps.at[5].set(2.0))
    )
    np.testing.assert_array_equal(far, near)


def test_steps_without_time_change_nothing():
    path, _, _, rows = path_and_rows()
    lags = path.last_rows(rows)
    gaps, u = jnp.array([1.0, 0.0, 0.0, 1.0]), jnp.ones((4, 1))
    found = path.run(lags, jnp.zeros((4, 2)), u, gaps)
    np.testing.assert_array_equal(found[1], found[0])
    short = path.run(lags, jnp.zeros((2, 2)), u[:2], jnp.ones(2))
    np.testing.assert_allclose(found[3], short[1])


def test_a_linear_recurrence_is_found_and_runs_freely():
    train, held_out = mixtures(), mixtures(seed=1)
    plan = data_plan(train, False, True)
    start = fit_direct(PathInputs(plan), plan.scale(train), plan.scale(held_out), Sizes(30, 20, 5))
    assert start is not None
    path = DirectPath(PathInputs(Plan(**{**vars(plan), "offsets": start.offsets})))
    path = jax.tree.map(lambda leaf: jnp.asarray(start.run), path)
    scaled = plan.scale(held_out)
    rows = Observations(
        last=jnp.asarray(scaled.values[0]),
        seen=jnp.ones_like(scaled.values[0]),
        controls=jnp.asarray(scaled.controls[0]),
        gaps=jnp.asarray(np.diff(scaled.times[0], prepend=scaled.times[0, 0] - 1)),
    )
    past = jax.tree.map(lambda leaf: leaf[:40], rows)
    future = path.run(path.last_rows(past), jnp.zeros((40, 2)), rows.controls[40:], rows.gaps[40:])
    # The controls of the recurrence act one row later than the path's, so that one is not exact.
    np.testing.assert_allclose(future, rows.last[40:], atol=0.02)


def pushed_by_squares(seed: int) -> Panel:
    """Two hidden tanks that the square of a control fills; their sum is measured."""
    rng = np.random.default_rng(seed)
    made = []
    for i in range(4):
        u = np.cumsum(rng.standard_normal(200)) / 5
        x, values = np.zeros(2), []
        for push in u:
            x = x + 0.1 * (np.array([push**2, x[0]]) - x)
            values.append([x.sum()])
        made.append(Series(str(i), 0.1 * np.arange(200), np.array(values), u[:, None]))
    return Panel.from_series(made, ["level"], ["u"])


def test_how_a_control_acts_is_taken_from_the_equations():
    train, held_out = pushed_by_squares(0), pushed_by_squares(1)
    errors = []
    for term in ("u", "[u**2]*?"):
        system = System.parse(f"control u\na' = ?*a + {term}\nb' = ?*a + ?*b")
        plan = physics_plan(data_plan(train, False, True), system, train, True)
        inputs = PathInputs.of(system, plan)
        start = fit_direct(inputs, plan.scale(train), plan.scale(held_out), Sizes(60, 40, 5))
        assert start is not None
        runs = _free_runs(inputs, plan.scale(pushed_by_squares(2)), Sizes(60, 40, 5))
        errors.append(runs.squared_error(start.offsets, start.run, np.array([0])))
    assert errors[0] > 0.01
    assert errors[1] < 1e-6


def test_irregular_rows_have_no_direct_path():
    assert is_regular(mixtures(gap_spread=0.3))
    assert not is_regular(mixtures(gap_spread=0.9))
    panel = mixtures(gap_spread=0.9)
    plan = data_plan(panel, False, True)
    assert (
        fit_direct(PathInputs(plan), plan.scale(panel), plan.scale(panel), Sizes(30, 20, 5)) is None
    )


@pytest.fixture(scope="module")
def fitted() -> FittedPhySSM:
    settings = {**PhySSM.test_settings(), "hide": 0.0}
    model = PhySSM(System.parse(HIDDEN), **settings).fit(mixtures(), mixtures(seed=1), seed=0)
    assert isinstance(model, FittedPhySSM)
    return model


def test_channels_that_measure_no_state_get_a_path(fitted):
    assert fitted.plan.offsets == OFFSETS[:4]
    test = mixtures(seed=2)
    history = test.between(0, 60)
    future = fitted.forecast(history, times=test.times[:, 60:], controls=test.controls[:, 60:])
    error = np.abs(future.mean - test.values[:, 60:]).mean()
    assert error < 0.1 * test.values.std()


def test_a_stream_forecasts_like_its_history(fitted):
    test = mixtures(seed=2)
    stream = fitted.start()
    for i in range(60):
        stream = fitted.update(stream, test.times[0, i], test.values[0, i], test.controls[0, i])
    times, controls = test.times[0, 60:], test.controls[0, 60:]
    streamed = fitted.forecast_stream(stream, times=times, controls=controls, coverage=None)
    history = test.between(0, 60).select([0])
    batch = fitted.forecast(history, times=times, controls=controls, coverage=None)
    np.testing.assert_allclose(streamed.mean, batch.mean, rtol=1e-6, atol=1e-6)


def test_it_comes_back_from_its_file(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    again = physsm.load(tmp_path / "run")
    test = mixtures(seed=2)
    one, two = (
        model.forecast(
            test.between(0, 60), times=test.times[:, 60:], controls=test.controls[:, 60:]
        )
        for model in (fitted, again)
    )
    np.testing.assert_array_equal(one.mean, two.mean)


def test_inside_the_history_such_channels_run_straight(fitted):
    test = mixtures(seed=2)
    times = (test.times[:, 10:11] + test.times[:, 11:12]) / 2
    found = fitted.interpolate(test, times=times)
    np.testing.assert_allclose(found.mean[:, 0], test.values[:, 10:12].mean(1), rtol=1e-6)
