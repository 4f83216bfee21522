"""Wrong files: each must be refused at its row and column, in words that help."""

import os
from io import BytesIO

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from physsm._errors import DataError
from physsm.data.table import read_table

SEMICOLON = b"time;x\n0;1,5\n1;2\n"

# The file's bytes, the keywords, a part of the message, the row, the column, a part of the advice.
WRONG_CSV = [
    # The file as a whole.
    (b"", {}, "the file is empty", None, None, ""),
    (b"\n\r\n\n", {}, "the file is empty", None, None, ""),
    (b"\xef\xbb\xbf", {}, "the file is empty", None, None, ""),
    (b"time,x\n", {}, "a header but no rows", None, None, ""),
    (b"time,x", {}, "a header but no rows", None, None, ""),
    (b"time,x\n0,1\n1,\xff\n", {}, "not UTF-8 text (byte 13)", 3, None, "encoding UTF-8"),
    (b"\xff\xfet\x00,\x00x\x00\n\x00", {}, "not UTF-8 text (byte 0)", 1, None, "encoding UTF-8"),
    # Its outline.
    (b"time,x\n0,1\n1\n2,3\n", {}, "has 1 cell, the header has 2 cells", 3, None, "empty cell"),
    (b"time,x\n0,1\n1,2,3\n", {}, "has 3 cells, the header has 2", 3, None, "decimal point"),
    (b"time,x\n\n0,1\n\n1,2,3\n", {}, "has 3 cells, the header has 2", 5, None, ""),
    (b"time,x\n0,1,5\n1,2,5\n", {}, "has 3 cells", 2, None, "not a comma"),
    (b"time,x,x\n0,1,2\n1,2,3\n", {}, "the same name", 1, "x", "rename one"),
    (b"time,x, x\n0,1,2\n1,2,3\n", {}, "the same name", 1, "x", "rename one"),
    (b",time,x\n0,0,1\n1,1,2\n", {}, "column 1 has no name", 1, None, "index=False"),
    (b'time,x\n0,1\n1,"2\n2,3\n', {}, "a quote has no partner", 3, None, "whole cell"),
    (b'time,x\n0,1\n1,"2\n2,"3"\n', {}, "a quote has no partner", 3, None, "whole cell"),
    (b'time,x\n0,1\n1,2"3\n', {}, "a quote has no partner", 3, None, "whole cell"),
    (b'time,x\n0,2"3,4"\n1,2\n', {}, "a quote has no partner", 2, None, "whole cell"),
    (b'"ti\nme",x\n0,1\n1,"a" b\n', {}, "a quote has no partner", 3, None, "whole cell"),
    # Its columns.
    (b"when,x\n0,1\n1,2\n", {}, "no column is called time; the columns are when, x", None, None,
     "--time"),
    (b"time,x\n0,1\n1,2\n", {"time": "tim"}, "there is no column tim; the columns are time, x",
     None, "tim", "did you mean time?"),
    (b"time,x\n0,1\n1,2\n", {"channels": ["x", "y"]}, "there is no column y", None, "y", ""),
    (b"time,x\n0,1\n1,2\n", {"controls": ["torque"]}, "there is no column", None, "torque", ""),
    (b"time,x\n0,1\n1,2\n", {"series": "name"}, "there is no column name", None, "name", ""),
    (b"time,x\n0,1\n1,2\n", {"time": "x", "channels": ["x"]}, "requested twice", None, "x", ""),
    (b"time,x\n0,1\n1,2\n", {"channels": ["x", "x"]}, "requested twice", None, "x", ""),
    (b"time,x\n0,1\n1,2\n", {"channels": "x"}, "channels is a list", None, None,
     'write channels=["x"]'),
    (b"time\n0\n1\n", {}, "no column is left for a measured channel", None, None, ""),
    (b"time,x\n0,1\n1,2\n", {"controls": ["x"]}, "no column is left", None, None, ""),
    (b"time,x\n0,1\n1,2\n", {"channels": []}, "no column is left", None, None, ""),
    # Measured cells.
    (b"time,x,y\n0,1,2\n1,2,high\n", {}, '"high" is not a number', 3, "y", "--channels"),
    (b"time,x\n0,1\n\n1,1_000\n", {}, '"1_000" is not a number', 4, "x", ""),
    (b"time,x\n0,true\n1,false\n", {}, '"true" is not a number', 2, "x", ""),
    (b"time,x\n0,1\n1,-Inf\n", {}, "-Inf is not a finite number", 3, "x", "empty"),
    (b"time,x\n0,1\n1,1e999\n", {}, "1e999 is not a finite number", 3, "x", "empty"),
    (SEMICOLON, {}, '"1,5" is not a number', 2, "x", "decimal point instead"),
    (b'time,x\n0,"-1.000,5"\n1,2\n', {}, '"-1.000,5" is not a number', 2, "x", "decimal point"),
    (b"time,x,y\n0,1,\n1,2,NA\n", {}, "this channel was never measured", None, "y", "leave"),
    # Controls.
    (b"time,x,u\n0,1,2\n1,2,\n", {"controls": ["u"]}, "the control is empty", 3, "u",
     "the value before"),
    (b"time,x,u\n0,1,2\n1,2,on\n", {"controls": ["u"]}, '"on" is not a number', 3, "u",
     "in every row"),
    (b"time,x,u\n0,1,inf\n1,2,1\n", {"controls": ["u"]}, "not a finite number", 2, "u", ""),
    # Times.
    (b"time,x\n0,1\n1,2\n1.0,3\n", {}, "the time 1.0 is repeated, first in row 3", 4, "time",
     "--series"),
    (b"time,x\n0,1\n2,2\n1,3\n", {}, "the time decreases: 1 comes after 2 in row 3", 4, "time",
     "sort the rows"),
    (b"id,time,x\na,0,1\nb,5,1\na,1,2\nb,4,3\n", {}, "decreases in series b: 4 comes after 5 in "
     "row 3", 5, "time", ""),
    (b"id,time,x\na,0,1\nb,5,1\na,0,2\nb,4,3\n", {}, "repeated in series a, first in row 2", 4,
     "time", ""),
    (b"time,x\n0,1\n,2\n", {}, "the time is empty", 3, "time", "every row needs a time"),
    (b"time,x\n0,1\nNaN,2\n", {}, "the time is empty", 3, "time", "every row needs a time"),
    (b"time,x\n0,1\ninf,2\n", {}, "inf is not a finite number", 3, "time", "needs a time"),
    (b"time,x\nnoon,1\n1,2\n", {}, '"noon" is not a time', 2, "time", "2024-01-31"),
    (b"time,x\n0,1\n2024-01-01,2\n", {}, '"2024-01-01" is a date, but the time in the first row '
     "is a number", 3, "time", "all as dates"),
    (b"time,x\n2024-01-01,1\n0,2\n", {}, '"0" is a number, but the time in the first row is a '
     "date", 3, "time", "all as dates"),
    (b"time,x\n2024-01-01,1\n2024-02-30,2\n", {}, '"2024-02-30" is not a time', 3, "time", ""),
    (b"time,x\n2024-01-01,1\n2024-01-01T25:00,2\n", {}, "is not a time", 3, "time", ""),
    (b"time,x\n2024-01-01,1\n31.01.2024,2\n", {}, '"31.01.2024" is not a time', 3, "time", ""),
    (b"time,x\n2024-01-01T00:00Z,1\n2024-01-02T00:00,2\n", {}, "some times have an offset", 3,
     "time", "in all rows or in none"),
    (b"time,x\n2024-01-01T00:00Z,1\n2024-01-02T00:00+24:00,2\n", {}, "no possible offset", 3,
     "time", ""),
    (b"time,x\n2024-01-01T00:00:00.0000001,1\n2024-01-02,2\n", {}, "resolution of one micro",
     2, "time", "as numbers"),
    (b"time,x\n0000-01-01,1\n2024-01-02,2\n", {}, "outside the years 1 to 9999", 2, "time", ""),
    (b"time,x\n2024-01-01T02:00+02:00,1\n2024-01-01T00:00Z,2\n", {}, "is repeated", 3, "time",
     ""),
    # Series.
    (b"id,time,x\na,0,1\n,1,2\n", {}, "the series id is empty", 3, "id", ""),
    (b'id,time,x\na,0,1\n" ",1,2\n', {}, "the series id is empty", 3, "id", ""),
    (b"id,time,x\na,0,1\nb,1,2\na,1,1\n", {}, "series b has only one row", 3, None, "at least two"),
    (b"time,x\n0,1\n", {}, "series 0 has only one row", 2, None, "at least two"),
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG_CSV, ids=lambda wrong: wrong[2][:40])
def test_wrong_csv(tmp_path, wrong):
    content, keywords, message, row, column, advice = wrong
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_table(path, **keywords)
    error = caught.value
    assert message in error.message
    assert "\n" not in error.message
    assert (error.path, error.row, error.column) == (str(path), row, column)
    assert advice in (error.hint or "")


