import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from physsm.nn.gaussian import SMALLEST_STD, Gaussian, gaussian, kl, sample


def test_kl_equals_its_integral():
    q, p = {"loc": 0.3, "scale": 0.7}, {"loc": -0.5, "scale": 1.6}
    exact, _ = quad(
        lambda x: norm.pdf(x, **q) * (norm.logpdf(x, **q) - norm.logpdf(x, **p)), -12, 12
    )
    found = kl(
        Gaussian(jnp.asarray(0.3), jnp.asarray(0.7)), Gaussian(jnp.asarray(-0.5), jnp.asarray(1.6))
    )
    np.testing.assert_allclose(found, exact, rtol=1e-8)


def test_kl_is_zero_only_for_the_same_distribution():
    standard = Gaussian(jnp.zeros(3), jnp.ones(3))
    assert kl(standard, standard).sum() == 0
    assert np.all(kl(Gaussian(jnp.full(3, 0.1), jnp.ones(3)), standard) > 0)


def test_std_is_positive_and_has_a_floor():
    std = gaussian(jnp.zeros(3), jnp.asarray([-1e3, 0.0, 1e3])).std
    np.testing.assert_allclose(std, [SMALLEST_STD, np.log(2) + SMALLEST_STD, 1e3 + SMALLEST_STD])


def test_draws_have_the_mean_and_std():
    distribution = Gaussian(jnp.full(20_000, 2.0), jnp.full(20_000, 0.5))
    draws = sample(distribution, jr.key(0))
    np.testing.assert_allclose(draws.mean(), 2.0, atol=0.02)
    np.testing.assert_allclose(draws.std(), 0.5, atol=0.02)


def test_draws_are_differentiable():
    def total(mean, std):
        return sample(Gaussian(mean, std), jr.key(0)).sum()

    d_mean, d_std = jax.grad(total, argnums=(0, 1))(jnp.zeros(4), jnp.ones(4))
    np.testing.assert_allclose(d_mean, 1)
    np.testing.assert_allclose(d_std, jr.normal(jr.key(0), (4,)))
