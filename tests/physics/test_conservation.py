"""What the structure guarantees along bilinear steps, whatever the unknowns do."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from physsm import System


@partial(jax.jit, static_argnums=0)
def bilinear_steps(system: System, z, thetas, controls, gaps):
    """Reference steps with a dense solve: (I - dt/2 A) z' = (I + dt/2 A) z + dt B u."""
    identity = jnp.eye(len(system.names), dtype=z.dtype)

    def step(z_ext, inputs):
        theta, u, gap = inputs
        A, B = system.assemble(theta, z_ext, u)
        right = (identity + gap / 2 * A) @ z_ext + gap * (B @ u)
        z_ext = jnp.linalg.solve(identity - gap / 2 * A, right)
        return z_ext, z_ext

    return jax.lax.scan(step, system.lift(z), (thetas, controls, gaps))[1]


def test_sir_columns_sum_to_zero_and_nobody_is_lost():
    system = System.load("sir_conserving")
    random = np.random.default_rng(0)
    raw = random.normal(size=(1000, 2)).astype(np.float32)
    gaps = random.uniform(0.01, 0.5, 1000).astype(np.float32)
    z, controls = np.array([0.9, 0.09, 0.01], np.float32), np.zeros((1000, 0), np.float32)
    thetas = jax.jit(jax.vmap(system.constrain))(raw)
    path = bilinear_steps(system, z, thetas, controls, gaps)
    A, _ = jax.device_get(jax.jit(jax.vmap(system.assemble))(thetas, path, controls))
    path = np.asarray(path)
    np.testing.assert_array_equal(A.sum(axis=1), 0)
    np.testing.assert_allclose(path.sum(axis=1), 1, atol=1e-5)
    assert np.abs(np.diff(path, axis=0)).max() > 1e-3  # it does move


def test_sir_of_the_paper_loses_people():
    """Why sir_conserving exists: independent stars do not keep the sum."""
    system = System.load("sir")
    assert system.invariants == ()
    thetas = np.broadcast_to([0.3, 0.2, -0.1, 0.05, 0.1], (100, 5))
    z, controls, gaps = np.array([0.9, 0.09, 0.01]), np.zeros((100, 0)), np.full(100, 0.5)
    path = np.asarray(bilinear_steps(system, z, thetas, controls, gaps))
    assert abs(path[-1].sum() - 1) > 1e-2


def test_pendulum_keeps_sine_and_cosine_on_the_circle():
    system = System.load("pendulum")
    random = np.random.default_rng(1)
    thetas = random.normal(size=(1000, 5))
    thetas[:, 1] = -np.abs(thetas[:, 1])  # friction, so that it stays finite
    controls = random.normal(size=(1000, 1))
    gaps = random.uniform(0.001, 0.1, 1000)
    path = np.asarray(bilinear_steps(system, np.array([0.5, 0.0]), thetas, controls, gaps))
    np.testing.assert_allclose(path[:, 2] ** 2 + path[:, 3] ** 2, 1, atol=1e-10)
    assert np.abs(path[:, 1]).max() > 0.1


def test_constant_state_stays_one():
    system = System.load("quadrotor")
    random = np.random.default_rng(2)
    thetas = random.normal(size=(200, 50))
    controls = random.normal(size=(200, 7))
    path = np.asarray(bilinear_steps(system, np.ones(10), thetas, controls, np.full(200, 1e-3)))
    np.testing.assert_array_equal(path[:, -1], 1)
