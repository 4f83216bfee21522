"""The linear bypass: a linear recurrence on its own, and beside the physics."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import physsm
from physsm import PhySSM, System
from physsm._values import Panel, Series
from physsm.data.window import Sizes
from physsm.models._network.config import Perceptron
from physsm.models._network.decoder import Decoder
from physsm.models._network.observations import Observations
from physsm.models._network.scales import StateScales, TableScales, table_scales
from physsm.models._network.state_scales import state_scales
from physsm.models.phy_ssm.bypass_inputs import (
    BypassInputs,
    BypassShape,
    PhySSMScales,
    function_scales,
)
from physsm.models.phy_ssm.fit_linear_bypass import (
    OFFSETS,
    BypassFit,
    _validation_rollouts,
    fit_linear_bypass,
    is_regular,
    with_weights,
)
from physsm.models.phy_ssm.forecaster import FittedPhySSM
from physsm.models.phy_ssm.linear_bypass import LinearBypass, features
from tests.compiled import compiled
from tests.examples import examples

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


NO_STATES = StateScales(measured=(-1, -1))
TABLE = table_scales(mixtures(series=1), False, True)
SHAPE = BypassShape(offsets=(0, 1, 3))
STEPS = 12

one_step = compiled(lambda bypass, rows, decoded: bypass.one_step(rows, decoded))
last_lags = compiled(lambda bypass, rows: bypass.last_lags(rows))


@compiled
def rollout(bypass, lags, decoded, controls, gaps):
    return bypass.rollout(lags, decoded, controls, gaps)


class Given(eqx.Module):
    """A decoder whose outputs are what it is given as states."""

    def __call__(self, centred):
        return centred


def bypass_of(fit: BypassFit, table: TableScales = TABLE) -> Any:
    decoder = Decoder(NO_STATES, Perceptron(width=4, layers=1), 2, np.random.default_rng(0))
    bypass = with_weights(LinearBypass(decoder, BypassInputs(table, fit.shape), NO_STATES), fit)
    return eqx.tree_at(lambda b: b.decoder, bypass, Given())


def random_weights(shape: BypassShape, offsets: int, seed: int) -> np.ndarray:
    size = features(BypassInputs(TABLE, shape), offsets)
    return 0.1 * np.random.default_rng(seed).standard_normal((size, 2))


WEIGHTS = random_weights(SHAPE, 3, seed=0)
BYPASS = bypass_of(BypassFit(SHAPE, WEIGHTS, WEIGHTS))


def random_rows(seed=0) -> Any:  # of NumPy, which take parts without compiling
    rng = np.random.default_rng(seed)
    found = Observations(
        last=jnp.asarray(rng.standard_normal((STEPS, 2))),
        seen=jnp.asarray(np.ones((STEPS, 2))),
        controls=jnp.asarray(rng.standard_normal((STEPS, 1))),
        gaps=jnp.asarray(rng.uniform(0.8, 1.2, STEPS)),
    )
    return jax.device_get(found)


ROWS = random_rows()
DECODED = np.random.default_rng(1).standard_normal((STEPS - 1, 2))


def by_hand(weights, offsets, rows, decoded, step):
    """A time step from those before it, term by term."""
    u = (np.asarray(rows.controls) - TABLE.control_shift[0]) / TABLE.control_scale[0]
    both = np.concatenate([np.asarray(rows.last), u], 1)
    slope = weights[0] + u[step] @ weights[1:2]
    for k, offset in enumerate(offsets):
        slope = slope + both[max(step - 1 - offset, 0)] @ weights[2 + 3 * k : 5 + 3 * k]
    slope = slope + 0.05 * np.asarray(decoded[step - 1])
    return np.asarray(rows.last[step - 1]) + float(rows.gaps[step]) * slope


def future_of(bypass, boundary, decoded=DECODED):
    """The rollout after the first steps, and the rows with it instead of what was measured."""
    lags = last_lags(bypass, jax.tree.map(lambda leaf: leaf[:boundary], ROWS))
    after = slice(boundary, None)
    inputs = decoded[boundary - 1 :], ROWS.controls[after], ROWS.gaps[after]
    future = rollout(bypass, lags, *inputs)
    return future, ROWS._replace(last=np.concatenate([ROWS.last[:boundary], future]))


def test_the_observed_part_is_the_recurrence_term_by_term():
    found = one_step(BYPASS, ROWS, DECODED)
    for step in range(1, STEPS):
        expected = by_hand(WEIGHTS, SHAPE.offsets, ROWS, DECODED, step)
        np.testing.assert_allclose(found[step - 1], expected)


@settings(max_examples=examples(3))
@example(1)
@example(11)
@given(st.integers(1, 11))
def test_a_future_goes_on_as_the_observed_part_would(boundary):
    """If the steps after a boundary were the predicted ones, just those would be predicted."""
    future, imagined = future_of(BYPASS, boundary)
    for step in range(boundary, STEPS):
        again = by_hand(WEIGHTS, SHAPE.offsets, imagined, DECODED, step)
        np.testing.assert_allclose(future[step - boundary], again, rtol=1e-9)


def test_the_first_steps_have_a_memory_of_their_own():
    shape = replace(SHAPE, short=1)
    short = random_weights(shape, 1, seed=2)
    bypass = bypass_of(BypassFit(shape, WEIGHTS / 2, WEIGHTS, short))
    decoded = np.zeros((STEPS - 1, 2))
    found = one_step(bypass, ROWS, decoded)
    brief = SHAPE.offsets[:1]
    for step in range(1, STEPS):
        expected = (
            by_hand(short, brief, ROWS, decoded, step)
            if step <= 3
            else by_hand(WEIGHTS, SHAPE.offsets, ROWS, decoded, step)
        )
        np.testing.assert_allclose(found[step - 1], expected)
    future, imagined = future_of(bypass, 2, decoded)
    for step in range(2, STEPS):
        used, memory = (short, brief) if step <= 3 else (WEIGHTS / 2, SHAPE.offsets)
        again = by_hand(used, memory, imagined, decoded, step)
        np.testing.assert_allclose(future[step - 2], again, rtol=1e-9)


def test_the_next_step_and_those_after_it_have_weights_of_their_own():
    bypass = bypass_of(BypassFit(SHAPE, WEIGHTS, 3 * WEIGHTS))
    future, imagined = future_of(bypass, 8)
    np.testing.assert_allclose(future[0], one_step(bypass, ROWS, DECODED)[7])
    expected = by_hand(3 * WEIGHTS, SHAPE.offsets, imagined, DECODED, 8)
    np.testing.assert_allclose(future[0], expected)
    for step in range(9, STEPS):
        again = by_hand(WEIGHTS, SHAPE.offsets, imagined, DECODED, step)
        np.testing.assert_allclose(future[step - 8], again, rtol=1e-9)


def test_steps_one_by_one_are_all_steps_at_once():
    update = compiled(BYPASS.update)
    lags = np.asarray(BYPASS.start(ROWS.gaps.dtype))
    for i in range(STEPS):
        lags = update(lags, jax.tree.map(lambda leaf, i=i: leaf[i], ROWS))
    np.testing.assert_array_equal(lags, last_lags(BYPASS, ROWS))


def test_padding_before_a_series_changes_nothing():
    padded = jax.tree.map(lambda leaf: np.concatenate([np.zeros_like(leaf[:5]), leaf]), ROWS)
    np.testing.assert_array_equal(last_lags(BYPASS, padded), last_lags(BYPASS, ROWS))
    decoded = np.zeros((STEPS + 4, 2))
    np.testing.assert_array_equal(
        one_step(BYPASS, padded, decoded)[5:], one_step(BYPASS, ROWS, decoded[5:])
    )


def test_points_between_steps_lie_on_the_way():
    lags, u = last_lags(BYPASS, ROWS), np.ones((3, 1))
    whole = rollout(BYPASS, lags, np.zeros((1, 2)), u[:1], np.ones(1))
    parts = rollout(BYPASS, lags, np.zeros((3, 2)), u, np.array([0.25, 0.2, 0.55]))
    now = lags[0, :2]
    np.testing.assert_allclose(parts[0], now + 0.25 * (whole[0] - now))
    np.testing.assert_allclose(parts[2], whole[0])


@pytest.mark.parametrize("parts", [2, 3, 10])
def test_a_future_does_not_depend_on_further_times_that_are_asked_for(parts):
    lags, steps = last_lags(BYPASS, ROWS), 6
    u = np.ones((steps * parts, 1))
    gaps = np.full(steps * parts, 1 / parts)
    fine = rollout(BYPASS, lags, np.zeros((steps * parts, 2)), u, gaps)
    coarse = rollout(BYPASS, lags, np.zeros((steps, 2)), u[:steps], np.ones(steps))
    np.testing.assert_allclose(fine[parts - 1 :: parts], coarse, rtol=1e-9)


def test_a_long_gap_counts_as_two():
    far, near = (
        one_step(
            BYPASS,
            ROWS._replace(gaps=np.where(np.arange(STEPS) == 5, gap, ROWS.gaps)),
            np.zeros((STEPS - 1, 2)),
        )[4]
        for gap in (50.0, 2.0)
    )
    np.testing.assert_array_equal(far, near)


def test_steps_without_time_change_nothing():
    lags = last_lags(BYPASS, ROWS)
    gaps, u = np.array([1.0, 0.0, 0.0, 1.0]), np.ones((4, 1))
    found = rollout(BYPASS, lags, np.zeros((4, 2)), u, gaps)
    np.testing.assert_array_equal(found[1], found[0])
    short = rollout(BYPASS, lags, np.zeros((2, 2)), u[:2], np.ones(2))
    np.testing.assert_allclose(found[3], short[1])


def test_a_linear_recurrence_is_fitted_and_runs_freely():
    train, held_out = mixtures(), mixtures(seed=1)
    table = table_scales(train, False, True)
    parts = table.scale(train), table.scale(held_out)
    fit = fit_linear_bypass(BypassInputs(table), NO_STATES, *parts, Sizes(30, 20, 5))
    assert fit is not None
    bypass = bypass_of(BypassFit(fit.shape, fit.rollout, fit.rollout), table)
    scaled = parts[1]
    rows = Observations(
        last=jnp.asarray(scaled.values[0]),
        seen=jnp.ones_like(scaled.values[0]),
        controls=jnp.asarray(scaled.controls[0]),
        gaps=jnp.asarray(np.diff(scaled.times[0], prepend=scaled.times[0, 0] - 1)),
    )
    lags = last_lags(bypass, jax.tree.map(lambda leaf: leaf[:40], rows))
    future = rollout(bypass, lags, jnp.zeros((40, 2)), rows.controls[40:], rows.gaps[40:])
    # The controls of the recurrence act one step later than the bypass's: one is not exact.
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


def test_the_equations_give_the_functions_of_the_controls():
    train, held_out, test = (pushed_by_squares(seed) for seed in range(3))
    table, sizes = table_scales(train, False, True), Sizes(60, 40, 5)
    errors = []
    for term in ("u", "[u**2]*?"):
        system = System.parse(f"control u\na' = ?*a + {term}\nb' = ?*a + ?*b")
        states = state_scales(system, table, train, True)
        bypass = function_scales(system, table, train)
        inputs = BypassInputs.of(system, PhySSMScales(table=table, states=states, bypass=bypass))
        parts = table.scale(train), table.scale(held_out)
        fit = fit_linear_bypass(inputs, states, *parts, sizes)
        assert fit is not None
        runs = _validation_rollouts(inputs, table.scale(test), sizes)
        errors.append(runs.squared_error(fit.shape.offsets, fit.rollout, np.array([0])))
    assert errors[0] > 0.01
    assert errors[1] < 1e-6


def test_irregular_times_have_no_linear_bypass():
    assert is_regular(mixtures(gap_spread=0.3))
    panel = mixtures(gap_spread=0.9)
    assert not is_regular(panel)
    table = table_scales(panel, False, True)
    scaled = table.scale(panel)
    inputs = BypassInputs(table)
    assert fit_linear_bypass(inputs, NO_STATES, scaled, scaled, Sizes(30, 20, 5)) is None


@pytest.fixture(scope="module")
def fitted() -> FittedPhySSM:
    settings = {**PhySSM.test_settings(), "hide": 0.0}
    model = PhySSM(System.parse(HIDDEN), **settings).fit(mixtures(), mixtures(seed=1), seed=0)
    assert isinstance(model, FittedPhySSM)
    return model


def test_channels_that_measure_no_state_get_a_bypass(fitted):
    assert fitted.scales.bypass.offsets == OFFSETS[:4]
    test = mixtures(seed=2)
    history = test.between(0, 60)
    times, controls = test.times[:, 60:], test.controls[:, 60:]
    future = fitted.forecast(history, times=times, controls=controls, coverage=None)
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
    test = mixtures(seed=2)
    history, times, controls = test.between(0, 60), test.times[:, 60:], test.controls[:, 60:]
    one, two = (
        model.forecast(history, times=times, controls=controls, coverage=None)
        for model in (fitted, physsm.load(tmp_path / "run"))
    )
    np.testing.assert_array_equal(one.mean, two.mean)


def test_inside_the_history_such_channels_run_straight(fitted):
    test = mixtures(seed=2)
    times = (test.times[:, 10:11] + test.times[:, 11:12]) / 2
    found = fitted.interpolate(test, times=times)
    np.testing.assert_allclose(found.mean[:, 0], test.values[:, 10:12].mean(1), rtol=1e-6)
