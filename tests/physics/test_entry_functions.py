"""min, max, abs, sign, tanh and clip: in entries, against NumPy."""

import pickle
from functools import partial, reduce

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physsm import System
from physsm.physics.compiled import evaluate
from physsm.physics.explain import describe, latex, lifted_equations
from physsm.physics.program import run_program
from tests.examples import examples

# The text of an entry, and the same function of x, y and u in NumPy.
ENTRIES = [
    ("min(x, 0.5)", lambda x, y, u: np.minimum(x, 0.5)),
    ("max(x, y, 0.1, u)", lambda x, y, u: reduce(np.maximum, [x, y, 0.1, u])),
    ("abs(x - y)", lambda x, y, u: np.abs(x - y)),
    ("abs(-2*x)", lambda x, y, u: 2 * np.abs(x)),
    ("sign(y)", lambda x, y, u: np.sign(y)),
    ("sign(u - x)", lambda x, y, u: np.sign(u - x)),
    ("tanh(3*u - x)", lambda x, y, u: np.tanh(3 * u - x)),
    ("clip(x*y, -k, 0.5)", lambda x, y, u: np.clip(x * y, -0.75, 0.5)),
    ("clip(x, min(y, u), max(y, u))", lambda x, y, u: np.clip(x, min(y, u), max(y, u))),
    ("sqrt(max(x, 0))*sign(x)", lambda x, y, u: np.sqrt(np.maximum(x, 0)) * np.sign(x)),
    ("abs(x)**1.5/(1 + abs(y))", lambda x, y, u: np.abs(x) ** 1.5 / (1 + np.abs(y))),
    ("exp(-abs(x))", lambda x, y, u: np.exp(-np.abs(x))),
]


# Multiples of 1/1024, because sums of them are exact: signs and ties are the same everywhere.
numbers = st.integers(-2048, 2048).map(lambda count: count / 1024)


@given(st.tuples(numbers, numbers, numbers))
@settings(max_examples=examples(25))
def test_values_are_those_of_numpy(point):
    sides = " + ".join(f"[{text}]*a{i}" for i, (text, _) in enumerate(ENTRIES))
    states = "\n".join(f"a{i}' = 0" for i in range(len(ENTRIES)))
    system = _parsed(f"control u\nconstant k = 0.75\nx' = {sides}\ny' = 0\n{states}")
    x, y, u = point
    z = np.concatenate([[x, y], np.ones(len(ENTRIES))])
    A = system.A_known(system.lift(z), np.array([u]))
    expected = [function(x, y, u) for _, function in ENTRIES]
    np.testing.assert_allclose(A[0, 2:], expected, rtol=1e-12, atol=1e-15)
    rate = system.drift(np.zeros(0), z, np.array([u]))[0]
    np.testing.assert_allclose(rate, np.sum(expected), rtol=1e-9, atol=1e-12)


_systems: dict[str, System] = {}


def _parsed(text: str) -> System:
    if text not in _systems:
        _systems[text] = System.parse(text)
    return _systems[text]


@pytest.mark.parametrize(
    ("side", "column", "entry"),
    [
        ("min(x, 4)*y", "y", "min(x, 4)"),
        ("abs(x)*tanh(y)*x*2", "x", "2*abs(x)*tanh(y)"),
        ("x*[abs(y)]", "x", "abs(y)"),
        ("x/[1 + abs(y)]", "x", "1/(abs(y) + 1)"),
        ("[sign(y)]", "1", "sign(y)"),
        ("[sign(-y)]*3", "1", "-3*sign(y)"),
        ("tanh(u)*u", "u", "tanh(u)"),
        ("[max(4, y, x)]*y", "y", "max(x, y, 4)"),
        ("abs(x)**2*y", "y", "abs(x)**2"),
    ],
)
def test_they_stay_in_the_entry(side, column, entry):
    system = System.parse(f"control u\nx' = {side}\ny' = 0")
    described = describe(system.structure)
    columns = dict(zip(described["names"], described["known_A"][0], strict=True))
    columns |= dict(zip(described["controls"], described["known_B"][0], strict=True))
    assert {name: text for name, text in columns.items() if text != "0"} == {column: entry}


