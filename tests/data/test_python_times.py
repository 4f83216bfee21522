"""Times given in Python, for a table with numbers or with dates."""

from datetime import UTC, datetime

import numpy as np
import pytest

from physsm._errors import DataError
from physsm._values import Layout
from physsm.data.times import as_numbers

PLAIN = Layout()
DATED = Layout(origin="2026-03-01T00:00:00", time_unit="min")
IN_UTC = Layout(origin="2026-03-01T00:00:00Z", time_unit="h")
TEN_PAST = datetime(2026, 3, 1, 0, 10)


@pytest.mark.parametrize(
    "given",
    [
        [TEN_PAST, datetime(2026, 3, 1, 1)],
        ["2026-03-01T00:10", "2026-03-01T01:00:00"],
        np.array(["2026-03-01T00:10", "2026-03-01T01:00"], "datetime64[ns]"),
        [10, 60],
        np.array([10.0, 60.0]),
    ],
)
def test_dates_count_from_the_origin_of_the_table(given):
    np.testing.assert_allclose(as_numbers(given, DATED), [10, 60])


def test_shape_and_zone_are_kept():
    both = [[datetime(2026, 3, 1, 1, tzinfo=UTC)], [datetime(2026, 3, 1, 3, tzinfo=UTC)]]
    np.testing.assert_allclose(as_numbers(both, IN_UTC), [[1], [3]])
    assert as_numbers(TEN_PAST, DATED).item() == 10


@pytest.mark.parametrize(
    ("given", "layout", "message"),
    [
        ([TEN_PAST], PLAIN, "array of numbers"),
        ([TEN_PAST], IN_UTC, "no offset to UTC"),
        ([datetime(2026, 3, 1, tzinfo=UTC)], DATED, "an offset to UTC"),
        (["noon"], DATED, "is not a time"),
        ([TEN_PAST, 3], DATED, "numbers, or all datetimes"),
        ([None], DATED, "time is empty"),
        ([object()], DATED, "numbers, or all datetimes|not times"),
    ],
)
def test_other_things_are_refused(given, layout, message):
    with pytest.raises(DataError, match=message):
        as_numbers(given, layout)
