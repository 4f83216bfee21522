"""Unknowns without bounds are limited by what a step can bear."""

from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest

from physsm import System
from physsm._values import Panel, Series
from physsm.models._encode_decode.scales import TrajectoryScales
from physsm.models._network.unknowns import in_physical_units
from tests.models.encode_decode.make import network

GROWTH = "x' = ?rate*x + ?push\nobserve x\n"
GAP = 0.5  # of most rows; one is ten times as long


@cache
def scales() -> TrajectoryScales:
    times = np.cumsum([GAP] * 10 + [10 * GAP] + [GAP] * 10)
    series = [
        Series(str(i), times, np.sin(times + i)[:, None], times[:, None][:, :0]) for i in (0, 1)
    ]
    return network("goku", Panel.from_series(series, ["x"]), physics=GROWTH).scales


def largest(is_implicit: bool) -> np.ndarray:
    """The unknowns where what is trained is huge, in their natural sizes per unit of time."""
    made = scales()
    found = in_physical_units(System.parse(GROWTH), made, jnp.full(2, 1e6), is_implicit)
    return np.asarray(found) / np.array(made.states.unknown_size) / made.states.signal_time


def test_an_implicit_step_keeps_a_rate_below_its_singularity():
    """The step over a gap is singular at a rate of 2/gap."""
    rate = in_physical_units(System.parse(GROWTH), scales(), jnp.full(2, 1e6))[0]
    assert float(rate) * 10 * GAP < 2
    assert largest(is_implicit=True)[1] == pytest.approx(3)


def test_a_solver_of_equations_bears_more():
    np.testing.assert_allclose(largest(is_implicit=False), 3)


def test_constants_are_not_limited():
    """They are fitted to data, not made by a network: whatever serves best stays."""
    system = System.parse(GROWTH + "unknown ?rate, ?push constant")
    made = scales()
    sizes = np.array(made.states.unknown_size)
    found = np.asarray(in_physical_units(system, made, jnp.full(2, 1e3)))
    np.testing.assert_allclose(found, 1e3 * sizes, rtol=1e-4)
