"""Fits from rough ones: where long pieces lead astray, pieces grow."""

from typing import Any

import numpy as np
import pytest

from physsm.models.phy_ssm.grey_box import candidates
from physsm.models.phy_ssm.grey_box.candidates import Fitting, _between, is_clearly_less
from physsm.models.phy_ssm.grey_box.first_fit import FirstFit
from physsm.models.phy_ssm.grey_box.shooting import Fit, Guess
from tests.models.phy_ssm.grey_box.make import make_fit, make_unit, oscillators

PANEL = oscillators(0, (30,))[0]
NEAR = 40  # rows times distance from which on a fit ends in another minimum


@pytest.fixture
def lengths(monkeypatch) -> list[int]:
    """Lengths of pieces, of fits that find the constants only from nearby."""
    tried = []

    def shoot(unit: Any, scaled: Any, guesses: list[Guess], *, length: int, **_: Any) -> Fit:
        tried.append(length)
        distance = float(guesses[0].shared[0])
        return make_fit(distance / 5 if distance * length <= NEAR else distance)

    monkeypatch.setattr(candidates, "shoot", shoot)
    return tried


@pytest.mark.parametrize(
    ("distance", "tried", "error"),
    [
        (0.15, [256], 0.03),  # found at once
        (0.45, [256, 16, 40, 102, 256], 0.00072),  # found step by step
        (9.0, [256, 16], 9.0),  # not found
    ],
)
def test_pieces_grow_after_a_fit_that_failed(lengths, distance, tried, error):
    unit = make_unit(PANEL)
    first = FirstFit(make_fit(distance).guess, error=0.05, length=16)
    fit = Fitting(PANEL, 256, 1).fit_from(unit, first)
    assert lengths == tried
    assert fit.errors[0] == pytest.approx(error)


def test_a_fit_that_diverges_after_growing_does_not_replace_one_that_did_not(monkeypatch):
    results = iter([make_fit(3.0), *(make_fit(0.01) for _ in range(3)), make_fit(np.nan)])
    monkeypatch.setattr(candidates, "shoot", lambda *_, **__: next(results))
    first = FirstFit(make_fit(3.0).guess, error=0.05, length=16)
    assert Fitting(PANEL, 256, 1).fit_from(make_unit(PANEL), first).cost == 3.0


@pytest.mark.parametrize(
    ("gains", "separate", "expected"),
    [
        ([0.1, 0.1, 0.1, 0.1], 4, True),
        ([0.3, -0.1, 0.2, 0.1], 4, True),  # 0.125; chance: 0.148 / sqrt(3) and 0.1 / sqrt(4)
        ([0.3, -0.1, 0.2, 0.1], 3, True),
        ([0.3, -0.1, 0.2, 0.1], 2, False),  # with common rows: 0.148 and 0.1 / sqrt(2)
        ([0.04, 0.04, 0.04, 0.04], 4, False),
        ([0.09, 0.09, 0.09, 0.09], 1, False),  # one window four times
        ([0.11, 0.11, 0.11, 0.11], 1, True),
        ([0.9, 0.0, 0.0, -0.1], 4, False),  # one window alone
        ([-0.1, -0.1, -0.1, -0.1], 4, False),
        ([0.1, 0.1, 0.1, np.nan], 4, False),
    ],
)
def test_an_error_is_clearly_less_beyond_its_standard_error(gains, separate, expected):
    assert is_clearly_less(1 - np.array(gains), np.ones(4), separate) is expected


def test_any_finite_error_is_less_than_one_that_is_not():
    old = np.array([1.0, np.inf])
    assert is_clearly_less(np.ones(2), old, 2)
    assert not is_clearly_less(old, old, 2)


def test_lengths_grow_about_threefold():
    assert _between(16, 256) == [16, 40, 102]
    assert _between(100, 100) == _between(200, 100) == []
    assert _between(50, 60) == [50]
