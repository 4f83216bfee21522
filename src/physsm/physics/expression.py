"""Expressions of the physics language, read through Python's `ast` against a whitelist.

No text is ever executed: a tree of allowed nodes is rebuilt as SymPy objects, node by node. The
result is a sum of products. Unlike SymPy's own products, these keep the written order of their
factors, because the last factor decides the column of the matrix to which a term belongs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sp

from physsm._errors import Span
from physsm.physics.scalar import ScalarReader
from physsm.physics.scope import Scope
from physsm.physics.source import Statement
from physsm.physics.syntax import TOO_DEEP, is_unknown_node

MAX_TERMS = 500
MAX_FACTORS = 200


@dataclass(frozen=True)
class Factor:
    """Factor of a product. `entry_only`: written in [brackets], so never a column."""

    value: sp.Expr
    span: Span
    entry_only: bool = False


Product = tuple[Factor, ...]


def read_products(statement: Statement, scope: Scope) -> list[Product]:
    """Right-hand side as a sum of products, with the factors in written order."""
    reader = _ProductReader(statement, scope)
    try:
        return reader.products(reader.tree())
    except RecursionError:
        statement.fail(TOO_DEEP, hint="split it up")


class _ProductReader(ScalarReader):
    def products(self, node: ast.expr) -> list[Product]:
        match node:
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                return self.sum(node)
            case ast.BinOp(left, ast.Mult(), right):
                return self.multiplied(node, self.products(left), self.products(right))
            case ast.BinOp(left, ast.Div(), right):
                return self.multiplied(node, self.products(left), self.reciprocal(right))
            case ast.BinOp(left, ast.Pow(), right):
                return self.power(node, left, right)
            case ast.UnaryOp(ast.USub(), operand):
                minus = Factor(sp.Integer(-1), self.span(node))
                return [(minus, *product) for product in self.products(operand)]
            case ast.UnaryOp(ast.UAdd(), operand):
                return self.products(operand)
            case ast.List():
                return self.bracket(node)
            case ast.Call(ast.Name("_"), arguments):
                return self.group(node, arguments)
            case ast.Name(name) if name.startswith("_"):
                symbol = self.scope.use_unknown(name[1:], self.span(node))
                return [(Factor(symbol, self.span(node)),)]
            case _:
                return self.spread(node, self.scalar(node))

    def sum(self, node: ast.BinOp) -> list[Product]:
        """Products of a chain of + and -, without recursion: chains may have hundreds of terms."""
        terms: list[tuple[ast.expr, bool]] = []
        rest: ast.expr = node
        while isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Add | ast.Sub):
            terms.append((rest.right, isinstance(rest.op, ast.Sub)))
            rest = rest.left
        terms.append((rest, False))
        self.check_count(node, len(terms))
        products: list[Product] = []
        for term, negative in reversed(terms):
            minus = (Factor(sp.Integer(-1), self.span(term)),) if negative else ()
            products += [(*minus, *product) for product in self.products(term)]
            self.check_count(node, len(products))
        return products

    def multiplied(
        self, node: ast.expr, left: list[Product], right: list[Product]
    ) -> list[Product]:
        self.check_count(node, len(left) * len(right))
        result = [(*a, *b) for a in left for b in right]
        if max(map(len, result), default=0) > MAX_FACTORS:
            self.fail(node, f"this is a product of more than {MAX_FACTORS} factors")
        return result

    def check_count(self, node: ast.expr, count: int) -> None:
        if count > MAX_TERMS:
            self.fail(
                node,
                f"this multiplies out to more than {MAX_TERMS} terms",
                hint="put a sum in [brackets] to keep it whole, as part of the entry",
            )

    def power(self, node: ast.expr, base: ast.expr, exponent_node: ast.expr) -> list[Product]:
        exponent = self.exponent(exponent_node)
        if exponent.is_Integer and exponent >= 0:
            self.refuse_unknown(base, f"the power {self.written(node)}")
            factors = self.products(base)
            result: list[Product] = [(Factor(sp.Integer(1), self.span(node)),)]
            for _ in range(int(exponent)):
                result = self.multiplied(node, result, factors)
            return result
        return self.quotient(node, self.scalar(node))

    def reciprocal(self, node: ast.expr) -> list[Product]:
        """Products of 1/node."""
        self.refuse_unknown(
            node,
            f"the divisor {self.written(node)}",
            hint="make the reciprocal the unknown: write ?rate*x for x/?time",
        )
        divisor = self.scalar(node)
        if divisor == 0:
            self.fail(node, "this divides by zero")
        return self.quotient(node, 1 / divisor)

    def quotient(self, node: ast.expr, value: sp.Expr) -> list[Product]:
        """Products of a quotient: 1/x stays one factor, because it is one column; others expand."""
        coefficient, rest = value.as_coeff_Mul()
        if rest != 1 and sp.fraction(rest)[0] == 1:
            return [self.factors(node, coefficient, [rest])]
        return self.spread(node, value)

    def bracket(self, node: ast.List) -> list[Product]:
        inner = self.bracket_content(node)
        if any(is_unknown_node(part) for part in ast.walk(inner)):
            return [
                tuple(Factor(factor.value, factor.span, True) for factor in product)
                for product in self.products(inner)
            ]
        return [(Factor(self.scalar(inner), self.span(node), True),)]

    def group(self, node: ast.Call, arguments: list[ast.expr]) -> list[Product]:
        """Products of ?(a, b), in which each argument gets its own unknown."""
        if not arguments or node.keywords:
            self.fail(node, "?( ) holds nothing", expected="terms, such as ?(x, y)")
        products: list[Product] = []
        for argument in arguments:
            self.refuse_unknown(
                argument,
                f"the group {self.written(node)}",
                hint="each term of a group has an unknown already: leave the inner one out",
            )
            unknown = Factor(self.scope.use_unknown("", self.span(argument)), self.span(argument))
            products += [(unknown, *product) for product in self.products(argument)]
        self.check_count(node, len(products))
        return products

    def spread(self, node: ast.expr, value: sp.Expr) -> list[Product]:
        """Products of a SymPy value: SymPy may have simplified a function to a sum or a product."""
        products: list[Product] = []
        for term in sp.Add.make_args(value):
            coefficient, rest = term.as_coeff_Mul()
            products.append(self.factors(node, coefficient, _repeated(rest.as_ordered_factors())))
        self.check_count(node, len(products))
        return products

    def factors(self, node: ast.expr, coefficient: sp.Expr, values: Iterable[sp.Expr]) -> Product:
        span = self.span(node)
        entry_only = _is_bracketed(node)
        number = (Factor(coefficient, span),) if coefficient != 1 else ()
        rest = tuple(Factor(value, span, entry_only) for value in values if value != 1)
        return (*number, *rest) or (Factor(sp.Integer(1), span),)


def _is_bracketed(node: ast.expr) -> bool:
    """Whether a node is [x] or a power of [x]."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        node = node.left
    return isinstance(node, ast.List)


def _repeated(values: Iterable[sp.Expr]) -> list[sp.Expr]:
    """Integer powers as repeated factors, so that x**3 has the column x and the entry x**2."""
    result: list[sp.Expr] = []
    for value in values:
        base, exponent = value.as_base_exp()
        whole = exponent.is_Integer and exponent > 1
        result += [base] * int(exponent) if whole else [value]
    return result
