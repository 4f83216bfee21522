"""Inputs of the linear bypass: controls, and functions of them that the equations name."""

import jax.numpy as jnp
import numpy as np
import pytest

from physsm import System
from physsm._values import Panel, Series
from physsm.models._network.scales import table_scales
from physsm.models._network.state_scales import state_scales
from physsm.models.phy_ssm.bypass_inputs import BypassInputs, PhySSMScales, function_scales


def inputs_of(text: str, controls: np.ndarray, names=("u", "v")) -> BypassInputs:
    times = np.arange(len(controls), dtype=float)
    one = Series("a", times, np.random.default_rng(1).standard_normal((len(times), 1)), controls)
    panel = Panel.from_series([one], ["c"], names)
    system = System.parse(text)
    table = table_scales(panel, False, True)
    scales = PhySSMScales(
        table=table,
        states=state_scales(system, table, panel, True),
        bypass=function_scales(system, table, panel),
    )
    return BypassInputs.of(system, scales)


def test_functions_follow_the_controls_and_all_are_scaled():
    u = np.random.default_rng(0).uniform(1, 3, (50, 2))
    inputs = inputs_of("control v\nx' = ?*x + [v**2]*? + [exp(v)]*?", u)
    found = inputs(u)
    assert inputs.count == found.shape[1] == 4
    np.testing.assert_allclose(found.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(found.std(0), 1)
    expected = u[:, 1] ** 2
    np.testing.assert_allclose(
        np.abs(np.corrcoef(found[:, 2:].T, expected)[2, :2]).max(), 1, rtol=1e-12
    )


def test_it_is_the_same_on_arrays_of_both_kinds():
    u = np.random.default_rng(0).uniform(1, 3, (4, 5, 2))
    inputs = inputs_of("control u, v\nx' = ?*x + [u/v]*?", u.reshape(-1, 2))
    np.testing.assert_allclose(inputs(jnp.asarray(u)), inputs(u), rtol=1e-12)


def test_a_pole_beyond_the_training_data_stays_finite():
    u = np.random.default_rng(0).uniform(1, 3, (50, 2))
    inputs = inputs_of("control u\nx' = ?*x + [1/u]*? + [log(u)]*?", u)
    with np.errstate(all="ignore"):
        found = inputs(np.array([[0.0, 1.0], [-1.0, 1.0], [1e-300, 1.0]]))
    assert np.isfinite(found).all()
    assert np.abs(found[:, 2:]).max() <= 30


@pytest.mark.parametrize("text", ["x' = ?*x", "control u\nx' = ?*x + ?*u"])
def test_without_functions_there_are_the_controls_alone(text):
    u = np.random.default_rng(0).uniform(1, 3, (50, 2))
    assert inputs_of(text, u).count == 2


def test_a_function_without_a_value_in_training_is_not_used():
    u = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    assert inputs_of("control u\nx' = ?*x + [sqrt(u)]*?", u).count == 2
