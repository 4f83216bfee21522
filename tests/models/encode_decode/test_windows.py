"""Windows of histories, and what happens where a solver does not come to the end."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physsm import System
from physsm._values import Panel, Series
from physsm.data.window import Windows, gather, whole_series
from physsm.models._encode_decode import compute
from physsm.models._encode_decode.objective import _as_far_as, objective, reconstruction
from physsm.models._encode_decode.tiles import tiles_of
from physsm.models._encode_decode.values import Timeline, Trajectory, as_window, elapsed
from physsm.models._encode_decode.windows import (
    Asked,
    Future,
    OnWindows,
    Wanted,
    answer,
    spread_of_answers,
)
from physsm.models._files import Interface
from physsm.models._intervals import uncalibrated
from physsm.models.goku import FittedGoku, Goku
from physsm.nn.gaussian import Gaussian
from tests.models.trajectory.make import SIZES, fitted, network, pendulums

STRAINED = {"rtol": 1e-12, "atol": 1e-14, "max_steps": 8}


def batch_of(found, panel: Panel):
    return gather(found.scales.scale(panel), whole_series(panel, 5), 10, 5, 1.0)


def test_a_solver_that_does_not_reach_the_end_makes_the_step_be_skipped():
    panel = pendulums(3, 15, 0)
    whole = network("latent_ode", panel)
    strained = network("latent_ode", panel, solver=STRAINED)
    for found, is_finite in ((whole, True), (strained, False)):
        loss = objective(found, batch_of(found, panel), 10, jr.key(0), jnp.asarray(1.0))
        assert bool(jnp.isfinite(loss)) == is_finite
    # Validation goes on with the last state: else no parameters could ever be chosen.
    assert np.isfinite(float(reconstruction(strained, batch_of(strained, panel), 10)))


def test_a_forecast_says_where_its_solver_stopped():
    panel = pendulums(3, 15, 0)
    found = fitted(panel, solver=STRAINED).forecast(panel, horizon=4, coverage=None)
    assert np.isfinite(found.mean).all()
    assert len(found.warnings) == 3
    assert "series 1" in found.warnings[1]
    assert "max_steps" in found.warnings[1]
    assert fitted(panel).forecast(panel, horizon=4, coverage=None).warnings == ()


def test_only_the_last_rows_of_a_history_count():
    panel = pendulums(2, 40, 0)
    values = panel.values.copy()
    values[:, :30] += 9.0
    changed = Panel.from_series(
        [one._replace(values=rows) for one, rows in zip(panel, values, strict=True)], panel.channels
    )
    model = fitted(panel)
    one, other = (model.forecast(p, horizon=3, coverage=None).mean for p in (panel, changed))
    np.testing.assert_array_equal(one, other)


def test_a_long_history_is_filled_in_by_windows_one_after_the_other():
    panel = pendulums(2, 47, 0)
    found = fitted(panel).interpolate(panel)
    assert np.isfinite(found.mean).all()
    assert found.mean.shape == panel.values.shape
    inside = np.sort(
        np.random.default_rng(0).uniform(panel.times[:, :1], panel.times[:, -1:], (2, 60))
    )
    assert np.isfinite(fitted(panel).interpolate(panel, times=inside).mean).all()


def test_interpolation_knows_the_controls_of_the_last_row():
    """x' = u with u a line: x is known in closed form, up to the last row of each window."""
    times = np.arange(20.0)
    u = 50 + times
    x = np.cumsum(np.concatenate([[0.0], (u[1:] + u[:-1]) / 2]))
    panel = Panel.from_series([Series("a", times, x[:, None], u[:, None])], ["x"], ["u"])
    model = Goku(System.parse("control u\nx' = u\nobserve x"), **Goku.test_settings())
    fitted = FittedGoku(
        model.system,
        model.network(panel, panel, SIZES, 0),
        Interface.of(panel),
        uncalibrated(1),
        (0.1,),
        SIZES,
    )
    quiet = jax.tree.map(jnp.zeros_like, fitted.network.residual)
    fitted.network = eqx.tree_at(lambda n: n.residual, fitted.network, quiet)
    found = fitted.interpolate(panel, coverage=None).mean[0, :, 0]
    inside = np.diff(x)
    inside[8::9] = np.nan  # from one window to the next, which starts anew
    same = ~np.isnan(inside)
    np.testing.assert_allclose(np.diff(found)[same], inside[same], rtol=1e-4)


def test_times_may_come_in_any_order():
    panel = pendulums(1, 10, 0)
    even = np.linspace(panel.times[0, 0], panel.times[0, -1], 1500)
    times = np.random.default_rng(0).permutation(even)
    model = fitted(panel)
    shuffled = model.interpolate(panel, times=times, coverage=None).mean[0]
    ordered = model.interpolate(panel, times=np.sort(times), coverage=None).mean[0]
    # Up to the tolerance of the solver, which meets them in other blocks.
    np.testing.assert_allclose(shuffled[np.argsort(times)], ordered, atol=1e-3)


def test_interpolation_says_where_its_solver_stopped():
    panel = pendulums(2, 10, 0)
    found = fitted(panel, solver=STRAINED).interpolate(panel, coverage=None)
    assert len(found.warnings) == 2
    assert "max_steps" in found.warnings[0]


