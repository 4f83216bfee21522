"""The regularisers of the physics-integrated VAE vanish where they should, and only there."""

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from physsm.models.pi_vae import PartialPredictions, PhysicsVAENetwork, inconsistency
from physsm.nn.gaussian import Gaussian
from tests.compiled import value_and_gradient
from tests.models.encode_decode.make import PENDULUM, network, pendulums, window_of

WEIGHT = jnp.ones((4, 3, 2))


def random(seed: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=(4, 3, 2)))


# The weight of one regulariser alone; the others are tested without their weights.
UNMIXING: dict[str, Any] = {"consistency": 0.0, "augmentation": 0.0, "unmixing": 1.0}
PANEL = pendulums(4, 15, 1)


@cache
def pi_vae(physics: str = PENDULUM, unmixes: bool = True) -> PhysicsVAENetwork:
    return network("pi_vae", PANEL, physics=physics, **(UNMIXING if unmixes else {}))


def with_kinds(constant: str, of_windows: str) -> str:
    """The pendulum, with one unknown of each kind."""
    kinds = f"unknown ?{constant} constant\nunknown ?{of_windows} per series"
    return PENDULUM.replace("unknown ?stiffness, ?friction constant", kinds)


def without(found, *parts):
    """The network with outputs of zero of these of its perceptrons."""
    for part in parts:
        silent = jax.tree.map(jnp.zeros_like, getattr(found, part))
        found = eqx.tree_at(lambda n, part=part: getattr(n, part), found, silent)
    return found


@eqx.filter_jit
def _followed(found, window):
    inferred = found.infer(window.rows)
    starts = found.starts(inferred, jr.key(0))
    return inferred, starts, found.trajectories(starts, window.timeline.times, window.timeline)


def followed(found):
    window = window_of(found, PANEL)
    return window, *_followed(found, window)


@eqx.filter_jit
def four_of(found, starts, trajectory, timeline):
    return found.partial_predictions(starts, trajectory, timeline)


@eqx.filter_jit
def penalty_of(found, window, inferred, starts, trajectory, key):
    return found.penalty(window, inferred, starts, trajectory, key)


@eqx.filter_jit
def augmentation_of(found, window, starts, key):
    return found.augmentation(window, starts, key)


def test_four_equal_predictions_are_consistent():
    same = random(0)
    assert float(inconsistency(PartialPredictions(same, same, same, same), WEIGHT)) == 0


def test_inconsistency_is_a_quarter_of_the_four_distances():
    full, a, b, p = (random(seed) for seed in range(4))
    distance = sum(
        ((one - other) ** 2).mean((0, 1)).sum()
        for one, other in ((a, p), (b, p), (full, a), (full, b))
    )
    found = inconsistency(PartialPredictions(full, a, b, p), WEIGHT)
    assert float(found) == pytest.approx(float(distance) / 4, rel=1e-12)


def test_consistency_vanishes_without_auxiliary_parts():
    found = without(pi_vae(), "drift", "output")
    window, _, starts, trajectory = followed(found)
    four, is_reached = four_of(found, starts, trajectory, window.timeline)
    assert is_reached.all()
    np.testing.assert_allclose(four.full, four.physics, atol=1e-12)
    assert float(inconsistency(four, window.weight)) < 1e-20


@pytest.mark.parametrize("part", ["drift", "output"])
def test_each_auxiliary_part_alone_makes_it_positive(part):
    other = {"drift": "output", "output": "drift"}[part]
    found = without(pi_vae(), other)
    window, _, starts, trajectory = followed(found)
    four, _ = four_of(found, starts, trajectory, window.timeline)
    assert float(inconsistency(four, window.weight)) > 1e-12


