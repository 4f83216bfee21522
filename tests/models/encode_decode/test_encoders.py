"""Inputs of encoders, and the order in which they are read."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physsm.models._encode_decode.encoder import gaps_after
from physsm.models._network.observations import Observations
from physsm.models.ode_rnn import ODERNNEncoder
from physsm.nn.recurrent import RecurrentLayer
from tests.models.encode_decode.make import network, pendulums

STEPS, BATCH = 8, 3


def rows(gaps, seed: int = 0) -> Observations:
    rng = np.random.default_rng(seed)
    return Observations(
        jnp.asarray(rng.normal(size=(STEPS, BATCH, 2))),
        jnp.ones((STEPS, BATCH, 2)),
        jnp.zeros((STEPS, BATCH, 0)),
        jnp.asarray(gaps),
    )


run = eqx.filter_jit(lambda encoder, given: encoder(given))


@cache
def untrained(steps: int, depth: int) -> ODERNNEncoder:
    shape = {"width": 5, "depth": depth}
    return network("ode_rnn", pendulums(3, 20, 0), encoder=shape, encoder_steps=steps).encoder


def encoder(drift: float = 0.0, steps: int = 1, depth: int = 1) -> ODERNNEncoder:
    found = untrained(steps, depth)
    quiet = jax.tree.map(lambda leaf: drift * leaf, found.drifts)
    return eqx.tree_at(lambda e: e.drifts, found, quiet)


def gru(layer: RecurrentLayer) -> eqx.nn.GRUCell:
    cell = eqx.nn.GRUCell(5, 5, key=jax.random.key(0))
    return eqx.tree_at(
        lambda c: (c.weight_ih, c.weight_hh, c.bias, c.bias_n),
        cell,
        (layer.W, layer.U, layer.b, layer.b_state),
    )


def test_a_backwards_reader_meets_the_gap_after_a_row():
    gaps = jnp.array([1.0, 0.2, 0.5, 0.9])
    np.testing.assert_array_equal(gaps_after(gaps), [0.2, 0.5, 0.9, 0.0])


@pytest.mark.parametrize("depth", [1, 3])
def test_ode_rnn_with_equal_gaps_and_no_drift_is_a_stack_of_gru(depth):
    found = encoder(depth=depth)
    given = rows(np.ones((STEPS, BATCH)))
    cells = [gru(layer) for layer in found.cells]
    assert len(cells) == depth

    @jax.jit
    def step(x, states):
        after = []
        for cell, state in zip(cells, states, strict=True):
            x = jax.vmap(cell)(x, state)
            after.append(x)
        return after

    read = np.asarray(eqx.filter_jit(found.reader)(given))
    hidden = np.asarray(run(found, given))
    states = [jnp.zeros((BATCH, 5))] * depth
    for i in reversed(range(STEPS)):
        states = step(read[i], states)
        np.testing.assert_allclose(hidden[i], states[-1], atol=1e-12)


def test_its_state_moves_over_each_gap_by_its_own_equation():
    """h over a gap by Euler's method: two steps of half a gap, by hand."""
    found = encoder(drift=1.0, steps=2)
    state = jnp.asarray(np.random.default_rng(1).normal(size=(BATCH, 5)))
    gap = jnp.array([0.3, 1.0, 4.0])
    (drift,) = found.drifts
    moved = found.over_gap(drift, state, gap)
    by_hand = state
    for _ in range(2):
        by_hand = by_hand + (gap * found.reader.scales.pace / 2)[:, None] * drift(by_hand)
    np.testing.assert_allclose(moved, by_hand, atol=1e-14)


def test_longer_gaps_change_what_it_says():
    found = encoder(drift=3.0)
    gaps = np.ones((STEPS, BATCH))
    longer = gaps.copy()
    longer[5] = 4.0
    one, other = run(found, rows(gaps)), run(found, rows(longer))
    np.testing.assert_allclose(one[5:], other[5:], atol=1e-12)
    assert (np.abs(np.asarray(one[4] - other[4])) > 1e-4).any()


def test_a_row_without_measurements_only_lets_time_pass():
    found = encoder(drift=1.0)
    given = rows(np.ones((STEPS, BATCH)))
    empty = given._replace(seen=given.seen.at[3].set(0.0))
    hidden = run(found, empty)
    passed = found.over_gap(found.drifts[0], hidden[4], jnp.ones(BATCH))
    np.testing.assert_allclose(hidden[3], passed, atol=1e-12)


def test_rows_before_a_series_change_nothing():
    found = encoder(drift=1.0)
    gaps = np.ones((STEPS, BATCH))
    gaps[:3, 1] = 0
    given = rows(gaps)
    changed = given._replace(last=given.last.at[:3, 1].add(9.0))
    hidden = run(found, given)
    np.testing.assert_array_equal(hidden[0, 1], run(found, changed)[0, 1])
    np.testing.assert_array_equal(hidden[0, 1], hidden[3, 1])
