"""Recurrent layers against Equinox's cells, run row by row."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physsm.nn.recurrent import BothDirections, RecurrentLayer, RecurrentStack, backwards
from tests.compiled import compiled

STEPS, BATCH, INPUTS, WIDTH = 9, 3, 4, 5

compiled_backwards = compiled(backwards)


@compiled
def outputs(layer, x, valid):
    return layer(x, valid)


def rows(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    valid = np.ones((STEPS, BATCH))
    valid[:4, 1] = 0
    valid[5, 2] = 0
    return rng.normal(size=(STEPS, BATCH, INPUTS)), valid


def layer(cell) -> RecurrentLayer:
    return RecurrentLayer(INPUTS, WIDTH, cell, np.random.default_rng(1))


def loop(step, start, x, valid):
    """One series at a time, one row at a time."""
    step = compiled(step)
    outputs = np.zeros((STEPS, BATCH, WIDTH))
    for series in range(BATCH):
        state = start
        for i in range(STEPS):
            if valid[i, series]:
                state = step(x[i, series], state)
            outputs[i, series] = state[0] if isinstance(state, tuple) else state
    return outputs


def test_gru_equals_that_of_equinox():
    ours, theirs = layer("gru"), eqx.nn.GRUCell(INPUTS, WIDTH, key=jax.random.key(0))
    theirs = eqx.tree_at(
        lambda c: (c.weight_ih, c.weight_hh, c.bias, c.bias_n),
        theirs,
        (ours.W, ours.U, ours.b, ours.b_state),
    )
    x, valid = rows()
    found = outputs(ours, x, valid)
    np.testing.assert_allclose(
        found, loop(lambda x, h: theirs(x, h), np.zeros(WIDTH), x, valid), atol=1e-12
    )


def test_lstm_equals_that_of_equinox():
    ours, theirs = layer("lstm"), eqx.nn.LSTMCell(INPUTS, WIDTH, key=jax.random.key(0))
    theirs = eqx.tree_at(
        lambda c: (c.weight_ih, c.weight_hh, c.bias), theirs, (ours.W, ours.U, ours.b)
    )
    x, valid = rows()
    start = (np.zeros(WIDTH), np.zeros(WIDTH))
    np.testing.assert_allclose(
        outputs(ours, x, valid), loop(lambda x, h: theirs(x, h), start, x, valid), atol=1e-12
    )


def test_a_plain_layer_is_a_tanh():
    ours = layer("rnn")
    x, valid = rows()

    def step(x, h):
        return jnp.tanh(ours.W @ x + ours.U @ h + ours.b)

    np.testing.assert_allclose(
        outputs(ours, x, valid), loop(step, np.zeros(WIDTH), x, valid), atol=1e-12
    )


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_rows_before_a_series_change_nothing(cell):
    stack = RecurrentStack(INPUTS, WIDTH, 2, cell, np.random.default_rng(2))
    x, valid = rows()
    alone = outputs(stack, x[4:, 1:2], valid[4:, 1:2])
    np.testing.assert_allclose(outputs(stack, x, valid)[4:, 1:2], alone, atol=1e-12)


def test_backwards_sees_later_rows_only():
    stack = RecurrentStack(INPUTS, WIDTH, 2, "gru", np.random.default_rng(2))
    x, valid = rows()
    found = compiled_backwards(stack, x, valid)
    early = (np.arange(STEPS) < 3)[:, None, None]
    changed = compiled_backwards(stack, x + 1.0 * early, valid)
    np.testing.assert_array_equal(found[3:], changed[3:])
    assert (np.abs(found - changed)[0, 0] > 1e-6).all()
    flipped = outputs(stack, x[::-1], valid[::-1])[::-1]
    np.testing.assert_array_equal(found, flipped)


def test_both_directions_give_what_each_has_read_at_its_end():
    """Of two layers: the one that reads forwards ends at the last row, the other at the first."""
    both = BothDirections(INPUTS, WIDTH, 2, "lstm", np.random.default_rng(2))
    ends = compiled(lambda x, valid: both(x, valid))
    x, valid = rows()
    for ahead, behind in both.layers:
        forth = outputs(ahead, x, valid)
        back = outputs(behind, x[::-1], valid[::-1])[::-1]
        x = np.concatenate([forth, back], axis=-1)
    expected = np.concatenate([forth[-1], back[0]], axis=-1)  # type: ignore[possibly-undefined]
    np.testing.assert_allclose(ends(*rows()), expected, atol=1e-12)
    first, last = (
        rows()[0] + 1.0 * (np.arange(STEPS) == row)[:, None, None] for row in (0, STEPS - 1)
    )
    for changed in (first, last):
        moved = np.abs(ends(changed, valid) - expected)[0]
        assert (moved[:WIDTH] > 1e-6).all()
        assert (moved[WIDTH:] > 1e-6).all()
