"""Linear conserved quantities: none missed on plain systems, none wrong on any."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physsm import PhysicsError, System
from physsm.physics.read import system_names
from tests.examples import examples


def numeric_invariants(system: System) -> np.ndarray:
    """The common left null space of [A B] at random points, from an SVD; without the state 1."""
    random = np.random.default_rng(0)
    points = 40
    z = random.uniform(0.3, 2, (points, len(system.states)))
    u = random.normal(size=(points, len(system.controls)))
    theta = random.normal(size=(points, len(system.unknowns)))

    @jax.jit
    @jax.vmap
    def matrices(theta, z, u):
        return system.assemble(theta, system.lift(z), u)

    A, B = map(np.asarray, matrices(theta, z, u))
    kept = [i for i, name in enumerate(system.names) if name != "1"]
    matrix = np.concatenate([*A, *B], axis=1)[kept]
    left, sizes, _ = np.linalg.svd(matrix)
    return left[:, int((sizes > 1e-9).sum()) :].T


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("S' = -?b*I*S\nI' = ?b*I*S - ?g*I\nR' = ?g*I", ["S + I + R"]),
        ("a' = -2*?k*a\nb' = 3*?k*a", ["3*a + 2*b"]),
        ("a' = -0.1*b\nb' = 0.3*b", ["3*a + b"]),
        ("x' = v\nv' = -x", []),
        ("x' = 0\ny' = x", ["x"]),
        ("a' = ?*a\nb' = -?*a", []),  # two independent unknowns
        ("a' = u\nb' = -u\ncontrol u", ["a + b"]),
        ("a' = b*u\nb' = 0\ncontrol u", ["b"]),
        ("a' = ?k*b\nb' = -?k*b\nc' = ?m*d\nd' = -?m*d", ["a + b", "c + d"]),
        ("a' = -[(b + 1)*(b + 2)]*a\nb' = [b*b + 3*b + 2]*a", ["a + b"]),
        ("a' = 3\nb' = -3", ["a + b"]),
        ("x' = ?k*x\ny' = log(x)", []),
        ("x' = sqrt(2)*y\ny' = -sqrt(2)*y", ["x + y"]),
        ("S' = -?k*E*S + ?r*C\nE' = -?k*E*S + ?r*C\nC' = ?k*E*S - ?r*C", ["S + C", "E + C"]),
        (
            "S' = -?b*I*S\nI' = ?b*I*S - ?g*I\nR' = 0.99*?g*I\nD' = 0.01*?g*I",
            ["S + I + R + D", "99*S + 99*I + 100*R"],
        ),
        ("x' = 2*?k\ny' = exp(-1.2)*?k", ["x - 6.64023*y"]),
        ("x' = (x + y)*(x - y)\ny' = -x", []),
    ],
)
def test_known_cases(text, expected):
    system = System.parse(text)
    assert list(system.invariants) == expected
    assert numeric_invariants(system).shape[0] == len(expected)


@pytest.mark.parametrize("name", system_names())
def test_built_in_systems_have_no_others(name):
    system = System.load(name)
    assert numeric_invariants(system).shape[0] == len(system.invariants)
    assert system.invariants == (("S + I + R",) if name == "sir_conserving" else ())


rates = st.sampled_from(["?k*a", "?m*b*c", "0.2*[sin(a)]*b", "2*c", "?k*b", "u"])


@given(st.lists(st.tuples(rates, st.sampled_from("abc"), st.sampled_from("abc")), max_size=6))
@settings(max_examples=examples(20))
def test_closed_exchange_keeps_the_total(flows):
    """Whatever flows between three stores, their sum is conserved, and every invariant found is."""
    sides = {store: ["0"] for store in "abc"}
    for rate, source, target in flows:
        sides[source].append(f"- {rate}")
        sides[target].append(f"+ {rate}")
    try:
        system = System.parse(
            "control u\n" + "\n".join(f"{s}' = {' '.join(terms)}" for s, terms in sides.items())
        )
    except PhysicsError as error:  # a flow from a store to itself
        assert "cancels out" in error.message
        return
    null_space = numeric_invariants(system)
    weights = system.invariant_weights[:, :3]
    assert np.linalg.matrix_rank(weights) == len(weights) == len(null_space)
    ones = np.ones(3)
    assert np.allclose(np.linalg.lstsq(weights.T, ones, rcond=None)[0] @ weights, ones)


def test_numbers_that_differ_by_rounding_give_plain_weights():
    system = System.parse("constant r = sqrt(2)\nx' = -2*?k*x\ny' = r*r*?k*x")
    assert system.invariants == ("x + y",)
    assert np.abs(system.invariant_weights).max() < 2


def test_conservation_lost_by_the_order_of_factors_is_reported():
    lost = System.parse("S' = -?b*S*I\nI' = ?b*I*S - ?g*I\nR' = ?g*I")
    assert lost.invariants == ()
    (warning,) = lost.warnings
    assert "the equations conserve S + I + R, but the matrices do not" in warning
    assert lost.structure.is_unique
    kept = System.parse("S' = -?b*S*I\nI' = ?b*S*I - ?g*I\nR' = ?g*I")
    assert kept.invariants == ("S + I + R",)
    assert kept.warnings == ()


def test_no_invariant_is_lost_between_scales():
    system = System.parse("a' = 1e-9*?k\nb' = 6.02e23*?k\nc' = -?k\nd' = 3e8*?k")
    assert len(system.invariants) == 3
    rates = np.array([1e-9, 6.02e23, -1, 3e8, 0])
    weights = system.invariant_weights
    assert np.abs(weights @ rates / (np.abs(weights) @ np.abs(rates))).max() < 1e-12


def test_equations_may_cancel_where_matrices_do_not():
    (warning,) = System.parse("x' = x*y - y*x\ny' = x").warnings
    assert "the equations conserve x, but the matrices do not" in warning
