"""Constant unknowns and a start state that bring a solution of the equations close to measurements.

The solver is Runge-Kutta of order four with given steps: for a block of epidemics, its slopes
take a seventh of the time that they take through an adaptive solver, all of whose origins wait for
the slowest.
All functions take one origin and are mapped over blocks of one size; they run in double precision,
because the last digits of a residual decide where least squares end.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from physsm.physics.system import System

Numbers = Array | np.ndarray

BLOCK = 64  # origins fitted at once
_FIT_STEPS = 40
_TOLERANCE = 1e-7  # of a scale
_ROUNDING = 1e-14  # of the largest product of slopes


class Units(NamedTuple):
    """What variables of a fit are counted in and from: the scale of each state, and of each unknown
    (before `constrain`) its usual value and a considerable change of it.
    """

    scale: Float[Numbers, " states"]
    raw: Float[Numbers, " unknowns"]
    change: Float[Numbers, " unknowns"]
    prior: Float[Numbers, ""]


class Measured(NamedTuple):
    """The last rows of a history: states (0 where not `seen`), steps between the rows, and a guess
    of the state at the first of them.
    """

    states: Float[Numbers, "*block rows states"]
    seen: Float[Numbers, "*block rows states"]
    length: Float[Numbers, "*block steps"]
    control: Float[Numbers, "*block steps controls"]
    at: Int[Numbers, "*block rows"]
    guess: Float[Numbers, "*block states"]


class Range(NamedTuple):
    """What states are held in."""

    low: Float[Numbers, "*block states"]
    high: Float[Numbers, "*block states"]


class Shot(NamedTuple):
    """Fitted unknowns with their standard deviations (NaN without a surplus of measurements), and
    the state at the last row.
    """

    theta: Float[Numbers, "*block unknowns"]
    std: Float[Numbers, "*block unknowns"]
    end: Float[Numbers, "*block states"]


def solve(
    system: System,
    theta: Float[Numbers, " unknowns"],
    start: Float[Numbers, " states"],
    length: Float[Numbers, " steps"],
    control: Float[Numbers, "steps controls"],
    within: Range,
) -> tuple[Float[Array, "nodes states"], Bool[Array, " nodes"]]:
    """The states at the start and after each step, and whether they had to be held in the range
    until then.
    """

    def step(carry, given):
        z, was_held = carry
        h, u = given
        k1 = system.drift(theta, z, u)
        k2 = system.drift(theta, z + h / 2 * k1, u)
        k3 = system.drift(theta, z + h / 2 * k2, u)
        k4 = system.drift(theta, z + h * k3, u)
        moved = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        moved = jnp.asarray(jnp.where(jnp.isfinite(moved), moved, within.high))
        held = jnp.clip(moved, within.low, within.high)
        after = held, was_held | jnp.any(held != moved)
        return after, after

    _, (states, held) = lax.scan(step, (start, jnp.zeros((), bool)), (length, control))
    return jnp.concatenate([start[None], states]), jnp.concatenate([jnp.zeros(1, bool), held])


def _unknowns(system: System, y: Float[Array, " unknowns"], units: Units) -> Array:
    return system.constrain(units.raw + units.change * y)


def _misfit(
    system: System,
    y: Float[Array, " variables"],
    measured: Measured,
    units: Units,
    within: Range,
) -> tuple[Float[Array, "rows states"], Float[Array, " states"]]:
    """Solution minus measurements at the rows, in scales, and the last state.

    `y` holds the start state, in scales from its guess, then the unknowns in their changes.
    """
    n = len(system.states)
    theta = _unknowns(system, y[n:], units)
    start = measured.guess + units.scale * y[:n]
    states, _ = solve(system, theta, start, measured.length, measured.control, within)
    at_rows = states[jnp.asarray(measured.at)]
    misfit = (at_rows - measured.states) / units.scale[None]
    return jnp.asarray(measured.seen * misfit), at_rows[-1]


def _minimise(residual, y: Array) -> Array:
    """The best found is returned even where the steps did not suffice."""
    found = optx.least_squares(
        lambda y, _: residual(y),
        optx.LevenbergMarquardt(rtol=_TOLERANCE, atol=_TOLERANCE),
        y,
        max_steps=_FIT_STEPS,
        throw=False,
    ).value
    return jnp.where(jnp.isfinite(found).all(), found, y)


def _fit_one(system: System, measured: Measured, units: Units, within: Range) -> Shot:
    n, k = len(system.states), len(system.unknowns)

    def residual(y):
        misfit, end = _misfit(system, y, measured, units, within)
        found = jnp.concatenate([misfit.reshape(-1), jnp.sqrt(units.prior) * y[n:]])
        return found, (found, end)

    y = _minimise(lambda y: residual(y)[0], jnp.zeros(n + k, measured.states.dtype))
    slopes, (left, end) = jax.jacfwd(residual, has_aux=True)(y)
    surplus = measured.seen.sum() - (n + k)
    noise = jnp.sqrt((left**2).sum() / jnp.maximum(surplus, 1))
    information = slopes.T @ slopes
    # A little more, so that what is not determined has a large variance instead of none.
    information = information + _ROUNDING * jnp.trace(information) * jnp.eye(n + k)
    spread = noise * jnp.sqrt(jnp.diagonal(jnp.linalg.inv(information)))[n:]
    theta, std = jax.jvp(lambda v: _unknowns(system, v, units), (y[n:],), (spread,))
    return Shot(theta, jnp.where(surplus > 0, jnp.abs(std), jnp.nan), end)


@eqx.filter_jit
def fit_block(system: System, measured: Measured, units: Units, within: Range) -> Shot:
    """Fit unknowns and start of each origin of a block by itself."""
    return jax.vmap(lambda one: _fit_one(system, one, units, within))(measured)


@eqx.filter_jit
def fit_together(
    system: System, measured: Measured, units: Units, within: Range
) -> Float[Array, " unknowns"]:
    """One set of unknowns for all origins of a block, each with a start of its own; in terms of
    `units`.
    """
    block, n = measured.guess.shape

    def residual(y):
        starts, shared = y[: block * n].reshape(block, n), y[block * n :]

        def one(start, given):
            return _misfit(system, jnp.concatenate([start, shared]), given, units, within)[0]

        misfit = jax.vmap(one)(starts, measured).reshape(-1)
        return jnp.concatenate([misfit, jnp.sqrt(units.prior) * shared])

    y = jnp.zeros(block * n + len(system.unknowns), measured.states.dtype)
    return _minimise(residual, y)[block * n :]


@eqx.filter_jit
def solve_block(
    system: System,
    theta: Float[Numbers, "block unknowns"],
    start: Float[Numbers, "block states"],
    length: Float[Numbers, "block steps"],
    control: Float[Numbers, "block steps controls"],
    within: Range,
) -> tuple[Float[Array, "block nodes states"], Bool[Array, "block nodes"]]:
    """`solve` for a block, each origin with a range of its own."""
    return jax.vmap(lambda *one: solve(system, *one))(theta, start, length, control, within)


@eqx.filter_jit
def linear_in_unknowns(
    system: System,
    states: Float[Numbers, "points states"],
    controls: Float[Numbers, "points controls"],
) -> tuple[Float[Array, "points states"], Float[Array, "points states unknowns"]]:
    """The drift is `known + factors @ theta`: both at given points."""
    nothing = jnp.zeros(len(system.unknowns), jnp.result_type(states))

    def one(z, u):
        known = system.drift(nothing, z, u)
        return known, jax.jacfwd(lambda theta: system.drift(theta, z, u))(nothing)

    return jax.vmap(one)(states, controls)
