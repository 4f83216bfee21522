"""The recurrence of a diagonal state space model, x[i] = factor[i]*x[i-1] + gain[i]*b[i].

Complex arrays are packed: the last axis holds all real parts, then all imaginary parts, so that
matrices can be applied to them as they are. Factors and gains depend on the gap before each step
and are as large as the states; they are never stored but computed again for the gradient.

There are two ways to run it, with equal results: one step after the other, which is the faster on
a CPU, and as an associative scan, for devices with many cores. Which one is decided when the
program is compiled for its device.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from physsm.nn.discretise import DISCRETISATIONS, Complex, Discrete

Packed = Float[Array, "... 2p"]
_UNROLL = 4  # steps per turn of the compiled loop: less bookkeeping per step


def unpack(packed: Packed) -> Complex:
    """Real and imaginary parts of a packed array."""
    half = packed.shape[-1] // 2
    return Complex(packed[..., :half], packed[..., half:])


def pack(value: Complex) -> Packed:
    """The inverse of `unpack`."""
    return jnp.concatenate([value.re, value.im], axis=-1)


def advance(
    method: str,
    rate: Float[Array, " 2p"],
    log_step: Float[Array, " p"],
    gap: Float[Array, ""],
    b: Float[Array, " 2p"],
    x: Float[Array, " 2p"],
) -> Float[Array, " 2p"]:
    """One step of the recurrence."""
    factor, gain = _discretise(method, rate, log_step, gap)
    return pack(_affine(factor, unpack(x), gain, unpack(b)))


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def recur(
    method: str,
    rate: Float[Array, " 2p"],
    log_step: Float[Array, " p"],
    gaps: Float[Array, " steps"],
    b: Float[Array, "steps 2p"],
    start: Float[Array, " 2p"],
) -> Float[Array, "steps 2p"]:
    """All states of the recurrence from `start`, the state before the first step.

    `method` names a discretisation, `rate` is λ, and the length of step i for state p is
    `gaps[i]*exp(log_step[p])`.
    """
    return lax.platform_dependent(
        rate,
        log_step,
        gaps,
        b,
        start,
        cpu=partial(sequential_states, method),
        default=partial(associative_states, method),
    )


def _recur_forward(method: str, rate: Array, log_step: Array, gaps: Array, b: Array, start: Array):
    states = recur(method, rate, log_step, gaps, b, start)
    return states, (rate, log_step, gaps, b, start, states)


def _recur_backward(method: str, saved: tuple[Array, ...], cotangent: Array):
    return lax.platform_dependent(
        *saved,
        cotangent,
        cpu=partial(sequential_gradient, method),
        default=partial(associative_gradient, method),
    )


recur.defvjp(_recur_forward, _recur_backward)


def sequential_states(
    method: str, rate: Array, log_step: Array, gaps: Array, b: Array, start: Array
) -> Array:
    """`recur`, one step after the other."""

    def body(x: Array, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
        gap, b_now = inputs
        x = advance(method, rate, log_step, gap, b_now, x)
        return x, x

    return lax.scan(body, start, (gaps, b), unroll=_UNROLL)[1]


def sequential_gradient(
    method: str,
    rate: Array,
    log_step: Array,
    gaps: Array,
    b: Array,
    start: Array,
    states: Array,
    cotangent: Array,
) -> tuple[Array, Array, Array, Array, Array]:
    """Gradients of `recur` for all its arrays, backwards step by step."""
    before = jnp.concatenate([start[None], states[:-1]])

    def body(carry: tuple[Array, Array, Array], inputs: tuple[Array, Array, Array, Array]):
        adjoint, d_rate, d_log_step = carry
        gap, b_now, x_before, ct = inputs
        (factor, gain), pull = jax.vjp(
            lambda r, s, g: _discretise(method, r, s, g), rate, log_step, gap
        )
        total = unpack(adjoint + ct)
        d_factor = unpack(x_before).conjugate.times(total)
        d_gain = unpack(b_now).conjugate.times(total)
        more_rate, more_log_step, d_gap = pull(Discrete(d_factor, d_gain))
        d_b = pack(gain.conjugate.times(total))
        passed_on = pack(factor.conjugate.times(total))
        return (passed_on, d_rate + more_rate, d_log_step + more_log_step), (d_gap, d_b)

    initial = (jnp.zeros_like(start), jnp.zeros_like(rate), jnp.zeros_like(log_step))
    (d_start, d_rate, d_log_step), (d_gaps, d_b) = lax.scan(
        body, initial, (gaps, b, before, cotangent), reverse=True, unroll=_UNROLL
    )
    return d_rate, d_log_step, d_gaps, d_b, d_start


def associative_states(
    method: str, rate: Array, log_step: Array, gaps: Array, b: Array, start: Array
) -> Array:
    """`recur` as an associative scan over all steps at once."""
    factor, gain = _discretise(method, rate, log_step, gaps[:, None])
    added = gain.times(unpack(b))
    from_start = Complex(factor.re[0], factor.im[0]).times(unpack(start))
    added = Complex(added.re.at[0].add(from_start.re), added.im.at[0].add(from_start.im))
    return pack(_accumulate(factor, added, reverse=False))


def associative_gradient(
    method: str,
    rate: Array,
    log_step: Array,
    gaps: Array,
    b: Array,
    start: Array,
    states: Array,
    cotangent: Array,
) -> tuple[Array, Array, Array, Array, Array]:
    """Gradients of `recur` for all its arrays, as an associative scan."""
    before = jnp.concatenate([start[None], states[:-1]])
    (factor, gain), pull = jax.vjp(
        lambda r, s, g: _discretise(method, r, s, g[:, None]), rate, log_step, gaps
    )
    # The adjoint of step i receives that of step i+1 through the factor of step i+1.
    later = Complex(
        jnp.concatenate([factor.re[1:], jnp.zeros_like(factor.re[:1])]),
        -jnp.concatenate([factor.im[1:], jnp.zeros_like(factor.im[:1])]),
    )
    adjoint = _accumulate(later, unpack(cotangent), reverse=True)
    d_rate, d_log_step, d_gaps = pull(
        Discrete(unpack(before).conjugate.times(adjoint), unpack(b).conjugate.times(adjoint))
    )
    d_b = pack(gain.conjugate.times(adjoint))
    first = Complex(factor.re[0], factor.im[0]).conjugate
    d_start = pack(first.times(Complex(adjoint.re[0], adjoint.im[0])))
    return d_rate, d_log_step, d_gaps, d_b, d_start


def _discretise(method: str, rate: Array, log_step: Array, gap: Array) -> Discrete:
    return DISCRETISATIONS[method](unpack(rate), gap * jnp.exp(log_step))


def _affine(factor: Complex, x: Complex, gain: Complex, b: Complex) -> Complex:
    kept, added = factor.times(x), gain.times(b)
    return Complex(kept.re + added.re, kept.im + added.im)


def _accumulate(factor: Complex, added: Complex, reverse: bool) -> Complex:
    def combine(
        first: tuple[Complex, Complex], second: tuple[Complex, Complex]
    ) -> tuple[Complex, Complex]:
        carried = second[0].times(first[1])
        return second[0].times(first[0]), Complex(
            carried.re + second[1].re, carried.im + second[1].im
        )

    return lax.associative_scan(combine, (factor, added), reverse=reverse)[1]
