"""Against complex arithmetic in double precision, and SciPy's matrix exponential."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from physsm.nn.discretise import Complex, bilinear, zero_order_hold

hold, trapezoid = jax.jit(zero_order_hold), jax.jit(bilinear)

rates = st.tuples(st.floats(-5, -1e-3), st.floats(-50, 50))
steps = st.floats(0, 2)


def as_rate(rate: tuple[float, float]) -> Complex:
    return Complex(jnp.asarray(rate[0]), jnp.asarray(rate[1]))


def joined(value: Complex) -> complex:
    return complex(value.re, value.im)


@given(rates, steps)
def test_zero_order_hold_is_the_matrix_exponential(rate, step):
    # The exponential of [[λ, 1], [0, 0]]·δ holds the factor and the gain of a held input.
    found = hold(as_rate(rate), jnp.asarray(step))
    exact = expm(step * np.array([[complex(*rate), 1], [0, 0]]))
    np.testing.assert_allclose(joined(found.factor), exact[0, 0], atol=1e-11)
    np.testing.assert_allclose(joined(found.gain), exact[0, 1], atol=1e-11)


@given(rates, steps)
def test_bilinear_is_its_formula(rate, step):
    found = trapezoid(as_rate(rate), jnp.asarray(step))
    half = complex(*rate) * step / 2
    np.testing.assert_allclose(joined(found.factor), (1 + half) / (1 - half), rtol=1e-12)
    np.testing.assert_allclose(joined(found.gain), step / (1 - half), rtol=1e-12, atol=1e-15)


def exact_hold(rate, step):
    return jnp.exp(rate * step), (jnp.exp(rate * step) - 1) / rate


def exact_bilinear(rate, step):
    return (1 + rate * step / 2) / (1 - rate * step / 2), step / (1 - rate * step / 2)


@partial(jax.jit, static_argnums=0)
def derivative(function, point, tangent):
    return jax.jvp(function, point, tangent)[1]


@pytest.mark.parametrize(
    ("method", "exact"), [(zero_order_hold, exact_hold), (bilinear, exact_bilinear)]
)
@given(rate=rates, step=steps, tangents=st.tuples(*[st.floats(-2, 2)] * 3))
def test_derivatives_equal_those_of_complex_formulas(method, exact, rate, step, tangents):
    step, step_tangent = jnp.asarray(step), jnp.asarray(tangents[2])
    found = derivative(method, (as_rate(rate), step), (as_rate(tangents[:2]), step_tangent))
    expected = derivative(
        exact,
        (jnp.asarray(complex(*rate)), step),
        (jnp.asarray(complex(*tangents[:2])), step_tangent),
    )
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(joined(ours), complex(theirs), rtol=1e-6, atol=1e-8)


def test_bilinear_is_of_second_order_and_hold_is_exact():
    rate, errors = complex(-0.3, 2.0), []
    for n in (10, 20, 40):
        factor = joined(trapezoid(as_rate((rate.real, rate.imag)), jnp.asarray(1 / n)).factor)
        errors.append(abs(factor**n - np.exp(rate)))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, 2, atol=0.05)


@pytest.mark.parametrize("step", [1e-12, 1e-7, 1e-4])
def test_small_steps_keep_their_digits_in_single_precision(step):
    rate = Complex(jnp.float32(-0.5), jnp.float32(3.0))
    gain = hold(rate, jnp.float32(step)).gain
    exact = np.expm1((-0.5 + 3j) * step) / (-0.5 + 3j)
    np.testing.assert_allclose(float(gain.re), exact.real, rtol=1e-6)


@pytest.mark.parametrize("method", [hold, trapezoid])
def test_a_step_of_zero_changes_nothing(method):
    found = method(as_rate((-0.5, 7.0)), jnp.asarray(0.0))
    assert joined(found.factor) == 1
    assert joined(found.gain) == 0
