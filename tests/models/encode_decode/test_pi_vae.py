"""The regularisers of the physics-integrated VAE vanish where they should, and only there."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from physsm.data.window import gather, whole_series
from physsm.models._encode_decode.values import as_window
from physsm.models.pi_vae import Four, PhysicsVAENetwork, inconsistency
from physsm.nn.gaussian import Gaussian
from tests.models.trajectory.make import PENDULUM, network, pendulums

WEIGHT = jnp.ones((4, 3, 2))


def random(seed: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=(4, 3, 2)))


def followed(found):
    panel = pendulums(4, 15, 1)
    batch = gather(found.scales.scale(panel), whole_series(panel, 5), 10, 5, 1.0)
    window = as_window(batch, 10, found.dtype)
    inferred = found.infer(window.rows)
    starts = found.starts(inferred, jr.key(0))
    trajectory = found.paths(starts, window.timeline.times, window.timeline)
    return window, inferred, starts, path


def without(found, *parts):
    """The network with these of its perceptrons saying nothing."""
    for part in parts:
        silent = jax.tree.map(jnp.zeros_like, getattr(found, part))
        found = eqx.tree_at(lambda n, part=part: getattr(n, part), found, silent)
    return found


def pi_vae(**settings):
    return network("pi_vae", pendulums(4, 15, 1), **settings)


def with_kinds(constant: str, of_windows: str) -> str:
    """The pendulum, with one unknown of each kind."""
    kinds = f"unknown ?{constant} constant\nunknown ?{of_windows} per series"
    return PENDULUM.replace("unknown ?stiffness, ?friction constant", kinds)


def test_four_equal_predictions_are_consistent():
    same = random(0)
    assert float(inconsistency(Four(same, same, same, same), WEIGHT)) == 0


def test_inconsistency_is_a_quarter_of_the_four_distances():
    full, a, b, p = (random(seed) for seed in range(4))
    distance = sum(
        ((one - other) ** 2).mean((0, 1)).sum()
        for one, other in ((a, p), (b, p), (full, a), (full, b))
    )
    found = inconsistency(Four(full, a, b, p), WEIGHT)
    assert float(found) == pytest.approx(float(distance) / 4, rel=1e-12)


def test_consistency_vanishes_without_auxiliary_parts():
    found = without(pi_vae(), "drift", "output")
    window, _, starts, trajectory = followed(found)
    four, is_reached = found.four(starts, path, window.timeline)
    assert is_reached.all()
    np.testing.assert_allclose(four.full, four.physics, atol=1e-12)
    assert float(inconsistency(four, window.weight)) < 1e-20


@pytest.mark.parametrize("part", ["drift", "output"])
def test_each_auxiliary_part_alone_makes_it_positive(part):
    other = {"drift": "output", "output": "drift"}[part]
    found = without(pi_vae(), other)
    window, _, starts, trajectory = followed(found)
    assert float(inconsistency(found.four(starts, path, window.timeline)[0], window.weight)) > 1e-12


def test_unmixing_vanishes_where_rows_are_what_physics_predicts():
    settings = {"consistency": 0.0, "augmentation": 0.0, "unmixing": 1.0}
    found = without(pi_vae(**settings), "drift", "output", "unmixer")
    window, inferred, starts, trajectory = followed(found)
    shown = found.four(starts, path, window.timeline)[0].physics[:10]
    by_physics = window._replace(rows=window.rows._replace(last=shown))
    assert float(found.penalty(by_physics, inferred, starts, path, jr.key(1))) < 1e-20
    assert float(found.penalty(window, inferred, starts, path, jr.key(1))) > 1e-3


def test_an_unknown_that_is_constant_is_that_of_no_window():
    found = pi_vae(physics=with_kinds("friction", "stiffness"))
    _, inferred, _, _ = followed(found)
    unknowns = np.stack(
        [jax.vmap(found.unknowns)(found.starts(inferred, jr.key(seed))) for seed in range(3)]
    )
    assert np.ptp(unknowns[..., 1]) == 0
    assert (np.ptp(unknowns[..., 0], axis=0) > 0).all()


def test_augmentation_is_the_distance_of_drawn_and_inferred_unknowns():
    """An encoder that says nothing is off by the variance of what is drawn: one."""
    found = pi_vae(physics=with_kinds("friction", "stiffness"))
    silent = jax.tree.map(jnp.zeros_like, found.parameter_encoder.head)
    found = eqx.tree_at(lambda n: n.parameter_encoder.head, found, silent)
    window, _, starts, _ = followed(found)
    distance = jax.jit(lambda key: found.augmentation(window, starts, key))
    draws = [float(distance(jr.key(seed))) for seed in range(20)]
    assert np.mean(draws) == pytest.approx(1, abs=0.25)


def test_augmentation_vanishes_where_all_that_is_drawn_is_inferred():
    """An encoder that knows the unknowns of the simulation, and one that is off by a half."""
    found = pi_vae(physics=with_kinds("friction", "stiffness"))
    window, _, starts, _ = followed(found)
    key = jr.key(3)
    drawn = jr.uniform(key, starts.terms.shape, found.dtype, -(3**0.5), 3**0.5)

    class Oracle(eqx.Module):
        off: float

        def __call__(self, rows):
            return Gaussian(drawn + self.off, jnp.ones_like(drawn))

    def distance(off: float) -> float:
        knowing = eqx.tree_at(lambda n: n.parameter_encoder, found, Oracle(off))
        return float(knowing.augmentation(window, starts, key))

    assert distance(0.0) == 0
    assert distance(0.5) == pytest.approx(0.25)


def test_windows_whose_physics_runs_away_alone_say_nothing():
    found = pi_vae(physics=PENDULUM.replace("theta' = omega", "theta' = omega + 9*(1 + theta**2)"))
    window, inferred, starts, trajectory = followed(found)
    held = trajectory._replace(
        z=jnp.ones_like(trajectory.z), is_reached=jnp.ones_like(trajectory.is_reached)
    )
    assert not found.four(starts, held, window.timeline)[1].any()
    assert float(found.penalty(window, inferred, starts, held, None)) == 0
    slope = eqx.filter_grad(lambda n: n.penalty(window, inferred, starts, held, None))(found)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))


def test_unknowns_are_not_drawn_with_the_key_of_the_starts(monkeypatch):
    keys = []
    monkeypatch.setattr(
        PhysicsVAENetwork,
        "augmentation",
        lambda self, window, start, key: keys.append(key) or jnp.zeros(()),
    )
    found = pi_vae()
    window, inferred, starts, trajectory = followed(found)
    found.penalty(window, inferred, starts, path, jr.key(5))
    assert len(keys) == 1
    assert (jr.key_data(keys[0]) != jr.key_data(jr.key(5))).any()
