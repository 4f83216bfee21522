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


def compile_program(expressions: Iterable[sp.Expr], symbols: Iterable[sp.Symbol]) -> Program:
    """Program of `expressions` as functions of `symbols`."""
    writer = _Writer(symbols)
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


class _Writer:
    def __init__(self, symbols: Iterable[sp.Symbol]):
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
            return self.power(expression)
        if isinstance(expression, sp.Mul) and expression.args[0] == -1:
            return Operation("negative", (self.slot(sp.Mul(-1, expression)),))
        names = {sp.Add: "add", sp.Mul: "multiply"}
        is_entry = isinstance(expression, EntryFunction)
        own = expression.written if is_entry else type(expression).__name__
        name = names.get(type(expression)) or own
        if name not in names.values() and name not in FUNCTIONS:
            raise TypeError(f"there is no array operation for {expression}")
        return Operation(name, tuple(self.slot(part) for part in expression.args))  # type: ignore[arg-type]

    def power(self, expression: sp.Pow) -> Operation:
        base, exponent = expression.base, expression.exp
        assert isinstance(exponent, sp.Rational)
        if exponent == sp.Rational(1, 2):
            return Operation("sqrt", (self.slot(base),))
        if exponent < 0:  # 1/sqrt(x) instead of x**-0.5: one rounding less, and cheaper
            return Operation("reciprocal", (self.slot(base**-exponent),))
        number = int(exponent) if exponent.is_Integer else float(exponent)
        return Operation("power", (self.slot(base),), number)
