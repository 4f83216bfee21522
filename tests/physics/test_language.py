"""What each part of the language means."""

import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physsm import PhysicsError, System
from physsm.physics.explain import describe


def unknown(system: System, name: str):
    return next(u for u in system.unknowns if u.name == name)


def test_anonymous_unknowns_are_independent():
    system = System.parse("x' = ?*x + ?*y\ny' = ?*x")
    assert [u.name for u in system.unknowns] == ["x:x", "x:y", "y:x"]
    assert all(len(u.places) == 1 for u in system.unknowns)


def test_group_is_short_for_one_unknown_each():
    group = System.parse("x' = ?(x, y, sin(x)) - 2*?(x*y)\ny' = x")
    plain = System.parse("x' = ?*x + ?*y + ?*sin(x) - 2*?*(x*y)\ny' = x")
    assert group.unknowns == plain.unknowns
    assert group.structure.A == plain.structure.A


def test_one_question_mark_before_a_sum_is_one_unknown():
    system = System.parse("x' = ?*(x + 2*y)\ny' = x")
    assert len(system.unknowns) == 1
    assert [(p.column, p.factor) for p in system.unknowns[0].places] == [("x", "1"), ("y", "2")]


def test_named_unknown_is_the_same_everywhere():
    system = System.load("sir_conserving")
    assert [u.name for u in system.unknowns] == ["beta", "gamma"]
    places = [(p.row, p.column, p.factor) for p in unknown(system, "beta").places]
    assert places == [("S", "S", "-I"), ("I", "S", "I")]


def test_kinds():
    system = System.parse(
        "x' = ?a*x + ?b*y + ?c + ?d*z\ny' = 0\nz' = 0\n"
        "unknown ?a constant\nunknown ?b, ?c per series\nunknown ?d varying"
    )
    kinds = {u.name: u.kind for u in system.unknowns}
    assert kinds == {"a": "constant", "b": "per series", "c": "per series", "d": "varying"}
    assert System.parse("x' = ?a*x").unknowns[0].kind == "varying"


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("?a >= 0", 0, None),
        ("?a > 1e-3", 1e-3, None),
        ("0 <= ?a", 0, None),
        ("?a <= 2*g", None, 4),
        ("0 <= ?a <= 1", 0, 1),
        ("g >= ?a >= -g", -2, 2),
        ("?a >= 0\n?a <= 1", 0, 1),
        ("?a >= 0, ?a <= sqrt(4)", 0, 2),
    ],
)
def test_bounds_of_unknowns(text, lower, upper):
    system = System.parse(f"constant g = 2\nx' = ?a*x\n{text}")
    bounds = system.unknowns[0].bounds
    assert (bounds.lower, bounds.upper) == (lower, upper)


def test_bounds_of_states():
    system = System.parse("x' = y\ny' = -x\nz' = x\nstate x >= 0, -1 <= z <= 1")
    bounds = [(b.lower, b.upper) for b in system.state_bounds]
    assert bounds == [(0, None), (None, None), (-1, 1)]
    z = system.constrain_state(jnp.asarray([-3.0, -3.0, 5.0]))
    assert z[0] > 0
    assert z[1] == -3
    assert -1 < z[2] < 1
    np.testing.assert_allclose(system.unconstrain_state(z), [-3, -3, 5], rtol=1e-6)


def test_constants_are_exact_and_may_use_each_other():
    system = System.parse("constant g = 9.81, l = 2\nconstant w = g/l\nx' = w*x + pi*y\ny' = x")
    assert system.constants == {"g": 9.81, "l": 2.0, "w": 4.905}
    known = describe(system.structure)["known_A"]
    assert known[0] == ["4.905", "3.141592653589793"]


def test_decimals_are_exact():
    """0.1 + 0.2 - 0.3 is zero here, though not in floating point."""
    system = System.parse("x' = 0.1*x + 0.2*x - 0.3*x + y\ny' = x")
    assert describe(system.structure)["known_A"][0] == ["0", "1"]