def parquet(**columns) -> bytes:
    stream = BytesIO()
    pl.DataFrame(columns).write_parquet(stream)
    return stream.getvalue()


TRUE = [True, False]
WRONG_PARQUET = [
    (b"", {}, "this is not a Parquet file", None, None),
    (b"time,x\n0,1\n1,2\n", {}, "this is not a Parquet file", None, None),
    (parquet(time=[0, 1], x=[1, 2])[:-20], {}, "this is not a Parquet file", None, None),
    (parquet(time=[], x=[]), {}, "the table has no rows", None, None),
    (parquet(time=[0, 1], x=TRUE), {}, "holds truth values (true and false)", None, "x"),
    (parquet(time=[0, 1], x=[[1], [2]]), {}, "holds lists or records", None, "x"),
    (parquet(time=[0, 1], x=[{"a": 1}, {"a": 2}]), {}, "holds lists or records", None, "x"),
    (parquet(time=[0, 1], x=[b"a", b"b"]), {}, "holds objects, not numbers", None, "x"),
    (parquet(time=[0, 1], x=pl.Series([0, 1]).cast(pl.Date)), {}, "holds dates", None, "x"),
    (parquet(time=[0, 1], x=[1.0, float("inf")]), {}, "inf is not a finite number", 3, "x"),
    (parquet(time=[0, None], x=[1, 2]), {}, "the time is empty", 3, "time"),
    (parquet(time=[0.0, float("nan")], x=[1, 2]), {}, "the time is empty", 3, "time"),
    (parquet(time=TRUE, x=[1, 2]), {}, "truth values (true and false), not times", None, "time"),
    (parquet(time=pl.Series([0, 1]).cast(pl.Duration), x=[1, 2]), {}, "durations", None, "time"),
    (parquet(time=pl.Series([0, 1]).cast(pl.Datetime("ns")), x=[1, 2]), {}, "microsecond", 3,
     "time"),
    (parquet(id=TRUE, time=[0, 1], x=[1, 2]), {}, "not series ids", None, "id"),
    (parquet(id=[1.0, 1.5], time=[0, 1], x=[1, 2]), {}, "1.5 is not a series id", 3, "id"),
    (parquet(id=[1, None], time=[0, 1], x=[1, 2]), {}, "the series id is empty", 3, "id"),
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG_PARQUET, ids=lambda wrong: wrong[2][:40])
def test_wrong_parquet(tmp_path, wrong):
    content, keywords, message, row, column = wrong
    path = tmp_path / "table.parquet"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_table(path, **keywords)
    error = caught.value
    assert message in error.message
    assert (error.path, error.row, error.column) == (str(path), row, column)


