"""Datetimes in tables, against Python's own datetime."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from physsm._errors import ConfigError
from physsm.data.table import panel_frame, to_panel

SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2024-03-01", 60 * 86400),
        ("2024-01-01T00:01", 60),
        ("2024-01-01 00:00:01", 1),
        ("2024-01-01t00:00:01.5", 1.5),
        ("2024-01-01T00:00:01,250", 1.25),
        ("2024-01-01T00:00:00.000001", 1e-6),
        ("2024-01-01T00:00:01.500000000", 1.5),
    ],
)
def test_iso_8601_without_a_zone(text, seconds):
    panel = to_panel({"time": ["2024-01-01", text], "x": [1, 2]})
    np.testing.assert_array_equal(panel.times, [[0, seconds]])
    assert panel.layout.origin == "2024-01-01T00:00:00"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2024-01-01T00:00:01Z", 1),
        ("2024-01-01T02:00:01+02:00", 1),
        ("2023-12-31T18:30:01-0530", 1),
        ("2024-01-01T02:00:01+02", 1),
        ("2024-01-01T02:00:01 +02:00", 1),
    ],
)
def test_offsets_are_converted_to_utc(text, seconds):
    panel = to_panel({"time": ["2024-01-01T00:00:00z", text], "x": [1, 2]})
    np.testing.assert_array_equal(panel.times, [[0, seconds]])
    assert panel.layout.origin == "2024-01-01T00:00:00Z"


def test_origin_is_the_earliest_of_the_table_not_of_its_first_series():
    table = {
        "id": ["late", "early", "late", "early"],
        "time": ["2024-01-02", "2024-01-01", "2024-01-03", "2024-01-05"],
        "x": [1, 2, 3, 4],
    }
    panel = to_panel(table, time_unit="d")
    assert panel.layout.origin == "2024-01-01T00:00:00"
    np.testing.assert_array_equal(panel.times, [[1, 2], [0, 4]])


def test_columns_of_dates_and_of_zones():
    days = pl.DataFrame({"date": [datetime(2024, 1, 1), datetime(2024, 1, 3)], "x": [1, 2]})
    as_dates = to_panel(days.with_columns(pl.col("date").cast(pl.Date)), time_unit="d")
    np.testing.assert_array_equal(as_dates.times, [[0, 2]])
    # Across the night when Berlin's clocks go forward, a day has 23 hours.
    berlin = pl.DataFrame(
        {"t": [datetime(2024, 3, 30, 12), datetime(2024, 3, 31, 12)], "x": [1, 2]}
    )
    zoned = to_panel(
        berlin.with_columns(pl.col("t").dt.replace_time_zone("Europe/Berlin")), time_unit="h"
    )
    np.testing.assert_array_equal(zoned.times, [[0, 23]])
    assert zoned.layout.origin == "2024-03-30T11:00:00Z"


# Over more than 70 years, a float64 cannot hold every microsecond.
moments = st.datetimes(datetime(1960, 1, 1), datetime(2030, 1, 1))
offsets = st.integers(-23 * 60, 23 * 60).map(lambda m: timezone(timedelta(minutes=m)))


@given(
    pair=st.tuples(moments, moments).filter(lambda p: p[0] < p[1]),
    zones=st.tuples(offsets, offsets),
    zoned=st.booleans(),
    unit=st.sampled_from(["s", "min", "h", "d"]),
)
def test_random_datetimes_agree_with_python_and_come_back(pair, zones, zoned, unit):
    if zoned:
        pair = tuple(m.replace(tzinfo=UTC).astimezone(z) for m, z in zip(pair, zones, strict=True))
    text = [moment.isoformat() for moment in pair]
    panel = to_panel({"time": text, "x": [1, 2]}, time_unit=unit)
    expected = (pair[1] - pair[0]) / timedelta(seconds=SECONDS[unit])
    np.testing.assert_allclose(panel.times, [[0, expected]], rtol=1e-15)
    assert panel_frame(panel)["time"].to_list() == list(pair)


@pytest.mark.usefixtures("without_type_checks")
def test_unknown_unit():
    with pytest.raises(ConfigError, match="'week' is unknown; choose one of s, min, h, d"):
        to_panel({"time": [0, 1], "x": [1, 2]}, time_unit="week")  # type: ignore[arg-type]
