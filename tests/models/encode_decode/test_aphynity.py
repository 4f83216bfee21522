"""The learned part of a neural ODE with known physics is kept small."""

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import pytest

from physsm.data.window import gather, whole_series
from physsm.models._encode_decode.values import as_window
from tests.models.trajectory.make import network, pendulums


def penalty(norm: float, gain: float) -> tuple[float, float]:
    """The penalty, and the mean square of the learned part along the path by hand."""
    panel = pendulums(4, 15, 1)
    found = network("aphynity", panel, norm=norm)
    louder = jax.tree.map(lambda leaf: gain * leaf, found.residual)
    found = eqx.tree_at(lambda n: n.residual, found, louder)
    window = as_window(
        gather(found.scales.scale(panel), whole_series(panel, 5), 10, 5, 1.0), 10, found.dtype
    )
    inferred = found.infer(window.rows)
    starts = found.starts(inferred, jr.key(0))
    trajectory = found.paths(starts, window.timeline.times, window.timeline)
    by_hand = np.mean(
        [(np.asarray(found.residual(z)) ** 2).sum() for z in trajectory.z.reshape(-1, 2)]
    )
    return float(found.penalty(window, inferred, starts, path, None)), float(by_hand)


def test_the_penalty_is_the_mean_square_along_the_path():
    for gain in (1.0, 3.0):
        found, by_hand = penalty(0.7, gain)
        assert by_hand > 0
        assert found == pytest.approx(0.7 * by_hand, rel=1e-9)


def test_it_vanishes_without_a_learned_part():
    assert penalty(0.7, 0.0)[0] == 0
