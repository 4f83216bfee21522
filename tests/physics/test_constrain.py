"""Bounds by construction: the maps, their inverses and their gradients."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from physsm.physics.bounds import Bounds
from physsm.physics.constrain import from_bounded, to_bounded

BOUNDS = [
    Bounds(), Bounds(0.0), Bounds(None, 2.0), Bounds(0.0, 1.0), Bounds(-5.0, -4.5),
    Bounds(1e3, 1e4),
]  # fmt: skip


def bounded_by(bounds):
    """The map into the bounds and its inverse, compiled."""
    return (
        jax.jit(lambda raw: to_bounded(raw, bounds)),
        jax.jit(lambda values: from_bounded(values, bounds)),
    )


into, out_of = bounded_by(BOUNDS)


def inside(values, bounds) -> bool:
    return all(
        (b.lower is None or value >= np.asarray(b.lower, values.dtype))
        and (b.upper is None or value <= np.asarray(b.upper, values.dtype))
        for value, b in zip(values, bounds, strict=True)
    )


@given(st.floats(-200, 200))
def test_values_stay_inside_and_come_back(number):
    raw = np.full(len(BOUNDS), number)
    values = into(raw)
    assert inside(np.asarray(values), BOUNDS)
    if abs(number) < 10:
        np.testing.assert_allclose(out_of(values), raw, rtol=1e-6, atol=1e-6)


@given(st.floats(allow_nan=False, width=32))
def test_bounds_hold_for_any_single_precision_number(number):
    values = into(np.full(len(BOUNDS), number, np.float32))
    assert values.dtype == jnp.float32
    assert inside(np.asarray(values)[1:], BOUNDS[1:])


def test_closed_forms():
    raw = jnp.asarray([1.5, 1.5, 1.5, 1.5])
    softplus, sigmoid = np.log1p(np.exp(1.5)), 1 / (1 + np.exp(-1.5))
    four_into, _ = bounded_by([Bounds(), Bounds(3.0), Bounds(None, 3.0), Bounds(2.0, 6.0)])
    values = four_into(raw)
    np.testing.assert_allclose(values, [1.5, 3 + softplus, 3 - softplus, 2 + 4 * sigmoid])


def test_inverse_takes_values_on_the_bound_as_just_inside():
    for dtype in (jnp.float32, jnp.float64):
        for value in (0.0, 1.0, -7.0, 7.0):
            raw = out_of(np.full(len(BOUNDS), value, dtype))
            assert np.isfinite(raw).all()
            assert inside(np.asarray(into(raw)), BOUNDS)


def test_gradients_are_finite_everywhere():
    forwards = jax.jit(jax.grad(lambda raw: into(raw).sum()))
    backwards = jax.jit(jax.grad(lambda values: out_of(values).sum()))
    for number in (-100.0, -1.0, 0.0, 1.0, 100.0):
        raw = np.full(len(BOUNDS), number, np.float32)
        assert np.isfinite(forwards(raw)).all()
        assert not np.isnan(backwards(into(raw))).any()


def test_maps_rise_with_a_lower_bound_and_fall_with_an_upper_one():
    raw = np.linspace(-5, 5, 50)
    bounds = [Bounds(0.0), Bounds(None, 0.0)]
    both = jax.jit(jax.vmap(lambda r: to_bounded(jnp.stack([r, r]), bounds)))
    rising, falling = np.asarray(both(raw)).T
    assert (np.diff(rising) > 0).all()
    assert (np.diff(falling) < 0).all()


def test_bounds_are_rounded_into_the_interval():
    """0.1 in single precision is above 0.1."""
    for lower, upper in ((None, 0.1), (0.1, None), (0.1, 0.3), (1 / 3, 2 / 3)):
        one_into, _ = bounded_by([Bounds(lower, upper)])
        for number in (-200.0, 0.0, 200.0):
            (value,) = one_into(jnp.asarray([number], jnp.float32))
            assert lower is None or float(value) >= lower
            assert upper is None or float(value) <= upper


def test_extreme_intervals_stay_finite():
    bounds = [Bounds(-3e38, 3e38), Bounds(0.0, 1e39), Bounds(1000.0, 1000.00001), Bounds(-1e300)]
    into, out_of = bounded_by(bounds)
    slope_into = jax.jit(jax.grad(lambda raw: into(raw)[:3].sum() * 1e-38))
    slope_out_of = jax.jit(jax.grad(lambda values: out_of(values)[:3].sum()))
    for number in (-200.0, -1.0, 0.0, 1.0, 200.0):
        raw = np.full(4, number, np.float32)
        values = into(raw)
        assert np.isfinite(values).all()
        assert np.isfinite(slope_into(raw)).all()
        assert np.isfinite(out_of(values)).all()
        assert not np.isnan(slope_out_of(values)).any()
    assert to_bounded(jnp.zeros(1, jnp.float32), [Bounds(-3e38, 3e38)])[0] == 0
