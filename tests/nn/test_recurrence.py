"""Against a loop in complex NumPy, and automatic differentiation of a plain scan."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physsm.nn import recurrence
from physsm.nn.accumulate import (
    accumulate_at_once,
    accumulate_in_order,
    adjoints_at_once,
    adjoints_in_order,
)
from physsm.nn.discretise import DISCRETISATIONS, Complex, pack, unpack
from tests.examples import examples

recur: Any = jax.jit(recurrence.recur, static_argnums=0)
recall: Any = jax.jit(recurrence.recall, static_argnums=0)
discretise: Any = recurrence.discretise

METHODS = sorted(DISCRETISATIONS)


def example(steps: int, p: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    rate = np.concatenate([-rng.uniform(0.1, 1, p), rng.uniform(0.1, 9, p)])
    log_step = rng.uniform(-2, 0, p)
    gaps = rng.uniform(0, 2, steps)
    b = rng.standard_normal((steps, 2 * p))
    start = rng.standard_normal(2 * p)
    return tuple(jnp.asarray(array) for array in (rate, log_step, gaps, b, start))


def complex_loop(method, rate, log_step, gaps, b, start):
    def joined(packed):
        half = packed.shape[-1] // 2
        return np.asarray(packed[..., :half]) + 1j * np.asarray(packed[..., half:])

    lam, x, states = joined(rate), joined(start), []
    for gap, b_now in zip(np.asarray(gaps), joined(b), strict=True):
        delta = gap * np.exp(np.asarray(log_step))
        if method == "zoh":
            factor, gain = np.exp(lam * delta), np.expm1(lam * delta) / lam
        else:
            factor, gain = (
                (1 + lam * delta / 2) / (1 - lam * delta / 2),
                delta / (1 - lam * delta / 2),
            )
        x = factor * x + gain * b_now
        states.append(np.concatenate([x.real, x.imag]))
    return np.array(states)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=examples(20))
@given(shape=st.sampled_from([(1, 1), (2, 3), (5, 1), (12, 4)]), seed=st.integers(0, 99))
def test_states_equal_a_complex_loop(method, shape, seed):
    steps, p = shape
    inputs = example(steps, p, seed)
    np.testing.assert_allclose(
        recur(method, *inputs), complex_loop(method, *inputs), rtol=1e-11, atol=1e-12
    )


@pytest.mark.parametrize("method", METHODS)
def test_gradients_equal_those_of_a_plain_scan(method):
    inputs = example(9, 3)
    weight = jnp.asarray(np.random.default_rng(1).standard_normal((9, 6)))

    def by_recur(*inputs):
        return jnp.sum(recur(method, *inputs) * weight)

    def by_scan(rate, log_step, gaps, b, start):
        def body(x, now):
            step = DISCRETISATIONS[method](unpack(rate), now[0] * jnp.exp(log_step))
            x = pack(step.factor.times(unpack(x)).plus(step.gain.times(unpack(now[1]))))
            return x, x

        return jnp.sum(jax.lax.scan(body, start, (gaps, b))[1] * weight)

    by_ours, by_autodiff = (
        jax.jit(jax.grad(total, tuple(range(5))))(*inputs) for total in (by_recur, by_scan)
    )
    for found, exact in zip(by_ours, by_autodiff, strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-10, atol=1e-11)


def test_known_states_have_the_same_gradients():
    inputs = example(9, 3)
    weight = jnp.asarray(np.random.default_rng(1).standard_normal((9, 6)))
    states = recur("zoh", *inputs)
    np.testing.assert_array_equal(recall("zoh", *inputs, states), states)

    def gradients(function):
        total = jax.grad(lambda *a: jnp.sum(function(*a) * weight), tuple(range(5)))
        return jax.jit(total)(*inputs)

    found = gradients(lambda *a: recall("zoh", *a, states))
    exact = gradients(lambda *a: recur("zoh", *a))
    for a, b in zip(found, exact, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("method", METHODS)
def test_gradients_of_steps_equal_automatic_ones(method):
    rate, log_step, gaps, _, _ = example(12, 3)
    gaps = gaps.reshape(4, 3)

    def total(function, *inputs):
        factor, gain = function(*inputs)
        return jnp.sum(factor.re * 2 - factor.im**2) + jnp.sum(gain.re * gain.im)

    def plain(rate, log_step, gaps):
        rates = Complex(*(part[None, None] for part in unpack(rate)))
        return DISCRETISATIONS[method](rates, gaps[..., None] * jnp.exp(log_step)[None, None])

    def ours(*inputs):
        return discretise(method, *inputs)

    gradients = jax.jit(jax.grad(total, (1, 2, 3)), static_argnums=0)
    found = gradients(ours, rate, log_step, gaps)
    exact = gradients(plain, rate, log_step, gaps)
    for a, b in zip(found, exact, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)


def test_at_once_equals_in_order():
    rng = np.random.default_rng(0)
    factor, added = (
        Complex(*(jnp.asarray(rng.uniform(-0.9, 0.9, (23, 4))) for _ in range(2))) for _ in range(2)
    )
    start = Complex(*(jnp.asarray(rng.standard_normal(4)) for _ in range(2)))
    np.testing.assert_allclose(
        jax.jit(accumulate_at_once)(factor, added, start),
        jax.jit(accumulate_in_order)(factor, added, start),
        rtol=1e-12,
        atol=1e-13,
    )
    at_once, in_order = (
        jax.jit(adjoints)(factor, added) for adjoints in (adjoints_at_once, adjoints_in_order)
    )
    for a, b in zip(at_once, in_order, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def test_batches_share_parameters_and_sum_their_gradients():
    rate, log_step, gaps, b, start = example(7, 2)
    many_b = jnp.stack([b, 2 * b, -b], axis=1)
    many_gaps = jnp.stack([gaps, gaps / 2, gaps], axis=1)

    def total(rate):
        starts = jnp.stack([start] * 3)
        return jnp.sum(recur("zoh", rate, log_step, many_gaps, many_b, starts) ** 2)

    def one(rate, gaps, b):
        return jnp.sum(recur("zoh", rate, log_step, gaps, b, start) ** 2)

    gradient = jax.jit(jax.grad(one))
    apart = sum(gradient(rate, many_gaps[:, i], many_b[:, i]) for i in range(3))
    np.testing.assert_allclose(jax.jit(jax.grad(total))(rate), apart, rtol=1e-11)


def test_pack_is_the_inverse_of_unpack():
    packed = jnp.arange(12.0).reshape(2, 6)
    np.testing.assert_array_equal(pack(unpack(packed)), packed)
