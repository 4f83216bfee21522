"""Trajectory fit: constant unknowns and an initial state by nonlinear least squares.

The solver is Runge-Kutta of order four with given steps. For a block of epidemics its Jacobian
takes a seventh of the time of an adaptive solver, where all origins wait for the slowest.

Functions of one origin are mapped over blocks of one size. They run in double precision, because
the last digits of a residual decide where the minimisation ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from physsm._programs import Program, serialisable
from physsm._values import Panel
from physsm.models._baseline.state_columns import Columns, TrainingStatistics
from physsm.physics.bounds import limits
from physsm.physics.constrain import from_bounded, to_bounded
from physsm.physics.system import System

Numbers = Array | np.ndarray

BLOCK = 64  # origins fitted at once
_FIT_STEPS = 40
_TOLERANCE = 1e-7  # of a scale
_FIRST_DAMPING, _MOST_DAMPING = 1e-2, 1e12  # of the diagonal of the information matrix
_LEAST_DAMPING = 1e-12
_EASE = 4.0  # change of the damping after a step
_ROUNDING = 1e-14  # of the trace of the information matrix
_RIDGE = 1e-6  # for unknowns that the regression cannot distinguish
_SMALLEST = 0.01  # least change of an unknown, in its natural size
_MOST_POINTS = 5000  # of the regression for the initial unknowns


class FitScales(NamedTuple):
    """Scales of the variables of a fit: of each state, and of each unknown.

    An unknown before it is mapped into its bounds is `raw + change * y`, in its natural `size`.
    `prior` is the weight of the squares of y.
    """

    scale: Float[Numbers, " states"]
    size: Float[Numbers, " unknowns"]
    raw: Float[Numbers, " unknowns"]
    change: Float[Numbers, " unknowns"]
    prior: Float[Numbers, ""]


class Measurements(NamedTuple):
    """Measured states at the last time steps of a history, and the solver steps between them.

    `states` are 0 where `seen` is 0. Measurement k lies at the solver's node `at[k]`. `guess` is an
    estimate of the state at the first measurement.
    """

    states: Float[Numbers, "*block times states"]
    seen: Float[Numbers, "*block times states"]
    length: Float[Numbers, "*block steps"]
    control: Float[Numbers, "*block steps controls"]
    at: Int[Numbers, "*block times"]
    guess: Float[Numbers, "*block states"]


class StateRange(NamedTuple):
    """Range that states are clipped to."""

    low: Float[Numbers, "*block states"]
    high: Float[Numbers, "*block states"]


class TrajectoryFit(NamedTuple):
    """Fitted unknowns, their standard errors, and the state at the last time step.

    Standard errors are NaN where there are no more measurements than variables.
    """

    theta: Float[Numbers, "*block unknowns"]
    std: Float[Numbers, "*block unknowns"]
    end: Float[Numbers, "*block states"]


serialisable(TrajectoryFit)


def _compiled(function: Callable[..., Any], system: System) -> Program:
    """A function of a system and arrays, compiled."""
    identity = f"{function.__module__}.{function.__qualname__} {system.text}"
    return Program(partial(function, system), identity, quick=True)


def solve(
    system: System,
    theta: Float[Numbers, " unknowns"],
    start: Float[Numbers, " states"],
    length: Float[Numbers, " steps"],
    control: Float[Numbers, "steps controls"],
    within: StateRange,
) -> tuple[Float[Array, "nodes states"], Bool[Array, " nodes"]]:
    """States at the start and after each step, and whether any was clipped until then."""

    def step(carry, inputs):
        z, was_clipped = carry
        h, u = inputs
        k1 = system.drift(theta, z, u)
        k2 = system.drift(theta, z + h / 2 * k1, u)
        k3 = system.drift(theta, z + h / 2 * k2, u)
        k4 = system.drift(theta, z + h * k3, u)
        moved = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        moved = jnp.asarray(jnp.where(jnp.isfinite(moved), moved, within.high))
        inside = jnp.clip(moved, within.low, within.high)
        after = inside, was_clipped | jnp.any(inside != moved)
        return after, after

    _, (states, clipped) = lax.scan(step, (start, jnp.zeros((), bool)), (length, control))
    return jnp.concatenate([start[None], states]), jnp.concatenate([jnp.zeros(1, bool), clipped])


def _unknowns(system: System, y: Float[Array, " unknowns"], scales: FitScales) -> Array:
    bounds = [unknown.bounds for unknown in system.unknowns]
    return to_bounded(jnp.asarray(scales.raw + scales.change * y), bounds, scales.size)


def _residuals(
    system: System,
    y: Float[Array, " variables"],
    measured: Measurements,
    scales: FitScales,
    within: StateRange,
) -> tuple[Float[Array, "times states"], Float[Array, " states"]]:
    """Scaled differences of solution and measurements, and the last state.

    `y` holds the initial state, relative to its guess, then the unknowns; both are scaled.
    """
    n = len(system.states)
    theta = _unknowns(system, y[n:], scales)
    start = measured.guess + scales.scale * y[:n]
    states, _ = solve(system, theta, start, measured.length, measured.control, within)
    at_times = states[jnp.asarray(measured.at)]
    residuals = (at_times - measured.states) / scales.scale[None]
    return jnp.asarray(measured.seen * residuals), at_times[-1]


class Minimum(NamedTuple):
    """The best point of a minimisation: variables, residuals, their Jacobian, further results of
    the residuals' function there, and the sum of squares.
    """

    y: Float[Array, " variables"]
    residuals: Float[Array, " residuals"]
    jacobian: Float[Array, "residuals variables"]
    more: Array
    cost: Float[Array, ""]


def _minimise(residual: Callable[[Array], tuple[Array, Array]], y: Array) -> Minimum:
    """Levenberg-Marquardt from `y`; the best point where the steps do not suffice.

    `residual` returns residuals and further results. It occurs once in the program, because
    compiling it takes longer than running it.
    """

    def point(y: Array) -> Minimum:
        def of(y: Array):
            residuals, more = residual(y)
            return residuals, (residuals, more)

        jacobian, (residuals, more) = jax.jacfwd(of, has_aux=True)(y)
        return Minimum(y, residuals, jacobian, more, (residuals**2).sum())

    def step(state):
        best, trial, damping, number, _ = state
        new = point(trial)
        is_better = (new.cost < best.cost) & jnp.isfinite(new.jacobian).all()
        moved = jnp.abs(new.y - best.y) <= _TOLERANCE * (1 + jnp.abs(new.y))
        gained = best.cost - new.cost <= _TOLERANCE * (1 + new.cost)
        is_over = is_better & moved.all() & gained & (number > 0)
        best = jax.tree.map(lambda a, b: jnp.where(is_better, a, b), new, best)
        damping = jnp.where(is_better, damping / _EASE, damping * _EASE)
        information = best.jacobian.T @ best.jacobian
        size = jnp.diagonal(information)
        scale = damping * (size + _ROUNDING * size.sum()) + _LEAST_DAMPING
        change = jnp.linalg.solve(information + jnp.diag(scale), best.jacobian.T @ best.residuals)
        is_stuck = damping > _MOST_DAMPING
        return best, best.y - change, damping, number + 1, is_over | is_stuck

    shapes = jax.eval_shape(point, y)
    start = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    start = start._replace(y=y, cost=jnp.array(jnp.inf, y.dtype))
    first = (start, y, jnp.array(_FIRST_DAMPING, y.dtype), jnp.zeros((), int), jnp.zeros((), bool))
    return lax.while_loop(lambda state: (state[3] < _FIT_STEPS) & ~state[4], step, first)[0]


def _fit_one(
    system: System, measured: Measurements, scales: FitScales, within: StateRange
) -> TrajectoryFit:
    n, k = len(system.states), len(system.unknowns)

    def residual(y):
        residuals, end = _residuals(system, y, measured, scales, within)
        return jnp.concatenate([residuals.reshape(-1), jnp.sqrt(scales.prior) * y[n:]]), end

    best = _minimise(residual, jnp.zeros(n + k, measured.states.dtype))
    surplus = measured.seen.sum() - (n + k)
    noise = jnp.sqrt(best.cost / jnp.maximum(surplus, 1))
    information = best.jacobian.T @ best.jacobian
    # A small diagonal, so that an undetermined variable has a large variance instead of none.
    information = information + _ROUNDING * jnp.trace(information) * jnp.eye(n + k)
    std_of_y = noise * jnp.sqrt(jnp.diagonal(jnp.linalg.inv(information)))[n:]
    theta, std = jax.jvp(lambda v: _unknowns(system, v, scales), (best.y[n:],), (std_of_y,))
    return TrajectoryFit(theta, jnp.where(surplus > 0, jnp.abs(std), jnp.nan), best.more)


def fit_block(
    system: System, measured: Measurements, scales: FitScales, within: StateRange
) -> TrajectoryFit:
    """Unknowns and end state of each origin of a block, fitted by itself."""
    return _compiled(_fit_block, system)(measured, scales, within)


def _fit_block(
    system: System, measured: Measurements, scales: FitScales, within: StateRange
) -> TrajectoryFit:
    return jax.vmap(lambda one: _fit_one(system, one, scales, within))(measured)


def fit_together(
    system: System, measured: Measurements, scales: FitScales, within: StateRange
) -> Float[Array, " unknowns"]:
    """One set of scaled unknowns for all origins of a block, each with its own initial state."""
    return _compiled(_fit_together, system)(measured, scales, within)


def _fit_together(
    system: System, measured: Measurements, scales: FitScales, within: StateRange
) -> Array:
    block, n = measured.guess.shape

    def residual(y):
        starts, shared = y[: block * n].reshape(block, n), y[block * n :]

        def one(start, given):
            return _residuals(system, jnp.concatenate([start, shared]), given, scales, within)[0]

        residuals = jax.vmap(one)(starts, measured).reshape(-1)
        return jnp.concatenate([residuals, jnp.sqrt(scales.prior) * shared]), jnp.zeros(())

    y = jnp.zeros(block * n + len(system.unknowns), measured.states.dtype)
    return _minimise(residual, y).y[block * n :]


def solve_block(
    system: System,
    theta: Float[Numbers, "block unknowns"],
    start: Float[Numbers, "block states"],
    length: Float[Numbers, "block steps"],
    control: Float[Numbers, "block steps controls"],
    within: StateRange,
) -> tuple[Float[Array, "block nodes states"], Bool[Array, "block nodes"]]:
    """`solve` for a block, each origin with its own range."""
    return _compiled(_solve_block, system)(theta, start, length, control, within)


def _solve_block(system: System, *block: Any) -> tuple[Array, Array]:
    return jax.vmap(lambda *one: solve(system, *one))(*block)


def linear_in_unknowns(
    system: System,
    states: Float[Numbers, "points states"],
    controls: Float[Numbers, "points controls"],
) -> tuple[Float[Array, "points states"], Float[Array, "points states unknowns"]]:
    """The drift at given points as `known + factors @ theta`."""
    return _compiled(_linear_in_unknowns, system)(states, controls)


def _linear_in_unknowns(system: System, states: Array, controls: Array) -> tuple[Array, Array]:
    zeros = jnp.zeros(len(system.unknowns), jnp.result_type(states))

    def one(z, u):
        known = system.drift(zeros, z, u)
        return known, jax.jacfwd(lambda theta: system.drift(theta, z, u))(zeros)

    return jax.vmap(one)(states, controls)


def initial_unknowns(
    system: System,
    train: Panel,
    columns: Columns,
    statistics: TrainingStatistics,
    states: Float[np.ndarray, "series steps states"],
) -> tuple[Float[np.ndarray, " unknowns"], Float[np.ndarray, " unknowns"]]:
    """Unknowns by linear regression of the slopes between time steps, and their natural sizes.

    The natural size of an unknown is the change that moves a state by its scale in a median gap.
    """
    gaps = np.diff(train.times, axis=1)
    series, step = np.nonzero(gaps > 0)
    if not len(step):
        return statistics.raw, np.ones_like(statistics.raw)
    chosen = np.linspace(0, len(step) - 1, min(_MOST_POINTS, len(step))).astype(np.int64)
    series, step = series[chosen], step[chosen]
    before, after = states[series, step], states[series, step + 1]
    slope = (after - before) / gaps[series, step, None]
    u = train.controls[series, step][:, list(columns.control)]
    with jax.enable_x64(True):
        known, factors = map(np.asarray, linear_in_unknowns(system, (before + after) / 2, u))
    per_gap = train.median_gap / statistics.scale
    target = ((slope - known) * per_gap).reshape(-1)
    features = (factors * per_gap[:, None]).reshape(len(target), len(system.unknowns))
    usable = np.isfinite(target) & np.isfinite(features).all(1)
    target, features = target[usable], features[usable]
    size = np.sqrt((features**2).mean(0)) if len(features) else np.zeros_like(statistics.raw)
    size = np.where(size > 0, size, 1)
    gram = (features / size).T @ (features / size) + _RIDGE * len(features) * np.eye(len(size))
    if not len(features):
        return statistics.raw, 1 / size
    return np.linalg.solve(gram, (features / size).T @ target) / size, 1 / size


def unconstrained(system: System, theta: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Unknowns before they are mapped into their bounds, in their natural sizes, moved inside the
    bounds by at least a small change.
    """
    bounds = [unknown.bounds for unknown in system.unknowns]
    low, high = map(np.array, limits(bounds))
    inset = np.minimum(_SMALLEST * size, 0.01 * (high - low))
    return from_bounded(np.clip(theta, low + inset, high - inset), bounds, size)


def typical_changes(system: System, raw: np.ndarray) -> np.ndarray:
    """Typical change of each unknown before it is mapped into its bounds: its own size, and at
    least a share of its natural one.

    An unknown with a bound is about a logarithm near it, so that its change is at least 1.
    """
    bounded = np.array([bool(unknown.bounds) for unknown in system.unknowns], bool)
    return np.where(bounded, np.maximum(raw, 1), np.maximum(np.abs(raw), _SMALLEST))
