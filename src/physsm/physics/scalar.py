"""Reader of values without unknowns: numbers, and known functions of states and controls."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NoReturn

import sympy as sp

from physsm._errors import Span, did_you_mean
from physsm.physics.entry_functions import EntryFunction, apply, at_numbers
from physsm.physics.scope import Scope
from physsm.physics.source import Statement
from physsm.physics.syntax import TOO_DEEP, is_unknown_node, node_span, read_tree, written
from physsm.physics.tokens import ENTRY_FUNCTIONS, FUNCTIONS, LIFTED_FUNCTIONS, check_expression

MAX_POWER = 64
_ROUNDING = 1e-15
MAX_NUMBER_BITS = 1000  # of numerator and denominator: the range of a double

_SYMPY = {name: getattr(sp, name) for name in LIFTED_FUNCTIONS}
_MATH = {name: getattr(math, name) for name in LIFTED_FUNCTIONS}
_NODES = (
    *(sp.Symbol, sp.Rational, sp.Add, sp.Mul, sp.Pow, EntryFunction),
    *(function for name, function in _SYMPY.items() if name != "sqrt"),  # it becomes a power
)
# Number of arguments, as words and as an example; the others take one.
_ARGUMENTS = {
    "min": ("two or more arguments", "min(x, y)"),
    "max": ("two or more arguments", "max(x, y)"),
    "clip": ("three arguments", "clip(x, lower, upper)"),
}
_INSTEAD_OF = {
    "ln": "write log(x)",
    "fabs": "write abs(x)",
    "sgn": "write sign(x)",
    "clamp": "write clip(x, lower, upper)",
    "sinh": "write (exp(x) - exp(-x))/2",
    "cosh": "write (exp(x) + exp(-x))/2",
    "log10": "write log(x)/log(10)",
    "pow": "write x**2",
}
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)


def read_number(statement: Statement, scope: Scope) -> sp.Rational:
    """Number of an expression of numbers and constants."""
    reader = ScalarReader(statement, scope)
    try:
        return reader.number(reader.tree(), "a number or an expression of constants")
    except RecursionError:
        statement.fail(TOO_DEEP, hint="split it up")


class ScalarReader:
    """Reader that rebuilds the nodes of one expression as SymPy values."""

    def __init__(self, statement: Statement, scope: Scope):
        self.statement = statement
        self.scope = scope

    def tree(self) -> ast.expr:
        """Parsed expression."""
        check_expression(self.statement)
        return read_tree(self.statement)

    def fail(
        self, node: ast.expr, message: str, expected: str | None = None, hint: str | None = None
    ) -> NoReturn:
        """Raise a PhysicsError that points at a node."""
        self.statement.fail(message, self.span(node), expected=expected, hint=hint)

    def span(self, node: ast.expr) -> Span:
        """Position of a node."""
        return node_span(self.statement, node)

    def written(self, node: ast.expr) -> str:
        """Node as the user wrote it."""
        return written(self.statement, node)

    def scalar(self, node: ast.expr) -> sp.Expr:
        """Value of a node; a node that is not on the whitelist is an error."""
        match node:
            case ast.Constant(int() | float() as value) if not isinstance(value, bool):
                return self._literal(node, value)
            case ast.Name(name):
                return self._named(node, name)
            case ast.UnaryOp(ast.USub(), operand):
                return -self.scalar(operand)
            case ast.UnaryOp(ast.UAdd(), operand):
                return self.scalar(operand)
            case ast.List():
                return self.scalar(self.bracket_content(node))
            case ast.BinOp(op=operator) if isinstance(operator, _OPERATORS):
                return self._checked(node, self._operation(node))
            case ast.Call():
                return self._checked(node, self._call(node))
        self.fail(
            node,
            f"{self.written(node)!r} is not part of the language",
            expected="names, numbers, ?, + - * / **, brackets and functions",
        )

    def _operation(self, node: ast.BinOp) -> sp.Expr:
        if isinstance(node.op, ast.Pow):
            return self._power(node)
        if isinstance(node.op, ast.Add | ast.Sub):
            terms: list[sp.Expr] = []
            remainder: ast.expr = node
            while isinstance(remainder, ast.BinOp) and isinstance(remainder.op, ast.Add | ast.Sub):
                term = self.scalar(remainder.right)
                terms.append(-term if isinstance(remainder.op, ast.Sub) else term)
                remainder = remainder.left
            return sp.Add(self.scalar(remainder), *reversed(terms))
        left, right = self.scalar(node.left), self.scalar(node.right)
        if isinstance(node.op, ast.Mult):
            return left * right
        if right == 0:
            self.fail(node.right, "this divides by zero")
        return left / right

    def _power(self, node: ast.BinOp) -> sp.Expr:
        base, exponent = self.scalar(node.left), self.exponent(node.right)
        if base == 0 and exponent < 0:
            self.fail(node.left, "this divides by zero")
        if isinstance(base, sp.Rational) and not exponent.is_Integer:
            return self._folded(node, lambda: float(base) ** float(exponent))
        return base**exponent

    def exponent(self, node: ast.expr) -> sp.Rational:
        """Value of an exponent, which must be a number of at most MAX_POWER."""
        expected = "a number or a constant as exponent"
        self.refuse_unknown(node, f"the exponent {self.written(node)}")
        exponent = self.number(node, expected, hint="write exp(y*log(x)) for x to the power y")
        if abs(exponent) > MAX_POWER:
            self.fail(node, f"exponents go up to {MAX_POWER}")
        return exponent

    def number(self, node: ast.expr, expected: str, hint: str | None = None) -> sp.Rational:
        """Value of a node that must be a number."""
        self.refuse_unknown(node, f"the number {self.written(node)}")
        value = self.scalar(node)
        if not isinstance(value, sp.Rational):
            self.fail(node, f"{self.written(node)} is not a number", expected=expected, hint=hint)
        return value

    def _call(self, node: ast.Call) -> sp.Expr:
        if not isinstance(node.func, ast.Name):
            self.fail(node.func, "only functions can be called", expected=_function_list())
        name = node.func.id
        if name.startswith("_"):
            unknown = "?" + name[1:]
            hint = f"write ?*{name[1:]}(x)" if name[1:] in FUNCTIONS else f"write {unknown}*x"
            self.fail(node, f"{unknown} is an unknown, not a function", hint=hint)
        if name not in FUNCTIONS:
            if name in self.scope.known_names():
                hint = f"{name} is not a function: write {name}*(...) for a product"
            else:
                hint = _INSTEAD_OF.get(name) or did_you_mean(name, FUNCTIONS)
            self.fail(node.func, f"unknown function {name!r}", expected=_function_list(), hint=hint)
        self._check_arguments(node, name)
        values = [self.scalar(argument) for argument in node.args]
        numbers = [value for value in values if isinstance(value, sp.Rational)]
        if name == "clip" and len(numbers[-2:]) == 2 and values[1:] == numbers[-2:]:
            self._check_range(node, *numbers[-2:])
        if len(numbers) == len(values):
            return self._folded(node, lambda: _at_numbers(name, numbers))
        return apply(name, values) if name in ENTRY_FUNCTIONS else _SYMPY[name](values[0])

    def _check_arguments(self, node: ast.Call, name: str) -> None:
        """Raise if a call has a wrong number of arguments, or an unknown in one of them."""
        count = len(node.args)
        fits = {"min": count >= 2, "max": count >= 2, "clip": count == 3}.get(name, count == 1)
        is_starred = any(isinstance(argument, ast.Starred) for argument in node.args)
        if not fits or node.keywords or is_starred:
            number, example = _ARGUMENTS.get(name, ("one argument", f"{name}(x)"))
            self.fail(node, f"{name} takes {number}", expected=example)
        for argument in node.args:
            self.refuse_unknown(
                argument,
                f"the function {self.written(node)}",
                hint="unknowns enter linearly: let one stand for the whole function, ?*x",
            )

    def _check_range(self, node: ast.Call, lower: sp.Rational, upper: sp.Rational) -> None:
        if lower > upper:
            ends = f"{self.written(node.args[1])} is above {self.written(node.args[2])}"
            self.fail(node, f"the range of clip is empty: {ends}", expected=_ARGUMENTS["clip"][1])

    def _named(self, node: ast.Name, name: str) -> sp.Expr:
        if name.startswith("_"):
            self.refuse_unknown(node, "a nonlinear function")
        for known in (self.scope.states, self.scope.controls, self.scope.constants):
            if name in known:
                return known[name]
        if name == "pi":
            return exact(math.pi)
        if name in FUNCTIONS:
            _, example = _ARGUMENTS.get(name, ("", f"{name}(x)"))
            self.fail(node, f"{name} needs an argument", expected=example)
        names = self.scope.known_names()
        self.fail(
            node,
            f"unknown name {name!r}",
            expected="one of " + ", ".join([*names[:12], "pi"]),
            hint=did_you_mean(name, names) or self._how_to_declare(name),
        )

    def _how_to_declare(self, name: str) -> str:
        if not self.scope.states:  # in the value of a constant or a bound
            return "only constants that are defined above can be used here"
        if name == "t":
            return "for the time, write the equation t' = 1"
        return (
            f"a state has an equation, {name}' = ...; an input is declared by control {name}, "
            f"a number by constant {name} = ...; an unknown is written ?{name}"
        )

    def _literal(self, node: ast.expr, value: int | float) -> sp.Rational:
        if not math.isfinite(value):
            self.fail(node, "this number is too large")
        if value == 0 and re.search(r"[1-9]", self.written(node).lower().split("e")[0]):
            self.fail(node, "this number is too small")
        number = exact(value)
        self._checked(node, number)
        return number

    def _folded(self, node: ast.expr, compute: Callable[[], float | sp.Rational]) -> sp.Rational:
        """Value of a function of numbers: exact, or as the nearest double."""
        try:
            result = compute()
        except OverflowError:
            self.fail(node, f"{self.written(node)} is too large")
        except (ValueError, ZeroDivisionError):
            self.fail(node, f"{self.written(node)} is not a real number")
        if isinstance(result, sp.Rational):
            return result
        if isinstance(result, complex) or not math.isfinite(result):
            self.fail(node, f"{self.written(node)} is not a real number")
        return exact(result)

    def _checked(self, node: ast.expr, value: sp.Expr) -> sp.Expr:
        """Value, unless it is not a real formula or has numbers beyond the range of a double."""
        for part in _shallow(value):
            if not isinstance(part, _NODES):
                self.fail(node, f"{self.written(node)} is not a real formula")
            if isinstance(part, sp.Rational) and is_beyond_double(part):
                self.fail(node, "a number here is too large or too finely divided")
        return value

    def bracket_content(self, node: ast.List) -> ast.expr:
        """Expression inside [ ]."""
        if len(node.elts) != 1:
            self.fail(node, "brackets [ ] hold one expression, which stays in the entry")
        return node.elts[0]

    def refuse_unknown(self, node: ast.expr, where: str, hint: str | None = None) -> None:
        """Raise if a node holds an unknown; `where` names the expression that must not hold one."""
        for inner in ast.walk(node):
            if is_unknown_node(inner):
                assert isinstance(inner, ast.Name)
                self.fail(
                    inner,
                    f"the unknown ?{inner.id[1:]} is inside {where}",
                    expected="unknowns only as plain factors of a term",
                    hint=hint or "unknowns enter linearly: let one stand for the whole factor, ?*x",
                )


def _at_numbers(name: str, numbers: list[sp.Rational]) -> float | sp.Rational:
    """Value of a function at numbers; sin(pi) is exactly 0 and tan(pi/2) is undefined."""
    if name in ENTRY_FUNCTIONS:
        return at_numbers(name, numbers)
    result = _MATH[name](float(numbers[0]))
    if name in ("sin", "cos", "tan") and abs(result) < _ROUNDING:
        return 0.0
    if name == "tan" and abs(result) > 1 / _ROUNDING:
        raise ValueError
    return result


def exact(value: int | float) -> sp.Rational:
    """Number as the decimal fraction that was written: 0.1 is one tenth."""
    fraction = Fraction(repr(value))
    number = sp.Rational(fraction.numerator, fraction.denominator)
    assert isinstance(number, sp.Rational)  # the denominator is never zero
    return number


def is_beyond_double(number: sp.Rational) -> bool:
    """Whether numerator or denominator is too large to become a double safely."""
    return max(number.p.bit_length(), number.q.bit_length()) > MAX_NUMBER_BITS


def _shallow(value: sp.Expr) -> Iterator[sp.Expr]:
    """Value and the two levels below it: deeper levels were checked when they were built."""
    yield value
    for part in value.args:
        yield part  # type: ignore[misc]
        yield from part.args  # type: ignore[misc]


def _function_list() -> str:
    return "one of " + ", ".join(FUNCTIONS)
