"""Windows of histories, and what happens where a solver does not reach the end."""

from functools import cache
from typing import Any

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
from physsm.models._encode_decode import windows as windows_module
from physsm.models._encode_decode.objective import _as_far_as, objective, reconstruction
from physsm.models._encode_decode.tiles import tiles_of
from physsm.models._encode_decode.values import Timeline, Trajectory, as_window, elapsed
from physsm.models._encode_decode.windows import (
    Question,
    WindowedNetwork,
    question,
    spread_of_trajectories,
    trajectories,
)
from physsm.models._files import Interface
from physsm.models._intervals import uncalibrated
from physsm.models._network.compiled import CompiledNetwork
from physsm.models.goku import FittedGoku, Goku
from physsm.models.latent_ode import FittedLatentODE
from physsm.nn.gaussian import Gaussian
from tests.examples import examples
from tests.models.encode_decode.make import SIZES, fitted, pendulums, window_of

STRAINED = {"rtol": 1e-12, "atol": 1e-14, "max_steps": 8}
PANEL = pendulums(3, 15, 0)


@cache
def model(is_strained: bool = False) -> FittedLatentODE:
    """One model for all histories: its programs are compiled once."""
    return fitted(PANEL, **({"solver": STRAINED} if is_strained else {}))


@pytest.mark.parametrize("is_strained", [False, True])
def test_a_solver_that_does_not_reach_the_end_makes_the_step_be_skipped(is_strained):
    found = model(is_strained).network
    batch = gather(found.scales.table.scale(PANEL), whole_series(PANEL, 5), 10, 5, 1.0)

    @eqx.filter_jit
    def both(found):
        loss = objective(found, batch, 10, jr.key(0), jnp.asarray(1.0))
        return loss, reconstruction(found, batch, 10)

    loss, error = both(found)
    assert bool(jnp.isfinite(loss)) == (not is_strained)
    # Validation goes on with the last state: else no parameters could ever be chosen.
    assert np.isfinite(float(error))


def test_a_forecast_says_where_its_solver_stopped():
    found = model(is_strained=True).forecast(PANEL, horizon=4, coverage=None)
    assert np.isfinite(found.mean).all()
    assert len(found.warnings) == 3
    assert "series 1" in found.warnings[1]
    assert "max_steps" in found.warnings[1]
    assert model().forecast(PANEL, horizon=4, coverage=None).warnings == ()


def test_only_the_last_rows_of_a_history_count():
    panel = pendulums(2, 40, 0)
    values = panel.values.copy()
    values[:, :30] += 9.0
    changed = Panel.from_series(
        [one._replace(values=rows) for one, rows in zip(panel, values, strict=True)], panel.channels
    )
    one, other = (model().forecast(p, horizon=3, coverage=None).mean for p in (panel, changed))
    np.testing.assert_array_equal(one, other)


def test_a_long_history_is_filled_in_by_windows_one_after_the_other():
    panel = pendulums(2, 47, 0)
    found = model().interpolate(panel)
    assert np.isfinite(found.mean).all()
    assert found.mean.shape == panel.values.shape
    inside = np.sort(
        np.random.default_rng(0).uniform(panel.times[:, :1], panel.times[:, -1:], (2, 30))
    )
    assert np.isfinite(model().interpolate(panel, times=inside).mean).all()


def test_interpolation_knows_the_controls_of_the_last_row():
    """x' = u with u a line: x is known in closed form, up to the last row of each window."""
    times = np.arange(20.0)
    u = 50 + times
    x = np.cumsum(np.concatenate([[0.0], (u[1:] + u[:-1]) / 2]))
    panel = Panel.from_series([Series("a", times, x[:, None], u[:, None])], ["x"], ["u"])
    goku = Goku(System.parse("control u\nx' = u\nobserve x"), **Goku.test_settings())
    untrained: Any = goku.network(panel, panel, SIZES, 0)
    quiet = jax.tree.map(jnp.zeros_like, untrained.residual)
    by_physics = FittedGoku(
        system=goku.system,
        network=eqx.tree_at(lambda n: n.residual, untrained, quiet),
        interface=Interface.of(panel),
        calibration=uncalibrated(1),
        noise=(0.1,),
        sizes=SIZES,
    )
    found = by_physics.interpolate(panel, coverage=None).mean[0, :, 0]
    inside = np.diff(x)
    inside[8::9] = np.nan  # from one window to the next, which starts anew
    same = ~np.isnan(inside)
    np.testing.assert_allclose(np.diff(found)[same], inside[same], rtol=1e-4)


def test_times_may_come_in_any_order():
    panel = pendulums(1, 10, 0)
    even = np.linspace(panel.times[0, 0], panel.times[0, -1], 1500)
    times = np.random.default_rng(0).permutation(even)
    shuffled, ordered = (
        model().interpolate(panel, times=at, coverage=None).mean[0] for at in (times, even)
    )
    # Up to the tolerance of the solver, which meets them in other blocks.
    np.testing.assert_allclose(shuffled[np.argsort(times)], ordered, atol=1e-3)


