"""What every classical forecaster must do beside the contract of all."""

import numpy as np
import pytest

from physsm._registry import names_in
from physsm.models._baseline.forecaster import BaselineForecaster
from tests.contracts.test_every_model import cut, fitted_model, forecast, model_class, whole

NAMES = [name for name in names_in("models") if issubclass(model_class(name), BaselineForecaster)]


@pytest.mark.parametrize("row", [1, 2, 9, 21])
@pytest.mark.parametrize("name", NAMES)
def test_one_step_equals_a_forecast_from_the_rows_before(name, row):
    panel = whole()
    history, query = cut(panel, (row,) * len(panel), 1)
    found, steps = forecast(name, history, query), fitted_model(name).one_step(panel)
    # A solver ends where its tolerance says; all others are formulas.
    rtol, atol = (1e-6, 1e-9) if name == "least_squares" else (1e-7, 0.0)
    np.testing.assert_allclose(steps.mean[:, row], found.mean[:, 0], rtol=rtol, atol=atol)
    assert steps.upper is not None
    assert found.upper is not None
    np.testing.assert_allclose(steps.upper[:, row], found.upper[:, 0], rtol=rtol, atol=atol)


def test_there_are_such_models():
    assert {"repeat_last", "line", "damped", "arx", "mean", "least_squares"} <= set(NAMES)
