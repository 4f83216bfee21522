"""Noises of the filter: chosen by forecasts and likelihood, near what the simulation suggests."""

import numpy as np
import pytest

from physsm.data.window import Batch
from physsm.models.phy_ssm.grey_box import filter_fit
from physsm.models.phy_ssm.grey_box.filter_fit import _noises, with_chosen_noises
from tests.models.phy_ssm.grey_box.make import SETTINGS, TEXT, oscillators
from tests.models.phy_ssm.make import make_network

NETWORK = make_network(TEXT, oscillators(0, (30,))[0], **SETTINGS)
NO_BATCH = Batch(*[np.zeros(0)] * len(Batch._fields))
DECADE = np.log(10)


def chosen(monkeypatch, gain: float) -> np.ndarray:
    """Powers of ten by which noises are shifted if each lowers the log of the error by `gain`."""
    first = _noises(NETWORK)

    def scores(network, *_):
        decades = (first - _noises(network)) / DECADE
        return np.array([[np.exp(-gain * decades.sum()), 0.0]])

    monkeypatch.setattr(filter_fit, "scores", scores)
    return (_noises(with_chosen_noises(NETWORK, NO_BATCH, 10, 1.0)) - first) / DECADE


def test_a_small_gain_does_not_move_a_noise_far(monkeypatch):
    assert (np.abs(chosen(monkeypatch, gain=0.02)) <= 0.5).all()


@pytest.mark.parametrize("sign", [1, -1])
def test_a_large_gain_does(monkeypatch, sign):
    shifts = chosen(monkeypatch, gain=0.3 * sign)
    assert (-sign * shifts >= 1).all()
