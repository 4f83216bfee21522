"""Scan = stream = loop, padding and missing cells, and what the decoder does."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from physsm.models._network.observations import Observations
from physsm.models._network.scales import data_plan
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.values import Drive
from tests.models.phy_ssm.make import make_network, random_panel, small_config

TEXT = "control u\nx' = v\nv' = ?*x + ?c*v + ?*u + ?s\nunknown ?c constant\nunknown ?s per series"


def observations(network, steps=14, seed=0) -> Observations:
    rng = np.random.default_rng(seed)
    channels, controls = len(network.plan.channels), len(network.plan.controls)
    return Observations(
        jnp.asarray(rng.standard_normal((steps, channels))),
        jnp.asarray((rng.random((steps, channels)) < 0.7).astype(float)),
        jnp.asarray(rng.standard_normal((steps, controls))),
        jnp.asarray(rng.uniform(0.2, 3, steps)),
    )


@eqx.filter_jit
def observe(network, rows):
    return network.observe(rows, None)


def networks():
    grounded = random_panel(["x"], ["u"])
    mixed = random_panel(["x", "other"], ["u"])
    yield "grounded", make_network(TEXT, grounded)
    yield "encoder alone", make_network(TEXT, grounded, assimilate=False)
    yield "mixed", make_network(TEXT, mixed)
    yield "latent", make_network(TEXT, mixed, latent=5, ground_states=False, physical_units=False)
    yield "perceptron", make_network(TEXT, grounded, unknown_network="mlp")
    yield "free", Network(None, data_plan(mixed, True, True), small_config(latent=4), 0)


ALL = [pytest.param(network, id=name) for name, network in networks()]


@pytest.mark.parametrize("network", ALL)
def test_a_stream_equals_the_batch_with_equal_gradients(network):
    rows = observations(network)

    def end_by_batch(network):
        boundary = network.observe(rows, None).boundary
        return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(boundary))

    def end_by_stream(network):
        def one_row(boundary, row):
            return network.update(boundary, row), None

        boundary, _ = jax.lax.scan(one_row, network.start(), rows)
        return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(boundary))

    (value_a, a), (value_b, b) = (
        eqx.filter_jit(eqx.filter_value_and_grad(f))(network) for f in (end_by_batch, end_by_stream)
    )
    np.testing.assert_allclose(value_a, value_b, rtol=1e-9)
    for left, right in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("network", ALL)
def test_a_rollout_is_a_loop_of_single_steps(network):
    boundary = observe(network, observations(network)).boundary
    rng = np.random.default_rng(1)
    controls = jnp.asarray(rng.standard_normal((6, len(network.plan.controls))))
    gaps = jnp.asarray(rng.uniform(0.1, 2, 6))
    future = eqx.filter_jit(lambda n: n.rollout(boundary, controls, gaps))(network)
    step = eqx.filter_jit(lambda unit, *state: unit.advance(*state))
    z, features, carry, u = boundary.z_ext, boundary.features, boundary.unit, boundary.control
    for i in range(6):
        theta = network.unit.theta(features, boundary.series_terms)
        z = step(network.unit, z, theta, Drive(u, controls[i], gaps[i]))
        np.testing.assert_allclose(future.z_ext[i], z, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(future.theta[i], theta, rtol=1e-9, atol=1e-12)
        discrete = network.unit.discrete(gaps[i])
        features, carry = network.unit.feature_step(z, controls[i], discrete, carry)
        u = controls[i]


@pytest.mark.parametrize("network", ALL)
def test_empty_rows_before_a_series_change_nothing(network):
    rows = observations(network)
    padding = jax.tree.map(lambda leaf: leaf[:5], observations(network, seed=9))
    padding = padding._replace(gaps=jnp.zeros(5), seen=jnp.zeros_like(padding.seen))
    padded = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), padding, rows)
    alone, together = observe(network, rows), observe(network, padded)
    for a, b in zip(
        jax.tree.leaves(alone.boundary), jax.tree.leaves(together.boundary), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(alone.predicted, together.predicted[5:], rtol=1e-10, atol=1e-12)


def test_grounded_channels_are_states_in_their_units():
    panel = random_panel(["x", "other"], ["u"])
    network = make_network(TEXT, panel)
    z_ext = network.unit.extend(jnp.asarray([1.3, -0.4]))
    decoded = network.plan.unscale(np.asarray(network.decode(z_ext)))
    np.testing.assert_allclose(decoded[0], 1.3 * network.plan.state_scale[0], rtol=1e-12)
    other = network.decode(z_ext.at[0].add(1.0))[1]
    assert float(other) != float(network.decode(z_ext)[1])


def test_draws_spread_around_the_mean():
    network = make_network(TEXT, random_panel(["x"], ["u"]))
    for one in (network, make_network(TEXT, random_panel(["x"], ["u"]), assimilate=False)):
        boundary = observe(one, observations(one)).boundary
        draws = jax.vmap(lambda key, n=one, b=boundary: n.draw(b, key).z_ext)(
            jr.split(jr.key(0), 4000)
        )
        std = boundary.posterior.std
        np.testing.assert_allclose(
            draws[:, :2].mean(0), boundary.posterior.mean, atol=0.06 * float(std.max())
        )
        np.testing.assert_allclose(draws[:, :2].std(0), std, rtol=0.06)


def test_a_channel_that_was_not_shown_enters_as_last_seen():
    network = make_network(TEXT, random_panel(["x"], ["u"]))
    rows = observations(network)
    # The network may look at `last` and `seen` only; nothing else of a measurement is in its input.
    assert set(Observations._fields) == {"last", "seen", "controls", "gaps"}
    changed = rows._replace(seen=1 - rows.seen)
    before = observe(network, rows).posterior.mean
    assert not np.allclose(before, observe(network, changed).posterior.mean)
