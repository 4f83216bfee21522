"""Programs: SymPy expressions as a flat list of array operations, common parts computed once.

A program is plain data: it can be compared and hashed, runs without SymPy, and contains no code.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from types import ModuleType
from typing import Any

import sympy as sp

from physsm.physics.entry_functions import EntryFunction
from physsm.physics.tokens import FUNCTIONS

Number = float | int


@dataclass(frozen=True)
class Operation:
    """Operation `name` on the earlier results `inputs`, with a `number` if it needs one."""

    name: str
    inputs: tuple[int, ...] = ()
    number: Number = 0


@dataclass(frozen=True)
class Program:
    """Functions of several numbers; `outputs` are the operations that hold their values."""

    operations: tuple[Operation, ...]
    outputs: tuple[int, ...]
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.operations, self.outputs)))

    def __hash__(self) -> int:
        return self._hash  # computed once: jit reads it at every call

    def __reduce__(self) -> tuple[Any, ...]:
        return Program, (self.operations, self.outputs)  # a hash is valid in one process only


def compile_program(
    expressions: Iterable[sp.Expr],
    symbols: Iterable[sp.Symbol],
    bounded: Iterable[sp.Symbol] = (),
) -> Program:
    """Program of `expressions` as functions of `symbols`.

    Values and slopes of roots, logarithms and quotients of `bounded` symbols are finite at zero,
    where such a symbol may stand on its bound.
    """
    writer = _Writer(symbols, bounded)
    outputs = tuple(writer.slot(expression) for expression in expressions)
    return Program(tuple(writer.operations), outputs)


def run_program(program: Program, inputs: Sequence[Any], numpy: ModuleType) -> list[Any]:
    """Values of a program's functions, computed by `numpy` (NumPy itself or `jax.numpy`).

    The value of a function that does not depend on the inputs is a plain number.
    """
    values: list[Any] = []
    for operation in program.operations:
        arguments = [values[i] for i in operation.inputs]
        match operation:
            case Operation("input", number=index):
                values.append(inputs[int(index)])
            case Operation("constant", number=value):
                values.append(value)
            case Operation("add"):
                values.append(reduce(operator.add, arguments))
            case Operation("multiply"):
                values.append(reduce(operator.mul, arguments))
            case Operation("negative"):
                values.append(-arguments[0])
            case Operation("reciprocal"):
                values.append(1 / arguments[0])
            case Operation("power", number=exponent):
                values.append(arguments[0] ** exponent)
            case Operation("root", number=exponent):
                values.append(_root(arguments[0], exponent, numpy))
            case Operation("nonzero" | "positive"):
                values.append(_nonzero(arguments[0], numpy, operation.name == "nonzero"))
            case Operation("min"):
                values.append(reduce(numpy.minimum, arguments))
            case Operation("max"):
                values.append(reduce(numpy.maximum, arguments))
            case Operation("clip"):
                value, lower, upper = arguments
                values.append(numpy.minimum(numpy.maximum(value, lower), upper))
            case Operation(name):
                values.append(getattr(numpy, name)(arguments[0]))
    return [values[i] for i in program.outputs]


def _root(x: Any, exponent: Number, numpy: ModuleType) -> Any:
    """Power of `x` between 0 and 1, with a slope of 0 instead of infinity at x = 0."""
    is_zero = abs(x) < numpy.finfo(x.dtype).tiny
    positive = numpy.where(is_zero, numpy.ones_like(x), x)  # keeps the unused slope finite
    root = numpy.sqrt(positive) if exponent == 0.5 else positive**exponent
    return numpy.where(is_zero, numpy.zeros_like(x), root)


def _nonzero(x: Any, numpy: ModuleType, keep_sign: bool) -> Any:
    """`x` with zero replaced by a small number whose inverse cube is finite; its slope is 0."""
    tiny = numpy.finfo(x.dtype).tiny
    small = numpy.full_like(x, tiny ** (1 / 3))
    small = numpy.copysign(small, x) if keep_sign else small
    return numpy.where(abs(x) < tiny, small, x)


class _Writer:
    def __init__(self, symbols: Iterable[sp.Symbol], bounded: Iterable[sp.Symbol]):
        self.bounded = frozenset(bounded)
        self.positions = {symbol: index for index, symbol in enumerate(symbols)}
        self.operations: list[Operation] = []
        self.slots: dict[sp.Expr, int] = {}

    def slot(self, expression: sp.Expr) -> int:
        """Index of the operation that computes `expression`; a new one is appended."""
        if expression not in self.slots:
            operation = self.operation(expression)
            self.operations.append(operation)
            self.slots[expression] = len(self.operations) - 1
        return self.slots[expression]

    def operation(self, expression: sp.Expr) -> Operation:
        if isinstance(expression, sp.Symbol):
            return Operation("input", number=self.positions[expression])
        if isinstance(expression, sp.Rational):
            return Operation("constant", number=float(expression))
        if isinstance(expression, sp.Pow):
            return self.power(expression.base, expression.exp)
        if isinstance(expression, sp.Mul) and expression.args[0] == -1:
            return Operation("negative", (self.slot(sp.Mul(-1, expression)),))
        names = {sp.Add: "add", sp.Mul: "multiply"}
        is_entry = isinstance(expression, EntryFunction)
        own = expression.written if is_entry else type(expression).__name__
        name = names.get(type(expression)) or own
        if name not in names.values() and name not in FUNCTIONS:
            raise TypeError(f"there is no array operation for {expression}")
        if name == "log":
            return Operation(name, (self.without_zero(expression.args[0], "positive"),))  # type: ignore[arg-type]
        return Operation(name, tuple(self.slot(part) for part in expression.args))  # type: ignore[arg-type]

    def power(self, base: sp.Expr, exponent: sp.Expr) -> Operation:
        assert isinstance(exponent, sp.Rational)
        if 0 < exponent < 1 and self.is_bounded(base):
            return Operation("root", (self.slot(base),), float(exponent))
        if exponent == sp.Rational(1, 2):
            return Operation("sqrt", (self.slot(base),))
        if exponent == -1:
            return Operation("reciprocal", (self.without_zero(base, "nonzero"),))
        if exponent < 0 and self.is_bounded(base):  # the slope of 1/(x**2) would overflow early
            return self.power(1 / base, -exponent)
        if exponent < 0:  # 1/sqrt(x) instead of x**-0.5: one rounding less, and cheaper
            return Operation("reciprocal", (self.slot(base**-exponent),))
        number = int(exponent) if exponent.is_Integer else float(exponent)
        return Operation("power", (self.slot(base),), number)

    def without_zero(self, expression: sp.Expr, replaced: str) -> int:
        """Index of the operation that computes `expression`, kept away from zero if bounded."""
        slot = self.slot(expression)
        if not self.is_bounded(expression):
            return slot
        self.operations.append(Operation(replaced, (slot,)))
        return len(self.operations) - 1

    def is_bounded(self, expression: sp.Expr) -> bool:
        """Whether an expression depends on a symbol that may stand on its bound."""
        return not self.bounded.isdisjoint(expression.free_symbols)
