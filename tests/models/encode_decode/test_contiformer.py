"""Chunks of times, and which time steps are attended to."""

from functools import cache

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from physsm.data.window import Sizes
from physsm.models.contiformer import evenly
from tests.examples import examples
from tests.models.encode_decode.make import network, pendulums, window_of

SIZES = Sizes(14, 6, 5)


@cache
def states(chunk: int) -> np.ndarray:
    """States of trajectories that are computed in chunks of so many times."""
    panel = pendulums(3, 20, 0)
    found = network("contiformer", panel, SIZES, chunk=chunk, depth=2)

    @eqx.filter_jit
    def along(found, window):
        starts = found.starts(found.infer(window.rows), None)
        return found.trajectories(starts, window.timeline.times, window.timeline).z

    return np.asarray(along(found, window_of(found, panel, SIZES)))


@pytest.mark.parametrize("chunk", [1, 4, 7])
def test_chunked_equals_unchunked(chunk):
    np.testing.assert_allclose(states(chunk), states(100), atol=1e-12)


chosen_keys = jax.jit(evenly, static_argnums=1)


@settings(max_examples=examples(8))
@example(rows=1, padding=5, most=2)
@example(rows=70, padding=30, most=33)
@given(rows=st.integers(1, 120), padding=st.integers(0, 60), most=st.integers(2, 40))
def test_keys_are_evenly_chosen_of_the_rows_that_are_there(rows, padding, most):
    """However many rows stand before a series, the same of its own are attended to."""
    valid = np.concatenate([np.zeros(padding, bool), np.ones(rows, bool)])
    chosen, is_new = (np.asarray(part) for part in chosen_keys(valid, most))
    kept = chosen[is_new]
    assert valid[kept].all()
    assert len(set(kept)) == len(kept) == min(rows, most)
    assert kept[-1] == padding + rows - 1
    if rows > 1:
        assert kept[0] == padding
        assert np.diff(kept).max() - np.diff(kept).min() <= 1
    alone, _ = chosen_keys(np.ones(rows, bool), most)
    np.testing.assert_array_equal(kept, padding + np.unique(np.asarray(alone)))
