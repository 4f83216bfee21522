"""SymPy expressions as text and LaTeX, with decimals as they were written (9.81, not 981/100)."""

from __future__ import annotations

from typing import TypeGuard

import sympy as sp
from sympy.core.alphabets import greeks
from sympy.printing.latex import LatexPrinter
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from physsm.physics.entry_functions import EntryFunction, Magnitude

_MAX_PLAIN_DIGITS = 4
_LATEX_NAMES = {"min": r"\min", "max": r"\max", "tanh": r"\tanh"}


def decimal(number: sp.Rational) -> str:
    """Rational number as an integer, a decimal or, like 1/3, a fraction."""
    if number.q == 1:
        return str(number.p)
    rest = number.q
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    is_short_fraction = max(len(str(abs(number.p))), len(str(number.q))) <= _MAX_PLAIN_DIGITS
    if rest != 1 and is_short_fraction:
        return f"{number.p}/{number.q}"
    return repr(float(number))


def _is_shown_as_decimal(number: sp.Expr) -> TypeGuard[sp.Rational]:
    return isinstance(number, sp.Rational) and number.q != 1 and "/" not in decimal(number)


class _TextPrinter(StrPrinter):
    def _print_Rational(self, expr: sp.Rational) -> str:
        return decimal(expr)

    def _print_Pow(self, expr: sp.Pow, rational: bool = False) -> str:
        exponent = expr.exp
        if _is_shown_as_decimal(exponent) and exponent > 0 and exponent != sp.Rational(1, 2):
            return f"{self.parenthesize(expr.base, PRECEDENCE['Pow'])}**{decimal(exponent)}"
        return super()._print_Pow(expr, rational)

    def _print_Mul(self, expr: sp.Mul) -> str:
        coefficient, rest = expr.as_coeff_Mul()
        if not _is_shown_as_decimal(coefficient):
            return super()._print_Mul(expr)
        text = self.parenthesize(rest, PRECEDENCE["Mul"], strict=True)
        number = decimal(coefficient)
        return number + text[1:] if text.startswith("1/") else f"{number}*{text}"

    def _print_Function(self, expr: sp.Expr) -> str:
        if not isinstance(expr, EntryFunction):
            return super()._print_Function(expr)
        return f"{expr.written}({', '.join(map(self.doprint, expr.args))})"


def _latex_decimal(number: sp.Rational) -> str:
    mantissa, _, exponent = decimal(number).partition("e")
    if not exponent:
        return mantissa
    power = f"10^{{{int(exponent)}}}"
    if mantissa in ("1", "-1"):
        return mantissa.removesuffix("1") + power
    return rf"{mantissa} \cdot {power}"


class _LatexPrinter(LatexPrinter):
    def _print_Symbol(self, expr: sp.Symbol, style: str = "plain") -> str:
        """Symbol: letters and Greek names in italics, words upright, suffixes as indices."""
        base, *lower = expr.name.split("_")
        digits = base[len(base.rstrip("0123456789")) :]
        base = base.removesuffix(digits)
        lower = [part for part in (digits, *lower) if part]
        text = self._word(base)
        return f"{text}_{{{','.join(map(self._word, lower))}}}" if lower else text

    def _word(self, word: str) -> str:
        if len(word) <= 1 or word.isdigit():
            return word
        if word.lower() in greeks:
            return super()._print_Symbol(sp.Symbol(word))
        return rf"\mathrm{{{word}}}"

    def _print_Rational(self, expr: sp.Rational) -> str:
        return _latex_decimal(expr) if _is_shown_as_decimal(expr) else super()._print_Rational(expr)

    def _print_Mul(self, expr: sp.Expr) -> str:
        coefficient, rest = expr.as_coeff_Mul()
        if not _is_shown_as_decimal(coefficient):
            return super()._print_Mul(expr)
        text = self.parenthesize(rest, PRECEDENCE["Mul"], strict=True)
        return f"{_latex_decimal(coefficient)} {text}"

    def _print_Function(self, expr: sp.Expr, exp: str | None = None) -> str:
        """Function with an exponent, if it has one, which SymPy passes on as text."""
        if not isinstance(expr, EntryFunction):
            return super()._print_Function(expr, exp)  # type: ignore[arg-type]
        arguments = ", ".join(map(self.doprint, expr.args))
        name = _LATEX_NAMES.get(expr.written, rf"\operatorname{{{expr.written}}}")
        power = f"^{{{exp}}}" if exp else ""
        if isinstance(expr, Magnitude):
            return rf"\left|{{{arguments}}}\right|{power}"
        return rf"{name}{power}{{\left({arguments} \right)}}"


_TEXT = _TextPrinter()
_LATEX = _LatexPrinter()


def to_text(expression: sp.Expr) -> str:
    """Expression in the syntax of the physics language."""
    return _TEXT.doprint(expression)


def to_latex(expression: sp.Expr) -> str:
    """Expression for a LaTeX formula."""
    return _LATEX.doprint(expression)


def product_text(factor: sp.Expr, unknown: str) -> str:
    """Product of a factor and an unknown as text, such as `-I*?beta` or `(x + y)*?`."""
    if factor == 1:
        return unknown
    if factor == -1:
        return f"-{unknown}"
    text = to_text(factor)
    return f"({text})*{unknown}" if factor.is_Add else f"{text}*{unknown}"


def product_latex(factor: sp.Expr, unknown: str) -> str:
    """Product of a factor and an unknown for LaTeX."""
    if factor == 1:
        return unknown
    if factor == -1:
        return f"-{unknown}"
    text = to_latex(factor)
    return rf"\left({text}\right) {unknown}" if factor.is_Add else f"{text} {unknown}"


def sum_text(terms: list[str]) -> str:
    """Terms joined by + or, where they start with a minus, by -."""
    if not terms:
        return "0"
    joined = terms[0]
    for term in terms[1:]:
        joined += f" - {term[1:]}" if term.startswith("-") else f" + {term}"
    return joined
