"""The loop of a linear recurrence, x[i] = factor[i]*x[i-1] + added[i], and that of its gradient.

On a CPU it runs step by step, which is faster there; on devices with many cores it is an
associative scan. The results are equal up to rounding.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from physsm.nn.discretise import Complex, pack, unpack

Steps = Float[Array, "steps *batch p2"]
Step = Float[Array, "*batch p2"]


def accumulate(factor: Complex, added: Complex, start: Complex) -> Steps:
    """All states x, packed."""
    in_order = jax.default_backend() == "cpu"
    return (accumulate_in_order if in_order else accumulate_at_once)(factor, added, start)


def adjoints(factor: Complex, cotangent: Complex) -> tuple[Steps, Step]:
    """Cotangents of all `added` and of `start`, packed, from the cotangents of all states.

    The adjoint of step i is its cotangent plus the adjoint of step i+1 times that step's factor.
    """
    in_order = jax.default_backend() == "cpu"
    return (adjoints_in_order if in_order else adjoints_at_once)(factor, cotangent)


def accumulate_in_order(factor: Complex, added: Complex, start: Complex) -> Steps:
    """The recurrence step by step."""

    def body(x: Array, inputs: tuple[Complex, Complex]) -> tuple[Array, Array]:
        factor_now, added_now = inputs
        x = pack(factor_now.times(unpack(x)).plus(added_now))
        return x, x

    return lax.scan(body, pack(start), (factor, added))[1]


def adjoints_in_order(factor: Complex, cotangent: Complex) -> tuple[Steps, Step]:
    """The adjoints step by step, from the last to the first."""

    def body(received: Array, inputs: tuple[Complex, Complex]) -> tuple[Array, Array]:
        factor_now, cotangent_now = inputs
        adjoint = unpack(received).plus(cotangent_now)
        return pack(factor_now.conjugate.times(adjoint)), pack(adjoint)

    zero = jnp.zeros_like(pack(cotangent.at(0)))
    d_start, d_added = lax.scan(body, zero, (factor, cotangent), reverse=True)
    return d_added, d_start


def accumulate_at_once(factor: Complex, added: Complex, start: Complex) -> Steps:
    """The recurrence as an associative scan."""
    carried = factor.at(0).times(start)
    added = Complex(added.re.at[0].add(carried.re), added.im.at[0].add(carried.im))
    return pack(lax.associative_scan(_combine, (factor, added))[1])


def adjoints_at_once(factor: Complex, cotangent: Complex) -> tuple[Steps, Step]:
    """The adjoints as an associative scan, from the last step to the first."""
    # The last step has no later factor. The scan ignores that slot; the first factor fills it.
    later = Complex(*(jnp.concatenate([part[1:], part[:1]]) for part in factor.conjugate))
    adjoint = lax.associative_scan(_combine, (later, cotangent), reverse=True)[1]
    return pack(adjoint), pack(factor.conjugate.at(0).times(adjoint.at(0)))


def _combine(
    earlier: tuple[Complex, Complex], later: tuple[Complex, Complex]
) -> tuple[Complex, Complex]:
    return later[0].times(earlier[0]), later[0].times(earlier[1]).plus(later[1])