def test_unmixing_vanishes_where_rows_are_what_physics_predicts():
    found = without(pi_vae(), "drift", "output", "unmixer")
    window, inferred, starts, trajectory = followed(found)
    shown = four_of(found, starts, trajectory, window.timeline)[0].physics[:10]
    by_physics = window._replace(rows=window.rows._replace(last=shown))
    values = [
        float(penalty_of(found, one, inferred, starts, trajectory, jr.key(1)))
        for one in (by_physics, window)
    ]
    assert values[0] < 1e-20
    assert values[1] > 1e-3


def test_an_unknown_that_is_constant_is_that_of_no_window():
    found = pi_vae(with_kinds("friction", "stiffness"))
    _, inferred, _, _ = followed(found)
    drawn = jax.jit(lambda key: jax.vmap(found.unknowns)(found.starts(inferred, key)))
    unknowns = np.stack([drawn(jr.key(seed)) for seed in range(3)])
    assert np.ptp(unknowns[..., 1]) == 0
    assert (np.ptp(unknowns[..., 0], axis=0) > 0).all()


def test_augmentation_is_the_distance_of_drawn_and_inferred_unknowns():
    """An encoder with outputs of zero is off by the variance of what is drawn: one."""
    found = pi_vae(with_kinds("friction", "stiffness"))
    silent = jax.tree.map(jnp.zeros_like, found.parameter_encoder.head)
    found = eqx.tree_at(lambda n: n.parameter_encoder.head, found, silent)
    window, _, starts, _ = followed(found)
    draws = [float(augmentation_of(found, window, starts, jr.key(seed))) for seed in range(20)]
    assert np.mean(draws) == pytest.approx(1, abs=0.25)


class Oracle(eqx.Module):
    """An encoder that knows the unknowns of the simulation, up to a shift."""

    drawn: jax.Array
    off: jax.Array

    def __call__(self, rows):
        return Gaussian(self.drawn + self.off, jnp.ones_like(self.drawn))


def test_augmentation_vanishes_where_all_that_is_drawn_is_inferred():
    """An encoder that knows the unknowns of the simulation, and one that is off by a half."""
    found = pi_vae(with_kinds("friction", "stiffness"))
    window, _, starts, _ = followed(found)
    key = jr.key(3)
    drawn = jr.uniform(key, starts.unknowns.shape, found.dtype, -(3**0.5), 3**0.5)

    def distance(off: float) -> float:
        oracle = Oracle(drawn, jnp.asarray(off))
        knowing = eqx.tree_at(lambda n: n.parameter_encoder, found, oracle)
        return float(augmentation_of(knowing, window, starts, key))

    assert distance(0.0) == 0
    assert distance(0.5) == pytest.approx(0.25)


def test_windows_whose_physics_alone_diverges_have_no_penalty():
    fast = PENDULUM.replace("theta' = omega", "theta' = omega + 9*(1 + theta**2)")
    found = pi_vae(fast, unmixes=False)
    window, inferred, starts, trajectory = followed(found)
    held = trajectory._replace(
        z=jnp.ones_like(trajectory.z), is_reached=jnp.ones_like(trajectory.is_reached)
    )
    assert not four_of(found, starts, held, window.timeline)[1].any()
    value, slope = value_and_gradient(
        lambda n: n.penalty(window, inferred, starts, held, None), found
    )
    assert float(value) == 0
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))


def test_unknowns_are_not_drawn_with_the_key_of_the_starts(monkeypatch):
    keys = []
    monkeypatch.setattr(
        PhysicsVAENetwork,
        "augmentation",
        lambda self, window, start, key: keys.append(key) or jnp.zeros(()),
    )
    predicted = PartialPredictions(*(jnp.zeros((15, 4, 2)) for _ in range(4)))
    monkeypatch.setattr(
        PhysicsVAENetwork, "partial_predictions", lambda *_: (predicted, jnp.ones(4, bool))
    )
    found = pi_vae()
    window, inferred, starts, trajectory = followed(found)
    found.penalty(window, inferred, starts, trajectory, jr.key(5))
    assert len(keys) == 1
    assert (jr.key_data(keys[0]) != jr.key_data(jr.key(5))).any()
