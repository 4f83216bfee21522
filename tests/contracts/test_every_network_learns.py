"""Every network beats repeating the last time step, one step ahead, after a short training."""

import numpy as np
import pytest

from physsm._registry import names_in
from physsm.models._base import AbstractFitted
from tests.contracts.test_every_model import (
    BARELY_TRAINED,
    fitted_model,
    forecaster,
    learning_settings,
    model_class,
    training,
    whole,
)


def one_step_error(fitted: AbstractFitted) -> float:
    """Mean absolute error one step ahead, in standard deviations."""
    scale = np.nanstd(training()[0].values, axis=(0, 1))
    return float(np.nanmean(np.abs(fitted.one_step(whole()).mean - whole().values) / scale))


@pytest.mark.parametrize("name", [name for name in names_in("models") if model_class(name).trains])
def test_it_beats_repeat_last(name):
    repeated = forecaster("repeat_last").fit(*training(), seed=3)
    if name in BARELY_TRAINED:
        assert not model_class(name).physics
        trained = model_class(name).create(None, learning_settings(name)).fit(*training(), seed=3)
    else:
        trained = fitted_model(name)
    assert one_step_error(trained) < 0.8 * one_step_error(repeated)
