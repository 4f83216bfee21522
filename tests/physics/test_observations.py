"""Observed channels that are functions, first guesses and holds."""

import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from physsm import System
from physsm.physics.explain import describe, latex, render

TEXT = """control u, v hold linear
control w hold mean
constant area = 2
h' = -?k*sqrt(h) + u
x' = ?k*x + v + w
observe h, level = ?gain*h/area + ?bias, z = abs(x), mix = min(h, x, 1)*u - ?k*sin(x)
observe x
unknown ?k, ?gain constant ~ 1.5
unknown ?bias constant
state h >= 0
unit level = V
"""


def test_names_and_states():
    system = System.parse(TEXT)
    assert system.observed == ("h", "level", "z", "mix", "x")
    assert system.observed_states == (0, -1, -1, -1, 1)
    assert [u.name for u in system.unknowns] == ["k", "gain", "bias"]
    assert System.load("pendulum").observed_states == ()
    assert System.load("cascaded_tanks").observed_states == (1,)


@pytest.mark.parametrize(("dtype", "tolerance"), [(jnp.float32, 1e-6), (jnp.float64, 1e-13)])
def test_values_are_those_of_numpy(dtype, tolerance):
    system = System.parse(TEXT)
    random = np.random.default_rng(0)
    for _ in range(5):
        k, gain, bias = random.normal(size=3)
        h, x = random.normal(size=2)
        u, v, w = random.normal(size=3)
        full = max(h, 0)  # the state h as functions see it
        mix = min(full, x, 1) * u - k * np.sin(x)
        expected = [h, gain * full / 2 + bias, abs(x), mix, x]
        arguments = [jnp.asarray(a, dtype) for a in ([k, gain, bias], [h, x], [u, v, w])]
        values = jax.jit(system.observe)(*arguments)
        assert values.dtype == dtype
        np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance)


def test_values_of_many_and_of_none():
    system = System.parse(TEXT)
    assert jax.vmap(system.observe)(jnp.ones((4, 3)), jnp.ones((4, 2)), jnp.ones((4, 3))).shape == (
        4,
        5,
    )
    nothing = System.parse("x' = -x")
    assert nothing.observe(np.zeros(0), np.ones(1), np.zeros(0)).shape == (0,)


def test_slopes_of_observations():
    system = System.parse(
        "h' = -h\nobserve y = ?gain*sqrt(h) + ?bias\nunknown ?gain, ?bias constant"
    )
    slopes = jax.jacfwd(system.observe, argnums=(0, 1))
    by_theta, by_state = slopes(jnp.asarray([3.0, 1.0]), jnp.asarray([4.0]), jnp.zeros(0))
    np.testing.assert_allclose(by_theta, [[2, 1]])
    np.testing.assert_allclose(by_state, [[0.75]])


def test_places_of_unknowns():
    system = System.parse(TEXT)
    k, gain, bias = system.unknowns
    assert [(p.matrix, p.row, p.column, p.factor) for p in gain.places] == [
        ("observe", "level", "1", "0.5*h")
    ]
    assert [(p.row, p.factor) for p in bias.places] == [("level", "1")]
    assert [p.matrix for p in k.places] == ["A", "A", "A", "observe"]
    A, _ = system.assemble(jnp.asarray([0.0, 5.0, 5.0]), system.lift(jnp.ones(2)), jnp.ones(3))
    np.testing.assert_array_equal(A, system.A_known(system.lift(jnp.ones(2)), jnp.ones(3)))


def test_first_guesses():
    system = System.parse(TEXT)
    assert [u.guess for u in system.unknowns] == [1.5, 1.5, None]
    system = System.parse(
        "constant g = 9.81\nx' = ?a*x + ?b*y + ?c\ny' = 0\n0 <= ?b <= 1\n"
        "unknown ?a per series ~ 0.2\nunknown ?b varying ~ 1\nunknown ?c constant ~ -g/2"
    )
    assert [(u.kind, u.guess) for u in system.unknowns] == [
        ("per series", 0.2),
        ("varying", 1.0),
        ("constant", -4.905),
    ]


def test_holds():
    assert System.parse(TEXT).holds == {"u": "linear", "v": "linear", "w": "mean"}
    assert System.parse("control u\nx' = u").holds == {}
    assert System.parse("control hold hold previous\nx' = hold").holds == {"hold": "previous"}
    assert System.parse("control u, hold\nx' = u*hold").controls == ("u", "hold")


def test_overlapping_unknowns_of_an_observation_are_reported():
    head = "x' = -x\nunknown ?a, ?b constant\n"
    fine = System.parse(head + "observe y = ?a*x + ?b + x**2")
    assert fine.warnings == ()
    (warning,) = System.parse(head + "observe y = ?a*x + ?b*x").warnings
    assert "the observation y has the parts x*?a and x*?b" in warning
    assert "write one unknown" in warning


def test_a_control_of_an_observation_is_used():
    assert System.parse("control u\nx' = -x\nobserve y = x + u").structure.notes == ()


def test_explain_shows_them():
    structure = System.parse(TEXT).structure
    described = describe(structure)
    assert described["observed"] == ["h", "level", "z", "mix", "x"]
    assert described["observations"]["level"] == "0.5*h*?gain + ?bias"
    assert described["observations"]["z"] == "abs(x)"
    assert described["observations"]["h"] == "h"
    assert described["holds"] == {"u": "linear", "v": "linear", "w": "mean"}
    assert [unknown["guess"] for unknown in described["unknowns"]] == [1.5, 1.5, None]
    assert described["unknowns"][1]["entries"][0]["matrix"] == "observe"
    formula = latex(structure)
    assert r"\mathrm{level} = 0.5 h \mathrm{gain}^{\star} + \mathrm{bias}^{\star}" in formula
    assert r"z = \left|{x}\right|" in formula
    console = Console(file=io.StringIO(), width=120)
    console.print(render(structure, "tank"))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    for part in ("level = 0.5*h*?gain + ?bias", "z = abs(x)", "observed level times 0.5*h"):
        assert part in shown
    assert "guess" in shown
    assert "holds: u linear, v linear, w mean" in shown


def test_a_text_without_them_is_explained_as_before():
    structure = System.load("pendulum").structure
    console = Console(file=io.StringIO(), width=120)
    console.print(render(structure, "pendulum"))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "Observations" not in shown
    assert "guess" not in shown
    assert r"\qquad" not in latex(structure)


def test_round_trip_of_the_text():
    system = System.parse(TEXT)
    again = System.parse(system.text)
    assert again == system
    assert again.unknowns == system.unknowns
    assert again._observe == system._observe