def test_divergence_is_that_of_gaussians_from_standard_ones():
    """By the closed form: 0 for a standard one and positive elsewhere; of nothing it is nothing."""
    panel = pendulums(3, 15, 0)
    found = network("latent_ode", panel)
    window = as_window(batch_of(found, panel), 10, found.dtype)
    trajectory = Trajectory(jnp.zeros((15, 3, 4)), jnp.ones((15, 3), bool))
    mean, std = jnp.array([[0.0, 2.0]]), jnp.array([[1.0, 0.5]])
    expected = np.mean([0.0, (0.25 + 4.0 - 1.0) / 2 - np.log(0.5)])
    said = {"one": Gaussian(mean, std), "none": Gaussian(mean[:, :0], std[:, :0])}
    for inferred in (said["one"], said):
        value = found.divergence(window, inferred, path)
        assert float(value) == pytest.approx(expected, rel=1e-12)


def test_a_curriculum_counts_from_the_first_row_of_a_series():
    panel = pendulums(2, 15, 0)
    short = panel.between(np.array([0, 7]), 15)
    found = network("latent_ode", panel)
    batch = gather(found.scales.scale(short), whole_series(short, 5), 10, 5, 1.0)
    window = _as_far_as(as_window(batch, 10, found.dtype), 0.25)
    counted = np.asarray(window.weight)[..., 0].sum(0)
    np.testing.assert_array_equal(counted, [4, 3])  # rows 0 to 0.25 of 15, and of 8


def test_draws_of_very_many_windows_are_made_in_small_blocks(monkeypatch):
    """Each draw is a whole path: of a large block, all draws together would fill the memory."""
    panel = pendulums(2, 15, 0)
    asked, sizes = OnWindows(network("latent_ode", panel), 10), {}
    number = 600
    index = np.zeros(number, int)
    windows = Windows(index, index, index + 10, index + 10)
    no_controls = np.zeros((3, number, 0))
    future = Future(np.ones((3, number)), no_controls)
    wanted = Wanted(np.tile(np.array([[0.5], [1.0], [2.0]]), (1, number)), no_controls)

    def run(program, block, **_):
        sizes.setdefault(program, set()).add(block.times.shape[1])
        channels = np.zeros((*block.times.shape, 2))
        unknowns = channels[0, :, :0]
        if program is spread_of_answers:
            return channels, unknowns
        return channels, channels, channels[..., 0] == 0, unknowns

    monkeypatch.setattr(asked, "_run", run)
    found, spread = asked.ask(panel, windows, future, wanted, wants_spread=True)
    assert spread is not None
    assert found.channels.shape == spread.shape == (3, number, 2)
    assert sizes == {answer: {256}, spread_of_answers: {32}}


@pytest.mark.parametrize("at_once", [1, 2 * 12, 2**21])
def test_draws_of_a_long_future_are_made_a_few_at_a_time(monkeypatch, at_once):
    """One, two or all eight, by what the memory allows; the spread is that of single draws."""
    panel = pendulums(3, 15, 0)
    found = network("latent_ode", panel)
    rows = as_window(batch_of(found, panel), 10, found.dtype).rows
    times = jnp.asarray(np.linspace(0.5, 6.0, 4), found.dtype)[:, None] + jnp.zeros((1, 3))
    none = jnp.zeros((4, 3, 0), found.dtype)
    asked = Asked(rows, jnp.ones((4, 3), found.dtype), none, times.astype(found.dtype), none)
    monkeypatch.setattr(compute, "_AT_ONCE", at_once)
    channels, unknowns = eqx.filter_jit(lambda: spread_of_answers(found, asked, 8))()

    def one_draw(key):
        starts = jax.vmap(lambda one: found.draw(one, key))(found.infer(rows))
        timeline = Timeline(elapsed(jnp.concatenate([rows.gaps, asked.gaps])), none[:0])
        return found.decode(found.paths(starts, asked.times, timeline).z, none)

    draws = [eqx.filter_jit(one_draw)(key) for key in jr.split(jr.key(0), 8)]
    low, high = np.quantile(np.stack(draws), [0.1587, 0.8413], axis=0)
    np.testing.assert_allclose(channels, (high - low) / 2, rtol=1e-4, atol=1e-6)
    assert unknowns.shape == (3, 0)


@settings(max_examples=60)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=4), st.integers(2, 12), st.data())
def test_every_time_is_asked_of_a_window_that_it_lies_in(lengths, context, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    series = [
        Series(
            str(i),
            np.cumsum(rng.uniform(0.1, 1, n)),
            rng.normal(size=(n, 1)),
            rng.normal(size=(n, 2)),
        )
        for i, n in enumerate(lengths)
    ]
    panel = Panel.from_series(series, ["x"], ["u", "w"])
    ends = panel.times[np.arange(len(panel)), panel.lengths - 1]
    share = rng.uniform(0, 1, (len(panel), 7))
    wanted = np.sort(panel.times[:, :1] + share * (ends[:, None] - panel.times[:, :1]))
    tiles = tiles_of(panel, wanted, context)
    np.testing.assert_array_equal(tiles.times[tiles.place], wanted)
    _, start, boundary, stop = tuple(tiles.windows)
    assert (boundary - start <= context).all()
    np.testing.assert_array_equal(boundary, stop)
    for i in range(len(panel)):
        for step in range(7):
            window = tiles.place[1][i, step]
            assert tiles.windows.series[window] == i
            first, last = panel.times[i, start[window]], panel.times[i, stop[window] - 1]
            assert first - 1e-9 <= wanted[i, step] <= last + 1e-9
            controls = tiles.controls[tiles.place[0][i, step], window]
            one = panel[i]
            expected = [np.interp(wanted[i, step], one.times, u) for u in one.controls.T]
            assert controls == pytest.approx(expected)
