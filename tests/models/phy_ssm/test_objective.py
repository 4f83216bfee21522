"""The terms of the objective, computed by hand from the network's outputs."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.spatial.distance import cosine

from physsm.data.window import gather, windows
from physsm.models.phy_ssm import objective as plain
from tests.models.phy_ssm.make import make_network, random_panel

TEXT = "control u\nx' = v\nv' = ?*x + ?*v + ?*u"
CONTEXT, HORIZON = 12, 6

losses: Any = eqx.filter_jit(plain.losses)
objective: Any = eqx.filter_jit(plain.objective)
predict: Any = eqx.filter_jit(plain.predict)


def example(**changes):
    panel = random_panel(["x"], ["u"], lengths=(30, 15, 40))
    network = make_network(TEXT, panel, **changes)
    scaled = network.plan.scale(panel)
    batch = gather(scaled, windows(scaled, CONTEXT, HORIZON, 5), CONTEXT, HORIZON, 1.0)
    return network, batch


def test_reconstruction_is_the_mean_over_measured_cells():
    network, batch = example()
    _, predicted = predict(network, batch, CONTEXT, None)
    measured = batch.observed[1:].astype(bool) & batch.valid[:-1, :, None].astype(bool)
    expected = np.mean((np.asarray(predicted) - batch.values[1:])[measured] ** 2)
    found = losses(network, batch, CONTEXT, None).reconstruction
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_cells_that_were_not_measured_do_not_count():
    network, batch = example()
    nonsense = batch._replace(values=np.where(batch.observed > 0, batch.values, 1e6))
    for a, b in zip(
        losses(network, batch, CONTEXT, None), losses(network, nonsense, CONTEXT, None), strict=True
    ):
        assert float(a) == float(b)


@pytest.mark.parametrize("metric", ["euclidean", "chebyshev", "cosine"])
def test_regulariser_compares_inferred_and_predicted_states(metric):
    network, batch = example(regulariser=metric)
    observed, _ = predict(network, batch, CONTEXT, None)
    inferred, predicted = np.asarray(observed.z_ext[1:]), np.asarray(observed.predicted)
    pairs = (batch.valid[: CONTEXT - 1] * batch.valid[1:CONTEXT]).astype(bool)
    rows = list(zip(inferred[pairs], predicted[pairs], strict=True))
    by_hand = {
        "euclidean": lambda a, b: np.mean((a - b) ** 2),
        "chebyshev": lambda a, b: np.max(np.abs(a - b)),
        "cosine": cosine,
    }[metric]
    expected = np.mean([by_hand(a, b) for a, b in rows])
    np.testing.assert_allclose(
        losses(network, batch, CONTEXT, None).regulariser, expected, rtol=1e-6
    )


def test_objective_is_the_weighted_sum_with_its_ramps():
    settings = {"lambda": 0.7, "beta": 0.3, "anneal": 0.5, "curriculum": 0.0, "surprise": 0.2}
    network, batch = example(**settings)
    key = jr.key(3)
    terms = losses(network, batch, CONTEXT, key)
    for progress, share in ((0.0, 0.0), (0.25, 0.5), (0.5, 1.0), (1.0, 1.0)):
        found = objective(network, batch, CONTEXT, key, jnp.asarray(progress))
        expected = terms.reconstruction + 0.3 * share * terms.kl + 0.7 * terms.regulariser
        expected = expected + 0.2 * terms.surprise
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_reach_counts_the_start_of_the_target_only():
    network, batch = example()
    near = losses(network, batch, CONTEXT, None, 0.5).reconstruction
    is_near = np.arange(CONTEXT + HORIZON)[:, None, None] < CONTEXT + HORIZON / 2
    cut = batch._replace(observed=np.where(is_near, batch.observed, 0))
    np.testing.assert_allclose(near, losses(network, cut, CONTEXT, None).reconstruction, rtol=1e-10)


def test_gradients_reach_every_parameter_and_are_finite():
    network, batch = example()
    value, gradient = eqx.filter_jit(
        eqx.filter_value_and_grad(
            lambda n: plain.objective(n, batch, CONTEXT, jr.key(0), jnp.asarray(1.0))
        )
    )(network)
    assert np.isfinite(value)
    for path, leaf in jax.tree_util.tree_leaves_with_path(gradient):
        assert np.isfinite(leaf).all(), path
        assert not leaf.size or np.abs(np.asarray(leaf)).max() > 0, path
