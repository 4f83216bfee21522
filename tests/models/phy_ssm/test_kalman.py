"""Filter and smoother against conditioning the joint Gaussian of all states and measurements."""

import jax
import jax.numpy as jnp
import numpy as np

from physsm.models.phy_ssm.kalman import Measurement, bounded, correct, predict, smooth
from physsm.models.phy_ssm.values import FilterSteps


def joint_condition(F, Q, m0, P0, measured, precision):
    """All states given all measurements, from the dense joint distribution."""
    steps, q = measured.shape
    size = steps * q
    mean, covariance = np.zeros(size), np.zeros((size, size))
    mean[:q], covariance[:q, :q] = m0, P0
    for k in range(1, steps):
        now, before = slice(k * q, (k + 1) * q), slice((k - 1) * q, k * q)
        mean[now] = F @ mean[before]
        covariance[now, : k * q] = F @ covariance[before, : k * q]
        covariance[: k * q, now] = covariance[now, : k * q].T
        covariance[now, now] = F @ covariance[before, before] @ F.T + Q
    seen = precision.reshape(-1) > 0
    H = np.eye(size)[seen]
    R = np.diag(1 / precision.reshape(-1)[seen])
    gain = covariance @ H.T @ np.linalg.inv(H @ covariance @ H.T + R)
    mean = mean + gain @ (measured.reshape(-1)[seen] - H @ mean)
    covariance = covariance - gain @ H @ covariance
    blocks = [slice(k * q, (k + 1) * q) for k in range(steps)]
    return mean.reshape(steps, q), np.stack([covariance[one, one] for one in blocks])


def linear_system(q=3, steps=6):
    """A linear system: transition, variances of noise, start, measurements, precisions."""
    rng = np.random.default_rng(0)
    F = np.eye(q) + 0.3 * rng.standard_normal((q, q))
    noise = rng.uniform(0.05, 0.3, q)
    root = rng.standard_normal((q, q))
    m0, P0 = rng.standard_normal(q), root @ root.T + np.eye(q)
    measured = rng.standard_normal((steps, q))
    precision = rng.uniform(0.5, 20, (steps, q)) * (rng.random((steps, q)) < 0.6)
    return F, noise, m0, P0, measured, precision


def of_states(predicted, measured, precision) -> Measurement:
    """Measurements of the states themselves."""
    slope = jnp.eye(len(predicted), dtype=predicted.dtype)
    return Measurement(innovation=measured - predicted, slope=slope, precision=precision)


def filtered(F, noise, m0, P0, measured, precision) -> FilterSteps:
    """The steps of the filter, for one series."""

    @jax.jit
    def step(mean, covariance, measured, precision):
        predicted, prior, slope = predict(mean, covariance, lambda x: F @ x, noise)
        corrected = correct(predicted, prior, of_states(predicted, measured, precision))
        return (*corrected, predicted, slope)

    F, noise, m0, P0 = map(jnp.asarray, (F, noise, m0, P0))
    mean, covariance = correct(m0, P0, of_states(m0, measured[0], precision[0]))
    steps = [(mean, covariance, m0, F, noise)]
    for k in range(1, len(measured)):
        mean, covariance, predicted, slope = step(mean, covariance, measured[k], precision[k])
        steps.append((mean, covariance, predicted, slope, noise))
    return FilterSteps(*(jnp.stack(part)[:, None] for part in zip(*steps, strict=True)))


def test_filter_equals_the_joint_gaussian():
    system = F, noise, m0, P0, measured, precision = linear_system()
    steps = filtered(*system)
    np.testing.assert_allclose(steps.slope[:, 0], np.broadcast_to(F, steps.slope[:, 0].shape))
    expected = joint_condition(F, np.diag(noise), m0, P0, measured, precision)
    np.testing.assert_allclose(steps.mean[-1, 0], expected[0][-1], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(steps.covariance[-1, 0], expected[1][-1], rtol=1e-8, atol=1e-10)


def test_smoother_equals_the_joint_gaussian():
    system = F, noise, m0, P0, measured, precision = linear_system()
    found, spread = smooth(filtered(*system))
    expected = joint_condition(F, np.diag(noise), m0, P0, measured, precision)
    np.testing.assert_allclose(found[:, 0], expected[0], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(spread[:, 0], expected[1], rtol=1e-7, atol=1e-9)


def test_no_measurement_changes_nothing():
    P = jnp.asarray([[2.0, 0.5], [0.5, 1.0]])
    m = jnp.asarray([1.0, -1.0])
    mean, covariance = correct(m, P, of_states(m, jnp.asarray([50.0, 50.0]), jnp.zeros(2)))
    np.testing.assert_array_equal(mean, [1.0, -1.0])
    np.testing.assert_array_equal(covariance, P)


def test_measurements_of_sums_of_states_equal_the_joint_gaussian():
    """Three linear functions of four states, one of which was not measured."""
    rng = np.random.default_rng(1)
    root, H = rng.standard_normal((4, 4)), rng.standard_normal((3, 4))
    m, P = rng.standard_normal(4), root @ root.T + 0.1 * np.eye(4)
    value, precision = rng.standard_normal(3), np.array([4.0, 0.0, 25.0])
    measured = Measurement(*map(jnp.asarray, (value - H @ m, H, precision)))
    mean, covariance = jax.jit(correct)(jnp.asarray(m), jnp.asarray(P), measured)
    seen = precision > 0
    error = np.diag(1 / precision[seen])
    gain = P @ H[seen].T @ np.linalg.inv(H[seen] @ P @ H[seen].T + error)
    np.testing.assert_allclose(mean, m + gain @ (value - H @ m)[seen], rtol=1e-10)
    np.testing.assert_allclose(covariance, P - gain @ H[seen] @ P, rtol=1e-9, atol=1e-12)


def test_a_nonlinear_transition_is_linearised_at_the_mean():
    mean, covariance, _ = predict(
        jnp.asarray([0.5]), jnp.asarray([[0.04]]), lambda x: jnp.sin(3 * x), jnp.asarray([0.01])
    )
    np.testing.assert_allclose(mean, np.sin(1.5))
    np.testing.assert_allclose(covariance, [[(3 * np.cos(1.5)) ** 2 * 0.04 + 0.01]])


def test_standard_deviations_are_kept_within_limits():
    P = np.array([[400.0, 6.0, 0.0], [6.0, 1.0, 0.0], [0.0, 0.0, -1e-9]])
    found = np.asarray(bounded(jnp.asarray(P), 1e-3, 10.0))
    np.testing.assert_allclose(np.sqrt(np.diag(found)), [10, 1, 1e-3])
    np.testing.assert_allclose(found[0, 1] / 10, 6 / 20)  # the correlation is the same
    inside = np.array([[2.0, 0.3], [0.3, 1.0]])
    np.testing.assert_array_equal(bounded(jnp.asarray(inside), 1e-3, 10.0), inside)
