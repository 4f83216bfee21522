"""The learned part of a neural ODE with known physics is kept small."""

from functools import cache

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import pytest

from tests.models.encode_decode.make import network, pendulums, window_of

NORM = 0.7


@cache
def untrained():
    panel = pendulums(4, 15, 1)
    found = network("aphynity", panel, norm=NORM)
    return found, window_of(found, panel)


@eqx.filter_jit
def penalty_and_learned(found, window):
    """The penalty, and the learned part at each state of the trajectory."""
    inferred = found.infer(window.rows)
    starts = found.starts(inferred, jr.key(0))
    trajectory = found.trajectories(starts, window.timeline.times, window.timeline)
    penalty = found.penalty(window, inferred, starts, trajectory, None)
    return penalty, jax.vmap(found.residual)(trajectory.z.reshape(-1, 2))


def penalty(gain: float) -> tuple[float, float]:
    """The penalty, and the mean square of the learned part along the trajectory by hand."""
    found, window = untrained()
    louder = jax.tree.map(lambda leaf: gain * leaf, found.residual)
    found = eqx.tree_at(lambda n: n.residual, found, louder)
    value, learned = penalty_and_learned(found, window)
    return float(value), float(np.mean([(z**2).sum() for z in np.asarray(learned)]))


def test_the_penalty_is_the_mean_square_along_the_trajectory():
    for gain in (1.0, 3.0):
        found, by_hand = penalty(gain)
        assert by_hand > 0
        assert found == pytest.approx(NORM * by_hand, rel=1e-9)


def test_it_vanishes_without_a_learned_part():
    assert penalty(0.0)[0] == 0
