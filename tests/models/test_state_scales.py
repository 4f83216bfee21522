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


LAG = "control outside\nroom' = ?k*outside - ?k*room\nobserve room\nunknown ?k constant"
FAST = "x' = v\nv' = -?b*[max(v - 8, 0)]*v\nobserve x, v\nunknown ?b constant"


def room(zero: float) -> Panel:
    """Temperatures of a room and outside of it, in kelvins above a zero."""
    times, rng = np.arange(200.0), np.random.default_rng(0)
    inside = 293 - zero + 2 * np.sin(times / 20) + 0.1 * rng.standard_normal(200)
    outside = 283 - zero + 5 * np.sin(times / 40)
    return Panel.from_series(
        [Series("a", times, inside[:, None], outside[:, None])], ["room"], ["outside"]
    )


def size_of_unknown(text: str, panel: Panel) -> float:
    table = table_scales(panel, False, True)
    return float(state_scales(System.parse(text), table, panel, True).unknown_size[0])


def test_a_difference_is_one_effect_of_an_unknown_whatever_the_zero_of_its_parts():
    kelvin, celsius = (size_of_unknown(LAG, room(zero)) for zero in (0, 273.15))
    assert kelvin == pytest.approx(celsius, rel=1e-6)
    table = table_scales(room(0), False, True)
    scale, slope = float(table.channel_scale[0]), 10.0  # of a room, and between it and outside
    time = signal_time(room(0), [0])
    assert kelvin == pytest.approx(scale / (slope * time), rel=0.3)


def test_an_effect_that_is_zero_at_typical_states_counts_where_it_sets_in():
    size = size_of_unknown(FAST, panel_of("x", "v"))
    assert 0 < size < 0.1  # it would be one without any effect
