"""Ordinary differential equations, solved by Dopri5. No other file imports Diffrax.

A solution starts at time 0 and is evaluated at any times, in any order. Step sizes adapt to the
tolerances, and steps end at nodes. Nodes are the multiples of a time, so that the solution up to
some time does not depend on later times at which it is evaluated; or they are given times, at which
the drift has kinks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float
from pydantic import BaseModel, ConfigDict, Field

Drift = Callable[[Array, Array], Array]  # of time and state

_BLOCK = 1024  # most times of one call of the solver
_ROUNDING = 1e-3  # tolerance of a node's time, relative to the distance of nodes


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


Nodes = float | Float[Array, " nodes"]


class _StepsToNodes(diffrax.PIDController):
    """Step sizes that adapt to the error and do not pass the next node."""

    nodes: Any = 1.0

    def init(self, terms: Any, t0: Any, *arguments: Any, **more: Any) -> Any:
        end, state = super().init(terms, t0, *arguments, **more)
        return self._clipped(t0, end), state

    def adapt_step_size(self, *arguments: Any, **more: Any) -> Any:
        keep, start, end, jumped, state, result = super().adapt_step_size(*arguments, **more)
        return keep, start, self._clipped(start, end), jumped, state, result

    def _clipped(self, start: Any, end: Any) -> Any:
        return jnp.minimum(end, _next_node(start, self.nodes))


def _next_node(t: Any, nodes: Any) -> Any:
    """The first node after `t`. A `t` that is a multiple up to rounding counts as that node."""
    if isinstance(nodes, float):
        return nodes * (jnp.floor(t / nodes + _ROUNDING) + 1)
    place = jnp.searchsorted(nodes, t, side="right")
    return jnp.where(place < len(nodes), nodes[jnp.minimum(place, len(nodes) - 1)], jnp.inf)


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
        here = nodes if isinstance(nodes, float) else nodes - origin
        part = _solve(lambda t, z: drift(origin + t, z), state, times - origin, settings, here)
        part = part._replace(is_reached=part.is_reached & is_reached)
        return (times[-1], part.states[-1], part.is_reached[-1]), part

    carry = (jnp.zeros((), times.dtype), start, jnp.ones((), bool))
    _, parts = jax.lax.scan(block, carry, blocks)
    states = parts.states.reshape(-1, start.shape[0])[: len(times)]
    return Solution(states, parts.is_reached.reshape(-1)[: len(times)])


def _solve(
    drift: Drift, start: Array, times: Array, settings: SolverSettings, nodes: Nodes
) -> Solution:
    last = jnp.maximum(jnp.max(times), 0)
    most = settings.max_steps
    if isinstance(nodes, float):
        end = nodes * jnp.maximum(jnp.ceil(last / nodes - _ROUNDING), 1)
        rounding = 10 * _ROUNDING * nodes  # rounding may put a last time after its node
    else:
        # The solver needs an interval that is not empty, also if the only time is 0.
        end, rounding = jnp.where(last > 0, last, 1.0), 0.0
        most += jnp.shape(nodes)[0]
    solved = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, z, _: drift(t, z)),  # type: ignore[arg-type]
        diffrax.Dopri5(),
        jnp.zeros((), times.dtype),
        end,
        None,
        start,
        saveat=diffrax.SaveAt(dense=True),
        stepsize_controller=_StepsToNodes(rtol=settings.rtol, atol=settings.atol, nodes=nodes),
        max_steps=most,
        throw=False,
    )
    trajectory = solved.interpolation
    assert trajectory is not None
    end = jax.lax.stop_gradient(trajectory.t1)
    states = jax.vmap(trajectory.evaluate)(jnp.clip(times, 0, end))
    return Solution(states, times <= end + rounding)
