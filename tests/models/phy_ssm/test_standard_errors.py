"""Standard errors of constants against numeric slopes, and before the end of a training."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physsm._values import Panel, Series
from physsm.data.window import gather, whole_series
from physsm.models._network.compiled import CompiledNetwork
from physsm.models._network.unknowns import in_physical_units
from physsm.models.phy_ssm.kalman_inference import KalmanInference
from physsm.models.phy_ssm.objective import predict
from physsm.models.phy_ssm.standard_errors import constants_std
from physsm.models.phy_ssm.unit import PhysicsUnit
from tests.models.phy_ssm.make import make_network

TEXT = "x' = v\nv' = -?k*x - ?b*v + ?f\nunknown ?k, ?b constant\n?b >= 0\nobserve x, v"


def noisy_panel() -> Panel:
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.uniform(0.05, 0.15, 30))
    series = []
    for i in range(2):
        x = np.cos(2 * times + i) + 0.02 * rng.standard_normal(30)
        v = -2 * np.sin(2 * times + i) + 0.02 * rng.standard_normal(30)
        v[rng.random(30) < 0.3] = np.nan
        series.append(Series(str(i), times, np.stack([x, v], 1), np.zeros((30, 0))))
    return Panel.from_series(series, ["x", "v"])


@cache
def network_and_batch():
    panel = noisy_panel()
    network = make_network(TEXT, panel)
    scaled = network.scales.table.scale(panel)
    return network, gather(scaled, whole_series(panel, 0), 30, 0, 1.0)


@cache
def found_std() -> np.ndarray:
    network, batch = network_and_batch()
    return constants_std(CompiledNetwork(network), batch)


def test_standard_deviations_equal_those_of_least_squares_with_numeric_slopes():
    network, batch = network_and_batch()
    unit, inference = network.unit, network.inference
    assert isinstance(unit, PhysicsUnit)
    assert isinstance(inference, KalmanInference)

    @jax.jit
    def prior_and_channels(constants):
        changed = eqx.tree_at(lambda n: n.unit.constants, network, constants)
        inferred, channels = predict(changed, batch, 30, None)
        return inferred.prior.std, channels

    step, raw = 1e-5, np.asarray(unit.constants)
    slopes = []
    for i in range(3):
        shift = step * np.eye(3)[i]
        there, back = (prior_and_channels(raw + sign * shift)[1] for sign in (1, -1))
        slopes.append(np.asarray(there - back) / (2 * step))
    prior, channels = map(np.asarray, prior_and_channels(raw))
    seen = batch.observed[1:] > 0
    error = channels - batch.values[1:]
    finer = make_network(TEXT, noisy_panel(), substeps=2 * len(unit.hold))
    # Test networks take steps of first order: half the length leaves half the error.
    by_finer = 2 * (np.asarray(jax.jit(lambda: predict(finer, batch, 30, None)[1])()) - channels)
    # Every channel is a state, so that the variance of a channel is that of its state.
    variance_of_error = prior**2 + np.asarray(inference.noises.error_variance())
    information, scores, by_steps = np.eye(3), np.zeros((2, 3)), np.zeros(3)
    for s in range(2):
        for t, c in zip(*np.nonzero(seen[:, s]), strict=True):
            slope = np.array([one[t, s, c] for one in slopes]) / variance_of_error[t, s, c]
            information += np.outer(slope, slope) * variance_of_error[t, s, c]
            scores[s] -= slope * error[t, s, c]
            by_steps += slope * by_finer[t, s, c]
    covariance = np.linalg.inv(information)
    away = (covariance @ scores.sum(0)) ** 2 + (covariance @ by_steps) ** 2
    centred = scores - scores.mean(0)
    by_series = np.diagonal(covariance @ centred.T @ centred @ covariance)
    variance = np.maximum(np.diagonal(covariance), by_series) + away
    there, back = (
        in_physical_units(unit.system, unit.scales, unit.constants + shift)
        for shift in (step, -step)
    )
    in_units = np.asarray((there - back) / (2 * step))
    expected = in_units * np.sqrt(variance)
    np.testing.assert_allclose(found_std()[:2], expected[:2], rtol=1e-3)
    assert found_std()[2] == 0  # it varies


def test_constants_far_from_the_best_predictions_have_large_standard_errors():
    network, _ = network_and_batch()
    assert isinstance(network.unit, PhysicsUnit)
    theta = network.unit.theta(jnp.zeros(1), jnp.zeros(0))[:2]
    # Untrained: stiffness is 4 and starts near zero; one step towards it is at least half the way.
    assert abs(4 - float(theta[0])) < 2 * found_std()[0]
