"""Every trained model beats repeating the last row, one row ahead, after a short training on a few
pendulums; it takes far less than the two minutes that it may.
"""

from functools import cache

import numpy as np
import pytest

from physsm import System
from physsm._arguments import merged
from physsm._registry import find, names_in
from physsm._values import Panel
from physsm.models._network.fitted import FittedNetwork
from tests.models.encode_decode.make import PENDULUM, pendulums

NETWORKS = [name for name in names_in("models") if find("models", name, "MODEL").trains]
SETTINGS = {
    "context": 8,
    "horizon": 4,
    "stride": 2,
    "samples": 2,
    "training": {"steps": 100, "batch_size": 16, "validations": 4},
}
OWN = {
    "contiformer": {"width": 16, "training": {"steps": 400}},
    "ode2vae": {"latent": 4},
}


@cache
def data() -> tuple[Panel, Panel, Panel]:
    train, validation, test = (pendulums(n, 20, seed) for n, seed in ((40, 0), (6, 1), (8, 2)))
    return train, validation, test


def one_row_ahead(name: str, settings: dict) -> float:
    """The mean absolute error one row ahead, in standard deviations."""
    train, validation, test = data()
    model = find("models", name, "MODEL")
    forecaster = model.create(System.parse(PENDULUM) if model.physics else None, settings)
    predicted = forecaster.fit(train, validation, seed=0).one_step(test).mean
    scale = train.values.std((0, 1))
    return float(np.nanmean(np.abs(predicted - test.values) / scale))


@pytest.mark.parametrize("name", NETWORKS)
def test_it_beats_repeat_last(name, monkeypatch):
    # Nobody asks for intervals here.
    monkeypatch.setattr(FittedNetwork, "calibrated", lambda fitted, held_out: fitted)
    repeated = one_row_ahead("repeat_last", {})
    known = find("models", name, "MODEL").Config.model_fields
    settings = {key: value for key, value in SETTINGS.items() if key in known}
    assert one_row_ahead(name, merged(settings, OWN.get(name, {}))) < 0.8 * repeated