def test_observed_units_and_controls():
    system = System.parse(
        "control u\nobserve y\nx' = y + u\ny' = -?k*x\nunit x = m, y = m/s, u = N m, ?k = 1/s**2"
    )
    assert system.observed == ("y",)
    assert system.units == {"x": "m", "y": "m/s", "u": "N m", "?k": "1/s**2"}
    assert system.controls == ("u",)
    assert System.load("pendulum").observed == ()


def test_statements_come_in_any_order_with_comments_and_blank_lines():
    tidy = System.parse("control u\nconstant k = 2\nx' = k*u*x\nobserve x")
    messy = System.parse(
        "\n  # a comment\n\tobserve x   # another\n\nx' = k*u*x # with ? and ' in it\r\n"
        "constant k = 2\rcontrol u"
    )
    assert messy.structure.A == tidy.structure.A
    assert messy.observed == tidy.observed


def test_brackets_let_an_equation_go_on_in_the_next_line():
    system = System.parse("x' = (?*x  # why\n      + ?*y\n)\ny' = x")
    assert [u.name for u in system.unknowns] == ["x:x", "x:y"]


def test_names_may_look_like_those_of_sympy():
    system = System.parse("I' = S*E\nS' = -N\nE' = Q\nN' = beta\nQ' = zeta\nbeta' = 1\nzeta' = I")
    assert system.names[:7] == ("I", "S", "E", "N", "Q", "beta", "zeta")


def test_a_fully_known_system_needs_no_unknown():
    system = System.parse("x' = v\nv' = -x")
    A, B = system.assemble(jnp.zeros(0), jnp.asarray([1.0, 2.0]), jnp.zeros(0))
    np.testing.assert_array_equal(A, [[0, 1], [-1, 0]])
    assert B.shape == (2, 0)
    assert system.constrain(jnp.zeros(0)).shape == (0,)


def test_read_names_the_file(tmp_path):
    file = tmp_path / "my.phys"
    file.write_text("\ufeff# mine\nx' = -x", encoding="utf-8")
    assert System.read(file).structure.physics.summary == "mine"
    with pytest.raises(PhysicsError, match="there is no such file"):
        System.read(tmp_path / "missing.phys")
    with pytest.raises(PhysicsError, match="this is not a file"):
        System.read(tmp_path)
    file.write_bytes(b"x' = \xff\xfe")
    with pytest.raises(PhysicsError, match="not UTF-8 text"):
        System.read(file)
    file.write_bytes(b"#" * 2_000_000)
    with pytest.raises(PhysicsError, match="the file is too large"):
        System.read(file)


def test_load_lists_the_known_names():
    with pytest.raises(PhysicsError, match=r"cascaded_tanks, cascaded(.|\n)*did you mean pendulum"):
        System.load("pendulm")


def test_repr_is_short():
    assert repr(System.load("pendulum")) == (
        "System(states=['theta', 'omega'], lifted=['sin(theta)', 'cos(theta)'], "
        "controls=['torque'], unknowns=['omega:theta', 'omega:omega', 'omega:sin(theta)', "
        "'omega:cos(theta)', 'omega:torque'])"
    )


@pytest.mark.usefixtures("without_type_checks")
def test_wrong_shapes_are_refused():
    """Out-of-range indices would be clamped by JAX without a word."""
    system = System.load("pendulum")
    theta, z, z_ext, u = jnp.zeros(5), jnp.zeros(2), jnp.zeros(4), jnp.zeros(1)
    with pytest.raises(ValueError, match=r"theta has the shape \(4,\) and must have \(5,\)"):
        system.assemble(theta[:4], z_ext, u)
    with pytest.raises(ValueError, match=r"z_ext has the shape \(2,\)(.|\n)*extended state"):
        system.assemble(theta, z, u)
    with pytest.raises(ValueError, match=r"use jax.vmap for many samples"):
        system.drift(theta, jnp.zeros((3, 2)), u)
    with pytest.raises(ValueError, match=r"z has the shape \(4,\)"):
        system.lift(z_ext)
    with pytest.raises(ValueError, match=r"u has the shape \(2,\)"):
        system.drift(theta, z, jnp.zeros(2))
    with pytest.raises(TypeError, match="a physics text is a string, not bytes"):
        System.parse(b"x' = x")  # type: ignore[arg-type]


