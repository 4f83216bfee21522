"""Attention in continuous time against plain attention and a differential equation solver."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

from physsm.nn.attention import ContinuousAttention, Tokens
from physsm.nn.ode import SolverSettings, solve_ode
from tests.compiled import compiled

ROWS, WIDTH, HEADS = 7, 6, 2


def attention(flow: float = 0.0, steps: int = 1) -> ContinuousAttention:
    rng = np.random.default_rng(0)
    found = ContinuousAttention(WIDTH, HEADS, steps, rng)
    moving = jnp.asarray(flow * rng.normal(size=(2, WIDTH)))
    found = eqx.tree_at(lambda a: a.flow_gain, found, moving)
    return eqx.tree_at(
        lambda a: a.flow_time, found, jnp.asarray(flow * rng.normal(size=(2, WIDTH)))
    )


def tokens(seed: int = 1) -> Any:  # of NumPy, which take parts without compiling
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0, 5, ROWS))
    valid = np.arange(ROWS) >= 2
    parts = (times, rng.normal(size=(ROWS, WIDTH)), valid)
    return jax.device_get(Tokens(*map(jnp.asarray, parts)))


@compiled
def asked(layer: ContinuousAttention, times, rows, keys):
    return layer(times, layer.read(rows, keys))


@compiled
def moved(layer: ContinuousAttention, which: int, origins, start, times):
    """Keys (0) or values (1) at given times, from where they start at their own."""
    return layer.flow(which, origins, start).at(times)


@compiled
@eqx.filter_grad
def slopes_of_the_sum(layer: ContinuousAttention, times, rows):
    return layer(times, layer.read(rows, rows)).sum()


def plain(layer: ContinuousAttention, rows) -> np.ndarray:
    """Softmax attention of each row to all, head by head."""
    x, size = np.asarray(rows.x), WIDTH // HEADS
    Q, K, V = (x @ np.asarray(W).T for W in (layer.W_query, layer.W_key, layer.W_value))
    joined = []
    for head in range(HEADS):
        part = slice(head * size, (head + 1) * size)
        # The mean of both ends: the query of the key's own row, and that of the row that asks.
        score = (Q[:, part] @ K[:, part].T + (Q * K)[:, part].sum(1)[None]) / 2 / np.sqrt(size)
        score[:, ~np.asarray(rows.valid)] = -np.inf
        weight = np.exp(score - score.max(1, keepdims=True))
        joined.append(weight / weight.sum(1, keepdims=True) @ V[:, part])
    return np.concatenate(joined, 1) @ np.asarray(layer.W_out).T


def test_without_a_flow_it_is_plain_attention():
    layer, rows = attention(), tokens()
    np.testing.assert_allclose(asked(layer, rows.times, rows, rows), plain(layer, rows), atol=1e-12)


@pytest.mark.parametrize("row", [2, 4, 6])
def test_at_a_keys_own_time_its_key_and_value_are_those_of_plain_attention(row):
    """One key alone: its weight is one, and its value at its own time has not moved."""
    layer, rows = attention(flow=0.7, steps=3), tokens()
    alone = rows._replace(valid=np.arange(ROWS) == row)
    found = asked(layer, rows.times[row : row + 1], rows, alone)
    V = np.asarray(rows.x) @ np.asarray(layer.W_value).T
    np.testing.assert_allclose(found[0], V[row] @ np.asarray(layer.W_out).T, atol=1e-12)
    K = rows.x @ np.asarray(layer.W_key).T
    key = moved(layer, 0, rows.times, K, rows.times)
    np.testing.assert_allclose(key[row, row], K[row], atol=1e-12)
    other = asked(layer, rows.times[row : row + 1] + 1.0, rows, alone)
    assert np.abs(np.asarray(other - found)).max() > 1e-3


def test_keys_and_values_follow_their_equations():
    layer, rows = attention(flow=0.7, steps=16), tokens()
    K, V = (rows.x @ np.asarray(W).T for W in (layer.W_key, layer.W_value))
    # At rows, which are nodes, and at nodes after them.
    times = np.concatenate([rows.times, rows.times[-1] + np.array([0.5, 1.3, 2.58])])
    found = [moved(layer, which, rows.times, start, times) for which, start in enumerate((K, V))]
    fine = SolverSettings(rtol=1e-9, atol=1e-10)

    @compiled
    def solved(W, drift, gain, start, origin, sign):
        """The states at the times ahead of the origin, in the direction of the sign."""

        def rate(t, x):
            return sign * gain * jnp.tanh(W @ x + drift * (origin + sign * t))

        ahead = jnp.maximum(sign * (times - origin), 0)
        return solve_ode(rate, start, ahead, fine, 10.0).states

    equations = [np.asarray(part) for part in (layer.flow_W, layer.flow_time, layer.flow_gain)]
    for which, start in enumerate((K, V)):
        for row in (0, 5):
            origin = rows.times[row]
            for sign in (1.0, -1.0):
                inside = sign * (times - origin) >= 0
                equation = [part[which] for part in equations]
                wanted = solved(*equation, start[row], origin, np.asarray(sign))
                np.testing.assert_allclose(
                    found[which][inside, row], wanted[inside], rtol=1e-5, atol=1e-6
                )


def test_padding_is_not_attended_to():
    layer, rows = attention(flow=0.5), tokens()
    changed = rows._replace(x=rows.x + 10.0 * (np.arange(ROWS) == 0)[:, None])
    one, other = (asked(layer, rows.times[3:], each, each) for each in (rows, changed))
    np.testing.assert_allclose(one, other, atol=1e-12)


def test_gradients_are_finite():
    layer, rows = attention(flow=0.5, steps=2), tokens()
    slopes = slopes_of_the_sum(layer, rows.times + 0.3, rows)
    for leaf in jax.tree.leaves(slopes):
        assert np.isfinite(np.asarray(leaf)).all()
        assert (np.asarray(leaf) != 0).any()


def test_between_nodes_is_the_cubic_of_their_slopes():
    """SciPy's Hermite spline; and beyond the last node nothing moves."""
    layer, rows = attention(flow=0.7), tokens()
    shares = np.random.default_rng(0).uniform(0, 1, 200)

    @compiled
    def sampled(layer, rows):
        flow = layer.flow(1, rows.times, rows.x)
        times = flow.nodes[0] + shares * (flow.nodes[-1] - flow.nodes[0])
        known = flow.nodes, flow.x, flow.slope
        return known, times, flow.at(times), flow.at(flow.nodes[-1:] + 9.0)

    (nodes, x, slope), times, between, beyond = sampled(layer, rows)
    spline = CubicHermiteSpline(nodes, x, slope)
    np.testing.assert_allclose(between, spline(times), atol=1e-10)
    np.testing.assert_allclose(beyond[0], x[-1], atol=1e-12)


def test_rows_at_one_time_do_no_harm():
    """Padding stands at the time of the first row."""
    layer, rows = attention(flow=0.7), tokens()
    together = rows._replace(times=np.maximum(rows.times, rows.times[2]))
    slopes = slopes_of_the_sum(layer, together.times, together)
    assert all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(slopes))
