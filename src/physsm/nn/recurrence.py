"""The recurrence of a diagonal state space model, x[i] = factor[i]*x[i-1] + gain[i]*b[i].

Complex arrays are packed: the last axis holds all real parts, then all imaginary parts, so that
matrices can be applied to them as they are. Factors and gains depend on the gap before each step
and are as large as the states; they are not stored but computed again for the gradient.

The recurrence itself runs one step after the other on a CPU, where that is the faster, and as an
associative scan on devices with many cores; results are equal up to rounding.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from physsm.nn.broadcast import on_last_axis
from physsm.nn.discretise import DISCRETISATIONS, Complex, Discrete

Packed = Float[Array, "... p2"]


def unpack(packed: Packed) -> Complex:
    """Real and imaginary parts of a packed array."""
    half = packed.shape[-1] // 2
    return Complex(packed[..., :half], packed[..., half:])


def pack(value: Complex) -> Packed:
    """The inverse of `unpack`."""
    return jnp.concatenate([value.re, value.im], axis=-1)


def advance(
    method: str,
    rate: Float[Array, " p2"],
    log_step: Float[Array, " p"],
    gap: Float[Array, "*batch"],
    b: Float[Array, "*batch p2"],
    x: Float[Array, "*batch p2"],
) -> Float[Array, "*batch p2"]:
    """One step of the recurrence."""
    factor, gain = _discretise(method, rate, log_step, gap)
    return pack(factor.times(unpack(x)).plus(gain.times(unpack(b))))


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def recur(
    method: str,
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
    return _accumulate(factor, gain.times(unpack(b)), unpack(start))


def _recur_forward(
    method: str, rate: Array, log_step: Array, gaps: Array, b: Array, start: Array
) -> tuple[Array, tuple[Array, ...]]:
    states = recur(method, rate, log_step, gaps, b, start)
    return states, (rate, log_step, gaps, b, start, states)  # type: ignore[return-value]


def _recur_backward(method: str, saved: tuple[Array, ...], cotangent: Array) -> tuple[Array, ...]:
    rate, log_step, gaps, b, start, states = saved
    (factor, gain), pull = jax.vjp(partial(_discretise, method), rate, log_step, gaps)
    # The adjoint of step i receives that of step i+1 through the factor of step i+1.
    later = Complex(*(jnp.concatenate([part[1:], part[:1]]) for part in factor.conjugate))
    nothing = unpack(jnp.zeros_like(start))
    adjoint = unpack(_accumulate(later, unpack(cotangent), nothing, reverse=True))
    before = unpack(jnp.concatenate([start[None], states[:-1]]))
    d_rate, d_log_step, d_gaps = pull(
        Discrete(before.conjugate.times(adjoint), unpack(b).conjugate.times(adjoint))
    )
    d_b = pack(gain.conjugate.times(adjoint))
    d_start = pack(factor.conjugate.at(0).times(adjoint.at(0)))
    return d_rate, d_log_step, d_gaps, d_b, d_start


recur.defvjp(_recur_forward, _recur_backward)


def _discretise(method: str, rate: Array, log_step: Array, gaps: Array) -> Discrete:
    gaps = gaps[..., None]
    step = gaps * on_last_axis(jnp.exp(log_step), gaps)
    return DISCRETISATIONS[method](unpack(on_last_axis(rate, gaps)), step)


def _accumulate(
    factor: Complex, added: Complex, start: Complex, reverse: bool = False
) -> Float[Array, "steps *batch p2"]:
    """x[i] = factor[i]*x[i-1] + added[i] for all i, or from the last to the first."""
    accumulate = accumulate_in_order if jax.default_backend() == "cpu" else accumulate_at_once
    return accumulate(factor, added, start, reverse)


def accumulate_in_order(
    factor: Complex, added: Complex, start: Complex, reverse: bool
) -> Float[Array, "steps *batch p2"]:
    """One step after the other."""

    def body(x: Array, inputs: tuple[Complex, Complex]) -> tuple[Array, Array]:
        factor_now, added_now = inputs
        x = pack(factor_now.times(unpack(x)).plus(added_now))
        return x, x

    return lax.scan(body, pack(start), (factor, added), reverse=reverse)[1]


def accumulate_at_once(
    factor: Complex, added: Complex, start: Complex, reverse: bool
) -> Float[Array, "steps *batch p2"]:
    """As an associative scan over all steps."""
    first = -1 if reverse else 0
    carried = factor.at(first).times(start)
    added = Complex(
        added.re.at[first].add(carried.re),
        added.im.at[first].add(carried.im),
    )

    def combine(
        earlier: tuple[Complex, Complex], later: tuple[Complex, Complex]
    ) -> tuple[Complex, Complex]:
        return later[0].times(earlier[0]), later[0].times(earlier[1]).plus(later[1])

    return pack(lax.associative_scan(combine, (factor, added), reverse=reverse)[1])
