import jax.numpy as jnp
import numpy as np

from physsm.nn.mlp import MLP, Dense


def test_is_its_formula_on_any_shape():
    network = MLP(
        3, 4, 2, 2, np.random.default_rng(0), activation="tanh", last_activation="sigmoid"
    )
    x = np.random.default_rng(0).standard_normal((5, 6, 3))
    first, second, last = network.layers
    h = np.tanh(x @ np.asarray(first.W).T + np.asarray(first.b))
    h = h + np.tanh(h @ np.asarray(second.W).T + np.asarray(second.b))
    expected = 1 / (1 + np.exp(-(h @ np.asarray(last.W).T + np.asarray(last.b))))
    np.testing.assert_allclose(network(jnp.asarray(x)), expected, rtol=1e-10)


def test_gain_scales_the_start():
    small, large = (Dense(50, 50, np.random.default_rng(0), gain) for gain in (0.1, 1.0))
    np.testing.assert_allclose(10 * small.W, large.W, rtol=1e-12)


def test_no_inputs_give_the_bias():
    layer = Dense(0, 3, np.random.default_rng(0))
    np.testing.assert_array_equal(layer(jnp.zeros((2, 0))), jnp.stack([layer.b, layer.b]))
