"""The root of a covariance against NumPy's, and on the edge of what has one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physsm.nn.cholesky import cholesky


@pytest.mark.parametrize("size", [0, 1, 2, 5, 12])
def test_is_numpys(size):
    draws = np.random.default_rng(size).standard_normal((3, size, size + 2))
    A = draws @ draws.swapaxes(1, 2)
    found = jax.vmap(cholesky)(jnp.asarray(A))
    np.testing.assert_allclose(found, np.linalg.cholesky(A), rtol=1e-10, atol=1e-12)


def test_a_singular_matrix_has_a_root_too():
    v = np.array([2.0, 0.0, -1.0, 3.0])
    found = cholesky(jnp.asarray(np.outer(v, v)))
    np.testing.assert_allclose(found @ found.T, np.outer(v, v), atol=1e-12)
    assert not np.asarray(cholesky(jnp.zeros((3, 3)))).any()


def test_a_pivot_made_negative_by_rounding_counts_as_zero():
    found = cholesky(jnp.asarray([[1.0, 1.0], [1.0, 1.0 - 1e-12]]))
    np.testing.assert_allclose(found, [[1, 0], [1, 0]], atol=1e-6)
