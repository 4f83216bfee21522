"""The mean against NumPy's."""

import numpy as np
import pytest

from physsm._errors import ConfigError
from physsm.models.mean import MODEL
from tests.models.toy import toy_panel

TRAIN = toy_panel(1, (40, 34, 40, 28))
HELD_OUT = toy_panel(2, (40, 31, 36))


def test_is_the_mean_of_the_training_part_whatever_the_history_and_the_times():
    fitted = MODEL.create(None, {}).fit(TRAIN, HELD_OUT)
    wanted = np.nanmean(TRAIN.values.reshape(-1, 2), axis=0)
    times = HELD_OUT.times.max() + np.array([0.1, 5.0, 1e6])
    for history in (HELD_OUT, HELD_OUT.between(0, 1)):
        found = fitted.forecast(history, times=times, controls=np.zeros((3, 1)))
        np.testing.assert_allclose(found.mean, np.broadcast_to(wanted, (3, 3, 2)))
    steps = fitted.one_step(HELD_OUT).mean
    np.testing.assert_allclose(steps[0, 1:], np.broadcast_to(wanted, (39, 2)))


def test_intervals_hold_their_share():
    fitted = MODEL.create(None, {"horizon": 8}).fit(toy_panel(1, (40,) * 30), seed=1)
    panel = toy_panel(5, (40,) * 60)
    history, future = panel.between(0, 30), panel.between(30, 38)
    found = fitted.forecast(history, times=future.times, controls=future.controls)
    seen = ~np.isnan(future.values)
    inside = (found.lower <= future.values) & (future.values <= found.upper)
    assert abs(inside[seen].mean() - 0.9) < 0.05


def test_settings_are_checked():
    with pytest.raises(ConfigError, match="horizon"):
        MODEL.create(None, {"horizon": 0})
