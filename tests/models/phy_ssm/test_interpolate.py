"""Values inside a history: nearer to the truth than measurements, with honest intervals."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from physsm._values import Panel, Series
from physsm.models.phy_ssm.added_steps import with_steps_at
from physsm.models.phy_ssm.forecaster import PhySSM
from physsm.physics.system import System
from tests.models.phy_ssm.make import small_panel_settings, untrained

TEXT = "x' = v\nv' = -4*x - ?c*v\nobserve x\nunknown ?c constant\n?c >= 0"


def swing(t, phase, size):
    return size * np.exp(-0.1 * t) * np.sin(1.9975 * t + phase)


def noisy_panel(seed: int, rows=50, error=0.1, missing=0.2) -> tuple[Panel, list]:
    """A damped oscillator with errors of measurement, at irregular times."""
    rng = np.random.default_rng(seed)
    series, truths = [], []
    for i in range(8):
        times = np.cumsum(rng.uniform(0.1, 0.3, rows))
        phase, size = rng.uniform(0, 6), rng.uniform(0.8, 1.5)
        values = swing(times, phase, size)[:, None] + error * rng.standard_normal((rows, 1))
        values[rng.random(values.shape) < missing] = np.nan
        series.append(Series(str(i), times, values, np.zeros((rows, 0))))
        truths.append((phase, size))
    return Panel.from_series(series, ["x"]), truths


@pytest.fixture(scope="module")
def fitted():
    settings = small_panel_settings(steps=150)
    return PhySSM(System.parse(TEXT), **settings).fit(noisy_panel(0)[0], noisy_panel(1)[0], seed=0)


def test_is_nearer_to_the_truth_than_what_was_measured(fitted):
    panel, truths = noisy_panel(2)
    true = np.stack([swing(one.times, *truth) for one, truth in zip(panel, truths, strict=True)])
    found = fitted.interpolate(panel).mean[..., 0]
    filtered = fitted.one_step(panel).mean[..., 0]
    error = np.sqrt(np.mean((found - true)[:, 2:] ** 2))
    assert error < 0.6 * np.sqrt(np.nanmean((panel.values[..., 0] - true) ** 2))
    assert error < 0.6 * np.sqrt(np.nanmean((filtered - true)[:, 2:] ** 2))


def test_intervals_between_the_steps_hold_what_a_measurement_would_show(fitted):
    panel, truths = noisy_panel(3)
    middle = (panel.times[:, 1:] + panel.times[:, :-1]) / 2
    rng = np.random.default_rng(4)
    true = np.stack([swing(at, *truth) for at, truth in zip(middle, truths, strict=True)])
    shown = true + 0.1 * rng.standard_normal(true.shape)
    wide, narrow = (fitted.interpolate(panel, times=middle, coverage=c) for c in (0.9, 0.5))
    for found, least, most in ((wide, 0.8, 0.99), (narrow, 0.35, 0.7)):
        inside = (found.lower[..., 0] <= shown) & (shown <= found.upper[..., 0])
        assert least < inside.mean() < most
    assert np.isnan(fitted.interpolate(panel, coverage=None).lower).all()


def test_looks_at_later_measurements(fitted):
    panel, _ = noisy_panel(5)
    changed = panel.values.copy()
    changed[:, 30:] += 0.5
    later = Panel.from_series(
        [one._replace(values=values) for one, values in zip(panel, changed, strict=True)], ["x"]
    )
    # With a small noise, the physics carries the change over the whole series.
    for size, forgets in ((0.002, False), (0.2, True)):
        noise = jnp.full_like(fitted.network.inference.noises.log_noise, np.log(size))
        noisy = eqx.tree_at(lambda n: n.inference.noises.log_noise, fitted.network, noise)
        model = replace(fitted, network=noisy)
        moved = np.abs(model.interpolate(later).mean - model.interpolate(panel).mean)
        assert moved[:, 28:30].max() > 0.02  # just before the change
        assert (moved[:, :5].max() < 0.02) == forgets  # long before


def test_steps_are_put_at_the_wanted_times():
    panel, _ = noisy_panel(0, rows=4)
    wanted = np.stack([[one.times[2], one.times[0] + 0.01, one.times[3]] for one in panel])
    longer, place, own = with_steps_at(panel, wanted, lambda one, times: np.zeros((len(times), 0)))
    assert longer.lengths.tolist() == [5] * 8
    for i, (before, after) in enumerate(zip(panel, longer, strict=True)):
        np.testing.assert_array_equal(after.times[place[i]], wanted[i])
        rows = np.searchsorted(after.times, before.times)
        np.testing.assert_array_equal(after.values[rows], before.values)
        assert np.isnan(np.delete(after.values, rows, axis=0)).all()
        assert np.flatnonzero(own[i]).tolist() == rows.tolist()


def test_to_ask_for_many_times_is_no_evidence(fitted):
    panel, _ = noisy_panel(6)
    panel = panel.select([0])
    times = np.linspace(panel.times.min(), panel.times.max(), 1000)
    many, one = (fitted.interpolate(panel, times=t) for t in (times, times[[499]]))
    spread = float(one.upper[0, 0, 0] - one.mean[0, 0, 0])
    assert abs(many.mean[0, 499, 0] - one.mean[0, 0, 0]) < 0.05 * spread
    assert float(many.upper[0, 499, 0] - many.mean[0, 499, 0]) == pytest.approx(spread, rel=0.02)


@pytest.mark.parametrize("inference", ["kalman", "encoder"])
def test_series_of_one_step(fitted, inference):
    if inference == "encoder":
        fitted = untrained(TEXT, noisy_panel(0)[0], inference="encoder")
    short = Panel.from_series([Series("a", np.ones(1), np.ones((1, 1)), np.zeros((1, 0)))], ["x"])
    assert np.isfinite(fitted.interpolate(short).mean).all()
    assert np.isfinite(fitted.interpolate(short, times=[1.0, 1.0]).mean).all()
