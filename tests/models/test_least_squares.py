"""Least-squares physics against trajectories of SciPy's solver, whose constants are known."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from physsm import System
from physsm._errors import ConfigError, DataError
from physsm._values import Panel, Series
from physsm.models._baseline.trajectory_fit import StateRange, solve
from physsm.models._steps import cut_gaps
from physsm.models.least_squares import MODEL
from physsm.physics.constrain import to_bounded
from tests.models.few_origins import few_origins  # noqa: F401
from tests.models.toy import STIFFNESS, toy_panel

pytestmark = pytest.mark.usefixtures("few_origins")

SIR = System.load("sir_conserving")
PENDULUM = System.parse("""theta' = omega
omega' = -?gravity*sin(theta) - ?friction*omega + ?gain*torque
control torque
?gravity >= 0
?friction >= 0
observe theta
""")
QUICK = {"rows": [10], "priors": [0.0], "horizon": 10}


def trajectory(slope, start, times: np.ndarray, u: np.ndarray | None = None) -> np.ndarray:
    """SciPy's solution at the times; a control holds from its row until the next."""
    rows = [np.array(start, float)]
    for i in range(len(times) - 1):
        held = () if u is None else (u[i],)
        found = solve_ivp(
            lambda t, z, held=held: slope(z, *held),
            (times[i], times[i + 1]),
            rows[-1],
            rtol=1e-11,
            atol=1e-13,
        )
        rows.append(found.y[:, -1])
    return np.array(rows)


def epidemic(beta: float, gamma: float, infected: float, days: np.ndarray) -> np.ndarray:
    def slope(z):
        new, removed = beta * z[0] * z[1], gamma * z[1]
        return np.array([-new, new - removed, removed])

    return trajectory(slope, [1 - infected, infected, 0.0], days)


RATES = [(0.3, 0.1), (0.25, 0.12), (0.4, 0.15), (0.2, 0.05), (0.35, 0.1), (0.28, 0.09)]


def epidemics(day: float = 1.0, seed: int = 0) -> Panel:
    """Six epidemics of 50 days out of 56, with rates of their own."""
    random = np.random.default_rng(seed)
    series = []
    for k, (beta, gamma) in enumerate(RATES):
        days = np.sort(random.permutation(56)[:50]).astype(float)
        values = epidemic(beta, gamma, 0.01, days - days[0])
        series.append(Series(str(k), days * day, values, np.empty((50, 0))))
    return Panel.from_series(series, ("S", "I", "R"))


@pytest.fixture(scope="module")
def fitted_sir(few_origins):  # noqa: F811
    panel = epidemics()
    return MODEL.create(SIR, QUICK).fit(panel, panel)


def test_recovers_the_rates_of_an_epidemic_and_forecasts_it(fitted_sir):
    panel = epidemics(seed=1)
    history, future = panel.between(0, 20), panel.between(20, 50)
    found = fitted_sir.unknowns(history)
    assert found.names == ("beta", "gamma")
    np.testing.assert_allclose(found.mean[:, -1], RATES, rtol=1e-3)
    mean = fitted_sir.forecast(history, times=future.times).mean
    np.testing.assert_allclose(mean, future.values, atol=1e-4)


def test_the_unit_of_time_does_not_matter(fitted_sir):
    """Days of 86400 seconds, or of a twentieth: forecasts are the same."""
    history, future = epidemics().between(0, 20), epidemics().between(20, 50)
    wanted = fitted_sir.forecast(history, times=future.times).mean
    for day in (86400.0, 0.05):
        panel = epidemics(day)
        fitted = MODEL.create(SIR, QUICK).fit(panel, panel)
        found = fitted.forecast(panel.between(0, 20), times=future.times * day).mean
        np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_single_precision_elsewhere_does_not_harm(fitted_sir):
    """Users have JAX's default of 32 bits; the fit is done in 64 all the same."""
    history, future = epidemics().between(0, 20), epidemics().between(20, 50)
    wanted = fitted_sir.forecast(history, times=future.times).mean
    with jax.enable_x64(False):
        found = fitted_sir.forecast(history, times=future.times).mean
        assert jax.numpy.ones(1).dtype == np.float32
    np.testing.assert_array_equal(found, wanted)


def pendulums(seed: int) -> Panel:
    """Angles of swings up to 2 rad under a random torque, at irregular times."""
    random = np.random.default_rng(seed)
    series = []
    for k in range(6):
        t = random.uniform(0.05, 0.15, 60).cumsum()
        u = random.normal(size=60)

        def slope(z, torque):
            return np.array([z[1], -9.0 * np.sin(z[0]) - 0.2 * z[1] + 1.5 * torque])

        values = trajectory(slope, [random.uniform(-2, 2), 0.0], t, u)
        series.append(Series(str(k), t, values[:, :1], u[:, None]))
    return Panel.from_series(series, ("theta",), ("torque",))


def test_a_pendulum_of_which_only_the_angle_is_measured():
    panel = pendulums(0)
    fitted = MODEL.create(PENDULUM, {**QUICK, "rows": [25], "substeps": 4}).fit(panel, panel)
    test = pendulums(7)
    history, future = test.between(0, 40), test.between(40, 60)
    found = fitted.unknowns(test.between(15, 40).select([0, 3])).mean[:, -1]
    np.testing.assert_allclose(found, np.tile([9.0, 0.2, 1.5], (2, 1)), rtol=0.01)
    mean = fitted.forecast(history, times=future.times, controls=future.controls).mean
    np.testing.assert_allclose(mean, future.values, atol=2e-3)


