"""Formulas as text can be read again; numbers look as they were written."""

import pytest
import sympy as sp

from physsm.physics.formula import decimal, product_text, sum_text, to_latex, to_text
from physsm.physics.scalar import ScalarReader
from physsm.physics.scope import Scope
from physsm.physics.source import Source, Statement

x, y = sp.symbols("x y")


def exact_rational(text: str) -> sp.Rational:
    number = sp.Rational(text)
    assert isinstance(number, sp.Rational)
    return number


@pytest.mark.parametrize(
    ("number", "text"),
    [("9.81", "9.81"), ("1/3", "1/3"), ("-7", "-7"), ("1/1024", "0.0009765625"), ("2e-9", "2e-09")],
)
def test_decimals(number, text):
    assert decimal(exact_rational(number)) == text


@pytest.mark.parametrize(
    "text",
    [
        "9.81*x", "-0.5/x", "x/3", "-x**2/3", "sqrt(x)", "x**1.5", "x**(-1.5)", "0.5*sqrt(x + y)",
        "exp(-0.5*x)", "0.25*x + y/7", "(x + y)**2", "-x - y", "tan(x)**2 + 1", "1/(x*y)",
        "1/(x + y)", "0.1*x*y", "-(x + y)/3", "log(2*x)", "2e-09*x", "sin(0.1*x + 1)",
        "0.333333*x", "1/sqrt(x)", "x**0.3333333333", "(x**2 + 1)**0.25",
    ],
)  # fmt: skip
def test_text_can_be_read_again(text):
    scope = Scope(states={"x": x, "y": y})

    def read(text: str) -> sp.Expr:
        reader = ScalarReader(Statement(Source(text), text, 1), scope)
        return reader.scalar(reader.tree())

    value = read(text)
    assert read(to_text(value)) == value
    assert "/100" not in to_text(value)


def test_products_and_sums():
    assert product_text(sp.Integer(1), "?a") == "?a"
    assert product_text(sp.Integer(-1), "?") == "-?"
    assert product_text(x + y, "?") == "(x + y)*?"
    assert product_text(-x / 2, "?") == "-0.5*x*?"
    assert sum_text(["-x", "y", "-z"]) == "-x + y - z"
    assert sum_text([]) == "0"


def test_latex_keeps_decimals():
    assert to_latex(sp.Rational("9.81") * sp.sin(x)) == r"9.81 \sin{\left(x \right)}"
    assert to_latex(x / 3) == r"\frac{x}{3}"
    assert to_latex(sp.Rational("1e-6") * x) == r"10^{-6} x"
    assert to_latex(-sp.Rational("3e-5") * x) == r"-3 \cdot 10^{-5} x"


@pytest.mark.parametrize(
    ("name", "latex"),
    [
        ("x", "x"), ("theta", r"\theta"), ("vertical", r"\mathrm{vertical}"),
        ("Omega", r"\Omega"), ("v_x", "v_{x}"), ("rpm1", r"\mathrm{rpm}_{1}"),
        ("inv_inertia", r"\mathrm{inv}_{\mathrm{inertia}}"), ("h1_max", r"h_{1,\mathrm{max}}"),
    ],
)  # fmt: skip
def test_words_are_upright_in_latex(name, latex):
    assert to_latex(sp.Symbol(name)) == latex
