"""The terms of the objective, computed by hand from the network's outputs."""

from dataclasses import replace
from functools import cache
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
from tests.compiled import value_and_gradient
from tests.models.phy_ssm.make import make_network, random_panel

TEXT = "control u\nx' = v\nv' = ?*x + ?*v + ?*u"
CONTEXT, HORIZON = 12, 6

losses: Any = eqx.filter_jit(plain.losses)


@cache
def example():
    panel = random_panel(["x"], ["u"], lengths=(30, 15, 40))
    network = make_network(TEXT, panel)
    scaled = network.scales.table.scale(panel)
    batch = gather(scaled, windows(scaled, CONTEXT, HORIZON, 5), CONTEXT, HORIZON, 1.0)
    return network, batch


@cache
def predicted_example():
    """Inference on the contexts of the example, and its predictions."""
    network, batch = example()
    return jax.jit(lambda: plain.predict(network, batch, CONTEXT, None))()


@cache
def terms_of_example():
    network, batch = example()
    return losses(network, batch, CONTEXT, None, jnp.asarray(1.0))


@pytest.fixture
def with_settings(monkeypatch):
    """The example with other settings of its objective alone, on which predictions do not depend:
    they are not computed again.
    """
    monkeypatch.setattr(plain, "predict", lambda *_: predicted_example())

    def changed(**settings):
        network, batch = example()
        config = type(network.config)(**{**network.config.model_dump(by_alias=True), **settings})
        return replace(network, config=config), batch

    return changed


def test_reconstruction_is_the_mean_over_measured_cells():
    _, batch = example()
    _, predicted = predicted_example()
    measured = batch.observed[1:].astype(bool) & batch.valid[:-1, :, None].astype(bool)
    expected = np.mean((np.asarray(predicted) - batch.values[1:])[measured] ** 2)
    np.testing.assert_allclose(terms_of_example().reconstruction, expected, rtol=1e-10)


def test_cells_that_were_not_measured_do_not_count():
    network, batch = example()
    nonsense = batch._replace(
        values=np.where(batch.observed > 0, batch.values, 1e6).astype(np.float32)
    )
    found = losses(network, nonsense, CONTEXT, None, jnp.asarray(1.0))
    assert list(map(float, found)) == list(map(float, terms_of_example()))


@pytest.mark.parametrize("metric", ["euclidean", "chebyshev", "cosine"])
def test_regulariser_compares_inferred_and_predicted_states(metric, with_settings):
    network, batch = with_settings(regulariser=metric)
    inferred, _ = predicted_example()
    states, predicted = np.asarray(inferred.z_ext[1:]), np.asarray(inferred.predicted)
    pairs = (batch.valid[: CONTEXT - 1] * batch.valid[1:CONTEXT]).astype(bool)
    by_hand = {
        "euclidean": lambda a, b: np.mean((a - b) ** 2),
        "chebyshev": lambda a, b: np.max(np.abs(a - b)),
        "cosine": cosine,
    }[metric]
    rows = zip(states[pairs], predicted[pairs], strict=True)
    expected = np.mean([by_hand(a, b) for a, b in rows])
    found = jax.jit(lambda: plain.losses(network, batch, CONTEXT, None).regulariser)()
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    if metric == "euclidean":
        np.testing.assert_allclose(terms_of_example().regulariser, expected, rtol=1e-6)


def test_objective_is_the_weighted_sum_with_its_ramps(with_settings):
    settings = {"lambda": 0.7, "beta": 0.3, "anneal": 0.5, "curriculum": 0.0, "likelihood": 0.2}
    network, batch = with_settings(**settings)
    objective = jax.jit(lambda key, now: plain.objective(network, batch, CONTEXT, key, now))
    terms = terms_of_example()  # the filter draws nothing, so that they do not depend on the key
    for progress, share in ((0.0, 0.0), (0.25, 0.5), (0.5, 1.0), (1.0, 1.0)):
        found = objective(jr.key(3), jnp.asarray(progress))
        expected = terms.reconstruction + 0.3 * share * terms.kl + 0.7 * terms.regulariser
        expected = expected + 0.2 * terms.likelihood
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_reach_counts_the_start_of_the_target_only():
    network, batch = example()
    near = losses(network, batch, CONTEXT, None, jnp.asarray(0.5)).reconstruction
    is_near = np.arange(CONTEXT + HORIZON)[:, None, None] < CONTEXT + HORIZON / 2
    cut = batch._replace(observed=np.where(is_near, batch.observed, 0).astype(np.float32))
    whole = losses(network, cut, CONTEXT, None, jnp.asarray(1.0)).reconstruction
    np.testing.assert_allclose(near, whole, rtol=1e-10)


def test_gradients_reach_every_parameter_and_are_finite():
    """But for those that only a grey box fits: the holds, and the distribution of first states."""
    network, batch = example()
    value, gradient = value_and_gradient(
        lambda n: plain.objective(n, batch, CONTEXT, jr.key(0), jnp.asarray(1.0)), network
    )
    assert np.isfinite(value)
    for path, leaf in jax.tree_util.tree_leaves_with_path(gradient):
        assert np.isfinite(leaf).all(), path
        is_trained = not {"hold", "first"} & {getattr(key, "name", None) for key in path}
        assert not leaf.size or (np.abs(np.asarray(leaf)).max() > 0) == is_trained, path
