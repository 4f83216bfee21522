"""Windows of a protocol, narrowed to a model's sizes, and the parts that a model is trained on."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from physsm._errors import ConfigError, DataError
from physsm._values import Panel, Series
from physsm.data.parts import WindowSettings, make_parts
from physsm.data.split import default_split
from physsm.data.window import (
    Part,
    Sizes,
    Windows,
    default_sizes,
    largest_sizes,
    narrowed,
    windows,
)
from tests.examples import examples


def make_panel(lengths, seed=0) -> Panel:
    rng = np.random.default_rng(seed)
    series = [
        Series(str(i), np.arange(float(n)), rng.standard_normal((n, 2)), np.zeros((n, 0)))
        for i, n in enumerate(lengths)
    ]
    return Panel.from_series(series, ["a", "b"])


def random_windows(lengths, number, seed) -> Windows:
    """Windows anywhere inside of the series, in any order."""
    rng = np.random.default_rng(seed)
    series = rng.integers(0, len(lengths), number)
    edges = [np.sort(rng.integers(0, lengths[s] + 1, 3)) for s in series]
    return Windows(series, *np.array(edges, np.int64).reshape(-1, 3).T)


LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=4)
SEEDS = st.integers(0, 10_000)


@settings(max_examples=examples(50))
@given(LENGTHS, st.integers(0, 25), SEEDS, st.integers(1, 12), st.integers(1, 8), st.integers(1, 6))
def test_narrowed_windows_keep_their_boundaries(lengths, number, seed, context, horizon, stride):
    given = random_windows(lengths, number, seed)
    found = narrowed(given, Sizes(context, horizon, stride))
    whole = list(zip(*(field.tolist() for field in tuple(given)), strict=True))
    cut = [(s, max(a, b - context), b, min(z, b + horizon)) for s, a, b, z in whole]
    kept = list(zip(*(field.tolist() for field in tuple(found)), strict=True))
    places = iter(cut)
    assert all(one in places for one in kept)  # some of them, in their order
    for series in {one[0] for one in whole}:
        boundaries = {one[2] for one in whole if one[0] == series}
        chosen = sorted(one[2] for one in kept if one[0] == series)
        assert max(boundaries) == chosen[-1]
        assert all(np.diff(chosen) >= stride)
        # Only what lies too near before a chosen one is left out.
        for boundary in boundaries - set(chosen):
            assert any(0 < other - boundary < stride for other in chosen)


@settings(max_examples=examples(50))
@given(LENGTHS, st.integers(1, 6), SEEDS)
def test_covered_rows_are_those_of_the_windows_and_no_others(lengths, number, seed):
    drawn = random_windows(lengths, number, seed)
    chosen = drawn[drawn.stop > drawn.start]
    assume(chosen.number > 0)
    part = Part(make_panel(lengths), chosen)
    covered = part.covered()
    is_used = np.zeros(part.panel.values.shape[:2], bool)
    pairs = zip(zip(*part.windows, strict=True), zip(*covered.windows, strict=True), strict=True)
    for (series, start, boundary, stop), (run, first, middle, last) in pairs:
        is_used[series, start:stop] = True
        assert (boundary - start, stop - start) == (middle - first, last - first)
        for column in ("times", "values", "controls"):
            np.testing.assert_array_equal(
                getattr(covered.panel, column)[run, first:last],
                getattr(part.panel, column)[series, start:stop],
            )
    assert covered.panel.lengths.sum() == is_used.sum()
    # A run ends where a row belongs to no window: gaps over holes would count as measured ones.
    assert len(covered.panel) == (np.diff(is_used, axis=1, prepend=False) & is_used).sum()


def test_largest_sizes_are_those_of_the_longest_context_and_target():
    chosen = Windows(*np.array([[0, 3, 9, 12], [1, 0, 4, 11]]).T)
    assert largest_sizes(chosen) == Sizes(6, 7, 1)
    nearer = Windows(*np.array([[0, 3, 9, 12], [0, 9, 14, 16], [0, 11, 17, 19]]).T)
    assert largest_sizes(nearer) == Sizes(6, 3, 3)
    assert largest_sizes(chosen[np.arange(0)]) == Sizes(2, 1, 1)


def test_settings_decide_sizes_and_the_table_or_the_protocol_the_others():
    panel = make_panel([40] * 8)
    usual = default_sizes(panel)
    assert WindowSettings().sizes(panel) == usual
    assert WindowSettings(context=7).sizes(panel) == Sizes(7, usual.horizon, usual.stride)
    protocol = Part(panel, windows(panel, 10, 6, 4))
    assert WindowSettings().sizes(protocol) == Sizes(10, 6, 4)
    assert WindowSettings(horizon=3, stride=9).sizes(protocol) == Sizes(10, 3, 9)
    # A stride below the protocol's has no effect, and the sizes say so.
    assert WindowSettings(horizon=3, stride=2).sizes(protocol) == Sizes(10, 3, 4)
    assert WindowSettings().validation_sizes(Sizes(10, 6, 1)) == Sizes(10, 6, 6)
    assert WindowSettings(validation_stride=2).validation_sizes(Sizes(10, 6, 1)).stride == 2


def as_lists(chosen: Windows) -> list[list[int]]:
    return [field.tolist() for field in tuple(chosen)]


def test_parts_of_a_table_are_all_windows_of_its_split():
    panel = make_panel([40] * 8)
    chosen = WindowSettings(context=8, horizon=4, stride=3)
    parts = make_parts(panel, None, chosen, seed=1)
    train, validation = default_split(panel, 1, 12)
    assert parts.sizes == Sizes(8, 4, 3)
    assert parts.train.panel.ids == train.ids
    assert parts.validation.panel.ids == validation.ids
    assert as_lists(parts.train.windows) == as_lists(windows(train, 8, 4, 3))
    assert as_lists(parts.validation.windows) == as_lists(windows(validation, 8, 4, 4))


def test_parts_of_a_protocol_are_its_own_windows():
    panel = make_panel([60, 60])
    whole = windows(panel, 20, 10, 5)
    train = Part(panel, whole[np.arange(3)])
    validation = Part(panel, whole[np.array([-2, -1])])
    parts = make_parts(train, validation, WindowSettings(context=8), seed=0)
    assert parts.sizes == Sizes(8, 10, 5)
    covered = train.covered()
    assert parts.train.windows.boundary.tolist() == covered.windows.boundary.tolist()
    assert (parts.train.windows.boundary - parts.train.windows.start).tolist() == [8] * 3
    np.testing.assert_array_equal(parts.train.panel.values, covered.panel.values)
    # Validation windows are a horizon apart: of two that overlap, the later one stays.
    assert parts.validation.windows.number == 1
    boundary = parts.validation.windows.boundary[0]
    assert parts.validation.panel.times[0, boundary] == panel.times[1, 50]
    with pytest.raises(DataError, match="horizon is 11"):
        make_parts(train, validation, WindowSettings(horizon=11), seed=0)
    nothing = Part(panel, whole[np.zeros(0, np.int64)])
    with pytest.raises(DataError, match="validation part has no windows"):
        make_parts(train, nothing, WindowSettings(), seed=0)
    with pytest.raises(DataError, match="training part has no windows"):
        make_parts(nothing, validation, WindowSettings(), seed=0)
    with pytest.raises(ConfigError, match="none for validation"):
        make_parts(train, None, WindowSettings(), seed=0)


def test_training_series_without_room_for_several_horizons_have_a_shorter_one():
    chosen = WindowSettings(context=20, horizon=480)
    parts = make_parts(make_panel([1000]), None, chosen, seed=0)
    train, validation = parts.train, parts.validation
    assert (train.panel.lengths[0], validation.panel.lengths[0]) == (450, 500)
    assert parts.sizes.horizon == 480
    assert largest_sizes(train.windows) == Sizes(20, 215, 10)
    assert largest_sizes(validation.windows) == Sizes(20, 480, 1)


def test_a_given_validation_table_leaves_the_whole_table_for_training():
    panel, other = make_panel([50]), make_panel([90, 30], seed=1)
    parts = make_parts(panel, other, WindowSettings(context=10, horizon=60, stride=5), seed=0)
    assert parts.train.panel is panel
    assert parts.validation.panel is other
    assert as_lists(parts.train.windows) == as_lists(windows(panel, 10, 20, 5))
    assert as_lists(parts.validation.windows) == [[0], [20], [30], [90]]
