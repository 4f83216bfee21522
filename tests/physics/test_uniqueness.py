"""Proposition 1: which overlaps are reported, and with what advice."""

import pytest

from physsm import System


def test_disjoint_parts_are_unique():
    for name in ("pendulum", "sir", "vehicle", "quadrotor"):
        assert System.load(name).overlaps == ()


def test_known_and_unknown_part_on_one_entry():
    system = System.parse("theta' = omega\nomega' = -9.81*sin(theta) + ?*sin(theta)")
    (warning,) = system.warnings
    assert "entry (omega, sin(theta)) of A has a known part -9.81 and an unknown part ?" in warning
    assert "only their sum is identified" in warning
    assert "leave the known part out and let ?*sin(theta) learn the whole" in warning
    assert not system.structure.is_unique
    assert [(o.matrix, o.row, o.column) for o in system.overlaps] == [("A", "omega", "sin(theta)")]


def test_two_unknowns_on_one_entry():
    (warning,) = System.parse("x' = ?a*x + ?b*y*x\ny' = x").warnings
    assert "entry (x, x) of A has 2 unknown parts, ?a and y*?b" in warning
    assert "write one unknown, ?*x" in warning
    assert "unknown ?a, ?b constant" in warning
    (warning,) = System.parse("x' = ?*x + ?*x").warnings
    assert "has 2 unknown parts, ? and ?" in warning
    assert "constant" not in warning


def test_overlap_in_B():
    (warning,) = System.parse("control u\nx' = u + ?gain*u").warnings
    assert "entry (x, u) of B has a known part 1 and an unknown part ?gain" in warning


def test_overlap_on_the_constant_column():
    (warning,) = System.parse("x' = 3 + ?").warnings
    assert "entry (x, 1) of A" in warning
    assert "let ? learn the whole" in warning


def test_partially_known_entry_is_no_overlap():
    """A known factor times an unknown is the paper's third case, and is fine."""
    system = System.parse("constant N = 3\nS' = -(I/N)*?*S\nI' = ?*I")
    assert system.overlaps == ()
    assert system.unknowns[0].places[0].factor == "-I/3"


def test_one_unknown_with_two_factors_on_one_entry_is_no_overlap():
    system = System.parse("x' = ?a*y*x + ?a*x*x\ny' = x")
    assert system.overlaps == ()
    assert system.unknowns[0].places[0].factor == "x + y"


@pytest.mark.parametrize(
    ("kinds", "factors", "harmless"),
    [
        ("unknown ?a, ?b constant", ("1", "y"), True),
        ("unknown ?a constant\nunknown ?b per series", ("y", "y**2"), True),
        ("unknown ?a, ?b constant", ("y", "2*y"), False),
        ("unknown ?a, ?b constant", ("(1 + y)**2", "[1 + 2*y + y*y]"), False),
        ("unknown ?a constant", ("1", "y"), False),
        ("", ("1", "y"), False),
    ],
)
def test_constants_with_different_factors_can_be_told_apart(kinds, factors, harmless):
    first, second = factors
    system = System.parse(f"x' = [{first}]*?a*x + [{second}]*?b*x\ny' = x\n{kinds}")
    assert [overlap.harmless for overlap in system.overlaps] == [harmless]
    assert bool(system.warnings) is not harmless


def test_rows_that_follow_by_the_chain_rule_are_harmless():
    system = System.parse("x' = y + ?*x\ny' = sin(x)")
    assert {o.row for o in system.overlaps} == {"sin(x)", "cos(x)"}
    assert all(o.harmless and "chain rule" in o.message for o in system.overlaps)
    assert system.warnings == ()


COMPARTMENTS = """
constant sigma = 0.2, birth = 0.01
S' = birth - ?beta*I*S - birth*S
E' = ?beta*I*S - sigma*E
I' = sigma*E - ?gamma*I - ?mu*I
R' = ?gamma*I
D' = ?mu*I
"""


def test_other_entries_tell_tied_unknowns_apart():
    """gamma and mu share (I, I) but stand alone in (R, I) and (D, I); so does beta in (E, S)."""
    system = System.parse(COMPARTMENTS)
    assert {(o.row, o.column) for o in system.overlaps} == {("S", "S"), ("I", "I")}
    assert all(o.harmless for o in system.overlaps)
    assert system.warnings == ()


def test_a_chain_of_shared_entries_is_followed_to_its_end():
    solvable = System.parse("x' = ?a*x + ?b*x\ny' = ?b*y + ?c*y\nz' = ?c*z")
    assert solvable.warnings == ()
    open_ended = System.parse("x' = ?a*x + ?b*x\ny' = ?b*y + ?c*y\nz' = ?d*z")
    assert len(open_ended.warnings) == 2


def test_advice_does_not_repeat_what_is_declared():
    (warning,) = System.parse("x' = ?a*x + 2*?b*x\nunknown ?a, ?b constant").warnings
    assert "if they are numbers" not in warning


def test_a_conserved_factor_does_not_help_within_one_series():
    """x + y never changes in a series, so ?a*(x + y) + ?b is one number there."""
    text = "x' = -?k*x\ny' = ?k*x\nz' = ?a*[x + y]*z + ?b*z\nunknown ?a, ?b {}"
    assert System.parse(text.format("per series")).warnings != ()
    assert System.parse(text.format("constant")).warnings == ()


@pytest.mark.parametrize(
    ("text", "n_warnings"),
    [
        # scales do not matter
        ("x' = ?a*x + ?b*x\ny' = ?b*y + 1e-10*?c*y\nz' = ?c*z + ?d*z", 3),
        ("x' = ?a*x + ?b*x\ny' = 1e-30*?b*y", 0),
        # nor do the edges of functions
        ("x' = ?a*[sqrt(x - 5)]*x + ?b*x\nunknown ?a, ?b constant", 0),
        # nor the number of terms
        (
            "x' = " + " + ".join(f"?c{k}*[x**{k}]*x" for k in range(20)) + "\nunknown "
            + ", ".join(f"?c{k}" for k in range(20)) + " constant",
            0,
        ),
        # sine and cosine are related
        ("x' = [sin(x)**2]*?a*x + [cos(x)**2]*?b*x + ?c*x\nunknown ?a, ?b, ?c constant", 1),
        ("x' = [sin(x)**2]*?a*x + [cos(x)]*?b*x + ?c*x\nunknown ?a, ?b, ?c constant", 0),
        ("x' = [tan(x)*cos(x)]*?a*x + [sin(x)]*?b*x\nunknown ?a, ?b constant", 1),
    ],
)  # fmt: skip
def test_scales_edges_and_identities(text, n_warnings):
    assert len(System.parse(text).warnings) == n_warnings


def test_too_large_a_question_is_left_open():
    n_states, n_constants = 14, 150
    text = "\n".join(
        f"x{i}' = " + " + ".join(f"?c{k}*[sin({k + 1}*x{i})]*x{i}" for k in range(n_constants))
        for i in range(n_states)
    )
    names = ", ".join(f"?c{k}" for k in range(n_constants))
    warnings = System.parse(f"{text}\nunknown {names} constant").warnings
    assert len(warnings) == n_states
    assert all("shares unknowns with too many entries" in warning for warning in warnings)
