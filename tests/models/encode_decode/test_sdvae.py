"""The symplectic trajectory: energy, reversal, and where its steps end."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physsm.models.sdvae import leapfrog
from tests.models.encode_decode.make import network, pendulums


@cache
def random_potential(seed: int = 0):
    """A network with a potential that is not flat."""
    found = network("sdvae", pendulums(3, 20, 0), latent=4, energy={"width": 16, "layers": 2})
    rng = np.random.default_rng(seed)

    def stronger(leaf):
        return leaf * 3 + 0.3 * jnp.asarray(rng.normal(size=leaf.shape))

    found = eqx.tree_at(lambda n: n.potential, found, jax.tree.map(stronger, found.potential))
    return eqx.tree_at(lambda n: n.log_mass, found, jnp.array([0.3, -0.4]))


@eqx.filter_jit
def run(found, start, gap, steps: int):
    """The state after so many steps, and energies and states after each."""

    def step(z, _):
        after = found.advance(z, gap)
        return after, (found.energy(after), after)

    return jax.lax.scan(step, start, None, steps)


def test_energy_is_kept_over_ten_thousand_steps():
    found = random_potential()
    start = jnp.array([0.5, -0.4, 0.3, 0.6])
    before = float(found.energy(start))
    _, (energy, path) = run(found, start, jnp.asarray(0.05), 10_000)
    moved = np.ptp(np.asarray(path), axis=0).max()
    drift = np.abs(np.asarray(energy) - before)
    kinetic = float((start[2:] ** 2).sum())
    assert moved > 0.5
    assert drift.max() < 0.02 * kinetic
    assert drift[-1000:].max() < 2 * drift[:1000].max() + 1e-9


def test_half_the_step_has_a_quarter_of_the_energy_error():
    found = random_potential()
    start = jnp.array([0.5, -0.4, 0.3, 0.6])
    before = float(found.energy(start))
    errors = []
    for gap, steps in ((0.2, 500), (0.1, 1000)):
        energy = np.asarray(run(found, start, jnp.asarray(gap), steps)[1][0])
        errors.append(np.abs(energy - before).max())
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.3)


def test_the_trajectory_can_be_reversed():
    found = random_potential()
    start = jnp.array([0.5, -0.4, 0.3, 0.6])
    turn = jnp.array([1.0, 1.0, -1.0, -1.0])
    there, _ = run(found, start, jnp.asarray(0.1), 2000)
    back, _ = run(found, there * turn, jnp.asarray(0.1), 2000)
    np.testing.assert_allclose(back * turn, start, atol=1e-9)


@pytest.mark.parametrize("steps", [1, 3, 7])
def test_steps_end_where_the_gap_ends(steps):
    """Without a force the position moves by velocity times the whole gap."""
    q, p = leapfrog(
        jnp.array([1.0]), jnp.array([2.0]), jnp.zeros_like, jnp.array([0.5]), jnp.array(0.7), steps
    )
    assert float(q[0]) == pytest.approx(1.7, abs=1e-12)
    assert float(p[0]) == 2.0