def test_the_stiffness_of_a_noisy_oscillator_lies_within_its_spread():
    """The force is held in the model and a sine in truth: a twentieth is left for that."""
    panel = toy_panel(1, (30,) * 4)
    settings = {"rows": [25], "priors": [0.0], "substeps": 1, "horizon": 2}
    fitted = MODEL.create(System.load("oscillator"), settings).fit(panel, panel)
    found = fitted.unknowns(panel)
    error = np.abs(found.mean[:, -1, 0] - STIFFNESS)
    assert (error < 4 * found.std[:, -1, 0] + 0.05).all()
    assert (found.std[:, -1] < 0.1).all()
    assert np.isnan(found.std[:, 0]).all()


def test_a_prior_draws_the_rates_towards_those_of_the_training_part(fitted_sir):
    history = epidemics(seed=1).between(0, 20)
    bounds, statistics = [unknown.bounds for unknown in SIR.unknowns], fitted_sir.statistics
    usual = np.asarray(to_bounded(jnp.asarray(statistics.raw), bounds, statistics.size))
    distance = []
    for prior in (0.0, 0.1, 1e6):
        found = replace(fitted_sir, prior=prior).unknowns(history).mean[:, -1]
        distance.append(np.abs(found - usual).sum(1))
    assert (distance[0] > distance[1]).all()
    assert (distance[1] > distance[2]).all()
    np.testing.assert_allclose(distance[2], 0, atol=1e-3)
    assert (np.array([[0.2, 0.05]]) < usual).all()
    assert (usual < np.array([[0.4, 0.15]])).all()


def test_rows_and_prior_are_chosen_by_validation():
    """Constants that jump half-way: few rows know the new ones, many mix them up."""
    series = []
    for k, (beta, gamma) in enumerate(RATES):
        before = epidemic(beta, gamma, 0.001, np.arange(30.0))

        def slope(z, beta=beta, gamma=gamma):
            new, removed = 0.3 * beta * z[0] * z[1], gamma * z[1]
            return np.array([-new, new - removed, removed])

        after = trajectory(slope, before[-1], np.arange(31.0))[1:]
        series.append(
            Series(str(k), np.arange(60.0), np.concatenate([before, after]), np.empty((60, 0)))
        )
    panel = Panel.from_series(series, ("S", "I", "R"))
    settings = {"rows": [4, 25], "priors": [0.0, 1e3], "horizon": 10}
    chosen = MODEL.create(SIR, settings).fit(panel, panel).describe()
    assert (chosen["rows"], chosen["prior"]) == (4, 0.0)


def test_runaway_forecasts_are_held_in_the_range_and_counted():
    """Explosive growth, asked for a thousand time constants."""
    system = System.parse("x' = ?rate*x\nobserve x")
    t = np.arange(20.0)
    series = [Series(str(k), t, np.exp(0.3 * t + k)[:, None], np.empty((20, 0))) for k in range(5)]
    panel = Panel.from_series(series, ("x",))
    fitted = MODEL.create(system, {**QUICK, "rows": [5]}).fit(panel, panel)
    found = fitted.forecast(panel, times=t[-1] + np.array([1.0, 3000.0]))
    largest = panel.values.max()
    assert found.mean[0, 0, 0] > panel.values[0].max()
    assert found.mean.max() <= 2 * largest
    assert np.isfinite(found.upper).all()
    said = fitted.describe()
    assert 0 <= said["held"] <= said["tried"]
    late = MODEL.create(system, {**QUICK, "rows": [5]}).fit(panel.between(0, 8), panel)
    assert late.describe()["held"] > 0


def test_the_solver_agrees_with_scipy_at_irregular_times():
    times = np.random.default_rng(0).uniform(0.02, 0.6, (1, 20)).cumsum(1)
    u = np.random.default_rng(1).normal(size=(1, 20, 1))

    def slope(z, torque):
        return np.array([z[1], -9.0 * np.sin(z[0]) - 0.2 * z[1] + 1.5 * torque])

    wanted = trajectory(slope, [2.0, 0.0], times[0], u[0, :, 0])
    everywhere = StateRange(np.full(2, -1e9), np.full(2, 1e9))
    theta, start = np.array([9.0, 0.2, 1.5]), np.array([2.0, 0.0])
    error = []
    for longest in (0.02, 0.01):
        steps = cut_gaps(times, longest, 10_000)
        assert steps.lengths.max() <= longest
        np.testing.assert_allclose(steps.lengths.sum(), times[0, -1] - times[0, 0])
        nodes, held = solve(
            PENDULUM, theta, start, steps.lengths[0], steps.zero_order_hold(u)[0], everywhere
        )
        error.append(np.abs(np.asarray(nodes)[steps.reached[0]] - wanted).max())
        assert not held.any()
    assert error[0] < 5e-6
    assert error[0] / error[1] > 12  # of order four: 16


def test_what_does_not_fit_the_physics_is_refused():
    panel = epidemics()
    with pytest.raises(ConfigError, match="none is given"):
        MODEL.create(None, {})
    with pytest.raises(DataError, match="state R has no channel"):
        MODEL.create(SIR, {}).fit(panel.only(["S", "I"]))
    with pytest.raises(DataError, match="channel Q is no state"):
        MODEL.create(SIR, {}).fit(replace(panel, channels=("S", "I", "Q")))
    with pytest.raises(DataError, match="no control force"):
        MODEL.create(System.load("oscillator"), {}).fit(
            replace(toy_panel(0, (20,) * 6), control_names=("push",))
        )
    for wrong in ({"rows": [1]}, {"priors": [-1.0]}, {"substeps": 0}, {"rows": []}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            MODEL.create(SIR, wrong)
