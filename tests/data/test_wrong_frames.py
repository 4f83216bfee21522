"""Wrong data frames, dicts, arrays and panels. Rows of data count from 1."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from physsm._errors import DataError
from physsm.data.arrays import panel_from_arrays
from physsm.data.table import to_panel

T = np.array([0.0, 1.0])
X = np.ones((2, 1))
NANOSECONDS = np.array([0, 1], "datetime64[ns]")
PANEL = to_panel({"time": T, "x": T})

# The data, the keywords, a part of the message, the row, the column.
WRONG_DATA = [
    (42, {}, "a int is not a table", None, None),
    (pl.LazyFrame({"time": [0, 1]}), {}, "a LazyFrame is not a table", None, None),
    (pd.Series([1, 2]), {}, "a Series is not a table", None, None),
    (T, {}, "a ndarray is not a table", None, None),
    (pd.DataFrame([[0, 1], [1, 2]]), {}, "the column name 0 is not text", None, None),
    (pd.DataFrame([[0, 1, 2]], columns=["time", "x", "x"]), {}, "the same name", None, "x"),
    (pa.table([[0], [1], [2]], ["time", "x", "x"]), {}, "the same name", None, "x"),
    (pl.DataFrame(), {}, "the table has no columns", None, None),
    (pl.DataFrame({"time": [], "x": []}), {}, "the table has no rows", None, None),
    (pd.DataFrame({"x": [1, 2]}, index=[0, 1]), {}, "no column is called time", None, None),
    (pd.DataFrame({"time": T, "x": [1, "a"]}), {}, '"a" is not a number', 2, "x"),
    (pd.DataFrame({"time": T, "x": [1, 2j]}), {}, "is not a number", 1, "x"),
    (pd.DataFrame({"time": T, "x": [True, False]}), {}, "holds truth values", None, "x"),
    (pl.DataFrame({"time": T, "x": [1.0, np.inf]}), {}, "inf is not a finite number", 2, "x"),
    (pl.DataFrame({"time": [1, 1], "x": T}), {}, "1 is repeated, first in row 1", 2, "time"),
    (pl.DataFrame({"time": T, "x": [None, None]}), {}, "never measured", None, "x"),
    (pl.DataFrame({"time": T, "x": T, "u": [None, 1]}), {"controls": ["u"]}, "the control is empty",
     1, "u"),
    ({"time": T, "x": T + 1j}, {}, "complex numbers", None, "x"),
    ({"time": T, "x": X}, {}, "a column has one dimension, this one has 2", None, "x"),
    ({"time": T, "x": [[1], [1, 2]]}, {}, "have different shapes", None, "x"),
    ({"time": T, "x": [1, 2, 3]}, {}, "has 3 rows, column time has 2", None, "x"),
    ({"time": T, "x": np.array([True, False])}, {}, "holds truth values", None, "x"),
    ({"time": NANOSECONDS, "x": T}, {}, "a resolution of one microsecond", 2, "time"),
    (pd.DataFrame({"time": NANOSECONDS, "x": T}), {}, "a resolution of one microsecond", 2, "time"),
    ({"time": np.array(["2024-01-01", "NaT"], "datetime64[D]"), "x": T}, {}, "the time is empty",
     2, "time"),
    (pd.DataFrame({"time": [pd.NaT, pd.Timestamp(0)], "x": T}), {}, "time is empty", 1, "time"),
    ({}, {}, "the table has no columns", None, None),
    (PANEL, {"time": "t"}, "time of a Panel cannot be chosen again: here it is time", None, None),
    (PANEL, {"series": "id"}, "series of a Panel cannot be chosen again: here it is none", None,
     None),
    (PANEL, {"channels": ["x", "y"]}, "channels of a Panel", None, None),
    (PANEL, {"controls": ["u"]}, "controls of a Panel", None, None),
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG_DATA, ids=lambda wrong: wrong[2][:40])
def test_wrong_data(wrong):
    given, keywords, message, row, column = wrong
    with pytest.raises(DataError) as caught:
        to_panel(given, **keywords)
    error = caught.value
    assert message in error.message
    assert (error.path, error.row, error.column) == (None, row, column)


# The arguments, a part of the message, the row, the column.
WRONG_ARRAYS = [
    ({"times": T, "values": T}, "values has an array of the shape (2,)", None, None),
    ({"times": 1.0, "values": X}, "times has an array of the shape ()", None, None),
    ({"times": T, "values": np.ones((1, 1, 2, 1))}, "of the shape (1, 1, 2, 1)", None, None),
    ({"times": T, "values": X + 0j}, "values holds complex numbers", None, None),
    ({"times": T, "values": X > 0}, "values holds truth values", None, None),
    ({"times": ["a", "b"], "values": X}, "times holds text", None, None),
    ({"times": T, "values": [[1, 2], [3]]}, "values cannot be made an array", None, None),
    ({"times": [T, T.astype("datetime64[s]")], "values": [X, X]}, "both numbers and dates", None,
     None),
    ({"times": T, "values": np.ones((3, 1))}, "series 0: values has 3 steps, times has 2", None,
     None),
    ({"times": T, "values": X, "controls": np.ones((1, 1))}, "controls has 1 steps", None, None),
    ({"times": [T, T, T], "values": [X, X]}, "times has 3 series, values has 2", None, None),
    ({"times": T, "values": [X, X], "controls": [X]}, "controls has 1 series", None, None),
    ({"times": T, "values": [X, X], "ids": ["a"]}, "ids has 1 series", None, None),
    ({"times": T, "values": [X, X], "ids": ["a", "a"]}, "two series have the id a", None, None),
    ({"times": T, "values": X, "channels": ["a", "b"]}, "2 names are given for 1 channels", None,
     None),
    ({"times": T, "values": X, "channels": ["time"]}, "the same name", None, "time"),
    ({"times": T, "values": X, "controls": X, "channels": ["u0"]}, "the same name", None, "u0"),
    ({"times": T, "values": [X, np.ones((2, 2))]}, "different numbers of channels", None, None),
    ({"times": T, "values": np.ones((0, 2, 1))}, "values has no series", None, None),
    ({"times": T[:0], "values": X[:0]}, "series 0 has no steps", None, None),
    ({"times": T, "values": np.ones((2, 0))}, "no column is left", None, None),
    ({"times": [T, T[::-1]], "values": [X, X]}, "series 1: the time decreases", 2, "time"),
    ({"times": [T, T[:1]], "values": [X, X[:1]]}, "series 1 has only one row", 1, None),
    ({"times": [T, [0, np.nan]], "values": [X, X]}, "series 1: the time is empty", 2, "time"),
    ({"times": T, "values": [X, X * np.inf], "ids": [4, 5]}, "series 5: inf is not", 1, "x0"),
    ({"times": T, "values": X, "controls": X * np.nan}, "the control is empty", 1, "u0"),
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG_ARRAYS, ids=lambda wrong: wrong[1][:40])
def test_wrong_arrays(wrong):
    arguments, message, row, column = wrong
    with pytest.raises(DataError) as caught:
        panel_from_arrays(**arguments)
    error = caught.value
    assert message in error.message
    assert (error.path, error.row, error.column) == (None, row, column)
