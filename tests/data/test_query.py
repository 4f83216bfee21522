"""Future tables and horizons on the clock of their history."""

import numpy as np
import polars as pl
import pytest

from physsm._errors import DataError
from physsm.data.query import horizon_query, to_query
from physsm.data.table import to_panel

HISTORY = to_panel(
    {
        "id": ["b", "a", "b", "a", "a"],
        "time": [0.0, 0.0, 1.0, 2.0, 5.0],
        "x": [1.0, 2.0, 3.0, 4.0, 5.0],
        "u": [0.0] * 5,
    },
    controls=["u"],
)
DATED = to_panel({"date": ["2024-01-01", "2024-01-03"], "x": [1, 2]}, time_unit="d")
ZONED = to_panel({"date": ["2024-01-01T00:00Z", "2024-01-03T00:00Z"], "x": [1, 2]})


def test_future_rows_follow_the_order_of_the_history():
    future = pl.DataFrame(
        {"u": [1.0, 2.0, 3.0], "note": ["p", "q", "r"], "id": ["a", "b", "b"], "time": [6, 2, 7.5]},
        strict=False,
    )
    query = to_query(future, HISTORY)
    np.testing.assert_array_equal(query.lengths, [2, 1])
    np.testing.assert_array_equal(query.times, [[2.0, 7.5], [6.0, 6.0]])
    np.testing.assert_array_equal(query.controls[:, :, 0], [[2.0, 3.0], [1.0, 1.0]])


def test_future_dates_count_from_the_origin_of_the_history(tmp_path):
    path = tmp_path / "future.csv"
    path.write_text("date\n2024-01-03T12:00\n2024-01-05\n")
    query = to_query(path, DATED)
    np.testing.assert_array_equal(query.times, [[2.5, 4.0]])
    assert query.controls.shape == (1, 2, 0)


def future(**changes):
    table = {"id": ["a", "b"], "time": [6, 6], "u": [1.0, 1.0]} | changes
    return {name: column for name, column in table.items() if column is not None}


# The table, the history, a part of the message, the row, the column, a part of the advice.
WRONG = [
    (future(time=None, tim=[6, 7]), HISTORY, "there is no column time", None, "time",
     "did you mean tim?"),
    (future(id=None), HISTORY, "there is no column id", None, "id", ""),
    (future(u=None), HISTORY, "the control u is not known", None, "u", "in every row"),
    (future(id=["a", "c"]), HISTORY, "series c is not in the history", 2, "id", ""),
    (future(id=["b", "b"], time=[6, 7]), HISTORY, "series a of the history has no row", None, "id",
     "every series"),
    (future(time=[5.0, 6]), HISTORY, "the time 5.0 is not after the history of series a", 1,
     "time", "ends at 5;"),
    (future(time=[6, 0.5]), HISTORY, "the time 0.5 is not after", 2, "time", "ends at 1;"),
    (future(u=[1.0, None]), HISTORY, "the control is empty", 2, "u", "in every row"),
    (future(id=["a", "a", "b"], time=[7, 6, 6], u=[1, 1, 1]), HISTORY, "the time decreases", 2,
     "time", ""),
    (future(time=["2024-01-01", "2024-01-02"]), HISTORY, "dates, but numbers in the history", None,
     "time", ""),
    ({"date": [3.0]}, DATED, "numbers, but dates in the history", None, "date", ""),
    ({"date": ["2024-01-05T00:00Z"]}, DATED, "have an offset to UTC, those of the history have "
     "none", None, "date", ""),
    ({"date": ["2024-01-05"]}, ZONED, "have no offset to UTC, those of the history have one", None,
     "date", ""),
    ({"date": ["2024-01-02"]}, DATED, "2024-01-02 is not after the history", 1, "date",
     "ends at 2024-01-03T00:00:00;"),
    ({"date": []}, DATED, "the table has no rows", None, None, ""),
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong[2][:40])
def test_wrong_future(wrong):
    table, history, message, row, column, advice = wrong
    with pytest.raises(DataError) as caught:
        to_query(table, history)
    error = caught.value
    assert message in error.message
    assert (error.path, error.row, error.column) == (None, row, column)
    assert advice in (error.hint or "")


def test_horizon_goes_on_at_the_median_gap_of_each_series():
    panel = to_panel({"id": [1, 1, 1, 1, 2, 2], "time": [0, 1, 2, 9, 0, 5], "x": [1.0] * 6})
    query = horizon_query(panel, 3)
    np.testing.assert_array_equal(query.times, [[10, 11, 12], [10, 15, 20]])
    np.testing.assert_array_equal(query.lengths, [3, 3])
    assert query.controls.shape == (2, 3, 0)


def test_horizon_takes_future_controls():
    controls = np.arange(4.0).reshape(2, 2, 1)
    query = horizon_query(HISTORY, 2, controls)
    np.testing.assert_array_equal(query.controls, controls)
    np.testing.assert_array_equal(query.times, [[2, 3], [7.5, 10]])


@pytest.mark.parametrize(
    ("horizon", "controls", "message", "advice"),
    [
        (2, None, "the future of the controls is not known: u", "--times"),
        (2, np.zeros((2, 3, 1)), "have the shape (2, 3, 1)", "expected (2, 2, 1)"),
        (2, np.full((2, 2, 1), np.nan), "hold NaN or infinity", ""),
    ],
)
@pytest.mark.usefixtures("without_type_checks")
def test_wrong_horizon(horizon, controls, message, advice):
    with pytest.raises(DataError) as caught:
        horizon_query(HISTORY, horizon, controls)
    assert message in caught.value.message
    assert advice in (caught.value.hint or "")
