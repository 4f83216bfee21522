"""Solutions and Cholesky roots against NumPy's, also where pivoting and scaling decide."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from physsm.nn.linear_algebra import cholesky, solve
from tests.examples import examples

compiled = jax.jit(solve)
compiled_cholesky = jax.jit(cholesky)


@settings(max_examples=examples(40))
@given(st.sampled_from([1, 2, 3, 5, 8, 12]), st.integers(0, 10_000))
def test_equals_numpy(size, seed):
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((size, size)), rng.standard_normal(size)
    found = np.asarray(compiled(jnp.asarray(A), jnp.asarray(b)))
    residual = np.abs(A @ found - b).max()
    reference = np.abs(A @ np.linalg.solve(A, b) - b).max()
    assert residual <= 100 * reference + 1e-13 * (1 + np.abs(found).max())


@pytest.mark.parametrize(
    "A",
    [
        np.array([[0.0, 1.0], [1.0, 0.0]]),
        np.array([[1e-20, 1.0], [1.0, 1.0]]),
        np.array([[1.0, 1e20], [1.0, 1.0]]),
        np.diag([1e-5, 1.0, 1e5]) + np.eye(3, k=1),
        np.fliplr(np.eye(7)) + 1e-9,
    ],
)
def test_pivots_and_equilibrates(A):
    b = A @ np.arange(1.0, len(A) + 1)
    found = compiled(jnp.asarray(A), jnp.asarray(b))
    exact = sp.Matrix(A).applyfunc(sp.Rational).LUsolve(sp.Matrix(b).applyfunc(sp.Rational))
    np.testing.assert_allclose(found, np.array(exact, float)[:, 0], rtol=1e-9)


@pytest.mark.parametrize("size", [4, 8])
def test_ill_conditioned_systems_have_a_small_residual(size):
    A = 1 / (np.arange(size)[:, None] + np.arange(size) + 1)  # Hilbert: condition 1e4 and 1e10
    b = A @ np.ones(size)
    found = np.asarray(compiled(jnp.asarray(A), jnp.asarray(b)))
    np.testing.assert_allclose(A @ found, b, rtol=1e-12)
    error = np.abs(found - 1).max()
    assert error <= 10 * np.abs(np.linalg.solve(A, b) - 1).max() + 1e-12


def test_single_precision_is_as_good_as_numpys():
    rng = np.random.default_rng(0)
    for size in (3, 11):
        A = (np.eye(size) - 0.3 * rng.standard_normal((size, size))).astype(np.float32)
        b = rng.standard_normal(size).astype(np.float32)
        exact = np.linalg.solve(A.astype(float), b.astype(float))
        ours = np.abs(np.asarray(compiled(jnp.asarray(A), jnp.asarray(b))) - exact).max()
        theirs = np.abs(np.linalg.solve(A, b) - exact).max()
        assert ours <= 10 * theirs + 1e-6


def test_gradients_equal_those_of_jax():
    rng = np.random.default_rng(1)
    A, b = jnp.asarray(rng.standard_normal((5, 5))), jnp.asarray(rng.standard_normal(5))
    weight = jnp.asarray(rng.standard_normal(5))

    @partial(jax.jit, static_argnums=0)
    def derivatives(solver):
        def scalar(A, b):
            return solver(A, b) @ weight

        first = jax.grad(scalar, (0, 1))(A, b), jax.jacfwd(solver, (0, 1))(A, b)
        second = jax.jacrev(jax.jacfwd(scalar))(A, b), jax.jacfwd(jax.jacrev(scalar))(A, b)
        return first, second

    ours, theirs = derivatives(solve), derivatives(jnp.linalg.solve)
    for found, exact in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-9)


def test_batches_equal_their_members():
    rng = np.random.default_rng(2)
    A, b = (
        jnp.asarray(rng.standard_normal((3, 5, 4, 4))),
        jnp.asarray(rng.standard_normal((3, 5, 4))),
    )
    exact = np.linalg.solve(A, b[..., None])[..., 0]
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.vmap(solve)))(A, b), exact, rtol=1e-9)
    one_matrix = jax.jit(jax.vmap(jax.vmap(solve), in_axes=(None, 0)))(A[0], b)
    np.testing.assert_allclose(
        one_matrix, np.linalg.solve(np.broadcast_to(A[0], A.shape), b[..., None])[..., 0], rtol=1e-9
    )
    one_side = jax.jit(jax.vmap(jax.vmap(solve, in_axes=(0, None))))(A, b[:, 0])
    np.testing.assert_allclose(
        one_side,
        np.linalg.solve(A, np.broadcast_to(b[:, :1], b.shape)[..., None])[..., 0],
        rtol=1e-9,
    )


def test_gradients_of_a_batch_equal_those_of_its_members():
    rng = np.random.default_rng(3)
    A, b = jnp.asarray(rng.standard_normal((6, 3, 3))), jnp.asarray(rng.standard_normal((6, 3)))

    def square(A, b):
        return jnp.sum(solve(A, b) ** 2)

    together = jax.jit(jax.grad(lambda A, b: jax.vmap(square)(A, b).sum(), (0, 1)))(A, b)
    gradients = jax.jit(jax.grad(square, (0, 1)))
    alone = [gradients(A[i], b[i]) for i in range(6)]
    for i in range(6):
        np.testing.assert_allclose(together[0][i], alone[i][0], rtol=1e-9)
        np.testing.assert_allclose(together[1][i], alone[i][1], rtol=1e-9)


def test_a_singular_system_is_not_finite():
    assert not np.isfinite(compiled(jnp.ones((2, 2)), jnp.asarray([1.0, 2.0]))).all()


@pytest.mark.parametrize("size", [0, 1, 2, 5, 12])
def test_cholesky_is_numpys(size):
    draws = np.random.default_rng(size).standard_normal((3, size, size + 2))
    A = draws @ draws.swapaxes(1, 2)
    root = jax.jit(jax.vmap(cholesky))(jnp.asarray(A))
    np.testing.assert_allclose(root, np.linalg.cholesky(A), rtol=1e-10, atol=1e-12)


def test_a_singular_matrix_has_a_cholesky_root_too():
    v = np.array([2.0, 0.0, -1.0, 3.0])
    root = compiled_cholesky(jnp.asarray(np.outer(v, v)))
    np.testing.assert_allclose(root @ root.T, np.outer(v, v), atol=1e-12)
    assert not np.asarray(compiled_cholesky(jnp.zeros((3, 3)))).any()


def test_a_cholesky_pivot_made_negative_by_rounding_counts_as_zero():
    root = compiled_cholesky(jnp.asarray([[1.0, 1.0], [1.0, 1.0 - 1e-12]]))
    np.testing.assert_allclose(root, [[1, 0], [1, 0]], atol=1e-6)
