"""Linear interpolation between rows, against NumPy's."""

import jax.numpy as jnp
import numpy as np

from physsm.nn.interpolation import interpolate_linear


def test_values_are_those_of_numpy():
    rng = np.random.default_rng(0)
    rows, x = np.sort(rng.uniform(0, 5, 9)), rng.normal(size=(9, 3))
    times = np.concatenate([rng.uniform(-2, 8, 100), rows])
    found = interpolate_linear(jnp.asarray(times), jnp.asarray(rows), jnp.asarray(x))
    expected = np.stack([np.interp(times, rows, column) for column in x.T], axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    one = interpolate_linear(jnp.asarray(times[0]), jnp.asarray(rows), jnp.asarray(x))
    np.testing.assert_allclose(one, expected[0], atol=1e-12)


def test_of_rows_at_one_time_the_last_counts():
    """Padding stands at the time of the first row."""
    x = jnp.array([[0.0], [0.0], [7.0]])
    found = interpolate_linear(jnp.array([0.0, 0.3, 2.0]), jnp.zeros(3), x)
    np.testing.assert_array_equal(found, [[7.0], [7.0], [7.0]])
    later = interpolate_linear(jnp.array([0.0, 1.0, 5.0]), jnp.array([0.0, 2.0, 2.0]), x)
    np.testing.assert_array_equal(later, [[0.0], [0.0], [7.0]])
