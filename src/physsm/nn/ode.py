"""Ordinary differential equations, solved by Dopri5 (Dormand and Prince, 1980).

A solution starts at time 0 and is evaluated at any times, in any order. Step sizes adapt to the
tolerances, and steps end at nodes. Nodes are the multiples of a time, so that the solution up to
some time does not depend on later times at which it is evaluated; or they are given times, at which
the drift has kinks.

Why not Diffrax: a gradient through its solver takes ten seconds to trace and to compile, most of
the time of a short training. Here gradients are those of the steps that were taken, by a loop over
the stored steps. The steps are those of Diffrax, and the tests compare the two; but the first one
follows from the drift, where Diffrax takes 0.01.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float
from pydantic import BaseModel, ConfigDict, Field

Drift = Callable[[Array, Array], Array]  # of time and state

_BLOCK = 1024  # most times of one call of the solver
_ROUNDING = 1e-3  # tolerance of a node's time, relative to the distance of nodes

# The tableau: weights of earlier slopes at each stage, times of the stages, weights of the error
# estimate, and weights of the state in the middle of a step (Shampine's).
_STAGES = np.array(
    [
        [0, 0, 0, 0, 0, 0, 0],
        [1 / 5, 0, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
    ]
)
_TIMES = np.array([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
_ERROR = _STAGES[6] - np.array(
    [1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60]
)
_MIDDLE = (
    np.array(
        [
            6025192743 / 30085553152,
            0,
            51252292925 / 65400821598,
            -2691868925 / 45128329728,
            187940372067 / 1594534317056,
            -1776094331 / 19743644256,
            11237099 / 235043384,
        ]
    )
    / 2
)
_SAFETY, _LEAST_FACTOR, _MOST_FACTOR = 0.9, 0.2, 10.0  # of the next step, relative to the last
_ORDER = 5


class SolverSettings(BaseModel):
    """Relative and absolute tolerance of a step, and the largest number of steps of a solution."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rtol: float = Field(default=1e-3, gt=0, le=1)
    atol: float = Field(default=1e-4, gt=0)
    max_steps: int = Field(default=512, ge=8, le=100_000)


class Solution(NamedTuple):
    """States at the requested times. Where the solver did not reach a time, `is_reached` is False
    and the state is the last one that it reached.
    """

    states: Float[Array, "times n"]
    is_reached: Bool[Array, " times"]


Nodes = float | Float[np.ndarray, ""] | Float[Array, "*nodes"]


def solve_ode(
    drift: Drift,
    start: Float[Array, " n"],
    times: Float[Array, " times"],
    settings: SolverSettings,
    nodes: Nodes,
) -> Solution:
    """The solution of z' = drift(t, z) from `start` at time 0, differentiable by backpropagation
    through the solver's steps. An array of nodes must be sorted.

    More than 1,024 times are solved in blocks, each with the `max_steps` of the settings, so that
    memory does not grow with the number of times.
    """
    if len(times) <= _BLOCK:
        return _solve(drift, start, times, settings, nodes)
    order = jnp.argsort(times)
    solution = _solve_in_blocks(drift, start, times[order], settings, nodes)
    rank = jnp.argsort(order)
    return Solution(solution.states[rank], solution.is_reached[rank])


def _solve_in_blocks(
    drift: Drift, start: Array, times: Array, settings: SolverSettings, nodes: Nodes
) -> Solution:
    """The solution at sorted times."""
    padding = jnp.broadcast_to(times[-1], (-len(times) % _BLOCK,))
    blocks = jnp.concatenate([times, padding]).reshape(-1, _BLOCK)

    def block(carry: tuple[Array, Array, Array], times: Array) -> tuple[Any, Solution]:
        origin, state, is_reached = carry
        here = nodes if _is_spacing(nodes) else nodes - origin
        part = _solve(lambda t, z: drift(origin + t, z), state, times - origin, settings, here)
        part = part._replace(is_reached=part.is_reached & is_reached)
        return (times[-1], part.states[-1], part.is_reached[-1]), part

    carry = (jnp.zeros((), times.dtype), start, jnp.ones((), bool))
    _, parts = lax.scan(block, carry, blocks)
    states = parts.states.reshape(-1, start.shape[0])[: len(times)]
    return Solution(states, parts.is_reached.reshape(-1)[: len(times)])


def _solve(
    drift: Drift, start: Array, times: Array, settings: SolverSettings, nodes: Nodes
) -> Solution:
    times = lax.stop_gradient(times)
    last, most = jnp.maximum(jnp.max(times), 0), settings.max_steps
    if _is_spacing(nodes):
        nodes = jnp.asarray(nodes, times.dtype)
        end = nodes * jnp.maximum(jnp.ceil(last / nodes - _ROUNDING), 1)
        rounding = 10 * _ROUNDING * nodes  # rounding may put a last time after its node
    else:
        end, rounding = last, 0.0
        most += jnp.shape(nodes)[0]
    origin = jnp.zeros((), times.dtype)
    converted = eqx.filter_closure_convert(drift, origin, start)
    steps = _integrate((converted, start), end, nodes, settings, most)
    reached = steps.ends[-1]
    states = _evaluate(steps, jnp.clip(times, 0, reached))
    is_reached = (times <= reached) | ((reached >= end) & (times <= reached + rounding))
    return Solution(states, is_reached)


