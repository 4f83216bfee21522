"""Descriptions against NumPy on each column by itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import DTypeLike

from physsm._values import Panel, Series
from physsm.data import describe as module
from physsm.data.describe import QUANTILES, describe

NUMBERS = st.floats(-1e6, 1e6) | st.just(np.nan)


@st.composite
def recordings(draw):
    """Times, values and controls of some series: ragged, irregular, with missing cells."""
    channels, controls = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    return [
        (
            np.cumsum(draw(arrays(float, rows, elements=st.floats(0.01, 100)))),
            draw(arrays(float, (rows, channels), elements=NUMBERS)),
            draw(arrays(float, (rows, controls), elements=st.floats(-1e6, 1e6))),
        )
        for rows in draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    ]


def check_column(column, parts: list[np.ndarray]):
    cells = np.concatenate(parts)
    present = cells[~np.isnan(cells)]
    assert column.missing == pytest.approx(np.isnan(cells).mean())
    if not present.size:
        numbers = (column.minimum, column.maximum, column.mean, column.std)
        assert np.isnan(numbers).all()
        return
    assert column.minimum == present.min()
    assert column.maximum == present.max()
    size = np.abs(present).max()
    assert column.mean == pytest.approx(present.mean(), rel=1e-12, abs=1e-12 * size)
    # Scaled, because the squares of tiny numbers are zero.
    spread = size * (present / size).std() if size else 0.0
    assert column.std == pytest.approx(spread, rel=1e-9, abs=1e-9 * size)


@given(recorded=recordings(), block=st.sampled_from([1, 7, 10**6]))
def test_columns_times_and_gaps(recorded, block):
    series = [Series(f"s{i}", *one) for i, one in enumerate(recorded)]
    channels, controls = series[0].values.shape[1], series[0].controls.shape[1]
    panel = Panel.from_series(series, ["x", "y", "z"][:channels], ["u", "v"][:controls])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", block)
        found = describe(panel)
    lengths = [len(one.times) for one in series]
    assert (found.series, found.rows) == (len(series), sum(lengths))
    assert found.lengths == (min(lengths), np.median(lengths), max(lengths))
    assert found.first_time == min(one.times[0] for one in series)
    assert found.last_time == max(one.times[-1] for one in series)
    for k, column in enumerate(found.channels):
        assert column.name == panel.channels[k]
        check_column(column, [one.values[:, k] for one in series])
    for k, column in enumerate(found.controls):
        assert column.name == panel.control_names[k]
        check_column(column, [one.controls[:, k] for one in series])
    gaps = np.concatenate([np.diff(one.times) for one in series])
    if not gaps.size:
        assert found.gaps is found.largest_gap is None
        return
    assert found.gaps is not None
    np.testing.assert_allclose(found.gaps, np.quantile(gaps, QUANTILES))
    where = found.largest_gap
    assert where is not None
    assert where.after - where.before == gaps.max()
    times = series[panel.ids.index(where.series)].times.tolist()
    assert times.index(where.after) == times.index(where.before) + 1


def one_column(*values: float, dtype: DTypeLike = float) -> Panel:
    cells = np.array(values, dtype)[:, None]
    series = Series("a", np.arange(len(values), dtype=float), cells, np.zeros((len(values), 0)))
    return Panel.from_series([series], ["x"])


def test_padding_counts_as_nothing():
    """Even where it holds numbers, as that of controls does."""
    short = Series("a", np.array([0.0]), np.array([[1.0]]), np.array([[100.0]]))
    long = Series("b", np.array([0.0, 1, 2]), np.array([[3.0], [np.nan], [5]]), np.zeros((3, 1)))
    found = describe(Panel.from_series([short, long], ["x"], ["u"]))
    assert found.controls[0].mean == 25
    assert found.channels[0].mean == 3
    assert found.channels[0].missing == 0.25
    assert found.gaps == (1, 1, 1, 1, 1)


def test_the_largest_numbers_do_not_overflow():
    (column,) = describe(one_column(-1e308, 1e308, 1e308)).channels
    assert column.mean == pytest.approx(1e308 / 3)
    assert column.std == pytest.approx(1e308 * (np.sqrt(8) / 3))


def test_single_precision_is_summed_in_double():
    (column,) = describe(one_column(*[0.1] * 10_000, dtype=np.float32)).channels
    assert column.mean == np.float32(0.1)
    assert column.std == 0


def test_a_channel_that_was_never_measured():
    (column,) = describe(one_column(np.nan, np.nan)).channels
    assert column.missing == 1
    assert np.isnan(column.mean)


def test_one_row_has_no_gap():
    found = describe(one_column(7.0))
    assert found.gaps is None
    assert found.largest_gap is None
    assert found.channels[0].std == 0
