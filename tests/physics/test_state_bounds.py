"""Functions of bounded states: clipped values, and finite slopes on the bound and beyond."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physsm import System

TEXT = """control u
a' = -?k*sqrt(a) + log(a)/10 + 1/a - a*b + a**0.3 + a**1.5 + u
b' = sqrt(3*b - 0.3) - sqrt(1 - b**2) + log(b - 0.1)*sqrt(a*b)
c' = 1/c + sqrt(-c)*b + log(-2*c) + [sqrt(abs(c))]*u
state a >= 0, 0.1 <= b <= 1, c <= 0
observe a, root = ?gain*sqrt(a) + log(b)
unknown ?k, ?gain constant
"""
A = [-5.0, 0.0, 1e-44, 1e-30, 3e-13, 1e-3, 2.0, 1e3]
B = [-1.0, 0.1, 0.3, 1.0, 2.0]
C = [1.0, 0.0, -1e-40, -3e-13, -1.0]


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_values_and_slopes_are_finite_everywhere(dtype):
    system = System.parse(TEXT)

    def everything(theta, z, u):
        z_ext = system.lift(z)
        matrices = (system.A_known(z_ext, u), system.B_known(z_ext, u))
        return (
            z_ext,
            system.drift(theta, z, u),
            system.assemble(theta, z_ext, u),
            matrices,
            system.observe(theta, z, u),
        )

    def total(theta, z, u):
        return system.drift(theta, z, u).sum() + system.observe(theta, z, u).sum()

    points = jnp.asarray(list(itertools.product(A, B, C)), dtype)
    theta, u = jnp.ones(2, dtype), jnp.ones(1, dtype)
    every = {
        "values": everything,
        "jacfwd": jax.jacfwd(everything, argnums=(0, 1)),
        "grad": jax.grad(total, argnums=(0, 1)),
    }
    for what, function in every.items():
        results = jax.jit(jax.vmap(function, (None, 0, None)))(theta, points, u)
        for leaf in jax.tree.leaves(results):
            assert leaf.dtype == dtype
            bad = ~np.isfinite(np.asarray(leaf)).reshape(len(points), -1).all(1)
            assert not bad.any(), (what, points[bad])


def test_drift_beyond_a_bound_is_that_of_the_clipped_state():
    system = System.parse("x' = -2*x + sqrt(x)\ny' = x*y\nstate x >= 0, -1 <= y <= 2")
    drift = jax.jit(system.drift)
    for z in ([-3.0, 1.0], [4.0, 5.0], [0.0, -7.0], [0.25, 0.5]):
        x, y = np.clip(z[0], 0, None), np.clip(z[1], -1, 2)
        expected = [-2 * x + np.sqrt(x), x * y]
        got = drift(np.zeros(0), np.array(z), np.zeros(0))
        np.testing.assert_allclose(got, expected, rtol=1e-14)


def test_lift_keeps_the_states_as_given():
    system = System.parse("x' = sqrt(x)\nstate x >= 0")
    np.testing.assert_array_equal(system.lift(np.array([-4.0])), [-4.0, 0.0])
    np.testing.assert_array_equal(system.lift(np.array([4.0])), [4.0, 2.0])


def test_slopes_on_a_bound_are_those_of_the_inside():
    """An empty tank can be filled: terms without an edge keep their slope at the bound."""
    system = System.parse("x' = -3*x + x**2 + sin(x)\nstate x >= 0")

    def slope(x):
        return slopes(np.array([x]))[0, 0]

    drift = lambda z: system.drift(np.zeros(0), z, np.zeros(0))  # noqa: E731
    slopes = jax.jit(jax.jacfwd(drift))
    assert slope(0.0) == -2
    assert slope(-1e-9) == 0
    np.testing.assert_allclose(slope(0.5), -3 + 1 + np.cos(0.5))


def test_inside_nothing_changes():
    """The same text with and without bounds, at any scale of the state."""
    text = "x' = sqrt(x)*?k + log(x) + 1/x**2 + x**-0.5 - x"
    free, bounded = System.parse(text), System.parse(text + "\nstate x >= 0")

    @partial(jax.jit, static_argnums=0)
    def everything(system, *args):
        values = system.drift(*args), system.lift(args[1])
        return values, jax.jacfwd(system.drift, argnums=(0, 1))(*args)

    for x in (1e-60, 1e-12, 1.0, 1e12):
        args = np.array([2.0]), np.array([x]), np.zeros(0)
        both = [everything(system, *args) for system in (bounded, free)]
        for part, tolerance in ((0, 1e-14), (1, 1e-13)):
            for one, two in zip(both[0][part], both[1][part], strict=True):
                np.testing.assert_allclose(one, two, rtol=tolerance)


def test_micrometres_in_single_precision():
    """A gap of a micrometre is far from the bound, also squared in a divisor."""
    system = System.parse("gap' = 1/gap**2\nstate gap >= 0")
    z = jnp.asarray([1e-6], jnp.float32)
    empty = jnp.zeros(0, jnp.float32)
    np.testing.assert_allclose(system.drift(empty, z, empty), [1e12], rtol=1e-5)
    slope = jax.jacfwd(lambda z: system.drift(empty, z, empty))(z)
    np.testing.assert_allclose(slope, [[-2e18]], rtol=1e-5)


def test_a_state_without_bounds_is_not_clipped():
    system = System.parse("x' = sqrt(x)\ny' = y\nstate y >= 0")
    assert np.isnan(system.drift(np.zeros(0), np.array([-1.0, 1.0]), np.zeros(0))[0])
