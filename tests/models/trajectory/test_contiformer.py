"""Chunks of times, and which rows are attended to."""

import numpy as np
import pytest

from physsm.data.window import Sizes, gather, whole_series
from physsm.models._trajectory.values import as_window
from physsm.models.contiformer import evenly
from tests.models.trajectory.make import network, pendulums


@pytest.mark.parametrize("chunk", [1, 4, 7])
def test_chunked_equals_unchunked(chunk):
    panel = pendulums(3, 20, 0)

    def path(size):
        found = network("contiformer", panel, Sizes(14, 6, 5), chunk=size, depth=2)
        batch = gather(found.plan.scale(panel), whole_series(panel, 6), 14, 6, 1.0)
        window = as_window(batch, 14, found.dtype)
        starts = found.starts(found.infer(window.rows), None)
        return np.asarray(found.paths(starts, window.course.times, window.course).z)

    np.testing.assert_allclose(path(chunk), path(100), atol=1e-12)


def test_at_most_so_many_rows_are_attended_to_the_last_always():
    np.testing.assert_array_equal(evenly(5, 8), np.arange(5))
    for rows, most in ((100, 7), (101, 32), (9, 8)):
        chosen = evenly(rows, most)
        assert len(chosen) == most
        assert chosen[-1] == rows - 1
        assert chosen[0] == 0
        assert np.diff(chosen).max() - np.diff(chosen).min() <= 1
