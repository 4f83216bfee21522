"""From continuous to discrete time, for a diagonal state space model x' = λx + b.

Complex numbers are pairs of real arrays: complex exponentials are several times dearer than real
ones, and optimisers treat real parameters as one expects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

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

    def at(self, i: int) -> Complex:
        """One element along the first axis."""
        return Complex(self.re[i], self.im[i])

    @property
    def conjugate(self) -> Complex:
        """The complex conjugate."""
        return Complex(self.re, -self.im)


class Discrete(NamedTuple):
    """One step: x[i] = factor*x[i-1] + gain*b[i]."""

    factor: Complex
    gain: Complex


Discretise = Callable[[Complex, Float[Array, "*shape"]], Discrete]


def zero_order_hold(rate: Complex, step: Float[Array, "*shape"]) -> Discrete:
    """Exact for a `b` that is constant over the step: factor e^{λδ}, gain (e^{λδ} - 1)/λ.

    Differences are formed without cancellation, so steps may be tiny; λ itself must not be zero.
    A step of zero changes nothing: factor 1, gain 0.
    """
    x = rate.re * step
    half_sine, half_cosine = half_angle(rate.im * step)
    size, sine = jnp.exp(x), 2 * half_sine * half_cosine
    versine = 2 * half_sine**2  # 1 - cosine
    factor = Complex(size * (1 - versine), size * sine)
    minus_one = Complex(jnp.expm1(x) * (1 - versine) - versine, size * sine)
    square = rate.re**2 + rate.im**2
    return Discrete(factor, minus_one.times(Complex(rate.re / square, -rate.im / square)))


def bilinear(rate: Complex, step: Float[Array, "*shape"]) -> Discrete:
    """Second-order in the step: factor (1 + λδ/2)/(1 - λδ/2), gain δ/(1 - λδ/2)."""
    x, y = rate.re * step / 2, rate.im * step / 2
    square = (1 - x) ** 2 + y**2
    inverse = Complex((1 - x) / square, y / square)
    return Discrete(Complex(1 + x, y).times(inverse), Complex(step * inverse.re, step * inverse.im))


DISCRETISATIONS: dict[str, Discretise] = {"zoh": zero_order_hold, "bilinear": bilinear}
