"""Ordinary differential equations by Dopri5: the only place that knows Diffrax.

A solution starts at time 0 and is asked for at any times, in any order. Steps adapt to the wanted
accuracy, and end at nodes: at the multiples of a time, so that the solution up to some time does
not depend on how much further it is asked for; or at given times, where the drift has kinks.
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

_BLOCK = 1024  # times that are solved for at once
_ROUNDING = 1e-3  # of a node


class SolverSettings(BaseModel):
    """Relative and absolute tolerance of a step, and the most steps of a solution."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rtol: float = Field(default=1e-3, gt=0, le=1)
    atol: float = Field(default=1e-4, gt=0)
    max_steps: int = Field(default=512, ge=8, le=100_000)


class Solution(NamedTuple):
    """States at the wanted times. Where the solver has not come that far, `is_reached` is False and
    the state is the last that it came to.
    """

    states: Float[Array, "times n"]
    is_reached: Bool[Array, " times"]


Nodes = float | Float[Array, " nodes"]


class _StepsToNodes(diffrax.PIDController):
    """Steps adapt to the error, and do not go beyond the next node."""

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
    """The first node after `t`; of multiples, after one that `t` is up to rounding, the next."""
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
    """The solution of z' = drift(t, z) from `start` at time 0; differentiable, by backpropagation
    through the solver's steps. Nodes that are an array are in order. More than a thousand times
    are solved for in blocks, each with the steps of the settings, so that memory does not grow with
    them.
    """
    if len(times) <= _BLOCK:
        return _solve(drift, start, times, settings, nodes)
    order = jnp.argsort(times)
    found = _solve_in_blocks(drift, start, times[order], settings, nodes)
    rank = jnp.argsort(order)
    return Solution(found.states[rank], found.is_reached[rank])


def _solve_in_blocks(
    drift: Drift, start: Array, times: Array, settings: SolverSettings, nodes: Nodes
) -> Solution:
    """At times that are in order."""
    padding = jnp.broadcast_to(times[-1], (-len(times) % _BLOCK,))
    blocks = jnp.concatenate([times, padding]).reshape(-1, _BLOCK)

    def block(carry: tuple[Array, Array, Array], times: Array) -> tuple[Any, Solution]:
        origin, state, is_reached = carry
        here = nodes if isinstance(nodes, float) else nodes - origin
        found = _solve(lambda t, z: drift(origin + t, z), state, times - origin, settings, here)
        found = found._replace(is_reached=found.is_reached & is_reached)
        return (times[-1], found.states[-1], found.is_reached[-1]), found

    carry = (jnp.zeros((), times.dtype), start, jnp.ones((), bool))
    _, found = jax.lax.scan(block, carry, blocks)
    states = found.states.reshape(-1, start.shape[0])[: len(times)]
    return Solution(states, found.is_reached.reshape(-1)[: len(times)])


def _solve(
    drift: Drift, start: Array, times: Array, settings: SolverSettings, nodes: Nodes
) -> Solution:
    last = jnp.maximum(jnp.max(times), 0)
    most = settings.max_steps
    if isinstance(nodes, float):
        end = nodes * jnp.maximum(jnp.ceil(last / nodes - _ROUNDING), 1)
        rounding = 10 * _ROUNDING * nodes  # a last time may lie a rounding after its node
    else:
        # Behind the last time is nothing, but a solver wants to go somewhere.
        end, rounding = jnp.where(last > 0, last, 1.0), 0.0
        most += jnp.shape(nodes)[0]
    found = diffrax.diffeqsolve(
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
    path = found.interpolation
    assert path is not None
    end = jax.lax.stop_gradient(path.t1)
    states = jax.vmap(path.evaluate)(jnp.clip(times, 0, end))
    return Solution(states, times <= end + rounding)