def test_the_examples_of_the_language():
    system = System.parse("h1' = 0\nh2' = ?k2*min(h1, 4)*h2\nv' = [sign(v)]*?coulomb")
    places = {u.name: [(p.row, p.column, p.factor) for p in u.places] for u in system.unknowns}
    assert places == {
        "k2": [("h2", "h2", "min(h1, 4)")],
        "coulomb": [("v", "1", "sign(v)")],
    }


def test_numbers_are_exact_where_they_can_be():
    system = System.parse(
        "constant a = min(1/3, 0.5), b = max(a, 1, 2), c = abs(-1/7), d = sign(-3) + sign(0)\n"
        "constant e = clip(5, 0, 1/3), f = clip(-5, -2, 3), t = tanh(0.5)\nx' = (a - e)*x + f"
    )
    assert system.constants == {
        "a": 1 / 3, "b": 2, "c": 1 / 7, "d": -1, "e": 1 / 3, "f": -2, "t": np.tanh(0.5)
    }  # fmt: skip
    assert lifted_equations(system.structure)[0] == "x' = -2"


def test_bounds_may_use_them():
    system = System.parse("x' = ?a*x + ?b\n?a <= min(2, 3), ?b >= max(-1, -2)")
    assert [u.constraint for u in system.unknowns] == ["a <= 2", "b >= -1"]


def test_equal_terms_cancel_however_they_are_written():
    system = System.parse(
        "x' = -?k*[sign(x - y)*max(x, y, 1)] + [abs(y - x)]*y\n"
        "y' = -?k*[sign(y - x)*max(1, y, x)] - [abs(x - y)]*y"
    )
    assert system.invariants == ("x + y",)


def test_functions_of_controls_alone_run_on_numpy():
    system = System.parse("control u, w\nx' = -x + ?*[max(u, 0)] + [clip(w, -1, u)]*?")
    texts = [str(term.written) for term in system.structure.control_terms]  # type: ignore[attr-defined]
    assert texts == ["max", "clip"]
    u = np.random.default_rng(0).normal(size=(50, 2))
    values = run_program(system.control_functions, list(u.T), np)
    np.testing.assert_array_equal(values[0], np.maximum(u[:, 0], 0))
    np.testing.assert_array_equal(values[1], np.minimum(np.maximum(u[:, 1], -1), u[:, 0]))
    by_jax = jax.vmap(partial(evaluate, system.control_functions))(jnp.asarray(u))
    np.testing.assert_array_equal(by_jax, np.stack(values, 1))


def test_slopes_are_finite_at_kinks():
    system = System.parse(
        "x' = [abs(x) + min(x, 0) + max(x, 0, -x) + sign(x) + clip(x, 0, 1)]*y\ny' = x"
    )
    for x in (-1.0, 0.0, 1.0):
        slopes = jax.jacfwd(lambda z: system.drift(jnp.zeros(0), z, jnp.zeros(0)))(
            jnp.asarray([x, 1.0])
        )
        assert np.isfinite(slopes).all()


def test_latex_has_the_usual_symbols():
    formula = latex(
        System.parse("x' = abs(x)*min(x, 2)*tanh(x)**2*x + [sign(x)]*? + clip(x, 0, 1)*x").structure
    )
    parts = [r"\left|{x}\right|", r"\min{\left(x, 2 \right)}", r"\tanh^{2}"]
    parts += [r"\operatorname{sign}", r"\operatorname{clip}{\left(x, 0, 1 \right)}"]
    assert [part for part in parts if part not in formula] == []


def test_systems_with_them_can_be_pickled_and_written_again():
    system = System.parse("x' = min(x, 4)*tanh(x)*x + [abs(x)]*?")
    again = pickle.loads(pickle.dumps(system))
    assert again == system == System.parse(system.text)
    assert again._full == System.parse(system.text)._full
