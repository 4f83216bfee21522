"""Discretisation of a diagonal state-space model x' = λx + b.

Complex numbers are pairs of real arrays: complex exponentials are several times slower than real
ones, and optimisers handle real parameters in the usual way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physsm.nn.trigonometry import half_angle


class Complex(NamedTuple):
    """A complex array as two real ones."""

    re: Float[Array, "*shape"]
    im: Float[Array, "*shape"]

    def times(self, other: Complex) -> Complex:
        """The product."""
        return Complex(
            self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re
        )

    def plus(self, other: Complex) -> Complex:
        """The sum."""
        return Complex(self.re + other.re, self.im + other.im)

    def minus(self, other: Complex) -> Complex:
        """The difference."""
        return Complex(self.re - other.re, self.im - other.im)

    def scaled(self, factor: Float[Array, "*shape"]) -> Complex:
        """The product with a real array."""
        return Complex(self.re * factor, self.im * factor)

    def at(self, i: int) -> Complex:
        """One element along the first axis."""
        return Complex(self.re[i], self.im[i])

    @property
    def conjugate(self) -> Complex:
        """The complex conjugate."""
        return Complex(self.re, -self.im)


def unpack(packed: Float[Array, "*shape p2"]) -> Complex:
    """A complex array from a packed one: all real parts, then all imaginary parts."""
    half = packed.shape[-1] // 2
    return Complex(packed[..., :half], packed[..., half:])


def pack(value: Complex) -> Float[Array, "*shape p2"]:
    """The inverse of `unpack`."""
    return jnp.concatenate([value.re, value.im], axis=-1)


class Discrete(NamedTuple):
    """Coefficients of one step, x[i] = factor*x[i-1] + gain*b[i]."""

    factor: Complex
    gain: Complex


Discretise = Callable[[Complex, Float[Array, "*shape"]], Discrete]

# Derivatives are written by hand and reuse the computed value. With automatic differentiation,
# exponentials and angles would take most of the time of a gradient.


@jax.custom_jvp
def zero_order_hold(rate: Complex, step: Float[Array, "*shape"]) -> Discrete:
    """Zero-order hold, exact for a `b` that is constant over the step: factor e^{λδ}, gain
    (e^{λδ} - 1)/λ.

    Differences are formed without cancellation, so steps may be tiny; λ must not be zero. A step of
    zero leaves the state unchanged: factor 1, gain 0.
    """
    half_sine, half_cosine = half_angle(rate.im * step)
    # e^x - 1 = 2t/(1 - t) with t = tanh(x/2): faster than expm1, and as accurate for x <= 0.
    t = jnp.tanh(rate.re * step / 2)
    sine, versine = 2 * half_sine * half_cosine, 2 * half_sine**2  # versine: 1 - cosine
    size_minus_one = 2 * t / (1 - t)
    size = 1 + size_minus_one
    factor = Complex(size * (1 - versine), size * sine)
    minus_one = Complex(size_minus_one * (1 - versine) - versine, factor.im)
    return Discrete(factor, minus_one.times(_inverse(rate)))


@zero_order_hold.defjvp
def _(primals: tuple[Complex, Array], tangents: tuple[Complex, Array]) -> tuple[Discrete, Discrete]:
    (rate, step), (d_rate, d_step) = primals, tangents
    value = zero_order_hold(rate, step)
    along_step = value.factor.scaled(d_step)
    by_rate = value.factor.scaled(step).minus(value.gain).times(_inverse(rate))
    d_factor = value.factor.scaled(step).times(d_rate).plus(rate.times(along_step))
    return value, Discrete(d_factor, by_rate.times(d_rate).plus(along_step))


@jax.custom_jvp
def bilinear(rate: Complex, step: Float[Array, "*shape"]) -> Discrete:
    """Bilinear rule, of second order: factor (1 + λδ/2)/(1 - λδ/2), gain δ/(1 - λδ/2)."""
    x, y = rate.re * step / 2, rate.im * step / 2
    square = (1 - x) ** 2 + y**2
    inverse = Complex((1 - x) / square, y / square)
    return Discrete(Complex(1 + x, y).times(inverse), inverse.scaled(step))


@bilinear.defjvp
def _(primals: tuple[Complex, Array], tangents: tuple[Complex, Array]) -> tuple[Discrete, Discrete]:
    (rate, step), (d_rate, d_step) = primals, tangents
    value = bilinear(rate, step)
    inverse = Complex((1 + value.factor.re) / 2, value.factor.im / 2)  # of 1 - λδ/2
    square = inverse.times(inverse)
    d_factor = square.times(d_rate.scaled(step).plus(rate.scaled(d_step)))
    by_rate = value.gain.times(value.gain).scaled(jnp.full_like(step, 0.5))
    return value, Discrete(d_factor, by_rate.times(d_rate).plus(square.scaled(d_step)))


def _inverse(value: Complex) -> Complex:
    square = value.re**2 + value.im**2
    return Complex(value.re / square, -value.im / square)


Discretisation = Literal["zoh", "bilinear"]
DISCRETISATIONS: dict[Discretisation, Discretise] = {"zoh": zero_order_hold, "bilinear": bilinear}
