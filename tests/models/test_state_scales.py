"""Scales of states: which channels measure a state, and which are functions of states."""

from dataclasses import replace

import numpy as np
import pytest

from physsm import DataError, System
from physsm._values import Panel, Series
from physsm.models._network.scales import table_scales
from physsm.models._network.state_scales import signal_time, state_scales

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
    assert scales.expression == (0, -1, -1)
    assert scales.grounded_channels.tolist() == [0, 1]
    assert scales.free_channels.tolist() == [2]
    # Of the size of the channel, its mean included: a first guess.
    assert scales.state_scale[0] == np.hypot(table.channel_shift[0], table.channel_scale[0])
    assert scales.state_scale[1] == table.channel_scale[1]
    assert np.isfinite(scales.unknown_size).all()


def test_every_observed_channel_must_be_in_the_table():
    panel = panel_of("w", "levl")
    with pytest.raises(DataError, match=r"the physics observes level(.|\n)*did you mean levl"):
        state_scales(System.parse(TEXT), table_scales(panel, False, True), panel, True)


def waves(seed: int = 0) -> Panel:
    """Waves of a period of ten time units at irregular times, with missing cells."""
    rng = np.random.default_rng(seed)
    series = []
    for i in range(3):
        times = np.cumsum(rng.uniform(0.05, 0.2, 300))
        values = np.sin(2 * np.pi * times / 10 + i) + 0.05 * rng.standard_normal(300)
        values[rng.random(300) < 0.2] = np.nan
        series.append(Series(str(i), times, values[:, None], np.zeros((300, 0))))
    return Panel.from_series(series, ["x"], ())


def test_the_signal_time_follows_the_unit_of_time_and_no_other():
    panel = waves()
    found = signal_time(panel, [0])
    assert 10 / 8 < found < 10 / 3  # a wave differs by its own size after a sixth of its period
    milliseconds = replace(panel, times=1000 * panel.times)
    assert signal_time(milliseconds, [0]) == pytest.approx(1000 * found)
    assert signal_time(replace(panel, times=panel.times + 1e6), [0]) == pytest.approx(found)
    assert signal_time(replace(panel, values=1e-3 * panel.values + 5), [0]) == pytest.approx(found)
    assert signal_time(panel.select([2, 0, 1]), [0]) == pytest.approx(found)
    assert signal_time(panel, []) == panel.median_gap
