"""Pieces hold every row and every transition of a panel once, and padding counts nothing."""

import numpy as np
import pytest

from physsm._values import Panel, Series
from physsm.models.phy_ssm.grey_box.pieces import cut, number_of_pieces, thinned

LENGTHS = (23, 2, 1, 40, 17)


def panel() -> Panel:
    """Series whose values are numbers of rows, with a missing cell and two controls."""
    rng = np.random.default_rng(0)
    series = []
    for i, rows in enumerate(LENGTHS):
        values = 100.0 * i + np.arange(rows, dtype=float)[:, None]
        values[rows // 2] = np.nan if rows > 2 else values[rows // 2]
        controls = rng.standard_normal((rows, 2))
        series.append(Series(str(i), np.cumsum(rng.uniform(0.1, 1, rows)), values, controls))
    return Panel.from_series(series, ["x"], ["u", "w"])


@pytest.mark.parametrize("length", [2, 3, 7, 22, 23, 100])
def test_every_measurement_and_every_transition_is_in_a_piece(length):
    whole = panel()
    pieces, series, first = cut(whole, length)
    measured, transitions = set(), []
    for p, (i, start) in enumerate(zip(series, first, strict=True)):
        own = whole.times[i, start : start + 1 + np.count_nonzero(pieces.gaps[p])]
        if not pieces.weight[p].any() and whole.lengths[i] > 1:
            continue
        assert len(own) <= length
        np.testing.assert_allclose(np.cumsum(pieces.gaps[p])[: len(own)], own - own[0])
        transitions += [(i, start + k) for k in range(len(own) - 1)]
        rows = np.flatnonzero(pieces.weight[p, :, 0])
        assert rows.max(initial=0) < len(own)
        np.testing.assert_array_equal(pieces.values[p, rows], whole.values[i, start + rows])
        np.testing.assert_array_equal(pieces.controls[p, rows], whole.controls[i, start + rows])
        measured |= {(i, start + k) for k in rows}
    assert measured == set(zip(*np.nonzero(whole.observed[..., 0]), strict=True))
    wanted = [(i, k) for i, rows in enumerate(LENGTHS) for k in range(rows - 1)]
    assert sorted(transitions) == wanted


def test_padding_has_no_weight_and_numbers_are_powers_of_two():
    whole = panel()
    for length, least in ((7, 1), (23, 1), (7, 20), (100, 9)):
        pieces, series, first = cut(whole, length, least_pieces=least)
        real, number = number_of_pieces(whole, length), len(series)
        assert number == len(first) == 1 << max(real - 1, least - 1).bit_length()
        assert not pieces.weight[real:].any()
        assert np.isfinite(pieces.values).all()
        assert (pieces.values[pieces.weight == 0] == 0).all()
        rows = np.diff(pieces.gaps, axis=1, append=0)  # a gap of zero follows the last row
        assert (pieces.gaps >= 0).all()
        assert rows.shape[1] % 16 == 0
        after = np.arange(rows.shape[1]) > np.count_nonzero(pieces.gaps, axis=1)[:, None]
        assert not pieces.weight[after].any()


def test_of_a_long_table_evenly_spaced_pieces_are_used():
    whole = panel()
    pieces, series, first = cut(whole, 5, most_rows=30)
    used = pieces.weight.any((1, 2))
    assert pieces.weight.sum() <= 30
    assert used.sum() > 1
    assert series[used].min() == 0
    assert (series[used].max(), first[used][-1]) == (4, 12)


def test_a_thinned_panel_has_the_means_of_its_controls():
    whole = panel()
    coarse = thinned(whole, 4)
    assert coarse.lengths.tolist() == [6, 1, 1, 10, 5]
    for fine, rough in zip(whole, coarse, strict=True):
        np.testing.assert_array_equal(rough.times, fine.times[::4])
        np.testing.assert_array_equal(rough.values, fine.values[::4])
        means = [fine.controls[k : k + 4].mean(0) for k in range(0, len(fine.times), 4)]
        np.testing.assert_allclose(rough.controls, means, rtol=1e-12)
    assert coarse.ids == whole.ids
    assert thinned(whole, 1) is whole
