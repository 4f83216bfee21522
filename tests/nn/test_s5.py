"""Step = scan = continued scan, and the layer against a dense real system and SciPy."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from physsm.nn.layers import normal
from physsm.nn.s5 import S5, S5Block, S5Stack, Skip
from physsm.nn.s5_init import diagonalise, legs_normal
from tests.compiled import compiled


@pytest.mark.parametrize(("size", "largest", "smallest"), [(32, 325, 0.30), (128, 5215, 0.24)])
def test_spectrum_of_the_start(size, largest, smallest):
    modes = diagonalise(size)
    np.testing.assert_allclose(modes.rate_re, -0.5)
    np.testing.assert_allclose(modes.rate_im.max(), largest, rtol=2e-3)
    np.testing.assert_allclose(modes.rate_im.min(), smallest, atol=5e-3)


@pytest.mark.parametrize("size", [2, 8, 32])
def test_half_of_the_modes_make_the_whole_matrix(size):
    modes = diagonalise(size)
    V = modes.vectors_re + 1j * modes.vectors_im
    rate = modes.rate_re + 1j * modes.rate_im
    whole = 2 * np.real(V @ np.diag(rate) @ V.conj().T)
    np.testing.assert_allclose(whole, legs_normal(size), atol=1e-9)


@pytest.mark.parametrize("size", [0, 1, 7])
def test_modes_need_an_even_number_of_states(size):
    with pytest.raises(ValueError, match="must be even"):
        diagonalise(size)


@compiled
def outputs(layer, x, gaps, state):
    """Outputs of a layer or a stack, and its state after them."""
    return layer(x, gaps, state)


def test_layer_equals_the_dense_real_system():
    # x' = (S x + B u)·e^log_step with real S, B, C, held input over irregular gaps.
    states, width = 8, 3
    layer = S5(width, states, "zoh", np.random.default_rng(1))
    layer = eqx.tree_at(
        lambda one: one.log_step, layer, jnp.asarray(np.full(states // 2, np.log(0.4)))
    )
    rng = np.random.default_rng(1)
    B = normal(rng, (states, width))
    C = normal(rng, (width, states))
    S = legs_normal(states)
    rng = np.random.default_rng(0)
    u, gaps = rng.standard_normal((12, width)), rng.uniform(0.1, 3, 12)
    found, _ = outputs(layer, u, gaps, np.zeros(states))
    x, expected = np.zeros(states), []
    for u_now, gap in zip(u, gaps, strict=True):
        block = np.zeros((states + 1, states + 1))
        block[:states, :states], block[:states, states] = S, B @ u_now
        exponential = expm(0.4 * gap * block)
        x = exponential[:states, :states] @ x + exponential[:states, states]
        expected.append(C @ x + np.asarray(layer.D) * u_now)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def stack_example(skip: Any = "raw", discretisation: Any = "zoh"):
    stack = S5Stack(2, 5, 4, np.random.default_rng(0), skip=skip, discretisation=discretisation)
    rng = np.random.default_rng(0)
    return stack, rng.standard_normal((7, 5)), rng.uniform(0.1, 2, 7)


@pytest.mark.parametrize("skip", ["raw", "normalised"])
@pytest.mark.parametrize("discretisation", ["zoh", "bilinear"])
def test_steps_equal_the_scan_with_equal_gradients(skip, discretisation):
    stack, *rows = stack_example(skip, discretisation)
    x, gaps = map(jnp.asarray, rows)

    def by_scan(stack, x):
        y, states = stack(x, gaps, stack.start())
        return jnp.sum(y**2) + jnp.sum(states)

    def by_steps(stack, x):
        def step(states, now):
            y, states = stack.step(now[0], stack.discrete(now[1]), states)
            return states, jnp.sum(y**2)

        states, squares = jax.lax.scan(step, stack.start(), (x, gaps))
        return jnp.sum(squares) + jnp.sum(states)

    scan, steps = (
        jax.jit(jax.value_and_grad(total, argnums=(0, 1)))(stack, x)
        for total in (by_scan, by_steps)
    )
    np.testing.assert_allclose(scan[0], steps[0], rtol=1e-11)
    for a, b in zip(jax.tree.leaves(scan[1]), jax.tree.leaves(steps[1]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


def test_a_sequence_can_be_continued():
    stack, x, gaps = stack_example()
    whole, end = outputs(stack, x, gaps, stack.start())
    first, states = outputs(stack, x[:4], gaps[:4], stack.start())
    second, states = outputs(stack, x[4:], gaps[4:], states)
    np.testing.assert_allclose(np.concatenate([first, second]), whole, rtol=1e-12)
    np.testing.assert_allclose(states, end, rtol=1e-12)


def test_rows_with_a_gap_of_zero_before_a_sequence_change_nothing():
    stack, x, gaps = stack_example()
    padding = np.random.default_rng(3).standard_normal((6, 5))
    whole, end = outputs(stack, x, gaps, stack.start())
    longer, longer_gaps = np.concatenate([padding, x]), np.concatenate([np.zeros(6), gaps])
    padded, padded_end = outputs(stack, longer, longer_gaps, stack.start())
    np.testing.assert_allclose(padded[6:], whole, rtol=1e-12)
    np.testing.assert_allclose(padded_end, end, rtol=1e-12)


def test_outputs_do_not_depend_on_later_rows():
    stack, x, gaps = stack_example()
    changed = x + 100.0 * (np.arange(len(x)) >= 4)[:, None]
    before, _ = outputs(stack, x, gaps, stack.start())
    after, _ = outputs(stack, changed, gaps, stack.start())
    np.testing.assert_array_equal(before[:4], after[:4])
    assert not np.allclose(before[4], after[4])


def test_a_rate_can_never_grow():
    layer = S5(2, 4, "zoh", np.random.default_rng(0))
    layer = eqx.tree_at(lambda one: one.rate, layer, jnp.asarray([3.0, 5.0, 1.0, 2.0]))
    _, states = outputs(layer, np.zeros((50, 2)), np.ones(50), np.ones(4))
    assert np.all(np.abs(states[-1]) <= np.sqrt(2))


def test_the_normalised_skip_forgets_the_amplitude_and_the_raw_one_does_not():
    x = np.array([1.0, -2.0, 0.5])
    cases: list[tuple[Skip, bool]] = [("raw", True), ("normalised", False)]
    for skip, keeps in cases:
        block = S5Block(3, 4, "zoh", skip, np.random.default_rng(0))

        @compiled
        def output(block, x):
            return block.step(x, block.s5.discrete(jnp.asarray(1.0)), jnp.zeros(4))[0]

        small, large = output(block, x), output(block, 1000 * x)
        assert (np.max(np.abs(large)) > 100 * np.max(np.abs(small))) == keeps
