"""Windows across a break in the recording are not trained on."""

import numpy as np

from physsm._values import Panel, Series
from physsm.data.window import windows
from physsm.models._network.training import _without_breaks


def panel_with_a_break(at: int) -> Panel:
    times = np.arange(40.0)
    times[at:] += 1e6
    broken = Series("broken", times, np.ones((40, 1)), np.zeros((40, 0)))
    whole = Series("whole", np.arange(30.0), np.ones((30, 1)), np.zeros((30, 0)))
    return Panel.from_series([broken, whole], ["x"])


def test_windows_that_hold_the_break_are_left_out():
    panel = panel_with_a_break(20)
    chosen = windows(panel, 6, 4, 1)
    kept = _without_breaks(panel, chosen)
    for series, start, stop in zip(chosen.series, chosen.start, chosen.stop, strict=True):
        is_kept = ((kept.series == series) & (kept.start == start)).any()
        assert is_kept == (series == 1 or stop <= 20 or start >= 20)


def test_all_windows_stay_where_each_holds_a_break():
    panel = panel_with_a_break(20).select([0])
    chosen = windows(panel, 30, 10, 1)
    assert _without_breaks(panel, chosen).number == chosen.number
