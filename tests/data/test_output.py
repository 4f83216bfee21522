"""Forecast tables, and files that appear whole or not at all."""

from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from physsm._errors import DataError
from physsm._values import Forecast, Layout
from physsm.data.files import write_table


def forecast(layout: Layout, ids=("7", "3"), channels=("x", "y")) -> Forecast:
    """Channel k of series i at step j is 100 i + 10 j + k, in an interval of one on each side."""
    steps = np.array([[1.0, 1.5, 3.0], [2.0, 2.0, 2.0]])
    i, j, k = np.ogrid[:2, :3, : len(channels)]
    mean = 100.0 * i + 10.0 * j + k
    return Forecast(ids, steps, np.array([3, 1]), channels, mean, mean - 1, mean + 1, 0.9, layout)


def test_forecast_has_the_look_of_its_history():
    frame = forecast(Layout("t", "id", integer_ids=True)).to_frame()
    expected = pl.DataFrame(
        {
            "id": [7, 7, 7, 3],
            "t": [1.0, 1.5, 3.0, 2.0],
            "x": [0.0, 10.0, 20.0, 100.0],
            "x_lower": [-1.0, 9.0, 19.0, 99.0],
            "x_upper": [1.0, 11.0, 21.0, 101.0],
            "y": [1.0, 11.0, 21.0, 101.0],
            "y_lower": [0.0, 10.0, 20.0, 100.0],
            "y_upper": [2.0, 12.0, 22.0, 102.0],
        }
    )
    assert_frame_equal(frame, expected)


def test_text_ids_and_dates():
    layout = Layout("date", "id", origin="2024-01-01T00:00:00", time_unit="d")
    frame = forecast(layout, ids=("a", "b")).to_frame()
    assert frame["id"].to_list() == ["a", "a", "a", "b"]
    assert frame["date"].to_list() == [
        datetime(2024, 1, 2), datetime(2024, 1, 2, 12), datetime(2024, 1, 4), datetime(2024, 1, 3)
    ]  # fmt: skip


def test_utc_is_kept_in_files(tmp_path):
    layout = Layout("date", None, origin="2024-01-01T00:00:00Z", time_unit="d")
    frame = forecast(layout).to_frame().head(1)
    assert frame["date"].item() == datetime(2024, 1, 2, tzinfo=UTC)
    write_table(frame, tmp_path / "out.csv")
    header, row = (tmp_path / "out.csv").read_text().splitlines()
    assert header == "date,x,x_lower,x_upper,y,y_lower,y_upper"
    assert row == "2024-01-02T00:00:00Z,0.0,-1.0,1.0,1.0,0.0,2.0"


def test_two_columns_of_one_name():
    with pytest.raises(DataError, match="two columns of this name") as caught:
        forecast(Layout(), channels=("x", "x_lower")).to_frame()
    assert caught.value.column == "x_lower"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_numbers_come_back_bit_for_bit(tmp_path, ending):
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**64, 5000, np.uint64).view(np.float64)
    frame = pl.DataFrame({"x": bits[np.isfinite(bits)], "n": np.arange(np.isfinite(bits).sum())})
    path = tmp_path / f"out.{ending}"
    write_table(frame, path)
    back = pl.read_csv(path) if ending == "csv" else pl.read_parquet(path)
    assert_frame_equal(back, frame, check_exact=True)


def test_an_old_file_is_replaced(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")
    write_table(pl.DataFrame({"x": [1]}), path)
    assert path.read_text() == "x\n1\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["out.txt", "out"])
def test_unknown_ending(tmp_path, name):
    with pytest.raises(DataError, match=r"ends in (\.txt|nothing)"):
        write_table(pl.DataFrame({"x": [1]}), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_missing_folder_and_folder_in_the_way(tmp_path):
    with pytest.raises(DataError, match="cannot be written: No such file or directory"):
        write_table(pl.DataFrame({"x": [1]}), tmp_path / "no" / "out.csv")
    (tmp_path / "out.csv").mkdir()
    with pytest.raises(DataError, match="cannot be written: Is a directory"):
        write_table(pl.DataFrame({"x": [1]}), tmp_path / "out.csv")
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.csv"]


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_nothing_is_left_behind_and_the_old_file_stays(tmp_path, monkeypatch, failure):
    path = tmp_path / "out.csv"
    path.write_text("old")

    def fail(descriptor):
        raise failure

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises((DataError, KeyboardInterrupt)) as caught:
        write_table(pl.DataFrame({"x": [1]}), path)
    assert isinstance(caught.value, DataError) == isinstance(failure, OSError)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_nested_columns_cannot_be_written_as_csv(tmp_path):
    with pytest.raises(DataError, match="the file cannot be written"):
        write_table(pl.DataFrame({"x": [[1]]}), tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []
