"""The unit against dense linear algebra, SciPy's solver, conservation laws and orders of error."""

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.stats import foldnorm

from physsm._values import Panel
from physsm.models.phy_ssm.unit import hold_weights
from physsm.models.phy_ssm.values import Drive
from physsm.physics.system import System
from tests.models.phy_ssm.make import OSCILLATOR, make_network, random_panel, small_config

PLAIN = {"correct": False, "substeps": 1, "relift": False}
EMPTY = jnp.zeros(0)


def make_unit(text: str, panel: Panel, **changes: Any) -> Any:
    return make_network(text, panel, **changes).unit


@cache
def plain_oscillator():
    return oscillator_unit(**PLAIN)


def oscillator_unit(**changes):
    panel = random_panel(["x", "v"], ["force"])
    return make_unit(OSCILLATOR, panel, **changes)


@eqx.filter_jit
def extend(unit, z):
    return unit.extend(z)


@eqx.filter_jit
def advance(unit, z_ext, theta, u, u_next, gap):
    return unit.advance(z_ext, theta, Drive(u, u_next, gap))


@eqx.filter_jit
def advance_along(unit, z_ext, thetas, gaps):
    """After all gaps, without controls; one vector of unknowns for each."""
    u = jnp.zeros(len(unit.scales.table.controls))

    def step(z_ext, inputs):
        theta, gap = inputs
        return unit.advance(z_ext, theta, Drive(u, u, gap)), None

    return jax.lax.scan(step, z_ext, (thetas, gaps))[0]


@eqx.filter_jit
def advance_often(unit, z_ext, times, gap):
    """After so many equal gaps, without controls and unknowns."""
    u = jnp.zeros(len(unit.scales.table.controls))
    return jax.lax.fori_loop(0, times, lambda _, z: unit.advance(z, EMPTY, Drive(u, u, gap)), z_ext)


def physical(unit, z_ext):
    return np.asarray(z_ext) * np.array(unit.scales.states.extended_scale)


def test_one_step_is_the_bilinear_formula_in_physical_units():
    unit = plain_oscillator()
    z = jnp.asarray([0.7, -1.2])
    u, gap = jnp.asarray([0.4]), 1.7
    after = advance(unit, unit.extend(z), EMPTY, u, u, jnp.asarray(gap))
    A, B = np.array([[0, 1], [-4, -0.3]]), np.array([[0], [2.0]])
    h = gap * unit.scales.table.time_scale
    inverse = np.linalg.inv(np.eye(2) - h / 2 * A)
    expected = inverse @ (np.eye(2) + h / 2 * A) @ physical(unit, z) + inverse @ (h * B) @ [0.4]
    np.testing.assert_allclose(physical(unit, after), expected, rtol=1e-12)


@pytest.mark.parametrize("substeps", [1, 2])
def test_error_is_of_second_order_in_the_gap(substeps):
    unit = oscillator_unit(**{**PLAIN, "substeps": substeps})
    start, end = jnp.asarray([1.0, 0.5]), 3.0
    exact = solve_ivp(
        lambda t, y: [y[1], -4 * y[0] - 0.3 * y[1]],
        (0, end),
        physical(unit, start),
        rtol=1e-11,
        atol=1e-12,
    ).y[:, -1]
    errors = []
    for n in (20, 40, 80):
        gap = jnp.asarray(end / n / unit.scales.table.time_scale)
        z = advance_often(unit, unit.extend(start), jnp.asarray(n), gap)
        errors.append(np.abs(physical(unit, z) - exact).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, 2, atol=0.2)


PENDULUM = "theta' = omega\nomega' = -9*sin(theta)"


@pytest.mark.parametrize(("correct", "order"), [(False, 1), (True, 2)])
def test_middle_coefficients_make_nonlinear_steps_second_order(correct, order):
    text = "x' = -x**3"
    unit = make_unit(
        text,
        random_panel(["x"]),
        correct=correct,
        substeps=1,
        physical_units=False,
        ground_states=False,
    )
    errors = []
    for n in (16, 32, 64):
        start = extend(unit, jnp.asarray([1.5]))
        z = advance_often(unit, start, jnp.asarray(n), jnp.asarray(2.0 / n))
        errors.append(abs(float(z[0]) - 1.5 / np.sqrt(1 + 2 * 2.0 * 1.5**2)))
    found = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(found, order, atol=0.35)


def test_irregular_gaps_and_their_refinement_agree():
    exact = {"correct": True, "substeps": 2}
    unit = make_unit(PENDULUM, random_panel(["theta"]), **exact)
    start = extend(unit, jnp.asarray([0.8, 0.1]))
    gaps = np.random.default_rng(0).uniform(0.05, 0.3, 12)
    coarse, fine = (
        advance_along(unit, start, jnp.zeros((12 * parts, 0)), np.repeat(gaps / parts, parts))
        for parts in (1, 16)
    )
    np.testing.assert_allclose(coarse, fine, atol=5e-3)


def test_a_negative_gap_goes_back():
    unit = plain_oscillator()
    z, u = unit.extend(jnp.asarray([0.3, 0.9])), jnp.asarray([0.2])
    there = advance(unit, z, EMPTY, u, u, jnp.asarray(1.3))
    back = advance(unit, there, EMPTY, u, u, jnp.asarray(-1.3))
    np.testing.assert_allclose(back, z, rtol=1e-12)


def test_linear_invariants_are_kept_to_rounding():
    text = System.load("sir_conserving").text
    panel = random_panel(["S", "I", "R"], lengths=(40, 40))
    unit = make_unit(text, panel)
    rng = np.random.default_rng(0)
    z = extend(unit, jnp.asarray(np.abs(rng.standard_normal(3)) + 0.5))
    total = physical(unit, z)[:3].sum()
    z = advance_along(unit, z, rng.uniform(0, 2, (200, 2)), rng.uniform(0, 1, 200))
    np.testing.assert_allclose(physical(unit, z)[:3].sum(), total, rtol=1e-12)


def test_lifted_sine_and_cosine_stay_on_their_circle_without_lifting_anew():
    unit = make_unit(
        PENDULUM.replace("sin(theta)", "sin(theta) + 0*cos(theta)"),
        random_panel(["theta"]),
        **PLAIN,
        ground_states=False,
        physical_units=False,
    )
    z = extend(unit, jnp.asarray([0.8, 0.1]))
    z = advance_often(unit, z, jnp.asarray(100), jnp.asarray(0.1))
    np.testing.assert_allclose(z[2] ** 2 + z[3] ** 2, 1, rtol=1e-12)


def test_controls_can_be_held_or_averaged():
    u, u_next = jnp.asarray([1.0]), jnp.asarray([3.0])
    z = jnp.asarray([0.0, 0.0])
    for hold, seen in (("auto", 1.0), ("previous", 1.0), ("linear", 2.0), ("mean", 2.0)):
        unit = oscillator_unit(**PLAIN, control_hold=hold)
        same = jnp.asarray([seen])
        np.testing.assert_allclose(
            advance(unit, unit.extend(z), EMPTY, u, u_next, jnp.asarray(0.5)),
            advance(unit, unit.extend(z), EMPTY, same, same, jnp.asarray(0.5)),
            rtol=1e-12,
        )


def test_each_substep_sees_its_share_of_a_control_change():
    system = System.parse("control a\ncontrol b hold linear\nx' = a + b\nobserve x")
    third = np.array([1, 3, 5]) / 6  # the middles of three substeps
    for hold, own in (
        ("auto", 0 * third),
        ("previous", 0 * third),
        ("linear", third),
        ("mean", 0.5),
    ):
        config = small_config(control_hold=hold, substeps=3)
        found = hold_weights(system, ["b", "a", "other"], config)
        assert found.shape == (3, 3)
        np.testing.assert_allclose(found[:, 0], third)  # as the text says
        np.testing.assert_allclose(found[:, 1], own)
        np.testing.assert_allclose(found[:, 2], own)
    assert hold_weights(system, [], small_config(substeps=2)).shape == (2, 0)


