"""Substeps by the bias that they cause: predicted shifts against those of a second fit."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from physsm.models.phy_ssm.grey_box.candidates import Candidate, Fitting, physics_unit
from physsm.models.phy_ssm.grey_box.shooting import Fit, Guess, step_towards
from physsm.models.phy_ssm.grey_box.starts import as_shared, physical
from physsm.models.phy_ssm.grey_box.substeps import (
    _with_substeps,
    enough_substeps,
    with_more_substeps,
)
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.unit import PhysicsUnit
from tests.models.phy_ssm.grey_box.make import (
    DAMPING,
    SETTINGS,
    STIFFNESS,
    TEXT,
    FairJudge,
    oscillators,
)
from tests.models.phy_ssm.make import make_network


class Fitted(NamedTuple):
    """A unit with two substeps, its data, and its fit from the truth."""

    unit: PhysicsUnit
    fitting: Fitting
    fit: Fit
    network: Network


@cache
def fitted(error: float, gap: float = 0.3) -> Fitted:
    """Gaps of a tenth of a period: two substeps cause a bias of about a percent."""
    panel, states = oscillators(3, (40,) * 4, error=error, gap=gap)
    network = make_network(TEXT, panel, **SETTINGS)
    unit = physics_unit(network)
    fitting = Fitting(unit.scales.table.scale(panel), 40, 4)
    shared = as_shared(unit, np.array([STIFFNESS, DAMPING]))
    guess = Guess(shared, states / np.array(unit.scales.states.state_scale), np.zeros((4, 0)))
    return Fitted(unit, fitting, fitting.fit(unit, guess), network)


def test_the_predicted_shift_is_that_of_a_fit_with_finer_steps():
    unit, fitting, fit, _ = fitted(0.01)
    finer = _with_substeps(unit, 8)
    scaled, length, pieces = fitting
    shift, errors = step_towards(unit, finer, scaled, fit, length=length, pieces=pieces)
    again = fitting.fit(finer, fit.guess)
    found = again.guess.shared - fit.guess.shared
    np.testing.assert_allclose(-shift, found, rtol=0.5)
    assert (errors > 0).all()


@pytest.mark.parametrize(("error", "gap", "is_enough"), [(0.3, 0.1, True), (0.001, 0.3, False)])
def test_there_are_more_where_noise_does_not_hide_their_bias(error, gap, is_enough):
    substeps = enough_substeps(*fitted(error, gap)[:3], is_trained=False)
    assert (substeps == 2) == is_enough
    assert 2 <= substeps <= 32


def test_networks_have_few():
    assert enough_substeps(*fitted(0.001)[:3], is_trained=True) <= 4


def test_more_substeps_bring_constants_nearer_to_the_truth():
    unit, fitting, fit, _ = fitted(0.001)
    finer = _with_substeps(unit, enough_substeps(unit, fitting, fit, is_trained=False))
    again = fitting.fit(finer, fit.guess)
    before, after = (
        abs(physical(unit, each.guess.shared)[0] / STIFFNESS - 1) for each in (fit, again)
    )
    assert after < before / 4


@pytest.mark.parametrize(("error", "gap", "is_enough"), [(0.3, 0.1, True), (0.001, 0.3, False)])
def test_a_fit_that_became_certain_gets_more(error, gap, is_enough):
    """Longer pieces or another hold may make constants so certain that a bias shows."""
    unit, fitting, fit, network = fitted(error, gap)
    best = Candidate(network, fit, 1.0)
    after = with_more_substeps(best, "previous", FairJudge(), fitting, is_trained=False)
    assert (after is best) == is_enough
    before, now = (
        abs(physical(unit, one.fit.guess.shared)[0] / STIFFNESS - 1) for one in (best, after)
    )
    assert is_enough or now < before / 4
