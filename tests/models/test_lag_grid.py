"""Histories on a grid, on tables small enough to check by hand."""

import numpy as np

from physsm._values import Panel, Series
from physsm.models._baseline.forecaster import ColumnScales
from physsm.models._baseline.lag_grid import known_lags, lagged_values, next_values
from physsm.models._baseline.origins import Origins, one_step_origins

PLAIN = ColumnScales(np.zeros(1), np.ones(1))


def panel_of(times, values, controls=None) -> Panel:
    u = np.zeros(len(times)) if controls is None else np.array(controls, float)
    x = np.array(values, float)
    one = Series("0", np.array(times, float), x[:, None], u[:, None])
    return Panel.from_series([one], ("x",), ("u",))


def at_rows(panel: Panel, rows: list[int]) -> Origins:
    found = one_step_origins(panel)
    return found.only(np.array(rows))


def test_look_back_runs_straight_between_measurements_of_the_history():
    panel = panel_of([0, 1, 3, 4, 5], [10, 20, np.nan, 50, 999], [0, 2, 4, 6, 8])
    past = lagged_values(panel, at_rows(panel, [0, 2, 3]), 1.0, 3, PLAIN, PLAIN)
    # A row whose channel is missing keeps the value before; later measurements are not seen.
    np.testing.assert_allclose(past.x[..., 0], [[10, 10, 10], [20, 20, 20], [50, 40, 30]])
    np.testing.assert_allclose(past.u[..., 0], [[0, 0, 0], [4, 3, 2], [6, 4, 3]])


def test_look_back_before_the_first_measurement_is_the_mean():
    panel = panel_of([0, 1, 2], [np.nan, np.nan, 7])
    level = ColumnScales(np.array([3.0]), np.array([2.0]))
    past = lagged_values(panel, at_rows(panel, [1]), 1.0, 2, level, PLAIN)
    np.testing.assert_array_equal(past.x, np.zeros((1, 2, 1)))


def test_look_ahead_runs_straight_between_rows():
    panel = panel_of([0, 0.5, 2, 3], [0, 5, 8, 12], [1, 1, 4, 0])
    after = next_values(panel, one_step_origins(panel), 1.0, PLAIN, PLAIN)
    np.testing.assert_allclose(after.x[:, 0], [6, 7, 12])
    np.testing.assert_allclose(after.u[:, 0], [2, 3, 0])


def test_look_ahead_knows_nothing_inside_a_hole_before_the_first_or_after_the_last():
    rows = np.arange(40)
    values = rows.astype(float)
    values[[0, 1]] = np.nan  # not measured before rows 0 and 1
    values[20:30] = np.nan  # a hole
    values[39] = np.nan  # the last measurement is in row 38
    panel = panel_of(0.1 * rows, values)
    found = next_values(panel, one_step_origins(panel), 0.1, PLAIN, PLAIN).x[:, 0]
    known = np.setdiff1d(rows[:-1], [0, 1, *range(19, 29), 38])
    assert np.isin(np.flatnonzero(~np.isnan(found)), known).all()
    np.testing.assert_allclose(found[known], known + 1)


def test_known_lags_counts_whole_gaps_despite_rounding():
    panel = panel_of(0.1 * np.arange(6), np.zeros(6))
    assert known_lags(panel, one_step_origins(panel), 0.1).tolist() == [1, 2, 3, 4, 5]
    panel = panel_of([0, 0.05, 0.25, 1.0], np.zeros(4))
    assert known_lags(panel, one_step_origins(panel), 0.1).tolist() == [1, 1, 3]
