"""The recurrence of a diagonal state-space model, x[i] = factor[i]*x[i-1] + gain[i]*b[i].

Complex arrays are packed: the last axis holds all real parts, then all imaginary parts, so that a
matrix product applies to them directly. Factors and gains depend on the gap before each step and
are as large as the states; the backward pass recomputes them instead of storing them.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physsm.nn.accumulate import accumulate, adjoints
from physsm.nn.discretise import (
    DISCRETISATIONS,
    Complex,
    Discrete,
    Discretisation,
    pack,
    unpack,
)
from physsm.nn.layers import on_last_axis


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def discretise(
    method: Discretisation,
    rate: Float[Array, " p2"],
    log_step: Float[Array, " p"],
    gaps: Float[Array, "*shape"],
) -> Discrete:
    """Factors and gains of the steps over the given gaps."""
    return _discretise(method, rate, log_step, gaps)


def _discretise(method: Discretisation, rate: Array, log_step: Array, gaps: Array) -> Discrete:
    gaps = gaps[..., None]
    step = gaps * on_last_axis(jnp.exp(log_step), gaps)
    return DISCRETISATIONS[method](unpack(on_last_axis(rate, gaps)), step)


def _discretise_forward(
    method: Discretisation, rate: Array, log_step: Array, gaps: Array
) -> tuple[Discrete, tuple[Array, ...]]:
    return _discretise(method, rate, log_step, gaps), (rate, log_step, gaps)


def _discretise_backward(
    method: Discretisation, saved: tuple[Array, ...], cotangent: Discrete
) -> tuple[Array, ...]:
    """Cotangents, summed over all steps by matrix products: on a CPU several times faster than
    reductions.
    """
    rate, log_step, gaps = saved
    speed, lengths = jnp.exp(log_step), gaps.reshape(-1, 1)
    step = lengths * speed[None]
    rates = Complex(*(jnp.broadcast_to(part[None], step.shape) for part in unpack(rate)))
    rows = jax.tree.map(lambda part: part.reshape(step.shape), cotangent)
    d_rates, d_step = jax.vjp(DISCRETISATIONS[method], rates, step)[1](rows)
    d_rate = jnp.ones_like(lengths).T @ pack(d_rates)
    d_log_step = (lengths.T @ d_step) * speed[None]
    return d_rate[0], d_log_step[0], (d_step @ speed).reshape(gaps.shape)


discretise.defvjp(_discretise_forward, _discretise_backward)


def advance(
    discrete: Discrete, b: Float[Array, "*batch p2"], x: Float[Array, "*batch p2"]
) -> Float[Array, "*batch p2"]:
    """One step of the recurrence."""
    return pack(discrete.factor.times(unpack(x)).plus(discrete.gain.times(unpack(b))))


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def recur(
    method: Discretisation,
    rate: Float[Array, " p2"],
    log_step: Float[Array, " p"],
    gaps: Float[Array, " steps *batch"],
    b: Float[Array, "steps *batch p2"],
    start: Float[Array, "*batch p2"],
) -> Float[Array, "steps *batch p2"]:
    """All states of the recurrence from `start`, the state before the first step.

    `method` names a discretisation, `rate` is λ, and the length of step i for state p is
    `gaps[i]*exp(log_step[p])`.
    """
    factor, gain = _discretise(method, rate, log_step, gaps)
    return accumulate(factor, gain.times(unpack(b)), unpack(start))


def _recur_forward(
    method: Discretisation, rate: Array, log_step: Array, gaps: Array, b: Array, start: Array
) -> tuple[Array, tuple[Array, ...]]:
    states: Array = recur(method, rate, log_step, gaps, b, start)  # type: ignore[assignment]
    return states, (rate, log_step, gaps, b, start, states)


def _recur_backward(
    method: Discretisation, saved: tuple[Array, ...], cotangent: Array
) -> tuple[Array, ...]:
    rate, log_step, gaps, b, start, states = saved
    (factor, gain), pull = jax.vjp(partial(discretise, method), rate, log_step, gaps)
    packed, d_start = adjoints(factor, unpack(cotangent))
    adjoint = unpack(packed)
    before = unpack(jnp.concatenate([start[None], states[:-1]]))
    d_rate, d_log_step, d_gaps = pull(
        Discrete(before.conjugate.times(adjoint), unpack(b).conjugate.times(adjoint))
    )
    d_b = pack(gain.conjugate.times(adjoint))
    return d_rate, d_log_step, d_gaps, d_b, d_start


recur.defvjp(_recur_forward, _recur_backward)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def recall(
    method: Discretisation,
    rate: Array,
    log_step: Array,
    gaps: Array,
    b: Array,
    start: Array,
    states: Array,
) -> Float[Array, "steps *batch p2"]:
    """The known result `states` of `recur` for the same arguments: its derivatives, no loop."""
    return states


def _recall_forward(
    method: Discretisation,
    rate: Array,
    log_step: Array,
    gaps: Array,
    b: Array,
    start: Array,
    states: Array,
) -> tuple[Array, tuple[Array, ...]]:
    return states, (rate, log_step, gaps, b, start, states)


def _recall_backward(
    method: Discretisation, saved: tuple[Array, ...], cotangent: Array
) -> tuple[Array, ...]:
    return *_recur_backward(method, saved, cotangent), jnp.zeros_like(saved[-1])


recall.defvjp(_recall_forward, _recall_backward)
