"""Ordinary differential equations by Dopri5: the only place that knows Diffrax.

A solution starts at time 0 and is asked for at any times, in any order. Steps adapt to the wanted
accuracy, and end at the multiples of a `node`, so that the solution up to some time does not depend
on how much further it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float
from pydantic import BaseModel, ConfigDict, Field

Drift = Callable[[Array, Array], Array]  # of time and state

_BLOCK = 1024  # times that are solved for at once


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


class _StepsToNodes(diffrax.PIDController):
    """Steps adapt to the error, and do not go beyond the next multiple of `node`."""

    node: float = eqx.field(static=True, default=1.0)

    def init(self, terms: Any, t0: Any, *arguments: Any, **more: Any) -> Any:
        end, state = super().init(terms, t0, *arguments, **more)
        return self._clipped(t0, end), state

    def adapt_step_size(self, *arguments: Any, **more: Any) -> Any:
        keep, start, end, jumped, state, result = super().adapt_step_size(*arguments, **more)
        return keep, start, self._clipped(start, end), jumped, state, result

    def _clipped(self, start: Any, end: Any) -> Any:
        return jnp.minimum(end, _next_node(start, self.node))


def _next_node(t: Any, node: float) -> Any:
    """The first multiple after `t`; after one that is a multiple up to rounding, the next."""
    return node * (jnp.floor(t / node + 1e-3) + 1)


def solve_ode(
    drift: Drift,
    start: Float[Array, " n"],
    times: Float[Array, " times"],
    settings: SolverSettings,
    node: float,
) -> Solution:
    """The solution of z' = drift(t, z) from `start` at time 0; differentiable, by backpropagation
    through the solver's steps. More than a thousand times must be in order: they are solved for in
    blocks, each with the steps of the settings, so that memory does not grow with them.
    """
    if len(times) <= _BLOCK:
        return _solve(drift, start, times, settings, node)
    padding = jnp.broadcast_to(times[-1], (-len(times) % _BLOCK,))
    blocks = jnp.concatenate([times, padding]).reshape(-1, _BLOCK)

    def block(carry: tuple[Array, Array, Array], times: Array) -> tuple[Any, Solution]:
        origin, state, is_reached = carry
        found = _solve(lambda t, z: drift(origin + t, z), state, times - origin, settings, node)
        found = found._replace(is_reached=found.is_reached & is_reached)
        return (times[-1], found.states[-1], found.is_reached[-1]), found

    carry = (jnp.zeros((), times.dtype), start, jnp.ones((), bool))
    _, found = jax.lax.scan(block, carry, blocks)
    states = found.states.reshape(-1, start.shape[0])[: len(times)]
    return Solution(states, found.is_reached.reshape(-1)[: len(times)])


def _solve(
    drift: Drift, start: Array, times: Array, settings: SolverSettings, node: float
) -> Solution:
    last = jnp.maximum(jnp.max(times), 0)
    found = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, z, _: drift(t, z)),  # type: ignore[arg-type]
        diffrax.Dopri5(),
        jnp.zeros((), times.dtype),
        node * jnp.maximum(jnp.ceil(last / node - 1e-3), 1),
        None,
        start,
        saveat=diffrax.SaveAt(dense=True),
        stepsize_controller=_StepsToNodes(rtol=settings.rtol, atol=settings.atol, node=node),
        max_steps=settings.max_steps,
        throw=False,
    )
    path = found.interpolation
    assert path is not None
    end = jax.lax.stop_gradient(path.t1)
    # A last time may lie a rounding after its node.
    is_reached = times <= end + 1e-2 * node
    states = jax.vmap(path.evaluate)(jnp.clip(times, 0, end))
    return Solution(states, is_reached)
