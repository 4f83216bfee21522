import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physsm.nn.trigonometry import half_angle


@pytest.mark.parametrize(("dtype", "error"), [(jnp.float32, 4e-7), (jnp.float64, 1e-14)])
def test_products_equal_sine_and_versine(dtype, error):
    angle = jnp.asarray(np.linspace(-60, 60, 20_001), dtype)
    sine, cosine = (np.asarray(part, float) for part in half_angle(angle))
    exact = np.asarray(angle, np.float64)
    size = 1 + np.abs(exact) / 8  # rounding the angle costs as much
    assert np.max(np.abs(2 * sine * cosine - np.sin(exact)) / size) < error
    assert np.max(np.abs(2 * sine**2 - (1 - np.cos(exact))) / size) < error


def test_large_angles_lose_no_more_than_their_rounding():
    angle = np.linspace(3e3, 5.3e3, 10_001).astype(np.float32)
    sine, cosine = (np.asarray(part, float) for part in half_angle(jnp.asarray(angle)))
    assert np.max(np.abs(2 * sine * cosine - np.sin(angle.astype(float)))) < 5e-4


def test_small_angles_are_exact_in_relative_terms():
    angle = jnp.asarray([1e-30, 1e-12, 1e-5], jnp.float32)
    np.testing.assert_allclose(half_angle(angle)[0], angle / 2, rtol=1e-6)


def test_gradient_is_that_of_the_sine():
    def sine(angle):
        s, c = half_angle(angle)
        return 2 * s * c

    for angle in (-4.0, 0.3, 9.0):
        found = jax.grad(sine)(jnp.float32(angle))
        assert abs(float(found) - np.cos(angle)) < 1e-5
