"""Local parabolas, and states between rows where they are known."""

import numpy as np
import pytest

from physsm._values import Panel, Series
from physsm.models.phy_ssm.grey_box.smoothing import parabolas, smoothed_states, states_at_rows
from tests.models.phy_ssm.grey_box.make import make_unit, oscillators


@pytest.mark.parametrize("half", [1, 2, 5, 100])
def test_a_parabola_is_found_at_irregular_times_with_missing_rows(half):
    rng = np.random.default_rng(0)
    times = 50 + np.cumsum(rng.uniform(0.05, 1, 40))
    x = 3 - 2 * (times - 60) + 0.7 * (times - 60) ** 2
    shown = np.where(rng.random(40) < 0.3, np.nan, x)
    value, slope = parabolas(times, shown, half)
    np.testing.assert_allclose(value, x, rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(slope, -2 + 1.4 * (times - 60), rtol=1e-5, atol=1e-5)


def test_of_few_measurements_there_is_a_line_or_a_constant():
    times = np.array([0.0, 1.0, 3.0])
    value, slope = parabolas(times, np.array([1.0, np.nan, 7.0]), 3)
    np.testing.assert_allclose((value, slope), ([1, 3, 7], [2, 2, 2]), rtol=1e-6)
    value, slope = parabolas(times, np.array([np.nan, 5.0, np.nan]), 3)
    np.testing.assert_allclose((value, slope), ([5, 5, 5], [0, 0, 0]), rtol=1e-6)
    assert np.isnan(parabolas(times, np.full(3, np.nan), 3)).all()


def test_a_velocity_is_the_slope_of_its_position():
    panel, states = oscillators(0, (40, 30), gap=0.02)
    unit = make_unit(panel)
    found = smoothed_states(unit, unit.scales.table.scale(panel), 2)
    for i, rows in enumerate(panel.lengths):
        z = found[i, :rows] * np.array(unit.scales.states.state_scale)
        np.testing.assert_allclose(z, states[i, :rows], atol=0.02)
    hidden = make_unit(panel, "x' = 2*v\nv' = -x\nobserve x")
    found = smoothed_states(hidden, hidden.scales.table.scale(panel), 2)
    assert np.isnan(found[..., 1]).all()  # twice a velocity is none


def one_series(name: str, times: list[float]) -> Series:
    return Series(name, np.array(times), np.zeros((len(times), 1)), np.zeros((len(times), 0)))


def test_states_at_rows_are_linear_between_known_ones():
    whole = Panel.from_series(
        [one_series("b", [0, 1, 2, 3, 4, 5]), one_series("a", [0, 2]), one_series("c", [1, 2, 3])],
        ["x"],
    )
    early = Panel.from_series([one_series("a", [0, 2]), one_series("b", [0, 1])], ["x"])
    late = Panel.from_series([one_series("b", [3, 5])], ["x"])
    known = [
        (early, np.array([[[1.0, 0.0], [2.0, 0.0]], [[0.0, 4.0], [1.0, 4.0]]])),
        (late, np.array([[[5.0, 4.0], [9.0, 0.0]]])),
    ]
    found = states_at_rows(whole, known)
    np.testing.assert_allclose(found[0, :, 0], [0, 1, 3, 5, 7, 9])
    np.testing.assert_allclose(found[0, :, 1], [4, 4, 4, 4, 2, 0])
    np.testing.assert_allclose(found[1, :2, 0], [1, 2])
    # A series without any has the means of all.
    np.testing.assert_allclose(found[2, :3], np.broadcast_to([3.0, 2.0], (3, 2)))


def test_rows_that_only_pad_a_series_are_no_known_states():
    short = Panel.from_series([one_series("a", [0, 1, 2]), one_series("b", [0])], ["x"])
    states = np.full((2, 3, 1), 7.0)
    states[1, 1:] = 0.0  # padding
    unknown = Panel.from_series([one_series("c", [0, 1])], ["x"])
    np.testing.assert_allclose(states_at_rows(unknown, [(short, states)]), 7)


def test_series_of_two_tables_may_have_the_same_id():
    one, other = one_series("a", [0, 1, 2]), one_series("a", [0, 1, 2])
    other.values[:] = 5.0
    first, second = (Panel.from_series([series], ["x"]) for series in (one, other))
    known = [(first, np.full((1, 3, 1), 7.0)), (second, np.full((1, 3, 1), 9.0))]
    found = states_at_rows(Panel.from_series([one, other], ["x"]), known)
    np.testing.assert_allclose(found[..., 0], [[7, 7, 7], [9, 9, 9]])