def test_interpolation_says_where_its_solver_stopped():
    found = model(is_strained=True).interpolate(pendulums(2, 10, 0), coverage=None)
    assert len(found.warnings) == 2
    assert "max_steps" in found.warnings[0]


def test_divergence_is_that_of_gaussians_from_standard_ones():
    """By the closed form: 0 for a standard one and positive elsewhere; of nothing it is nothing."""
    found = model().network
    window = window_of(found, PANEL)
    trajectory = Trajectory(jnp.zeros((15, 3, 4)), jnp.ones((15, 3), bool))
    mean, std = jnp.array([[0.0, 2.0]]), jnp.array([[1.0, 0.5]])
    expected = np.mean([0.0, (0.25 + 4.0 - 1.0) / 2 - np.log(0.5)])
    both = {"one": Gaussian(mean, std), "none": Gaussian(mean[:, :0], std[:, :0])}
    for inferred in (both["one"], both):
        value = found.divergence(window, inferred, trajectory)
        assert float(value) == pytest.approx(expected, rel=1e-12)


def test_a_curriculum_counts_from_the_first_row_of_a_series():
    panel = pendulums(2, 15, 0)
    short = panel.between(np.array([0, 7]), 15)
    found = model().network
    batch = gather(found.scales.table.scale(short), whole_series(short, 5), 10, 5, 1.0)
    window = _as_far_as(as_window(batch, 10, found.dtype), 0.25)
    counted = np.asarray(window.weight)[..., 0].sum(0)
    np.testing.assert_array_equal(counted, [4, 3])  # rows 0 to 0.25 of 15, and of 8


class Recorded(CompiledNetwork):
    """A network whose results are zeros, and the sizes of blocks that each program was given."""

    def __init__(self, network):
        super().__init__(network)
        self.sizes = {}

    def __call__(self, function, *arguments, **settings):
        (block,) = arguments
        self.sizes.setdefault(function, set()).add(block.times.shape[1])
        channels = np.zeros((*block.times.shape, 2))
        unknowns = channels[0, :, :0]
        if function is spread_of_trajectories:
            return channels, unknowns
        return channels, channels, channels[..., 0] == 0, unknowns


def test_draws_of_very_many_windows_are_made_in_small_blocks():
    """Each draw is a whole trajectory: all draws of a large block would fill the memory."""
    recorded, number = Recorded(model().network), 600
    windowed = WindowedNetwork(recorded, 10)
    index = np.zeros(number, int)
    windows = Windows(index, index, index + 10, index + 10)
    no_controls = np.zeros((3, number, 0))
    times = np.tile(np.array([[0.5], [1.0], [2.0]]), (1, number))
    asked = question(np.ones((3, number)), no_controls, times, no_controls)
    found = windowed.trajectories(PANEL, windows, asked)
    spread, _ = windowed.spread(PANEL, windows, asked)
    assert found.channels.shape == spread.shape == (3, number, 2)
    assert recorded.sizes == {trajectories: {256}, spread_of_trajectories: {32}}


@cache
def question_and_draws() -> tuple[Question, np.ndarray]:
    """Times of windows, and what eight single draws predict there."""
    found = model().network
    rows = window_of(found, PANEL).rows
    times = np.linspace(0.5, 6.0, 4)[:, None] + np.zeros((1, 3))
    none = jnp.zeros((4, 3, 0), found.dtype)
    asked = Question(
        rows=rows,
        gaps=jnp.ones((4, 3), found.dtype),
        controls=none,
        times=jnp.asarray(times, found.dtype),
        controls_then=none,
    )

    @jax.jit
    def one_draw(key):
        starts = jax.vmap(lambda one: found.draw(one, key))(found.infer(rows))
        timeline = Timeline(elapsed(jnp.concatenate([rows.gaps, asked.gaps])), none[:0])
        return found.decode(found.trajectories(starts, asked.times, timeline).z, none)

    return asked, np.stack([one_draw(key) for key in jr.split(jr.key(0), 8)])


@pytest.mark.parametrize("at_once", [1, 2 * 12, 2**21])
def test_draws_of_a_long_future_are_made_a_few_at_a_time(monkeypatch, at_once):
    """One, two or all eight, by what the memory allows; the spread is that of single draws."""
    asked, draws = question_and_draws()
    monkeypatch.setattr(windows_module, "_DRAWS_AT_ONCE", at_once)
    channels, unknowns = jax.jit(lambda: spread_of_trajectories(model().network, asked, 8))()
    low, high = np.quantile(draws, [0.1587, 0.8413], axis=0)
    np.testing.assert_allclose(channels, (high - low) / 2, rtol=1e-4, atol=1e-6)
    assert unknowns.shape == (3, 0)


@settings(max_examples=examples(30))
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
