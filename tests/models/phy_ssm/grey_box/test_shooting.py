"""Simulation against SciPy's solver, normal equations against automatic differentiation, and their
minimum against SciPy's least squares.
"""

from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import least_squares

from physsm._values import Panel, Series
from physsm.models.phy_ssm.grey_box.least_squares import minimise
from physsm.models.phy_ssm.grey_box.pieces import Pieces, cut
from physsm.models.phy_ssm.grey_box.shooting import Fit, Guess, shoot
from physsm.models.phy_ssm.grey_box.simulation import Normal, Priors, normal_equations, simulate
from physsm.models.phy_ssm.grey_box.starts import as_shared, physical
from tests.models.phy_ssm.grey_box.make import DAMPING, STIFFNESS, make_unit, oscillators


class Example(NamedTuple):
    """Two pieces of noisy positions with missing rows, and a start away from the truth."""

    unit: Any
    pieces: Pieces
    priors: Priors
    shared: np.ndarray
    local: np.ndarray


@cache
def example() -> Example:
    panel, states = oscillators(1, (16, 13), error=0.05, gap=0.2, missing=0.1)
    unit = make_unit(panel)
    pieces, series, first = cut(unit.scales.table.scale(panel), 16)
    local = states[series, first] / np.array(unit.scales.states.state_scale)
    local = local + 0.2 * np.random.default_rng(2).standard_normal(local.shape)
    shared = as_shared(unit, np.array([0.8 * STIFFNESS, 2 * DAMPING]))
    priors = Priors(
        local=local[None],
        local_weight=np.array([0.1, 0.2]),
        shared=shared[None] + 0.1,
        shared_weight=np.array([0.01, 0.02]),
    )
    return Example(unit, pieces, priors, shared, local)


@cache
def residuals():
    """Errors of one vector of variables, with those of the priors: a plain function."""
    unit, pieces, priors, shared, local = example()
    k = len(shared)

    def of(variables):
        shared, own = variables[:k], variables[k:].reshape(local.shape)
        errors = []
        for p in range(len(own)):
            piece = jax.tree.map(lambda leaf, p=p: jnp.asarray(leaf[p]), pieces)
            channels = simulate(unit, shared, own[p], piece)[1]
            errors.append((piece.weight * (channels - piece.values)).reshape(-1))
            errors.append(np.sqrt(priors.local_weight) * (own[p] - priors.local[0, p]))
        errors.append(np.sqrt(priors.shared_weight) * (shared - priors.shared[0]))
        return jnp.concatenate(errors)

    return jax.jit(lambda variables: (of(variables), jax.jacfwd(of)(variables)))


@cache
def equations():
    """Normal equations of two starts."""
    unit, pieces, priors, *_ = example()
    program = eqx.filter_jit(normal_equations)
    priors = priors._replace(
        local=np.repeat(priors.local, 2, axis=0), shared=np.repeat(priors.shared, 2, axis=0)
    )
    return lambda shared, local: program(unit, shared, local, pieces, priors)


def equations_at(shared: np.ndarray, local: np.ndarray) -> Normal:
    """Of one start."""
    found = equations()(np.stack([shared, shared + 1]), np.stack([local, local - 1]))
    return jax.tree.map(lambda leaf: np.asarray(leaf[:1]), found)


def variables(shared: np.ndarray, local: np.ndarray) -> np.ndarray:
    return np.concatenate([shared, local.reshape(-1)])


def dense(normal: Normal, start: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """J'J and J'r of all variables, from their blocks."""
    blocks, cross, shared = (
        np.asarray(part)[start]
        for part in (normal.local_local, normal.local_shared, normal.shared_shared)
    )
    (pieces, q, k) = cross.shape
    both = np.zeros((k + pieces * q,) * 2)
    both[:k, :k] = shared
    for p in range(pieces):
        own = slice(k + p * q, k + (p + 1) * q)
        both[own, own], both[own, :k], both[:k, own] = blocks[p], cross[p], cross[p].T
    right = variables(np.asarray(normal.shared)[start], np.asarray(normal.local)[start])
    return both, right


def test_simulation_equals_a_solver_of_differential_equations():
    panel, states = oscillators(0, (300,), gap=0.005)
    unit = make_unit(panel)
    pieces = cut(unit.scales.table.scale(panel), 300).pieces
    scale = np.array(unit.scales.states.state_scale)
    shared = jnp.asarray(as_shared(unit, np.array([STIFFNESS, DAMPING])))
    piece = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), pieces)
    start = jnp.asarray(states[0, 0] / scale)
    found, channels = map(np.asarray, eqx.filter_jit(simulate)(unit, shared, start, piece))
    np.testing.assert_allclose(found[:300] * scale, states[0], atol=1e-4)
    np.testing.assert_array_equal(found[300:], np.broadcast_to(found[299], found[300:].shape))
    shown = unit.scales.table.unscale(channels)[:300]
    np.testing.assert_allclose(shown[:, 0], states[0, :, 0], atol=1e-4)


