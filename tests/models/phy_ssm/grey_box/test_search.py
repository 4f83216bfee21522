"""Minima are told apart by their costs, on longer pieces where there are any."""

from typing import Any

import numpy as np
import pytest

from physsm.models.phy_ssm.grey_box import candidates
from physsm.models.phy_ssm.grey_box.candidates import Candidate, Fitting
from physsm.models.phy_ssm.grey_box.search import _minima, with_longer_pieces
from tests.models.phy_ssm.grey_box.make import SETTINGS, TEXT, FairJudge, make_fit, oscillators
from tests.models.phy_ssm.make import make_network

PANEL = oscillators(0, (30,))[0]
NETWORK = make_network(TEXT, PANEL, **SETTINGS)


def of_cost(cost: float, error: float = 1.0) -> Candidate:
    return Candidate(NETWORK, make_fit(cost), error)


def test_minima_are_ordered_by_cost_whatever_their_validation_errors():
    found = _minima([of_cost(3.0, error=0.1), of_cost(1.0, error=5.0), of_cost(2.0, error=0.3)])
    assert [one.fit.cost for one in found] == [1.0, 2.0, 3.0]


def test_equal_fits_count_once_and_poor_ones_not_at_all():
    found = _minima([of_cost(cost) for cost in (1.0, 1.005, 2.0, 5.0, np.nan)])
    assert [one.fit.cost for one in found] == [1.0, 2.0]
    assert len(_minima([of_cost(1 + 0.1 * i) for i in range(20)])) == 6


def test_a_minimum_without_finite_forecasts_comes_last():
    found = _minima([of_cost(1.0, error=np.inf), of_cost(2.0), of_cost(3.0)])
    assert [one.fit.cost for one in found] == [2.0, 3.0]


@pytest.mark.parametrize("best", [0, 1, 2])
def test_the_minimum_that_serves_longer_pieces_best_is_chosen(monkeypatch, best):
    longer = {1.0: 9.0, 2.0: 8.0, 3.0: 7.0, 1.0 + best: 4.0}

    def shoot(unit: Any, scaled: Any, guesses: list[Any], **_: Any) -> Any:
        return make_fit(longer[float(guesses[0].shared[0])])

    monkeypatch.setattr(candidates, "shoot", shoot)
    minima = [of_cost(1.0), of_cost(2.0), of_cost(3.0)]
    found = with_longer_pieces(minima, Fitting(PANEL, 240, 1), FairJudge())
    assert found.fit.cost == 4.0
