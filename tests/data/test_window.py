"""Windows against slicing by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physsm._values import Panel, Series
from physsm.data.window import (
    Sizes,
    cut_windows,
    default_size_words,
    default_sizes,
    gather,
    hold_last,
    shuffled_batches,
    whole_series,
    windows,
)


def make_panel(lengths, seed=0, missing=0.3):
    rng = np.random.default_rng(seed)
    series = []
    for i, n in enumerate(lengths):
        values = rng.standard_normal((n, 2))
        values[rng.random((n, 2)) < missing] = np.nan
        times = np.cumsum(rng.uniform(0.1, 2, n))
        series.append(Series(str(i), times, values, rng.standard_normal((n, 1))))
    return Panel.from_series(series, ["a", "b"], ["u"])


@settings(max_examples=50)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=4),
    st.integers(2, 12),
    st.integers(1, 8),
    st.integers(1, 5),
)
def test_windows_lie_inside_their_series(lengths, context, horizon, stride):
    panel = make_panel(lengths)
    found = windows(panel, context, horizon, stride)
    assert np.all(found.start >= 0)
    assert np.all(found.stop <= panel.lengths[found.series])
    assert np.all(found.stop - found.boundary == horizon)
    rows = found.boundary - found.start
    assert np.all((rows >= 2) & (rows <= context))
    shorter = rows < context
    assert np.all(panel.lengths[found.series[shorter]] < context + horizon)
    expected = {i for i, n in enumerate(lengths) if n - horizon >= 2}
    assert set(found.series.tolist()) == expected
    for i in expected:  # the end of every series is used
        assert found.stop[found.series == i].max() == lengths[i]


def test_a_batch_holds_the_rows_of_its_windows():
    panel = make_panel([20, 9])
    chosen = windows(panel, 8, 3, 4)
    batch = gather(panel, chosen, 8, 3, first_gap=0.5)
    for w in range(chosen.number):
        series, start, boundary, stop = (int(field[w]) for field in tuple(chosen))
        n = boundary - start
        one = panel[series]
        rows = slice(8 - n, 11)
        np.testing.assert_allclose(
            batch.values[rows, w], np.nan_to_num(one.values[start:stop]), rtol=1e-6
        )
        np.testing.assert_array_equal(batch.observed[rows, w], ~np.isnan(one.values[start:stop]))
        np.testing.assert_allclose(batch.controls[rows, w], one.controls[start:stop], rtol=1e-6)
        np.testing.assert_allclose(
            batch.gaps[rows, w][1:], np.diff(one.times[start:stop]), rtol=1e-4
        )
        assert batch.gaps[8 - n, w] == 0.5
        assert not batch.gaps[: 8 - n, w].any()
        assert not batch.valid[: 8 - n, w].any()
        assert batch.valid[rows, w].all()


def test_nothing_of_the_target_is_shown():
    panel = make_panel([30])
    chosen = windows(panel, 10, 5, 3)
    changed = Panel.from_series(
        [s._replace(values=np.where(np.arange(30)[:, None] >= 25, 99.0, s.values)) for s in panel],
        panel.channels,
        panel.control_names,
    )
    last = chosen[np.array([chosen.number - 1])]
    before, after = (gather(p, last, 10, 5, 1.0) for p in (panel, changed))
    np.testing.assert_array_equal(before.last, after.last)
    np.testing.assert_array_equal(before.seen, after.seen)
    assert not before.seen[10:].any()
    assert not np.array_equal(before.values, after.values)


def test_hidden_cells_stay_targets():
    panel = make_panel([40], missing=0)
    chosen = windows(panel, 30, 5, 1)
    hide = (0.4, np.random.default_rng(0))
    batch = gather(panel, chosen, 30, 5, 1.0, hide)
    assert batch.observed.all()
    assert 0.5 < batch.seen[:30].mean() < 0.7


def test_last_is_the_latest_shown_value():
    values = np.array([[0.0], [5.0], [0.0], [7.0], [0.0]])
    observed = np.array([[False], [True], [False], [True], [False]])
    np.testing.assert_array_equal(hold_last(values, observed)[:, 0], [0, 5, 5, 7, 7])


def test_cut_windows_are_the_same_rows():
    panel = make_panel([20, 9])
    chosen = windows(panel, 8, 3, 4)
    history, query, target = cut_windows(panel, chosen)
    assert len(set(history.ids)) == len(history) == chosen.number
    for w in range(chosen.number):
        series, start, boundary, stop = (int(field[w]) for field in tuple(chosen))
        one = panel[series]
        np.testing.assert_array_equal(history[w].values, one.values[start:boundary])
        np.testing.assert_array_equal(target[w].values, one.values[boundary:stop])
        np.testing.assert_array_equal(query.times[w, :3], one.times[boundary:stop])


def test_whole_series_leave_the_horizon():
    panel = make_panel([20, 9])
    chosen = whole_series(panel, 4)
    assert chosen.boundary.tolist() == [16, 5]
    assert chosen.start.tolist() == [0, 0]


@pytest.mark.parametrize("count", [1, 5, 12, 13])
def test_every_window_is_in_an_epoch_and_batches_have_one_size(count):
    panel = make_panel([count + 4])
    chosen = windows(panel, 2, 3, 1)
    assert chosen.number == count
    batches = list(shuffled_batches(chosen, 4, np.random.default_rng(0)))
    assert {batch.number for batch in batches} == {4}
    seen = {int(b) for batch in batches for b in batch.boundary}
    assert seen == set(chosen.boundary.tolist())


def test_sizes_follow_the_data():
    many, one = make_panel([160] * 6), make_panel([160])
    assert (default_sizes(many).context, default_sizes(many).horizon) == (80, 40)
    assert default_sizes(one) == Sizes(16, 16, 2)
    assert default_sizes(make_panel([40_000])) == Sizes(200, 300, 10)
    assert default_sizes(make_panel([3])) == Sizes(2, 1, 1)
    assert default_size_words(many)["horizon"] == "a quarter of the median series, at most 100"
    assert default_size_words(one)["context"] == "a tenth of the median series, at most 200"
