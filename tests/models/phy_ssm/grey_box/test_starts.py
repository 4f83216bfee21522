"""Starts of the unknowns: exact from exact states, at random within their bounds elsewhere."""

import numpy as np
import pytest

from physsm.models.phy_ssm.grey_box.hidden_scales import with_other_sizes_of_hidden
from physsm.models.phy_ssm.grey_box.starts import as_shared, physical, random_unknowns, regression
from tests.models.phy_ssm.grey_box.make import (
    DAMPING,
    SETTINGS,
    STIFFNESS,
    TEXT,
    make_unit,
    oscillators,
)
from tests.models.phy_ssm.make import make_network

OSCILLATORS = oscillators(0, (30,))[0]


@pytest.mark.parametrize("window", [1, 5, 20])
def test_regression_recovers_constants_from_states_without_errors(window):
    panel, states = oscillators(0, (200, 150, 10), gap=0.01)
    unit = make_unit(panel)
    scaled = states / np.array(unit.scales.states.state_scale)
    found = regression(unit, unit.scales.table.scale(panel), scaled, window)
    np.testing.assert_allclose(found, [STIFFNESS, DAMPING], rtol=1e-3)


def test_unknowns_are_the_same_in_the_units_of_the_fit_and_moved_inside_their_bounds():
    panel, _ = oscillators(0, (40, 40))
    unit = make_unit(panel)
    np.testing.assert_allclose(physical(unit, as_shared(unit, np.array([3.0, 0.2]))), [3.0, 0.2])
    size = np.array(unit.scales.states.unknown_size)
    moved = physical(unit, as_shared(unit, np.array([-1.0, 0.0])))
    np.testing.assert_allclose(moved, 0.01 * size, rtol=1e-6)


def test_random_unknowns_keep_their_bounds():
    panel, _ = oscillators(0, (40, 40))
    text = "x' = v\nv' = -?k*x - ?c*v + ?f\nunknown ?k, ?c, ?f constant\n?k >= 1\n?c <= -2\n"
    unit = make_unit(panel, text + "observe x")
    rng = np.random.default_rng(0)
    k, c, f = np.array([random_unknowns(unit, rng) for _ in range(200)]).T
    assert (k >= 1).all()
    assert (c <= -2).all()
    assert 0.3 < (f > 0).mean() < 0.7
    assert np.abs(f).max() > 10 * np.abs(f).min()


def scales_of_hidden(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Scales of the states by themselves, and at the other size."""
    network = make_network(text, OSCILLATORS, **SETTINGS)
    (other,) = with_other_sizes_of_hidden(network)
    return network.scales.states.state_scale, other.scales.states.state_scale


def test_hidden_states_that_drive_by_an_unknown_factor_also_start_at_the_size_of_measured_ones():
    own, other = scales_of_hidden("x' = -?a*x + ?k*h\nh' = -?c*h\nobserve x")
    np.testing.assert_allclose(other, [own[0], own[0]])


def test_hidden_states_that_drive_by_a_known_factor_also_start_at_the_size_of_that_drive():
    """The force h moves v by as much as v changes: its size follows the units of the text."""
    own, other = scales_of_hidden("x' = v\nv' = -?k*x + 2*h\nh' = -?c*h\nobserve x")
    network = make_network(TEXT, OSCILLATORS, **SETTINGS)
    scales = network.scales
    np.testing.assert_allclose(other[:2], own[:2])
    time = scales.states.signal_time * scales.table.time_scale
    np.testing.assert_allclose(other[2], own[1] / (2 * time), rtol=1e-5)


def test_hidden_states_that_are_a_known_factor_of_a_measured_one_also_start_at_such_a_size():
    """As the action of insulin on glucose: x changes by its own size in the signal time."""
    own, other = scales_of_hidden("x' = -[h]*x + ?b\nh' = -?c*h\nobserve x")
    network = make_network("x' = -[h]*x + ?b\nh' = -?c*h\nobserve x", OSCILLATORS, **SETTINGS)
    scales = network.scales
    size = own[0] * np.hypot(scales.states.state_offset[0], 1)  # of x, whose mean may be zero
    time = scales.states.signal_time * scales.table.time_scale
    np.testing.assert_allclose(other[1], own[0] / (size * time), rtol=0.3)


def test_without_hidden_states_there_is_no_other_size():
    assert with_other_sizes_of_hidden(make_network(TEXT, OSCILLATORS)) == []
