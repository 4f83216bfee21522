"""The two errors against sums done by hand."""

import numpy as np

from physsm.metrics import mae, mse

MEASURED = np.array([[1.0, np.nan], [-2.0, 4.0]])
PREDICTED = np.array([[3.0, 9.0], [-2.5, 4.0]])


def test_mean_absolute_error():
    assert mae.METRIC(MEASURED, PREDICTED) == (2 + 0.5 + 0) / 3


def test_mean_squared_error():
    assert mse.METRIC(MEASURED, PREDICTED) == (4 + 0.25 + 0) / 3


def test_are_means_over_cells():
    for metric in (mae.METRIC, mse.METRIC):
        once = metric(MEASURED, PREDICTED)
        np.testing.assert_allclose(
            metric(np.tile(MEASURED, (3, 1)), np.tile(PREDICTED, (3, 1))), once
        )
        assert metric(MEASURED[None], PREDICTED[None]) == once
