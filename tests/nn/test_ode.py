"""The solver against closed forms, finite differences, Diffrax, and itself asked otherwise."""

from collections.abc import Callable

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.test_util import check_grads
from scipy.linalg import expm

from physsm.nn import ode
from physsm.nn.ode import SolverSettings, _first_length, solve_ode
from tests.compiled import compiled

FINE = SolverSettings(rtol=1e-8, atol=1e-9)
LINEAR = np.array([[-0.3, 1.1, 0.0], [-1.2, -0.1, 0.4], [0.2, 0.0, -0.5]])


def solve(drift: Callable[..., jax.Array], start, times, settings: SolverSettings, end):
    """The solution as one program, in NumPy."""
    return compiled(lambda start, times: solve_ode(drift, start, times, settings, end))(
        start, times
    )


def irregular(seed: int, series: int = 5, rows: int = 40, span: float = 9.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.sort(rng.uniform(0, span, (series, rows)), axis=1)


def test_linear_systems_match_the_matrix_exponential_at_the_times_of_each_series():
    times = irregular(0)
    starts = np.random.default_rng(1).normal(size=(5, 3))
    A = jnp.asarray(LINEAR)
    solve = jax.jit(
        jax.vmap(lambda z, t: solve_ode(lambda _, z: A @ z, z, t, FINE, 2.0)),
    )
    found = solve(jnp.asarray(starts), jnp.asarray(times))
    assert np.asarray(found.is_reached).all()
    for i in range(5):
        wanted = np.stack([expm(LINEAR * t) @ starts[i] for t in times[i]])
        np.testing.assert_allclose(found.states[i], wanted, atol=1e-6)


def test_a_harmonic_oscillator_keeps_its_phase():
    times = irregular(3)[0]
    found = solve(
        lambda _, z: jnp.stack([z[1], -4 * z[0]]), jnp.array([1.0, 0.0]), times, FINE, 1.5
    )
    np.testing.assert_allclose(found.states[:, 0], np.cos(2 * times), atol=1e-6)
    np.testing.assert_allclose(found.states[:, 1], -2 * np.sin(2 * times), atol=1e-6)


def test_a_drift_may_depend_on_time():
    times = irregular(4)[0]
    found = solve(lambda t, z: jnp.cos(t)[None], jnp.zeros(1), times, FINE, 3.0)
    np.testing.assert_allclose(found.states[:, 0], np.sin(times), atol=1e-6)


def test_gradients_match_finite_differences():
    times = jnp.asarray(irregular(5, rows=7, span=3.0)[0])

    @jax.jit
    def total(start, rate):
        drift = lambda _, z: jnp.stack([z[1], -rate * jnp.sin(z[0])])  # noqa: E731
        return solve_ode(drift, jnp.asarray(start), times, FINE, 1.0).states.sum()

    check_grads(total, (jnp.array([0.4, -0.2]), jnp.array(2.3)), 1, modes=["rev"], rtol=1e-3)


def pendulum(rate: jax.Array):
    return lambda t, z: jnp.stack([z[1], -rate * jnp.sin(z[0]) + 0.3 * jnp.cos(t)])


def test_steps_and_gradients_of_a_batch_are_those_of_diffrax():
    """With loose tolerances the solutions agree only if every step is the same. The first one is
    given: Diffrax would start with 0.01, whatever the unit of time.
    """
    loose = SolverSettings(rtol=1e-2, atol=1e-3)
    times = jnp.asarray(irregular(8, series=4, rows=9, span=6.0))
    starts = jnp.asarray(np.random.default_rng(9).normal(size=(4, 2)))

    def with_diffrax(rate, start, times):
        solved = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, z, _: pendulum(rate)(t, z)),  # type: ignore[arg-type]
            diffrax.Dopri5(),
            0.0,
            7.0,
            lax.stop_gradient(_first_length(pendulum(rate), start, loose)),
            start,
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=diffrax.PIDController(rtol=loose.rtol, atol=loose.atol),
        )
        assert solved.ys is not None
        return solved.ys

    def with_ours(rate, start, times):
        return solve_ode(pendulum(rate), start, times, loose, 7.0).states

    def loss(solver: Callable[..., jax.Array], rate: jax.Array, starts: jax.Array):
        states = jax.vmap(lambda start, times: solver(rate, start, times))(starts, times)
        return (states**3).sum(), states

    found, wanted = (
        jax.jit(jax.value_and_grad(lambda *a, s=s: loss(s, *a), (0, 1), has_aux=True))(
            jnp.array(2.3), starts
        )
        for s in (with_ours, with_diffrax)
    )
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_the_gradient_of_an_exponential_is_known():
    times = jnp.array([0.3, 1.7])

    @jax.jit
    @jax.grad
    def slope_at(rate):
        return solve_ode(lambda _, z: rate * z, jnp.ones(1), times, FINE, 1.0).states.sum()

    slope = slope_at(jnp.array(-0.8))
    wanted = sum(t * np.exp(-0.8 * t) for t in (0.3, 1.7))
    assert float(slope) == pytest.approx(wanted, rel=1e-5)


