"""The density along a second-order trajectory, against the change of variables by autodiff."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.scipy.stats import norm

from physsm.models._encode_decode.values import Timeline
from physsm.models.ode2vae import Inferred, Start, log_density
from physsm.nn.gaussian import Gaussian
from tests.models.encode_decode.make import network, pendulums

TIMES = jnp.array([0.0, 3.0, 8.0, 14.0])


@cache
def strong_network():
    found = network(
        "ode2vae",
        pendulums(3, 20, 0),
        latent=2,
        solver={"rtol": 1e-9, "atol": 1e-9, "max_steps": 4000},
    )
    return eqx.tree_at(lambda n: n.drift, found, jax.tree.map(lambda leaf: 1.7 * leaf, found.drift))


def timeline() -> Timeline:
    return Timeline(TIMES, jnp.zeros((len(TIMES), 0)))


def test_log_density_is_that_of_the_change_of_variables():
    found = strong_network()
    z0, density = jnp.array([0.3, -0.5, 0.8, 0.1]), jnp.array(-1.3)

    def states(z):
        trajectory = found.trajectory(Start(z, density, found.drift), TIMES, timeline())
        return trajectory.z, trajectory.log_density

    jacobians, log_density = map(np.asarray, jax.jit(jax.jacrev(states, has_aux=True))(z0))
    expected = -1.3 - np.array([np.linalg.slogdet(J)[1] for J in jacobians])
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(log_density, expected, atol=1e-5)


def test_the_start_has_the_density_of_the_draw_with_its_std():
    """A std of less than one makes the density larger: the term that is easily forgotten."""
    found = strong_network()
    mean, std = jnp.array([0.1, -0.2, 0.5, 0.0]), jnp.array([0.1, 0.5, 2.0, 0.3])
    said = Gaussian(mean, std)
    drawn = found.draw(Inferred(said, said), jr.key(3))
    expected = norm.logpdf(drawn.z, mean, std).sum()
    assert float(drawn.log_density) == pytest.approx(float(expected), abs=1e-10)


def test_log_density_is_normalised():
    grid = jnp.linspace(-8, 8, 4001)[:, None]
    of = Gaussian(jnp.full((1, 1), 0.4), jnp.full((1, 1), 0.7))
    total = np.trapezoid(np.exp(np.asarray(log_density(grid, of))), np.asarray(grid[:, 0]))
    assert total == pytest.approx(1.0, abs=1e-8)


def test_positions_follow_velocities():
    found = strong_network()
    fine = jnp.linspace(0, 6.0, 601)
    start = Start(jnp.array([0.3, -0.5, 0.8, 0.1]), jnp.array(0.0), found.drift)
    along = eqx.filter_jit(found.trajectory)
    z = np.asarray(along(start, fine, Timeline(fine, jnp.zeros((601, 0)))).z)
    slope = np.gradient(z[:, :2], np.asarray(fine), axis=0)[1:-1]
    np.testing.assert_allclose(slope, found.scales.pace * z[1:-1, 2:], atol=1e-4)


def test_each_draw_has_weights_of_its_own():
    found = strong_network()
    one, other = (jax.tree.leaves(found.weights(jr.key(seed))) for seed in (0, 1))
    assert all((np.abs(a - b) > 0).any() for a, b in zip(one, other, strict=True))
    spread = np.concatenate(
        [
            ((a - mean) / jnp.exp(log_std)).reshape(-1)
            for a, mean, log_std in zip(
                one,
                jax.tree.leaves(found.drift),
                jax.tree.leaves(found.drift_log_std),
                strict=True,
            )
        ]
    )
    assert np.std(spread) == pytest.approx(1, abs=0.1)
