"""Scales of states: which channels measure a state, and which are functions of states."""

import numpy as np
import pytest

from physsm import DataError, System
from physsm._values import Panel, Series
from physsm.models._network.scales import table_scales
from physsm.models._network.state_scales import state_scales

TEXT = (
    "h' = -?k*h\nw' = -w\nobserve level = ?gain*h + ?bias, w\nunknown ?k, ?gain, ?bias constant\n"
    "state h >= 0"
)


def panel_of(*channels: str) -> Panel:
    times = np.arange(30, dtype=float)
    values = np.random.default_rng(0).uniform(1, 2, (30, len(channels)))
    one = Series("a", times, values, np.zeros((30, 0)))
    return Panel.from_series([one], channels, ())


def test_a_channel_that_is_a_function_measures_no_state():
    panel = panel_of("level", "w", "other")
    table = table_scales(panel, False, True)
    scales = state_scales(System.parse(TEXT), table, panel, True)
    assert scales.measured == (-1, 1, -1)
    assert scales.state_scale[0] == 1
    assert scales.state_scale[1] == table.channel_scale[1]
    assert np.isfinite(scales.unknown_size).all()


def test_every_observed_channel_must_be_in_the_table():
    panel = panel_of("w", "levl")
    with pytest.raises(DataError, match=r"the physics observes level(.|\n)*did you mean levl"):
        state_scales(System.parse(TEXT), table_scales(panel, False, True), panel, True)
