"""Windows of histories, and what happens where a solver does not come to the end."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physsm._values import Panel, Series
from physsm.data.window import gather, whole_series
from physsm.models._trajectory.objective import objective, reconstruction
from physsm.models._trajectory.tiles import tiles_of
from tests.models.trajectory.make import fitted, network, pendulums

STRAINED = {"rtol": 1e-12, "atol": 1e-14, "max_steps": 8}


def batch_of(found, panel: Panel):
    return gather(found.plan.scale(panel), whole_series(panel, 5), 10, 5, 1.0)


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
