"""Terms that were left out of the equations are found, and known ones stay as they are."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from physsm import System
from physsm._errors import ConfigError
from physsm._values import Panel, Series
from physsm.models._baseline.state_columns import find_columns
from physsm.models.sindy import Regression, SINDy, candidates, free_names, sparse, with_terms
from tests.models.few_origins import few_origins  # noqa: F401

pytestmark = pytest.mark.usefixtures("few_origins")
# A Duffing oscillator with friction, of which the text knows only the linear spring.
SETTINGS = {
    "degree": 3,
    "rows": [14],
    "priors": [1.0],
    "thresholds": [0.15],
    "substeps": 1,
    "horizon": 10,
}
KNOWN = "x' = v\nv' = -1.5*x\nobserve x, v\n"


def duffing(number: int, seed: int, noise: float) -> Panel:
    rng = np.random.default_rng(seed)

    def right(_, y):
        return [y[1], -1.5 * y[0] - 0.8 * y[0] ** 3 - 0.3 * y[1]]

    series = []
    for i in range(number):
        times = np.cumsum(rng.uniform(0.05, 0.15, 120))
        start = rng.uniform(-1.5, 1.5, 2)
        states = solve_ivp(
            right, (times[0], times[-1]), start, t_eval=times, rtol=1e-9, atol=1e-9
        ).y.T
        values = states + noise * rng.normal(size=states.shape)
        series.append(Series(str(i), times, values, np.zeros((120, 0))))
    return Panel.from_series(series, ["x", "v"])


def coefficients(terms: tuple[str, ...]) -> dict[str, float]:
    pairs = [term.removeprefix("v': ").split("*", 1) for term in terms]
    return {name: float(number) for number, name in pairs}


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_missing_terms_are_found_with_their_coefficients(noise):
    model = SINDy.create(System.parse(KNOWN), SETTINGS)
    fitted = model.fit(duffing(10, 0, noise), duffing(3, 1, noise))
    found = coefficients(fitted.terms)
    assert set(found) == {"x*x*x", "v"}
    assert found["x*x*x"] == pytest.approx(-0.8, rel=0.05)
    assert found["v"] == pytest.approx(-0.3, rel=0.05)
    assert "- 1.5*x" in fitted.system.text
    assert all(term in fitted.remarks()[0] for term in fitted.terms)


def test_names_of_candidates_are_not_those_of_the_text():
    text = KNOWN.replace("-1.5*x", "-?sindy_0*x - ?sindy__1*v")
    assert free_names(System.parse(KNOWN), 2) == ["sindy_0", "sindy_1"]
    for name in free_names(System.parse(text), 2):
        assert f"?{name}" not in text


def test_too_many_candidates_are_refused_with_their_number():
    states = "abcdefghijkl"
    text = "".join(f"{state}' = 0\n" for state in states) + f"observe {', '.join(states)}\n"
    rng = np.random.default_rng(0)
    series = [
        Series(str(i), np.arange(30.0), rng.normal(size=(30, 12)), np.zeros((30, 0)))
        for i in range(4)
    ]
    model = SINDy.create(System.parse(text), {"degree": 4})
    with pytest.raises(ConfigError, match=r"degree = 4 .* candidates .* lower degree"):
        model.fit(Panel.from_series(series, list(states)))


def test_nothing_is_added_to_equations_that_are_whole():
    text = "x' = v\nv' = -1.5*x - ?cubic*x**3 - ?friction*v\nunknown ?cubic, ?friction constant\n"
    model = SINDy.create(System.parse(text + "observe x, v"), SETTINGS)
    fitted = model.fit(duffing(8, 0, 0.0), duffing(3, 1, 0.0))
    assert fitted.terms == ()
    assert "degree" in fitted.remarks()[0]
    np.testing.assert_allclose(
        fitted.unknowns(duffing(1, 2, 0.0).between(0, 30)).mean[0, -1], [0.8, 0.3], rtol=0.1
    )


@pytest.mark.parametrize("states", [1, 2, 4])
def test_a_threshold_is_a_share_of_what_is_left_open_in_an_equation(states):
    """Two terms of the first equation, with 0.8 and 0.06 of what the known terms leave open."""
    rng = np.random.default_rng(0)
    terms = np.linalg.qr(rng.normal(size=(200, 3)))[0] * np.sqrt(200)
    target, factors = rng.normal(size=(200, states)), np.zeros((200, states, 2))
    factors[:, 0] = terms[:, :2]
    target[:, 0] = terms @ [0.8, 0.06, np.sqrt(1 - 0.8**2 - 0.06**2)]
    for threshold, expected in ((0.05, [True, True]), (0.07, [True, False])):
        _, kept = sparse(Regression(target, factors), 0, [0, 0], threshold)
        assert kept.tolist() == expected


def test_equations_that_define_a_state_get_no_candidates():
    system = System.parse("control u\n" + KNOWN)
    columns = find_columns(system, ("x", "v"), ("u",))
    proposed = candidates(system, columns, 2)
    assert {candidate.state for candidate in proposed} == {1}
    terms = [candidate.term for candidate in proposed]
    assert terms == ["1", "x", "v", "u", "x*x", "x*v", "x*u", "v*v", "v*u", "u*u"]


def test_terms_go_into_the_right_equation_whatever_follows_it():
    text = "x' = v  # a definition\nv' = -1.5*x  # known\nobserve x"
    changed = with_terms(text, System.parse(text), [(1, "0.5*v"), (1, "-2*x*x")])
    assert changed == "x' = v  # a definition\nv' = 0.5*v - 2*x*x - 1.5*x  # known\nobserve x"
    System.parse(changed)


def test_it_needs_equations():
    with pytest.raises(ConfigError, match="phys"):
        SINDy.create(None, {})