class _Steps(NamedTuple):
    """All tried steps. One that was rejected, or that comes after the end, has length 0.

    `polynomials` have the states within a step, lowest power of its part first. `number` is the
    number of tried steps.
    """

    starts: Float[Array, " most"]
    ends: Float[Array, " most"]
    polynomials: Float[Array, "most 5 n"]
    number: Array


def _evaluate(steps: _Steps, times: Float[Array, " times"]) -> Float[Array, "times n"]:
    """States at times, by the polynomial of the step that each lies in."""
    at = jnp.minimum(jnp.searchsorted(steps.ends, times), len(steps.ends) - 1)
    start, length = steps.starts[at], steps.ends[at] - steps.starts[at]
    part = (times - start) / jnp.where(length > 0, length, 1)
    powers = jnp.stack([jnp.ones_like(part), part, part**2, part**3, part**4], axis=1)
    return (powers[:, :, None] * steps.polynomials[at]).sum(1)


@eqx.filter_custom_vjp
def _integrate(
    differentiated: tuple[Any, Array], end: Array, nodes: Nodes, settings: SolverSettings, most: int
) -> _Steps:
    """The steps from time 0 to `end`, at most `most` of them."""
    return _all_steps(*differentiated, end, nodes, settings, most)


@_integrate.def_fwd
def _(
    perturbed: Any,
    differentiated: tuple[Any, Array],
    end: Array,
    nodes: Nodes,
    settings: SolverSettings,
    most: int,
) -> tuple[_Steps, _Steps]:
    steps = _all_steps(*differentiated, end, nodes, settings, most)
    return steps, steps


@_integrate.def_bwd
def _(
    steps: _Steps, slopes: _Steps, perturbed: Any, differentiated: tuple[Any, Array], *others: Any
) -> tuple[Any, Array]:
    """Backpropagation through the steps that were taken, from the last to the first."""
    drift, _ = differentiated
    arrays, static = eqx.partition(drift, perturbed[0])

    def back(carry: tuple[Array, Array, Any]) -> tuple[Array, Array, Any]:
        number, of_state, of_arrays = carry
        number = number - 1
        begin, length = steps.starts[number], steps.ends[number] - steps.starts[number]

        def step(arrays: Any, z: Array) -> tuple[Array, Array]:
            taken = _step(eqx.combine(arrays, static), begin, length, z)
            return taken.after, taken.polynomial

        _, pull = jax.vjp(step, arrays, steps.polynomials[number, 0])
        new_arrays, new_state = pull((of_state, slopes.polynomials[number]))
        # The polynomial of a step of length 0 is its state.
        unchanged = of_state + slopes.polynomials[number, 0]
        is_step = length > 0
        of_arrays = jax.tree.map(
            lambda total, new: total + jnp.where(is_step, new, 0), of_arrays, new_arrays
        )
        return number, jnp.asarray(jnp.where(is_step, new_state, unchanged)), of_arrays

    zeros = jax.tree.map(jnp.zeros_like, arrays)
    # Rows after the last step repeat its state: a time may lie in one of them.
    is_after = jnp.arange(len(steps.ends), dtype=jnp.int32) >= steps.number
    of_last = jnp.where(is_after[:, None], slopes.polynomials[:, 0], 0).sum(0)
    first = steps.number, of_last, zeros
    _, of_start, of_arrays = lax.while_loop(lambda carry: carry[0] > 0, back, first)
    return of_arrays, of_start


class _Step(NamedTuple):
    """The state after a step, its polynomial, and the estimate of its error."""

    after: Float[Array, " n"]
    polynomial: Float[Array, "5 n"]
    error: Float[Array, " n"]


def _step(drift: Drift, t: Array, length: Array, z: Float[Array, " n"]) -> _Step:
    """One step of Dopri5."""
    dtype = z.dtype

    def stage(slopes: Array, inputs: tuple[Array, Array, Array]) -> tuple[Array, None]:
        weights, time, place = inputs
        slope = drift(t + time * length, z + length * (weights @ slopes))
        return jnp.where(place[:, None], slope[None], slopes), None

    stages = (jnp.asarray(_STAGES, dtype), jnp.asarray(_TIMES, dtype), jnp.eye(7, dtype=bool))
    slopes, _ = lax.scan(stage, jnp.zeros((7, len(z)), dtype), stages)
    changes = length * slopes
    change = jnp.asarray(_STAGES[6], dtype) @ changes
    middle = jnp.asarray(_MIDDLE, dtype) @ changes
    first, last = changes[0], changes[6]
    polynomial = jnp.stack(
        [
            z,
            first,
            16 * middle - 5 * change - 4 * first + last,
            -32 * middle + 14 * change + 5 * first - 3 * last,
            16 * middle - 8 * change - 2 * first + 2 * last,
        ]
    )
    return _Step(z + change, polynomial, jnp.asarray(_ERROR, dtype) @ changes)


