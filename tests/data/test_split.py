"""Splits never share a sample, and say why where they cannot be made."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from physsm._errors import ConfigError, DataError
from physsm._values import Panel, Series
from physsm.data.split import default_split, split_series, split_time


def panel_of(lengths: list[int]) -> Panel:
    """Series whose values number all rows of the panel, so that each sample can be recognised."""
    stops = np.cumsum(lengths)
    series = []
    for k, (stop, length) in enumerate(zip(stops, lengths, strict=True)):
        values = np.arange(stop - length, stop, dtype=float)[:, None]
        series.append(Series(f"s{k}", np.arange(float(length)), values, np.zeros((length, 0))))
    return Panel.from_series(series, ["number"])


def samples(panel: Panel) -> set[float]:
    return set(panel.values[panel.observed].tolist())


panels = st.lists(st.integers(2, 60), min_size=1, max_size=12)
shares = st.floats(0.01, 0.99)


@given(lengths=panels, share=shares, seed=st.integers(0, 10))
def test_split_by_series_shares_no_series_and_loses_none(lengths, share, seed):
    assume(len(lengths) > 1)
    panel = panel_of(lengths)
    train, validation = split_series(panel, share, seed)
    assert len(train) > 0
    assert len(validation) > 0
    assert abs(len(validation) - share * len(panel)) <= 1
    assert not samples(train) & samples(validation)
    assert samples(train) | samples(validation) == samples(panel)
    assert [one.id for one in panel if one.id in train.ids] == list(train.ids)


@given(lengths=panels, share=shares, gap=st.integers(0, 20))
def test_split_by_time_leaves_the_gap_between_the_parts(lengths, share, gap):
    panel = panel_of(lengths)
    try:
        train, validation = split_time(panel, share, gap)
    except DataError:
        validation_rows = [round(share * n) for n in lengths]
        left = [n - v - gap for n, v in zip(lengths, validation_rows, strict=True)]
        assert min(validation_rows + left) < 2
        return
    assert not samples(train) & samples(validation)
    assert train.ids == validation.ids == panel.ids
    for whole, before, after in zip(panel, train, validation, strict=True):
        assert before.times[0] == whole.times[0]
        assert after.times[-1] == whole.times[-1]
        assert after.times[0] - before.times[-1] == gap + 1
        assert abs(len(after.times) - share * len(whole.times)) <= 0.5 + 1e-9
        # No window of gap + 1 rows holds rows of both parts.
        assert after.times[0] - before.times[-1] > gap


def ends(rows: int, window: int) -> tuple[int, int]:
    """Training and validation rows of a series whose end is validation."""
    held_out = max(round(rows / 5), window)
    return rows - held_out - min(max(rows // 20, 1), window), held_out


@given(lengths=panels, window=st.integers(2, 20), seed=st.integers(0, 3))
def test_default_split_shares_no_sample_and_keeps_a_window_on_each_side(lengths, window, seed):
    panel = panel_of(lengths)
    if len(lengths) == 1 and (2 * window > lengths[0] or ends(lengths[0], window)[0] < 3):
        with pytest.raises(DataError, match=f"s0 has {lengths[0]} rows, too few.*{window} rows"):
            default_split(panel, seed, window)
        return
    train, validation = default_split(panel, seed, window)
    assert not samples(train) & samples(validation)
    by_time = len(lengths) == 1 or (
        len(lengths) < 5 and min(ends(n, window)[0] for n in lengths) >= window
    )
    if by_time:
        assert [ends(n, window) for n in lengths] == [
            (len(before.times), len(after.times))
            for before, after in zip(train, validation, strict=True)
        ]
        for whole, before, after in zip(panel, train, validation, strict=True):
            assert (before.times[0], after.times[-1]) == (whole.times[0], whole.times[-1])
            assert after.times[0] - before.times[-1] > 1
    else:
        assert not set(train.ids) & set(validation.ids)
        long = sum(n >= window for n in lengths)
        most = long - 1 if long > 1 else len(lengths)
        assert len(validation) == max(1, min(round(len(panel) / 5), most))
        assert long < 2 or min(validation.lengths) >= window


@pytest.mark.parametrize(
    ("rows", "window", "expected"),
    [
        (400, 80, (300, 80)),  # the default sizes: three quarters serve training
        (3000, 1020, (1830, 1020)),  # a simulation of a long record
        (1000, 20, (780, 200)),
        (1000, 500, (450, 500)),  # at most half is validation
    ],
)
def test_one_long_record_keeps_its_end_for_validation(rows, window, expected):
    train, validation = default_split(panel_of([rows]), 0, window)
    assert (int(train.lengths[0]), int(validation.lengths[0])) == expected


def test_seed_decides():
    panel = panel_of([5] * 10)
    first, again, other = (split_series(panel, 0.3, seed)[1].ids for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_one_series_cannot_be_split_by_series():
    with pytest.raises(DataError, match="one series cannot be split by series"):
        split_series(panel_of([9]), 0.5, 0)


def test_too_short_names_the_series_and_lengths():
    with pytest.raises(DataError) as caught:
        split_time(panel_of([40, 10]), 0.2, 8)
    assert caught.value.message == (
        "series s1 is too short to be split by time: of its 10 rows 2 would be validation, "
        "8 the gap and 0 training"
    )


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, float("nan")])
def test_impossible_shares(share):
    with pytest.raises(ConfigError, match="must be between 0 and 1"):
        split_series(panel_of([5, 5]), share, 0)
    with pytest.raises(ConfigError, match="must be between 0 and 1"):
        split_time(panel_of([9]), share, 0)


def test_negative_gap():
    with pytest.raises(ConfigError, match="it must be >= 0"):
        split_time(panel_of([9]), 0.5, -1)
