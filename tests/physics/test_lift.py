"""The column rule and the rows of lifted functions."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physsm import PhysicsError, System
from physsm.physics.explain import describe, lifted_equations
from tests.examples import examples
from tests.physics.truth import assert_lifted_form_is_true


def row(text: str, state: str = "x") -> dict[str, str]:
    """The known entries of one row, by column, of A and B."""
    described = describe(System.parse(text).structure)
    i = described["names"].index(state)
    known = zip(described["names"], described["known_A"][i], strict=True)
    inputs = zip(described["controls"], described["known_B"][i], strict=True)
    return {column: entry for column, entry in [*known, *inputs] if entry != "0"}


@pytest.mark.parametrize(
    ("right_side", "expected"),
    [
        ("2*y", {"y": "2"}),
        ("y*2", {"y": "2"}),
        ("x*y", {"y": "x"}),
        ("y*x", {"x": "y"}),
        ("-0.5*x**3", {"x": "-0.5*x**2"}),
        ("-k*y/N*x", {"x": "-0.5*y"}),
        ("x*y/4", {"y": "0.25*x"}),
        ("3", {"1": "3"}),
        ("[x]", {"1": "x"}),
        ("[x]*y", {"y": "x"}),
        ("y*[x]", {"y": "x"}),
        ("y*[x + y]*2", {"y": "2*x + 2*y"}),
        ("(x + y)*x", {"x": "x + y"}),
        ("x*(x + y)", {"x": "x", "y": "x"}),
        ("(x + y)**2", {"x": "x + y", "y": "x + y"}),
        ("[(x + y)**2]*y", {"y": "(x + y)**2"}),
        ("u", {"u": "1"}),
        ("x*u", {"u": "x"}),
        ("u*x", {"x": "u"}),
        ("u**2", {"u": "u"}),
        ("[sin(u)]*x", {"x": "sin(u)"}),
        ("sin(u)*x", {"x": "sin(u)"}),
        ("-(2*x - 3*y)", {"x": "-2", "y": "3"}),
        ("x/y", {"1/y": "x"}),
        ("1/(x*y)", {"1/(x*y)": "1"}),
        ("y/(2*x)", {"1/x": "0.5*y"}),
        ("x/[y]", {"x": "1/y"}),
        ("x*[y]**-1", {"x": "1/y"}),
        ("x*[y]**2", {"x": "y**2"}),
        ("x/(1/y)", {"y": "x"}),
        ("x**-2", {"x**(-2)": "1"}),
        ("x**0.5", {"sqrt(x)": "1"}),
        ("sqrt(4*x)", {"sqrt(x)": "2"}),
        ("sin(-x)", {"sin(x)": "-1"}),
        ("sin(x)**2", {"sin(x)": "sin(x)"}),
        ("exp(log(x))", {"x": "1"}),
        ("2*sqrt(9)*x", {"x": "6"}),
        ("x - x + y", {"y": "1"}),
        ("x**0", {"1": "1"}),
        ("+x", {"x": "1"}),
    ],
)
def test_last_factor_is_the_column(right_side, expected):
    text = f"control u\nconstant k = 1, N = 2\nx' = {right_side}\ny' = -y"
    assert row(text) == expected


def test_bracket_override_of_the_paper():
    system = System.parse("control sp1\nm1' = ?*m1 + [sp1]*?")
    assert system.names == ("m1", "1")
    places = [(p.matrix, p.row, p.column, p.factor) for u in system.unknowns for p in u.places]
    assert places == [("A", "m1", "m1", "1"), ("A", "m1", "1", "sp1")]


def test_known_control_term_is_a_known_entry_of_B():
    system = System.parse("control u\nx' = -x + 3*u")
    np.testing.assert_array_equal(system.B_known(jnp.ones(1), jnp.ones(1)), [[3]])
    assert not system.mask_B.any()


@pytest.mark.parametrize(
    ("function", "names", "rows"),
    [
        ("sin(x)", "sin(x) cos(x)", [{"cos(x)": "v"}, {"sin(x)": "-v"}]),
        ("cos(x)", "sin(x) cos(x)", [{"cos(x)": "v"}, {"sin(x)": "-v"}]),
        ("exp(x)", "exp(x)", [{"exp(x)": "v"}]),
        ("exp(-2*x)", "exp(-2*x)", [{"exp(-2*x)": "-2*v"}]),
        ("log(x)", "log(x)", [{"v": "1/x"}]),
        ("sqrt(x)", "sqrt(x)", [{"v": "0.5/sqrt(x)"}]),
        ("tan(x)", "tan(x)", [{"v": "tan(x)**2 + 1"}]),
        ("1/x", "1/x", [{"v": "-1/x**2"}]),
        ("x**1.5", "x**1.5", [{"v": "1.5*sqrt(x)"}]),
        ("sin(2*x)", "sin(2*x) cos(2*x)", [{"cos(2*x)": "2*v"}, {"sin(2*x)": "-2*v"}]),
        ("exp(x*v)", "exp(x*v)", [{"exp(x*v)": "v**2 - x**2"}]),
        ("log(x*v)", "log(x*v)", [{"v": "1/x", "x": "-1/v"}]),
    ],
)
def test_lifted_rows_follow_by_the_chain_rule(function, names, rows):
    text = f"x' = v\nv' = -x\nw' = {function}"
    system = System.parse(text)
    assert " ".join(system.names[3:]).replace("v*x", "x*v") == names
    for name, expected in zip(system.names[3:], rows, strict=True):
        got = {column.replace("v*x", "x*v"): entry for column, entry in row(text, name).items()}
        assert got == expected


def test_sine_and_cosine_of_one_argument_share_a_pair():
    system = System.parse("x' = cos(x) + sin(x) + sin(2*x)*cos(x)")
    assert system.names == ("x", "sin(x)", "cos(x)")
    assert System.parse("x' = sin(x) + sin(2*x)").names == (
        "x", "sin(x)", "cos(x)", "sin(2*x)", "cos(2*x)",
    )  # fmt: skip


def test_unknowns_of_the_argument_appear_in_the_lifted_row():
    system = System.parse("x' = ?rate*x + 1\ny' = sin(x) + exp(x) + log(x)")
    rows = {(p.row, p.column): p.factor for p in system.unknowns[0].places}
    assert rows == {
        ("x", "x"): "1",
        ("sin(x)", "cos(x)"): "x",
        ("cos(x)", "sin(x)"): "-x",
        ("exp(x)", "exp(x)"): "x",
        ("log(x)", "x"): "1/x",
    }


def test_controls_reach_lifted_rows_through_B_and_rates():
    described = describe(System.parse("control u\nx' = u\ny' = sqrt(x) + sin(x)").structure)
    assert described["known_B"][2] == ["0.5/sqrt(x)"]
    assert described["known_A"][3][4] == "u"


def test_lifting_past_the_limit_is_refused():
    text = "\n".join(f"x{k}' = sin(x{k}) + exp(x{k})" for k in range(90))
    with pytest.raises(PhysicsError, match="lifting 90 states would make 270 or more"):
        System.parse(text)
    text = "\n".join(f"x{k}' = sin(x{k})" for k in range(90))  # the cosines come on top
    with pytest.raises(PhysicsError, match="lifting 90 states would make 270 or more"):
        System.parse(text)


def test_lifted_equations_are_readable():
    assert lifted_equations(System.load("pendulum").structure) == [
        "theta' = omega",
        "omega' = ?*theta + ?*omega + ?*sin(theta) + ?*cos(theta) + ?*torque",
        "(sin(theta))' = omega*cos(theta)",
        "(cos(theta))' = -omega*sin(theta)",
    ]


# Systems made up by hypothesis. States stay positive, so every function below is defined.

STATES, CONTROLS = ("x", "y", "z"), ("u", "w")
plain = st.sampled_from([*STATES, "2", "0.3", "k", "(x + 2*y)", "(1 + z)", "x*z"])
functions = st.builds(
    "{}({})".format, st.sampled_from(["sin", "cos", "exp", "log", "sqrt"]), plain
).map(lambda text: text.replace("exp(", "exp(-0.5*"))
powers = st.builds("{}**{}".format, st.sampled_from(["x", "(y + z)", "sqrt(x)"]),
                   st.sampled_from(["2", "3", "-1", "0.5", "-1.5"]))  # fmt: skip
quotients = st.builds("1/({} + {})".format, plain, plain)
tangents = st.builds("tan({}/9)".format, st.sampled_from(STATES))
bracketed = st.builds("[{} + {}]".format, st.sampled_from(CONTROLS), functions)
known = st.one_of(plain, functions, powers, quotients, tangents, bracketed,
                  st.sampled_from(CONTROLS))  # fmt: skip
unknowns = st.sampled_from(["", "", "?*", "?a*", "?b*", "-", "-?a*"])
terms = st.builds(
    lambda mark, factors: mark + "*".join(factors),
    unknowns,
    st.lists(known, min_size=1, max_size=3),
)
groups = st.builds("?({}, {})".format, known, known)
sides = st.lists(st.one_of(terms, terms, groups), min_size=1, max_size=3).map(" + ".join)


@st.composite
def texts(draw) -> str:
    equations = "\n".join(f"{state}' = {draw(sides)}" for state in STATES)
    return f"control u, w\nconstant k = 1.7\n{equations}"


@given(texts(), st.integers(0, 2**32 - 1))
@settings(max_examples=examples(8))
def test_any_system_equals_its_written_equations(text, seed):
    try:
        system = System.parse(text)
    except PhysicsError as error:
        assert "cancels out" in error.message
        return
    random = np.random.default_rng(seed)
    theta = random.normal(size=len(system.unknowns))
    z, u = random.uniform(0.4, 2, 3), random.normal(size=2)
    for dtype, tolerance in ((jnp.float32, 1e-5), (jnp.float64, 1e-10)):
        values = (jnp.asarray(value, dtype) for value in (theta, z, u))
        assert_lifted_form_is_true(
            system, *values, tolerance=tolerance, allow_cancellation=dtype == jnp.float32
        )


def test_too_many_lifted_terms_are_refused():
    text = "x' = " + " + ".join(f"sin({k}*x)" for k in range(1, 110))
    with pytest.raises(PhysicsError, match=r"lifted functions would have 11,881 terms"):
        System.parse(text)


def test_quotient_columns_are_bracketed_in_equations():
    assert lifted_equations(System.parse("x' = 0.5*x/y\ny' = 1/x").structure)[:2] == [
        "x' = 0.5*x*(1/y)",
        "y' = 1/x",
    ]
