"""The log likelihood of the filter against the joint Gaussian density of all measurements."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy.stats import multivariate_normal

from physsm._values import Panel, Series
from physsm.data.window import gather, whole_series
from physsm.models.phy_ssm.kalman import SMALLEST_VARIANCE
from physsm.models.phy_ssm.objective import losses
from tests.models.phy_ssm.make import make_network

RATE, NOISE, ERROR, ROWS = 0.8, 0.2, 0.15, 12


def test_it_is_the_log_density_of_the_later_rows_given_the_first():
    rng = np.random.default_rng(4)
    times = np.cumsum(rng.uniform(0.1, 0.6, ROWS))
    values = 3 + rng.standard_normal(ROWS)
    values[5] = np.nan
    panel = Panel.from_series([Series("a", times, values[:, None], np.zeros((ROWS, 0)))], ["x"])
    network = make_network(f"x' = -{RATE}*x\nobserve x", panel, substeps=1)
    logs = (jnp.log(jnp.full(1, NOISE)), jnp.log(jnp.full(1, ERROR)))
    network = eqx.tree_at(
        lambda n: (n.inference.noises.log_noise, n.inference.noises.log_error), network, logs
    )
    scaled = network.scales.table.scale(panel)
    batch = gather(scaled, whole_series(panel, 0), ROWS, 0, 1.0)
    found = eqx.filter_jit(losses)(network, batch, ROWS, None).likelihood

    gaps = np.diff(scaled.times[0])
    half = RATE * network.scales.table.time_scale * gaps / 2
    factors = (1 - half) / (1 + half)
    variance, mean = [4.0], [network.scales.states.state_offset[0]]  # scaled states, not centred
    for factor, gap in zip(factors, gaps, strict=True):
        mean.append(factor * mean[-1])
        variance.append(factor**2 * variance[-1] + NOISE**2 * gap)
    covariance = np.diag(variance)
    for i in range(ROWS):
        for j in range(i + 1, ROWS):
            covariance[i, j] = covariance[j, i] = variance[i] * np.prod(factors[i:j])
    covariance += (ERROR**2 + SMALLEST_VARIANCE) * np.eye(ROWS)
    seen = np.flatnonzero(np.isfinite(values))
    measured = scaled.values[0, seen, 0] + network.scales.states.state_offset[0]
    together = multivariate_normal(np.array(mean)[seen], covariance[np.ix_(seen, seen)])  # type: ignore[arg-type]
    first = multivariate_normal(mean[0], covariance[0, 0])
    later = len(seen) - 1
    density = together.logpdf(measured) - first.logpdf(measured[0])
    np.testing.assert_allclose(found * later, -density - later * np.log(2 * np.pi) / 2, rtol=1e-6)