def _all_steps(
    drift: Drift, start: Array, end: Array, nodes: Nodes, settings: SolverSettings, most: int
) -> _Steps:
    zero = jnp.zeros((), end.dtype)
    first = _first_length(drift, start, settings).astype(end.dtype)
    steps = _Steps(
        starts=jnp.zeros(most, end.dtype),
        ends=jnp.zeros(most, end.dtype),
        polynomials=jnp.zeros((most, 5, len(start)), start.dtype),
        number=jnp.zeros((), jnp.int32),
    )

    def is_unfinished(carry: tuple[_Steps, Array, Array, Array]) -> Array:
        steps, t, _, _ = carry
        # Of a batch, all go on until the last one has ended; then no step changes the others.
        return eqxi.unvmap_any((t < end) & (steps.number < most))

    def advance(carry: tuple[_Steps, Array, Array, Array]) -> tuple[_Steps, Array, Array, Array]:
        steps, t, z, length = carry
        stop = jnp.minimum(jnp.minimum(t + length, _next_node(t, nodes)), end)
        tried = _step(drift, t, (stop - t).astype(z.dtype), z)
        error = _scaled_norm(tried.error, z, tried.after, settings)
        is_taken = (t < end) & (error < 1)
        factor = _SAFETY * error ** (-1 / _ORDER)
        factor = jnp.clip(factor, jnp.where(is_taken, 1.0, _LEAST_FACTOR), _MOST_FACTOR)
        still = jnp.concatenate([z[None], jnp.zeros((4, len(z)), z.dtype)])
        row = jnp.where(is_taken, tried.polynomial, still)
        after = jnp.where(is_taken, stop, t)
        at = eqxi.unvmap_max(steps.number)  # the same in all of a batch
        steps = _Steps(
            starts=_with_row(steps.starts, t, at),
            ends=_with_row(steps.ends, after, at),
            polynomials=_with_row(steps.polynomials, row, at),
            number=at + 1,
        )
        return steps, after, jnp.where(is_taken, tried.after, z), (stop - t) * factor

    carry = lax.while_loop(is_unfinished, advance, (steps, zero, start, first))
    steps, t, z, _ = carry
    # Rows after the last step repeat where it ended: a search finds no time after it.
    is_row = jnp.arange(most, dtype=jnp.int32) < steps.number
    still = jnp.concatenate([z[None], jnp.zeros((4, len(z)), z.dtype)])
    return steps._replace(
        starts=jnp.where(is_row, steps.starts, t),
        ends=jnp.where(is_row, steps.ends, t),
        polynomials=jnp.where(is_row[:, None, None], steps.polynomials, still[None]),
    )


def _with_row(rows: Array, row: Array, at: Array) -> Array:
    return lax.dynamic_update_index_in_dim(rows, row, at, 0)


def _next_node(t: Any, nodes: Any) -> Any:
    """The first node after `t`. A `t` that is a multiple up to rounding counts as that node."""
    if _is_spacing(nodes):
        return nodes * (jnp.floor(t / nodes + _ROUNDING) + 1)
    place = jnp.searchsorted(nodes, t, side="right")
    return jnp.where(place < len(nodes), nodes[jnp.minimum(place, len(nodes) - 1)], jnp.inf)


def _is_spacing(nodes: Any) -> bool:
    """Whether nodes are given by their distance."""
    return jnp.ndim(nodes) == 0


def _scaled_norm(values: Array, z: Array, other: Array, settings: SolverSettings) -> Array:
    """Root mean square in units of the tolerance; infinite where a value is not finite."""
    tolerance = settings.atol + settings.rtol * jnp.maximum(jnp.abs(z), jnp.abs(other))
    norm = jnp.sqrt(((values / tolerance) ** 2).mean())
    return jnp.where(jnp.isfinite(norm), jnp.maximum(norm, 1e-10), jnp.inf)


def _first_length(drift: Drift, z: Array, settings: SolverSettings) -> Float[Array, ""]:
    """The length of the first step, by the rule of Hairer, Nørsett and Wanner."""
    zero = jnp.zeros((), z.dtype)
    slope = drift(zero, z)
    size, speed = (_scaled_norm(x, z, z, settings) for x in (z, slope))
    guess = jnp.where((size < 1e-5) | (speed < 1e-5), 1e-6, 0.01 * size / speed)
    change = drift(guess, z + guess * slope) - slope
    largest = jnp.maximum(speed, _scaled_norm(change, z, z, settings) / guess)
    by_slopes = (0.01 / largest) ** (1 / _ORDER)
    # Where the drift at the guess is not finite, as behind the edge of a root, it was too long.
    return jnp.minimum(100 * guess, jnp.where(jnp.isfinite(largest), by_slopes, 1e-3 * guess))
