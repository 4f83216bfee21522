"""Scan = stream = loop, padding and missing cells, and what the decoder does."""

from dataclasses import replace
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from physsm._values import Panel
from physsm.data.window import whole_series
from physsm.models._network.compiled import CompiledNetwork
from physsm.models._network.observations import Observations
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.values import Drive
from tests.compiled import value_and_gradient
from tests.models.phy_ssm.make import make_network, random_panel

TEXT = "control u\nx' = v\nv' = ?*x + ?c*v + ?*u + ?s\nunknown ?c constant\nunknown ?s per series"
STEPS = 14

# What each network measures, its physics, and its settings.
NETWORKS: dict[str, tuple[list[str], str | None, dict[str, Any]]] = {
    "grounded": (["x"], TEXT, {}),
    "encoder alone": (["x"], TEXT, {"inference": "encoder"}),
    "mixed": (["x", "other"], TEXT, {}),
    "latent": (
        ["x", "other"],
        TEXT,
        {"latent": 5, "ground_states": False, "physical_units": False},
    ),
    "perceptron": (["x"], TEXT, {"unknown_network": "mlp", "inference": "encoder"}),
    "free": (["x", "other"], None, {"latent": 4}),
}
every_network = pytest.mark.parametrize("name", NETWORKS)


@cache
def network_of(name: str) -> Network:
    channels, text, changes = NETWORKS[name]
    return make_network(text, random_panel(channels, ["u"]), **changes)


def observations(network, steps=STEPS, seed=0) -> Observations:
    rng = np.random.default_rng(seed)
    table = network.scales.table
    channels, controls = len(table.channels), len(table.controls)
    return Observations(
        jnp.asarray(rng.standard_normal((steps, channels))),
        jnp.asarray((rng.random((steps, channels)) < 0.7).astype(float)),
        jnp.asarray(rng.standard_normal((steps, controls))),
        jnp.asarray(rng.uniform(0.2, 3, steps)),
    )


@eqx.filter_jit
def observe(network, rows):
    return network.observe(rows, None)


def assert_close(left, right, rtol=1e-7, atol=0.0):
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def end_by_batch(network, rows):
    return network.observe(rows, None)[1]


def end_by_stream(network, rows):
    def one_row(boundary, row):
        return network.update(boundary, row), None

    return jax.lax.scan(one_row, network.start(), rows)[0]


# What "mixed" has beside "grounded", a decoder, has no part in the boundary.
@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "mixed"])
def test_a_stream_equals_the_batch_with_equal_gradients(name):
    network = network_of(name)
    rows = observations(network)

    def values_and_gradient(end):
        def total(network):
            boundary = end(network, rows)
            return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(boundary)), boundary

        return value_and_gradient(total, network, has_aux=True)

    (_, batch), gradient = values_and_gradient(end_by_batch)
    (_, stream), gradient_of_stream = values_and_gradient(end_by_stream)
    assert_close(batch, stream, rtol=1e-9, atol=1e-10)
    assert_close(gradient, gradient_of_stream, rtol=1e-6, atol=1e-8)


def test_a_stream_of_mixed_channels_equals_the_batch():
    network = network_of("mixed")
    rows = observations(network)
    _, batch = observe(network, rows)
    assert_close(eqx.filter_jit(end_by_stream)(network, rows), batch, rtol=1e-9, atol=1e-10)


@eqx.filter_jit
def single_step(unit, terms, state, u_next, gap):
    """State, unknowns and the state of the unit's network after one gap."""
    z, features, carry, u = state
    theta = unit.theta(features, terms)
    z = unit.advance(z, theta, Drive(u, u_next, gap))
    features, carry = unit.feature_step(z, u_next, unit.discrete(gap), carry)
    return (z, features, carry, u_next), theta


@every_network
def test_a_rollout_is_a_loop_of_single_steps(name):
    network = network_of(name)
    _, boundary = observe(network, observations(network))
    rng = np.random.default_rng(1)
    controls = jnp.asarray(rng.standard_normal((6, len(network.scales.table.controls))))
    gaps = jnp.asarray(rng.uniform(0.1, 2, 6))
    future = eqx.filter_jit(lambda n: n.rollout(boundary, controls, gaps))(network)
    latent, unit = boundary.latent, boundary.unit
    state = (latent.z_ext, unit.features, unit.carry, boundary.control)
    for i in range(6):
        state, theta = single_step(network.unit, latent.series_terms, state, controls[i], gaps[i])
        np.testing.assert_allclose(future.z_ext[i], state[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(future.theta[i], theta, rtol=1e-9, atol=1e-12)


@every_network
def test_empty_rows_before_a_series_change_nothing(name):
    network = network_of(name)
    rows = observations(network)
    padding = jax.tree.map(lambda leaf: leaf[:5], observations(network, seed=9))
    padding = padding._replace(gaps=jnp.zeros(5), seen=jnp.zeros_like(padding.seen))
    padded = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), padding, rows)
    (alone, end), (together, padded_end) = observe(network, rows), observe(network, padded)
    assert_close(end, padded_end, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(alone.predicted, together.predicted[5:], rtol=1e-10, atol=1e-12)


def test_grounded_channels_are_states_in_their_units():
    network = network_of("mixed")
    decode = eqx.filter_jit(lambda n, z: n.decode(n.unit.extend(z), jnp.zeros(1)))
    z = jnp.asarray([1.3, -0.4])
    decoded = decode(network, z)
    shown = network.scales.table.unscale(np.asarray(decoded))
    np.testing.assert_allclose(shown[0], 1.3 * network.scales.states.state_scale[0], rtol=1e-12)
    assert float(decode(network, z.at[0].add(1.0))[1]) != float(decoded[1])


@pytest.mark.parametrize("name", ["grounded", "encoder alone"])
def test_draws_spread_around_the_mean(name):
    network = network_of(name)
    inferred, boundary = observe(network, observations(network))
    draw = jax.jit(jax.vmap(lambda key: network.draw(boundary, key).latent.z_ext))
    draws = draw(jr.split(jr.key(0), 4000))
    mean, std = inferred.posterior.mean[-1], inferred.posterior.std[-1]
    np.testing.assert_allclose(draws[:, :2].mean(0), mean, atol=0.06 * float(std.max()))
    np.testing.assert_allclose(draws[:, :2].std(0), std, rtol=0.06)


def inferred_states(network: Network, panel: Panel) -> np.ndarray:
    rows = CompiledNetwork(network).observations(panel, whole_series(panel, 0), STEPS)
    return np.asarray(observe(network, rows)[0].posterior.mean)


@pytest.mark.parametrize("shows_missing", [False, True])
def test_a_channel_that_was_not_shown_enters_as_last_seen(shows_missing):
    """A missing cell is read as the value before it. It is told apart from a measurement of that
    value only where the encoder reads the mask.
    """
    whole = random_panel(["x"], ["u"], lengths=(STEPS,), missing=0.0)
    missing, repeated = whole.values.copy(), whole.values.copy()
    missing[0, 6:8] = np.nan
    repeated[0, 6:8] = whole.values[0, 5]
    network = make_network(TEXT, whole, shows_missing=shows_missing, inference="encoder")
    before, gappy, held = (
        inferred_states(network, replace(whole, values=values))
        for values in (whole.values, missing, repeated)
    )
    assert not np.allclose(gappy, before)
    assert np.array_equal(gappy, held) != shows_missing
