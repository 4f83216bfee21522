"""Chunks of times, and which rows are attended to."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physsm.data.window import Sizes, gather, whole_series
from physsm.models._encode_decode.values import as_window
from physsm.models.contiformer import evenly
from tests.models.trajectory.make import network, pendulums


@pytest.mark.parametrize("chunk", [1, 4, 7])
def test_chunked_equals_unchunked(chunk):
    panel = pendulums(3, 20, 0)

    def trajectory(size):
        found = network("contiformer", panel, Sizes(14, 6, 5), chunk=size, depth=2)
        batch = gather(found.scales.scale(panel), whole_series(panel, 6), 14, 6, 1.0)
        window = as_window(batch, 14, found.dtype)
        starts = found.starts(found.infer(window.rows), None)
        return np.asarray(found.paths(starts, window.timeline.times, window.timeline).z)

    np.testing.assert_allclose(path(chunk), path(100), atol=1e-12)


@settings(max_examples=25)
@given(st.integers(1, 120), st.integers(0, 60), st.integers(2, 40))
def test_keys_are_evenly_chosen_of_the_rows_that_are_there(rows, padding, most):
    """However many rows stand before a series, the same of its own are attended to."""
    valid = np.concatenate([np.zeros(padding, bool), np.ones(rows, bool)])
    chosen, is_new = (np.asarray(part) for part in evenly(jnp.asarray(valid), most))
    kept = chosen[is_new]
    assert valid[kept].all()
    assert len(set(kept)) == len(kept) == min(rows, most)
    assert kept[-1] == padding + rows - 1
    if rows > 1:
        assert kept[0] == padding
        assert np.diff(kept).max() - np.diff(kept).min() <= 1
    alone, _ = evenly(jnp.ones(rows, bool), most)
    np.testing.assert_array_equal(kept, padding + np.unique(np.asarray(alone)))