def test_normal_equations_are_those_of_all_errors():
    _, _, _, shared, local = example()
    found = equations_at(shared, local)
    error, jacobian = map(np.asarray, residuals()(variables(shared, local)))
    both, right = dense(found)
    np.testing.assert_allclose(found.cost[0], error @ error, rtol=1e-10)
    np.testing.assert_allclose(both, jacobian.T @ jacobian, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(right, jacobian.T @ error, rtol=1e-8, atol=1e-10)


def test_the_minimum_is_that_of_a_general_solver_from_every_start():
    _, _, _, shared, local = example()
    starts = np.stack([shared, shared + np.array([0.3, -0.2])])
    end = minimise(equations(), starts, np.stack([local, local]), iterations=100, tolerance=1e-15)
    wanted = least_squares(
        lambda x: np.asarray(residuals()(x)[0]),
        variables(shared, local),
        jac=lambda x: np.asarray(residuals()(x)[1]),  # type: ignore[arg-type]
        xtol=1e-14,
        ftol=1e-14,
        gtol=1e-14,
    )
    for start in (0, 1):
        found = variables(end.shared[start], end.local[start])
        np.testing.assert_allclose(found, wanted.x, atol=1e-6)
        np.testing.assert_allclose(end.normal.cost[start], 2 * wanted.cost, rtol=1e-9)


@pytest.fixture(scope="module")
def three_series() -> tuple[Any, Panel, np.ndarray, Guess, Fit]:
    """A fit of three pieces, which are filled to four."""
    panel, states = oscillators(3, (30, 28, 30), error=0.01)
    unit = make_unit(panel)
    scaled = unit.scales.table.scale(panel)
    states = states / np.array(unit.scales.states.state_scale)
    wrong = states + 0.5 * np.random.default_rng(0).standard_normal(states.shape)
    shared = as_shared(unit, np.array([0.7 * STIFFNESS, 3 * DAMPING]))
    guess = Guess(shared, wrong, np.zeros((3, 0)))
    return unit, scaled, states, guess, shoot(unit, scaled, [guess], length=30, iterations=40)


def test_shooting_recovers_constants_and_states(three_series):
    unit, scaled, states, _, fit = three_series
    np.testing.assert_allclose(physical(unit, fit.guess.shared), [4.0, 0.3], rtol=0.03)
    for i, rows in enumerate(scaled.lengths):
        np.testing.assert_allclose(fit.guess.states[i, :rows], states[i, :rows], atol=0.05)
    scale = unit.scales.table.channel_scale[0]
    np.testing.assert_allclose(fit.errors * scale, 0.01, rtol=0.3)


def test_pieces_that_fill_a_number_change_nothing(three_series):
    unit, scaled, _, guess, fit = three_series
    more = shoot(unit, scaled, [guess], length=30, iterations=40, least_pieces=5)
    np.testing.assert_allclose(more.guess.shared, fit.guess.shared, rtol=1e-9)
    np.testing.assert_allclose(more.guess.states, fit.guess.states, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(more.errors, fit.errors, rtol=1e-9)
    np.testing.assert_allclose(more.covariance, fit.covariance, rtol=1e-6)


@pytest.mark.parametrize("error", [0.1, 1e-3])
def test_what_the_data_do_not_tell_stays_uncertain_however_small_the_errors(error):
    """Of a hidden state's factor and that of its drive the data tell the product alone."""
    rng, rows, a, c, m = np.random.default_rng(0), 200, 0.5, 1.0, 2.0
    gap = 0.1
    u = np.repeat(rng.uniform(-1, 1, rows // 10), 10)
    x, h, xs = 0.0, 0.0, []
    for k in range(rows):
        xs.append(x)
        for _ in range(50):
            x, h = x + gap / 50 * (m * h - x), h + gap / 50 * (a * u[k] - c * h)
    values = np.array(xs)[:, None] + error * np.std(xs) * rng.standard_normal((rows, 1))
    series = [Series("one", gap * np.arange(rows), values, u[:, None])]
    panel = Panel.from_series(series, ["x"], ["u"])
    text = "control u\nx' = ?m*h - x\nh' = ?a*u - ?c*h\nobserve x\nunknown ?a, ?c, ?m constant\n"
    unit = make_unit(panel, text, substeps=4, control_hold="previous")
    scaled = unit.scales.table.scale(panel)
    shared = as_shared(unit, 1.2 * np.array([m, a, c]))
    guess = Guess(shared, np.zeros((1, rows, 2)), np.zeros((1, 0)))
    fit = shoot(unit, scaled, [guess], length=rows, iterations=100)
    found = physical(unit, fit.guess.shared)
    share = np.sqrt(np.diagonal(fit.covariance)) / np.abs(fit.guess.shared)
    assert found[0] * found[1] == pytest.approx(a * m, rel=max(error, 0.01))
    assert (share[:2] > 30).all()
    assert share[2] < max(error, 0.01)
