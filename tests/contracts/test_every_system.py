"""What every built-in system must do; a new `.phys` file is picked up by itself."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physsm import System
from physsm.physics import explain
from physsm.physics.read import system_names
from tests.physics.truth import assert_lifted_form_is_true

pytestmark = pytest.mark.parametrize("name", system_names())


def random_point(system: System, seed: int, dtype):
    """Positive states, so that roots and logarithms exist."""
    random = np.random.default_rng(seed)
    theta = random.normal(size=len(system.unknowns))
    z = random.uniform(0.3, 2.0, size=len(system.states))
    u = random.normal(size=len(system.controls))
    return (jnp.asarray(values, dtype) for values in (theta, z, u))


@pytest.mark.parametrize(("dtype", "tolerance"), [(jnp.float32, 1e-5), (jnp.float64, 1e-10)])
def test_lifted_form_equals_the_written_equations(name, dtype, tolerance):
    system = System.load(name)
    for seed in range(5):
        theta, z, u = random_point(system, seed, dtype)
        assert_lifted_form_is_true(system, theta, z, u, tolerance)


def test_first_rows_are_the_written_equations(name):
    system = System.load(name)
    theta, z, u = random_point(system, 0, jnp.float64)

    @jax.jit
    def both(theta, z, u):
        A, B = system.assemble(theta, system.lift(z), u)
        return system.drift(theta, z, u), A @ system.lift(z) + B @ u

    drift, lifted = both(theta, z, u)
    np.testing.assert_allclose(drift, lifted[: len(system.states)])


def test_unknowns_fill_exactly_the_masked_entries(name):
    system = System.load(name)
    theta, z, u = random_point(system, 1, jnp.float64)

    @jax.jit
    def matrices(theta, z, u):
        z_ext = system.lift(z)
        return (
            *system.assemble(theta, z_ext, u),
            system.A_known(z_ext, u),
            system.B_known(z_ext, u),
        )

    A, B, A_known, B_known = map(np.asarray, matrices(theta, z, u))
    np.testing.assert_array_equal(A_known != A, system.mask_A)
    np.testing.assert_array_equal(B_known != B, system.mask_B)
    zero_A, zero_B, _, _ = matrices(np.zeros_like(theta), z, u)
    np.testing.assert_array_equal(zero_A, A_known)
    np.testing.assert_array_equal(zero_B, B_known)


def test_matrices_are_linear_in_the_unknowns(name):
    system = System.load(name)
    theta, z, u = random_point(system, 2, jnp.float64)
    slope = jax.jit(jax.jacfwd(lambda t, z, u: system.assemble(t, system.lift(z), u)[0]))
    np.testing.assert_allclose(slope(theta, z, u), slope(3 * np.asarray(theta) + 1, z, u))


def test_works_under_jit_vmap_and_grad(name):
    system = System.load(name)
    theta, z, u = random_point(system, 3, jnp.float32)
    point = [np.asarray(value) for value in (theta, jax.jit(system.lift)(z), u)]
    batch = [np.stack([value, value + value.dtype.type(0.1)]) for value in point]
    A, B = jax.jit(jax.vmap(system.assemble))(*batch)
    one_A, one_B = jax.jit(system.assemble)(*(values[1] for values in batch))
    np.testing.assert_allclose(A[1], one_A, rtol=1e-5)
    np.testing.assert_allclose(B[1], one_B, rtol=1e-5)
    slopes = jax.grad(lambda *p: jnp.sum(system.drift(*p) ** 2), argnums=(0, 1, 2))
    gradients = jax.jit(slopes)(theta, z, u)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_is_fixed_by_its_text(name):
    system = System.load(name)
    again = System.parse(system.text)
    assert again == system
    assert hash(again.structure) == hash(system.structure)
    assert jax.tree.structure(again) == jax.tree.structure(system)
    assert not jax.tree.leaves(system)  # nothing in it can be trained by mistake


def test_constraints_hold_by_construction(name):
    system = System.load(name)
    raw = jnp.asarray(np.random.default_rng(0).normal(size=len(system.unknowns)) * 5)
    theta = jax.jit(system.constrain)(raw)
    for unknown, value in zip(system.unknowns, np.asarray(theta), strict=True):
        assert unknown.bounds.lower is None or value >= unknown.bounds.lower
        assert unknown.bounds.upper is None or value <= unknown.bounds.upper
    np.testing.assert_allclose(jax.jit(system.unconstrain)(theta), raw, rtol=1e-6, atol=1e-6)


def test_is_clean_and_documented(name):
    structure = System.load(name).structure
    assert structure.physics.summary
    assert structure.warnings == ()
    assert json.loads(json.dumps(explain.describe(structure)))["names"] == list(structure.names)
    assert explain.latex(structure).count(r"\begin{array}") in (3, 5)
