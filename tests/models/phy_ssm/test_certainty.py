"""The certainty of constants against numeric slopes, and how it grows with the data."""

import equinox as eqx
import jax
import numpy as np

from physsm._values import Panel, Series
from physsm.data.window import gather, whole_series
from physsm.models.phy_ssm.certainty import std_of_constants
from physsm.models.phy_ssm.objective import predict
from physsm.models.phy_ssm.terms import in_physical_units
from physsm.models.phy_ssm.unit import PhysicsUnit
from tests.models.phy_ssm.make import make_network

TEXT = "x' = v\nv' = -?k*x - ?b*v + ?f\nunknown ?k, ?b constant\n?b >= 0\nobserve x, v"


def noisy_panel(copies: int = 1) -> Panel:
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.uniform(0.05, 0.15, 30))
    series = []
    for i in range(2):
        x = np.cos(2 * times + i) + 0.02 * rng.standard_normal(30)
        v = -2 * np.sin(2 * times + i) + 0.02 * rng.standard_normal(30)
        v[rng.random(30) < 0.3] = np.nan
        series += [
            Series(f"{i}.{k}", times, np.stack([x, v], 1), np.zeros((30, 0))) for k in range(copies)
        ]
    return Panel.from_series(series, ["x", "v"])


def network_and_batch(copies: int = 1):
    panel = noisy_panel(copies)
    network = make_network(TEXT, panel)
    scaled = network.plan.scale(panel)
    return network, gather(scaled, whole_series(panel, 0), 30, 0, 1.0)


def test_standard_deviations_equal_those_of_least_squares_with_numeric_slopes():
    network, batch = network_and_batch()
    unit = network.unit
    assert isinstance(unit, PhysicsUnit)

    @jax.jit
    def channels(constants):
        changed = eqx.tree_at(lambda n: n.unit.constants, network, constants)  # type: ignore[attr-defined]
        return predict(changed, batch, 30, None)[1]

    step, raw = 1e-5, np.asarray(unit.constants)
    slopes = []
    for i in (0, 1):
        shift = step * np.eye(3)[i]
        slopes.append((channels(raw + shift) - channels(raw - shift)) / (2 * step))
    seen = batch.observed[1:] > 0
    error = np.asarray(channels(raw)) - batch.values[1:]
    J, scale = [], []
    for c in range(2):
        here = seen[..., c]
        scale.append(np.sqrt(np.mean(error[..., c][here] ** 2)))
        J.append(np.stack([slope[..., c][here] for slope in slopes], 1) / scale[c])
    J = np.concatenate(J)
    covariance = np.linalg.inv(J.T @ J + np.eye(2))
    there = in_physical_units(unit.system, unit.plan, unit.constants + step)
    back = in_physical_units(unit.system, unit.plan, unit.constants - step)
    in_units = np.asarray((there - back) / (2 * step))[:2]
    expected = in_units * np.sqrt(np.diagonal(covariance))
    found = std_of_constants(network, batch)
    np.testing.assert_allclose(found[:2], expected, rtol=1e-3)
    assert found[2] == 0  # it varies


def test_four_times_the_data_halve_the_standard_deviations():
    (one, batch), (same, more) = network_and_batch(), network_and_batch(4)
    ratio = std_of_constants(one, batch)[:2] / std_of_constants(same, more)[:2]
    assert np.all((ratio > 1.8) & (ratio <= 2.001)), ratio
