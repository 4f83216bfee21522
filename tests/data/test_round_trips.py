"""Frame → Panel → frame, for every kind of table, and random panels through files."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from physsm._values import Layout, Panel, Series
from physsm.data.arrays import panel_from_arrays
from physsm.data.files import write_table
from physsm.data.table import panel_frame, read_table, to_panel

# Two series with times of their own, interleaved; a cell, a row and two channels' halves missing.
NUMBERS = pl.DataFrame(
    {
        "series": [7, 3, 7, 3, 3],
        "time": [0.0, -1.5, 0.1, 0.25, 1e6],
        "theta": [1.0, None, 0.1, 2.0, None],
        "omega": [None, None, 1e-300, -3.5, 7.0],
        "torque": [0.0, 1.0, 0.5, -1.0, 0.0],
    }
)
DATES = NUMBERS.with_columns(
    pl.Series("time", ["2024-02-28", "2020-01-01", "2024-02-29", "2020-01-02", "2020-03-01"])
    .str.to_datetime()
    .dt.cast_time_unit("us")
)
UTC = DATES.with_columns(pl.col("time").dt.replace_time_zone("UTC"))
TABLES = {"numbers": NUMBERS, "dates": DATES, "utc": UTC}


def by_series(frame: pl.DataFrame) -> pl.DataFrame:
    """Series one after the other, in the order of their first rows: how a panel keeps them."""
    return pl.concat(frame.partition_by("series", maintain_order=True))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("kind", ["polars", "pandas", "pyarrow", "csv", "parquet", "dict"])
def test_every_kind_of_table_comes_back(tmp_path, name, kind):
    frame = TABLES[name]
    if kind in ("csv", "parquet"):
        path = tmp_path / f"table.{kind}"
        write_table(frame, path)
        panel = read_table(path, controls=["torque"])
    else:
        kinds = {
            "polars": lambda: frame,
            "pandas": frame.to_pandas,
            "pyarrow": frame.to_arrow,
            "dict": lambda: {column.name: column.to_list() for column in frame},
        }
        panel = to_panel(kinds[kind](), controls=["torque"])
    assert panel.ids == ("7", "3")
    assert panel.layout.integer_ids
    assert panel.channels == ("theta", "omega")
    assert_frame_equal(panel_frame(panel), by_series(frame), check_exact=True)


def test_panel_is_padded_as_promised():
    panel = to_panel(NUMBERS, controls=["torque"])
    np.testing.assert_array_equal(panel.lengths, [2, 3])
    np.testing.assert_array_equal(panel.times, [[0, 0.1, 0.1], [-1.5, 0.25, 1e6]])
    np.testing.assert_array_equal(panel.controls[0, :, 0], [0, 0.5, 0.5])
    np.testing.assert_array_equal(panel.values[1], [[np.nan, np.nan], [2.0, -3.5], [np.nan, 7.0]])
    assert np.isnan(panel.values[0, 2]).all()


def test_a_panel_passes_through():
    panel = to_panel(NUMBERS)
    assert to_panel(panel) is panel
    assert to_panel(panel, time="time", series="series", channels=panel.channels) is panel


def test_arrow_table_with_int_and_decimal_columns():
    table = pa.table({"t": [0, 1], "x": pa.array([1, 2], pa.decimal128(5, 2))})
    np.testing.assert_array_equal(to_panel(table).values[0, :, 0], [1.0, 2.0])


def test_pandas_frame_of_many_dtypes():
    frame = pd.DataFrame(
        {
            "Timestamp": pd.to_datetime(["2024-01-01", "2024-01-02"]),
            "id": pd.Series(["b", "b"], dtype="category"),
            "nullable": pd.array([1, None], dtype="Int64"),
            "objects": pd.Series([1, "2.5"], dtype=object),
            "small": np.array([1, 2], np.float32),
        }
    )
    panel = to_panel(frame, time_unit="h")
    assert (panel.ids, panel.layout.time, panel.layout.series) == (("b",), "Timestamp", "id")
    np.testing.assert_array_equal(panel.times, [[0.0, 24.0]])
    np.testing.assert_array_equal(panel.values[0], [[1, 1, 1], [np.nan, 2.5, 2]])


def test_pandas_frame_without_pyarrow():
    """PyArrow is no requirement; a fresh interpreter shows what happens where it is missing."""
    code = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pyarrow":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
import pandas as pd
from physsm.data.table import to_panel
frame = pd.DataFrame({
    "time": pd.to_datetime(["2024-01-01", "2024-01-02"]),
    "id": ["a", "a"],
    "x": [0.1, None],
    "n": pd.array([None, 3], dtype="Int64"),
})
panel = to_panel(frame, time_unit="d")
print(panel.ids, panel.times.tolist(), panel.values.tolist())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout == "('a',) [[0.0, 1.0]] [[[0.1, nan], [nan, 3.0]]]\n", run.stderr


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, np.float32, np.uint8, np.int64])
def test_arrays_of_every_width(dtype):
    panel = to_panel({"time": [0, 1], "x": np.array([1, 3], dtype)})
    np.testing.assert_array_equal(panel.values[0, :, 0], [1.0, 3.0])


@pytest.mark.parametrize("unit", ["D", "h", "s", "ms", "us", "ns"])
def test_arrays_of_dates_of_every_unit(unit):
    days = np.array(["2024-01-01", "2024-01-02"], f"datetime64[{unit}]")
    panel = to_panel({"time": days, "x": [1, 2]}, time_unit="h")
    np.testing.assert_array_equal(panel.times, [[0, 24]])


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_separators_newlines_blank_lines_and_blanks(tmp_path, separator, newline):
    rows = ["", '"Time"| x |"a,;b"', "", "0| 1.5|NA", '1|"nan"|2', "2|null|", "3||.5e1", "", ""]
    path = tmp_path / "table.csv"
    path.write_bytes(b"\xef\xbb\xbf" + newline.join(rows).replace("|", separator).encode())
    panel = read_table(path)
    assert panel.channels == ("x", "a,;b")
    assert panel.layout == Layout(time="Time")
    np.testing.assert_array_equal(panel.times, [[0, 1, 2, 3]])
    nan = np.nan
    np.testing.assert_array_equal(panel.values[0], [[1.5, nan], [nan, 2], [nan, nan], [nan, 5]])


def test_rows_of_a_quoted_cell_with_a_newline(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('id,time,x\n"a\nb",0,1\n"say ""hi""",0,2\n"a\nb",1,3\n"say ""hi""",1,4\n')
    panel = read_table(path)
    assert panel.ids == ("a\nb", 'say "hi"')
    np.testing.assert_array_equal(panel.values[:, :, 0], [[1, 3], [2, 4]])