UNKNOWN = """
x' = v
v' = -?a*x - ?b*v + ?*sin(x) + ?c
?a >= 2
0.1 <= ?b <= 0.4
unknown ?b constant
unknown ?c per series
observe x
"""


@pytest.mark.parametrize("network", ["s5", "mlp"])
def test_unknowns_keep_their_bounds_and_kinds(network):
    unit = make_unit(UNKNOWN, random_panel(["x"]), unknown_network=network)
    rng = np.random.default_rng(0)
    z = 10 * rng.standard_normal((40, 2))
    series = rng.standard_normal((40, 1))

    @jax.jit
    def theta_of(z, series):
        z_ext = jax.vmap(unit.extend)(z)
        features = unit.features(z_ext, jnp.zeros((40, 0)), jnp.ones(40)).steps
        return jax.vmap(unit.theta)(features, series)

    theta = np.asarray(theta_of(z, series))
    names = [unknown.name for unknown in System.parse(UNKNOWN).unknowns]
    values = {name: theta[:, i] for i, name in enumerate(names)}
    assert np.all(values["a"] >= 2)
    assert np.all((values["b"] >= 0.1) & (values["b"] <= 0.4))
    assert np.ptp(values["b"]) == 0
    assert np.ptp(values["a"]) > 0
    changed = np.abs(np.asarray(theta_of(z, series + 1)) - theta).max(0) > 0
    assert [name for name, is_changed in zip(names, changed, strict=True) if is_changed] == ["c"]


@pytest.mark.parametrize("network", ["s5", "mlp"])
def test_features_by_steps_equal_features_of_a_sequence(network):
    panel = random_panel(["x"], ["u"])
    unit = make_unit("control u\n" + UNKNOWN, panel, unknown_network=network)
    rng = np.random.default_rng(0)
    z_ext = jax.jit(lambda z: jax.vmap(unit.extend)(z))(rng.standard_normal((9, 2)))
    u, gaps = jnp.asarray(rng.standard_normal((9, 1))), jnp.asarray(rng.uniform(0.1, 2, 9))
    whole, last, end = eqx.filter_jit(unit.features)(z_ext, u, gaps)
    np.testing.assert_allclose(last, whole[-1], rtol=1e-10)
    step = jax.jit(lambda z, u, gap, carry: unit.feature_step(z, u, unit.discrete(gap), carry))
    carry = unit.start()
    for i in range(9):
        features, carry = step(z_ext[i], u[i], gaps[i], carry)
        np.testing.assert_allclose(features, whole[i], rtol=1e-10)
    np.testing.assert_allclose(carry, end, rtol=1e-10)


def test_unknowns_have_their_natural_size():
    # One unit of a raw value moves the scaled state by one in the signal time, at a typical state.
    unit = make_unit("x' = ?*x\nobserve x", random_panel(["x"]))
    states, table = unit.scales.states, unit.scales.table
    usual = foldnorm(abs(states.state_offset[0])).ppf(0.683)  # of the scaled state
    moved = states.unknown_size[0] * usual * states.signal_time * table.time_scale
    np.testing.assert_allclose(moved, 1, rtol=0.15)


def test_a_velocity_that_is_not_measured_has_the_scale_of_its_slope():
    times = np.linspace(0, 20, 400)
    panel = random_panel(["theta"], lengths=(400,))
    panel.values[0, :, 0] = 3 * np.sin(2 * times)
    panel.times[0] = times
    unit = make_unit(PENDULUM, panel)
    np.testing.assert_allclose(unit.scales.states.state_scale[1], 6 / np.sqrt(2), rtol=0.05)