@pytest.mark.usefixtures("without_type_checks")
def test_whole_numbers_become_real_ones():
    system = System.parse("x' = -0.5*x")
    A, _ = system.assemble(np.zeros(0), np.array([2]), np.zeros(0))
    assert A == -0.5


@pytest.mark.usefixtures("without_type_checks")
def test_complex_numbers_are_refused():
    with pytest.raises(TypeError, match="z holds complex numbers"):
        System.load("vehicle").lift(np.ones(6, complex))


def test_theta_by_name():
    system = System.load("sir_conserving")
    np.testing.assert_array_equal(system.theta({"gamma": 0.1, "beta": 0.3}), [0.3, 0.1])
    assert System.load("vehicle").theta(
        dict.fromkeys((u.name for u in System.load("vehicle").unknowns), 1.0)
    ).shape == (14,)
    with pytest.raises(ValueError, match="no value for the unknown gamma"):
        system.theta({"beta": 0.3})
    with pytest.raises(ValueError, match="there is no unknown 'gama': did you mean gamma"):
        system.theta({"beta": 0.3, "gamma": 1.0, "gama": 0.1})


def test_names_in_a_list_share_a_bound():
    system = System.parse("x' = ?a*x + ?b*y + ?c\ny' = x\n?a, ?b >= 0, ?c <= 1\nstate x, y >= -1")
    assert [u.constraint for u in system.unknowns] == ["a >= 0", "b >= 0", "c <= 1"]
    assert [b.lower for b in system.state_bounds] == [-1, -1]


def test_units_are_any_short_text():
    system = System.parse("x' = y\ny' = -x\nunit x = kg m²/s^2, y = °C")
    assert system.units == {"x": "kg m²/s^2", "y": "°C"}


def test_sine_of_pi_is_zero():
    assert describe(System.parse("x' = sin(pi)*x + y\ny' = x").structure)["known_A"][0][0] == "0"


def test_notes_name_controls_that_no_equation_uses():
    system = System.parse("control u, w, q\nx' = -?k*x + [w]*x + q")
    (note,) = system.structure.notes
    assert note == "no equation uses the control u: it only informs the unknowns"


def test_small_numbers_are_not_rounded_away():
    known = describe(System.parse("x' = exp(-40)*x + sqrt(6.6e-34)*y\ny' = x").structure)["known_A"]
    assert float(known[0][0]) == np.exp(-40)
    assert float(known[0][1]) == np.sqrt(6.6e-34)


def test_gradients_of_the_drift_at_the_edge_of_lifted_functions():
    """An empty tank is a fine state, though the row of sqrt(h) has no value there."""
    tanks = System.load("cascaded_tanks")
    gradient = jax.grad(lambda theta: tanks.drift(theta, jnp.zeros(2), jnp.ones(1)).sum())
    np.testing.assert_array_equal(gradient(jnp.ones(4)), [0, 1, 0, 0])
    root = System.parse("x' = -?k*x**1.5")
    slope = jax.grad(lambda z: root.drift(jnp.ones(1), z, jnp.zeros(0)).sum())(jnp.zeros(1))
    np.testing.assert_array_equal(slope, [0])


def test_pickled_systems_are_equal_in_another_process():
    system = System.load("pendulum")
    program = (
        "import pickle, sys; from physsm import System; "
        "s = pickle.load(sys.stdin.buffer); t = System.load('pendulum'); "
        "assert s == t and hash(s._full.program) == hash(t._full.program)"
    )
    subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(system), check=True, timeout=60
    )


def test_a_byte_order_mark_is_no_part_of_the_text():
    assert System.parse("\ufeffx' = -x").states == ("x",)