@pytest.mark.parametrize(
    ("ids", "integers"),
    [(["1", "2"], True), (["-3", "0"], True), (["01", "2"], False), (["1", "b"], False),
     (["NA", "null"], False), (["9" * 30, "1"], False)],
)  # fmt: skip
def test_ids_are_integers_only_where_nothing_is_lost(tmp_path, ids, integers):
    path = tmp_path / "table.csv"
    path.write_text("id,time,x\n" + "".join(f"{one},{t},1\n" for t in (0, 1) for one in ids))
    panel = read_table(path)
    assert panel.ids == tuple(ids)
    assert panel.layout.integer_ids is integers
    assert panel_frame(panel)["id"].cast(pl.String).to_list() == [ids[0]] * 2 + [ids[1]] * 2


def test_usual_names_give_way_to_what_is_asked_for():
    table = {"time": [0, 1], "t": [5, 6], "id": [1, 1], "ID": [3, 4]}
    panel = to_panel(table, channels=["time"])
    assert (panel.layout.time, panel.layout.series, panel.channels) == ("t", "id", ("time",))
    panel = to_panel(table, series="id")
    assert panel.channels == ("t", "ID")


def test_arrays_and_lists_of_arrays():
    times = np.array([0.0, 1.0, 3.0])
    values = np.arange(12.0).reshape(2, 3, 2)
    shared = panel_from_arrays(times, values, channels=["a", "b"], ids=["p", "q"])
    listed = panel_from_arrays([times, times], list(values), channels=["a", "b"], ids=["p", "q"])
    np.testing.assert_array_equal(shared.values, values)
    np.testing.assert_array_equal(shared.times, [times, times])
    assert_frame_equal(panel_frame(shared), panel_frame(listed))
    assert shared.layout == Layout(series="series")

    single = panel_from_arrays(times, values[0], controls=values[1])
    assert (single.ids, single.layout.series) == (("0",), None)
    assert (single.channels, single.control_names) == (("x0", "x1"), ("u0", "u1"))
    np.testing.assert_array_equal(single.controls, values[1:])

    ragged = panel_from_arrays([times, times[:2]], [values[0], values[1, :2]])
    np.testing.assert_array_equal(ragged.lengths, [3, 2])
    assert ragged.layout.integer_ids


def test_dates_and_masks_in_arrays():
    days = np.array(["2024-01-01", "2024-01-02"], "datetime64[D]")
    values = np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], [[False, True], [False, False]])
    panel = panel_from_arrays(days, values)
    assert panel.layout.origin == "2024-01-01T00:00:00"
    np.testing.assert_array_equal(panel.times, [[0.0, 86400.0]])
    np.testing.assert_array_equal(panel.values[0], [[1.0, np.nan], [3.0, 4.0]])


finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def recordings(draw) -> list[Series]:
    channels, controls = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    ids = draw(st.lists(st.text("aB1 ,;\"'é\n", min_size=1).map(str.strip).filter(bool),
                        min_size=1, max_size=4, unique=True))  # fmt: skip
    series = []
    for name in ids:
        times = np.array(sorted(draw(st.sets(finite, min_size=2, max_size=6))))
        cells = st.lists(st.one_of(st.just(np.nan), finite), min_size=channels, max_size=channels)
        values = np.array([draw(cells) for _ in times])
        inputs = st.lists(finite, min_size=controls, max_size=controls)
        given_inputs = np.array([draw(inputs) for _ in times]).reshape(len(times), controls)
        series.append(Series(name, times, values, given_inputs))
    series[0].values[0] = 1.0  # every channel is measured once
    return series


@given(series=recordings(), ending=st.sampled_from(["csv", "parquet"]), random=st.randoms())
def test_random_irregular_panels_come_back_from_files(series, ending, random):
    channels = [f"x{k}" for k in range(series[0].values.shape[1])]
    controls = [f"u{k}" for k in range(series[0].controls.shape[1])]
    panel = Panel.from_series(series, channels, controls, Layout(series="series"))
    frame = panel_frame(panel)
    # Deal the rows of the series out in any order; each series keeps its own.
    deal = frame["series"].to_list()
    random.shuffle(deal)
    rows = {name: iter(part.rows()) for (name,), part in frame.group_by("series")}
    shuffled = pl.DataFrame([next(rows[name]) for name in deal], frame.schema, orient="row")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table.{ending}"
        write_table(shuffled, path)
        back = read_table(path, controls=panel.control_names)
    assert sorted(back.ids) == sorted(panel.ids)
    again = back.select([back.ids.index(name) for name in panel.ids])
    for field in ("times", "values", "controls", "lengths"):
        np.testing.assert_array_equal(getattr(again, field), getattr(panel, field))
    assert (again.channels, again.control_names) == (panel.channels, panel.control_names)