def test_how_far_it_is_asked_for_changes_nothing_before():
    loose = SolverSettings()
    times = irregular(6, rows=30, span=20.0)[0]
    drift = lambda _, z: jnp.stack([z[1], -3 * jnp.sin(z[0])])  # noqa: E731
    start = jnp.array([1.0, 0.5])
    asked = compiled(lambda times: solve_ode(drift, start, times, loose, 2.0).states)
    whole = asked(times)
    for last in (2, 9, 21):
        part = asked(times[:last])
        np.testing.assert_allclose(part, whole[:last], rtol=1e-12)


def test_times_may_come_in_any_order_and_repeat():
    times = np.array([1.0, 0.0, 2.0, 1.0, 0.5])
    found = solve(lambda _, z: -z, jnp.ones(1), times, FINE, 1.0).states[:, 0]
    np.testing.assert_allclose(found, np.exp(-np.asarray(times)), atol=1e-7)


def test_long_paths_in_blocks_go_on_where_the_last_ended():
    times = np.sort(np.random.default_rng(7).uniform(0, 60, 2500))
    found = solve(lambda _, z: jnp.stack([z[1], -z[0]]), jnp.array([0.0, 1.0]), times, FINE, 4.0)
    assert np.asarray(found.is_reached).all()
    np.testing.assert_allclose(found.states[:, 0], np.sin(times), atol=1e-5)


def test_a_solution_that_ends_says_so_and_keeps_its_last_state():
    """z' = z² is infinite at time 1."""
    times = np.array([0.5, 0.9, 1.5, 3.0])
    found = solve(lambda _, z: z**2, jnp.ones(1), times, SolverSettings(), 5.0)
    np.testing.assert_array_equal(found.is_reached, [True, True, False, False])
    assert np.isfinite(np.asarray(found.states)).all()
    np.testing.assert_allclose(found.states[:2, 0], [2, 10], rtol=1e-2)


def test_too_few_steps_are_noticed():
    few = SolverSettings(rtol=1e-6, atol=1e-8, max_steps=8)
    times = np.array([0.01, 50.0])
    found = solve(lambda _, z: jnp.stack([z[1], -9 * z[0]]), jnp.ones(2), times, few, 100.0)
    assert not bool(found.is_reached[1])


def test_steps_end_at_given_nodes_so_that_kinks_behind_a_time_do_not_matter():
    """z' = |t - 1|, asked for up to its kink and beyond."""
    nodes = jnp.array([0.0, 0.0, 0.4, 1.0, 1.7, 2.0, 2.0])
    times = np.array([0.0, 0.4, 1.0, 1.7, 2.0])
    found = solve(lambda t, z: jnp.abs(t - 1)[None], jnp.zeros(1), times, FINE, nodes)
    wanted = np.where(times < 1, times - times**2 / 2, 0.5 + (times - 1) ** 2 / 2)
    np.testing.assert_allclose(found.states[:, 0], wanted, atol=1e-12)
    flat = lambda t, z: jnp.where(t <= 1, jnp.abs(t - 1), 7.0)[None]  # noqa: E731
    before = solve(flat, jnp.zeros(1), times[:3], SolverSettings(), nodes).states
    np.testing.assert_array_equal(before[:, 0], found.states[:3, 0])


def test_gradients_pass_through_a_solution_without_a_step():
    """All times are 0, or the last block has none after its start."""
    nodes, times = jnp.array([0.0, 1.0]), jnp.zeros(3)

    @jax.jit
    @jax.grad
    def slope(start):
        return solve_ode(lambda _, z: -z, start, times, FINE, nodes).states.sum()

    np.testing.assert_allclose(slope(jnp.ones(2)), [3.0, 3.0])


def test_gradients_of_blocks_are_those_of_one_solution(monkeypatch):
    times = jnp.concatenate([jnp.linspace(0.1, 2, 8), jnp.full(3, 2.0)])

    def slope(rate):
        states = solve_ode(lambda _, z: rate * z, jnp.ones(1), times, FINE, 1.0).states
        return (states * jnp.arange(11.0)[:, None]).sum()

    whole = jax.jit(jax.grad(slope))(jnp.array(-0.8))
    monkeypatch.setattr(ode, "_BLOCK", 8)
    np.testing.assert_allclose(jax.jit(jax.grad(slope))(jnp.array(-0.8)), whole, rtol=1e-5)


def test_a_start_near_the_edge_of_a_root_is_left():
    """The usual first step would leave the domain of the drift, and could not be judged."""
    drift = lambda _, z: jnp.stack([-jnp.sqrt(z[0]), jnp.zeros(())])  # noqa: E731
    times = np.array([0.001, 0.01])
    found = solve(drift, jnp.array([1e-4, 100.0]), times, SolverSettings(), 1.0)
    np.testing.assert_array_equal(found.is_reached, [True, True])
    np.testing.assert_allclose(found.states[:, 0], (0.01 - times / 2) ** 2, atol=1e-6)


def test_times_behind_a_singularity_are_not_reached():
    times = np.array([0.9, 1.01, 1.04])
    found = solve(lambda _, z: z**2, jnp.ones(1), times, SolverSettings(), 5.0)
    np.testing.assert_array_equal(found.is_reached, [True, False, False])
