"""Every network beats repeating the last time step, one step ahead, after a short training."""

import numpy as np
import pytest

from physsm._registry import names_in
from physsm.models._base import AbstractFitted
from tests.contracts.test_every_model import (
    fitted_model,
    forecaster,
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
    assert one_step_error(fitted_model(name)) < 0.8 * one_step_error(repeated)