def test_truncated_parquet_is_refused_wherever_it_ends(tmp_path):
    whole = parquet(time=list(range(50)), x=[0.5] * 50)
    path = tmp_path / "table.parquet"
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match="this is not a Parquet file"):
            read_table(path)


def test_missing_file_names_a_near_one(tmp_path):
    (tmp_path / "pendulum.csv").write_text("time,x\n0,1\n1,2\n")
    with pytest.raises(DataError) as caught:
        read_table(tmp_path / "pendulun.csv")
    assert caught.value.message == "there is no such file"
    assert caught.value.hint == "did you mean pendulum.csv?"


def test_missing_folder(tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        read_table(tmp_path / "no" / "table.csv")


def test_folder(tmp_path):
    folder = tmp_path / "table.csv"
    folder.mkdir()
    with pytest.raises(DataError, match="this is not a file"):
        read_table(folder)


@pytest.mark.parametrize("name", ["table.xlsx", "table"])
def test_unknown_ending(tmp_path, name):
    (tmp_path / name).write_text("time,x\n0,1\n1,2\n")
    with pytest.raises(DataError, match=r"file that ends in (\.xlsx|nothing)") as caught:
        read_table(tmp_path / name)
    assert caught.value.hint == "save it as .csv or .parquet"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_unreadable_file(tmp_path, monkeypatch, ending):
    path = tmp_path / f"table.{ending}"
    path.write_text("time,x\n0,1\n1,2\n")

    def refuse(*args, **kwargs):
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr("pathlib.Path.open", refuse)
    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    with pytest.raises(DataError, match="the file cannot be read: Permission denied"):
        read_table(path)


def test_null_character_in_the_path():
    with pytest.raises(DataError, match=r"no such file|cannot be read"):
        read_table("table\0.csv")


def test_a_wide_table_is_not_listed_in_full(tmp_path):
    path = tmp_path / "table.csv"
    names = [f"c{k}" for k in range(500)]
    path.write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    with pytest.raises(DataError) as caught:
        read_table(path)
    assert caught.value.message.endswith("c18, c19 and 480 more")


pieces = st.sampled_from(
    ["0", "1.5", "-", "e5", "NA", "2024-01-01", "T00:00Z", '"', '""', ",", ";", "\t", "\n", "\r\n",
     " ", "a", "é", "\0", "inf", "time", "id"]
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    header=st.sampled_from(["time,x\n", "id;t;x\n", '"time"\t"x"\n', ""]),
    body=st.lists(pieces, max_size=30).map("".join),
)
def test_no_text_makes_a_traceback(tmp_path, header, body):
    path = tmp_path / "table.csv"
    path.write_bytes((header + body).encode())
    try:
        panel = read_table(path)
    except DataError as error:
        assert error.path == str(path)
        assert "\n" not in error.message
        assert error.row is None or 1 <= error.row <= (header + body).count("\n") + 1
    else:
        assert len(panel) >= 1
        assert (panel.gaps > 0).all()


def test_message_is_one_sentence_with_its_place(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(SEMICOLON)
    with pytest.raises(DataError) as caught:
        read_table(path)
    assert str(caught.value) == (
        f'{path}, row 2, column x: "1,5" is not a number\n'
        "  write a decimal point instead of the comma"
    )
