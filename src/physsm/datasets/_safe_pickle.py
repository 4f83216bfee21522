"""Safe reader of pickles of plain values and NumPy arrays, which executes no code of the file.

A pickle is a program: Python's own reader imports and calls the functions that it names. This
reader interprets only the few instructions that plain values need. It imports nothing, and arrays
are views of bytes of the file, so that no pickle can use more memory than a small multiple of its
size.
"""

from __future__ import annotations

import math
import pickletools
import re
from typing import Any, NamedTuple, NoReturn

import numpy as np

from physsm._errors import DataError

_LARGEST = 1 << 28  # bytes; published scenes have about 2 MB


class _Name(NamedTuple):
    """Name of a class or function in the file; it is never imported."""

    module: str
    name: str


class _Pending:
    """Array or dtype that is not yet built; `slots` of the memo refer to it until then."""

    def __init__(self, made_by: str, value: Any = None):
        self.made_by, self.value = made_by, value
        self.slots: list[int] = []


_MARK = object()
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "EMPTY_SET": set}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_LITERALS = {
    *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
    *("SHORT_BINUNICODE", "BINUNICODE", "SHORT_BINBYTES", "BINBYTES", "BYTEARRAY8"),
}
_NUMPY = tuple(
    f"{package}.{module}"
    for package in ("numpy.core", "numpy._core")
    for module in ("multiarray", "numeric")
)
_ALLOWED = {
    *((module, name) for module in _NUMPY for name in ("_reconstruct", "scalar", "_frombuffer")),
    *(("numpy", name) for name in ("ndarray", "dtype")),
    ("collections", "defaultdict"),
    *(("builtins", name) for name in ("set", "int", "float", "list", "dict")),
}
_NUMBERS = re.compile("b1|[iu][1248]|f[248]")


def read_pickle(content: bytes, path: str) -> Any:
    """Value of a pickle: dicts, lists, tuples, sets, texts, numbers and arrays of numbers.

    A class called ScenarioDescription and `defaultdict` become dicts. Anything else is an error,
    which calls the file `path`.
    """
    if not content:
        raise DataError("the file is empty", path=path, hint="download the file again")
    if len(content) > _LARGEST:
        raise DataError(f"the file has {len(content)} bytes, more than {_LARGEST}", path=path)
    try:
        return _Reader(path).run(content)
    except (
        *(ValueError, TypeError, LookupError, OverflowError, AttributeError),
        *(AssertionError, MemoryError, RecursionError),
    ) as error:
        detail = str(error).split("\n")[0][:120]
        message = f"the file is not a complete pickle: {detail}"
        raise DataError(message, path=path, hint="download the file again") from None


class _Reader:
    """Interpreter of one pickle, with its stack and memo."""

    def __init__(self, path: str):
        self.path = path
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self, content: bytes) -> Any:
        argument: Any
        for opcode, argument, _ in pickletools.genops(content):
            name = opcode.name
            # Two thirds of all instructions are of these two kinds.
            if name in _LITERALS:
                self.stack.append(argument)
            elif name in ("BINGET", "LONG_BINGET"):
                self.stack.append(self.memo[argument])
            elif name == "STOP":
                (value,) = self.stack
                return value
            else:
                self.step(name, argument)
        raise ValueError("it has no end")

    def step(self, name: str, argument: Any) -> None:
        """Execute one instruction that changes the stack; frequent ones come first."""
        stack = self.stack
        if name == "MEMOIZE":
            self.remember(len(self.memo))
        elif name in ("BINPUT", "LONG_BINPUT"):
            self.remember(argument)
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name in _TUPLES:
            stack[-_TUPLES[name] :] = [tuple(self.pop(_TUPLES[name]))]
        elif name == "MARK":
            stack.append(_MARK)
        elif name == "TUPLE":
            stack.append(tuple(self.pop_to_mark()))
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in ("SETITEMS", "SETITEM"):
            items = self.pop_items(name == "SETITEM", 2)
            keys = _plain(items[::2])
            _typed(stack[-1], dict).update(zip(keys, items[1::2], strict=True))
        elif name in ("APPENDS", "APPEND"):
            items = self.pop_items(name == "APPEND", 1)
            _typed(stack[-1], list).extend(items)
        elif name == "ADDITEMS":
            items = self.pop_to_mark()
            _typed(stack[-1], set).update(_plain(items))
        elif name in ("REDUCE", "NEWOBJ"):
            function, arguments = self.pop(2)
            del stack[-2:]
            stack.append(self.call(function, arguments))
        elif name == "BUILD":
            state = stack.pop()
            self.build(state)
        elif name == "STACK_GLOBAL":
            module, named = self.pop(2)
            del stack[-2:]
            stack.append(self.named(module, named))
        elif name == "GLOBAL":
            stack.append(self.named(*argument.split(" ", 1)))
        elif name not in ("PROTO", "FRAME"):
            self.refuse(f"the pickle instruction {name}")

    def pop(self, count: int) -> list[Any]:
        """Last `count` values; they stay on the stack."""
        values = self.stack[-count:]
        if len(values) < count or any(value is _MARK for value in values):
            raise ValueError("a value is lacking")
        return values

    def pop_to_mark(self) -> list[Any]:
        """Values after the last mark; they and the mark are removed from the stack."""
        stack = self.stack
        start = len(stack) - 1
        while stack[start] is not _MARK:
            start -= 1
            if start < 0:
                raise ValueError("a mark is lacking")
        values = stack[start + 1 :]
        del stack[start:]
        return values

    def pop_items(self, single: bool, width: int) -> list[Any]:
        if not single:
            return self.pop_to_mark()
        values = self.pop(width)
        del self.stack[-width:]
        return values

    def remember(self, slot: int) -> None:
        (value,) = self.pop(1)
        self.memo[slot] = value
        if isinstance(value, _Pending):
            value.slots.append(slot)

    def named(self, module: Any, name: Any) -> Any:
        if name == "ScenarioDescription" or (module, name) in _ALLOWED:
            return _Name(module, name)
        self.refuse(f"{module}.{name}")

    def call(self, function: Any, arguments: Any) -> Any:
        """Value that a named class or function would return for the arguments."""
        name = _typed(function, _Name).name
        arguments = _typed(arguments, tuple)
        if name in ("ScenarioDescription", "defaultdict"):
            if len(arguments) > 1 or not all(isinstance(one, _Name) for one in arguments):
                raise ValueError(f"{name} has arguments")
            return {}
        if name == "set":
            return set(_plain(_typed(arguments[0], list))) if arguments else set()
        if name == "_reconstruct":
            return _Pending("array")
        if name == "dtype":
            return _Pending("dtype", self.dtype(arguments[0]))
        if name == "scalar":
            kind, content = arguments
            return self.array(kind, content, ())[()]
        if name == "_frombuffer":
            content, kind, shape, order = arguments
            return self.array(kind, content, shape, fortran=order == "F")
        self.refuse(f"a call of {function.module}.{name}")

    def build(self, state: Any) -> None:
        """Complete an array or dtype on the stack and in the memo."""
        pending = _typed(self.stack[-1], _Pending)
        if pending.made_by == "array":
            _, shape, kind, fortran, content = _typed(state, tuple)
            done: Any = self.array(kind, content, shape, fortran=fortran)
        else:
            done = pending
            order, fields = state[1], state[2:5]
            if order not in ("<", ">", "|", "=") or any(field is not None for field in fields):
                self.refuse("a numpy dtype with fields")
            if order in "<>":
                pending.value = pending.value.newbyteorder(order)
        self.stack[-1] = done
        for slot in pending.slots:
            self.memo[slot] = done

    def dtype(self, code: Any) -> np.dtype:
        if not (isinstance(code, str) and _NUMBERS.fullmatch(code)):
            self.refuse(f"a numpy array of {code!r:.40}")
        return np.dtype(code)

    def array(self, kind: Any, content: Any, shape: Any, fortran: bool = False) -> np.ndarray:
        """Array over bytes of the file; an error if they do not fill its shape."""
        dtype = _typed(_typed(kind, _Pending).value, np.dtype)
        sizes = [_typed(size, int) for size in _typed(shape, tuple)]
        if len(sizes) > 8 or min(sizes, default=0) < 0:
            raise ValueError(f"an array of shape {sizes[:9]}")
        if math.prod(sizes) * dtype.itemsize != len(_typed(content, (bytes, bytearray))):
            raise ValueError(f"{len(content)} bytes for an array of shape {sizes}")
        flat = np.frombuffer(content, dtype)
        array = flat.reshape(sizes, order="F" if fortran else "C")
        return array.astype(dtype.newbyteorder("="), copy=False)

    def refuse(self, what: str) -> NoReturn:
        raise DataError(
            f"{what[:120]} is not allowed in a scene file",
            path=self.path,
            hint="the file is not from a known converter; do not open it with other programs",
        )


def _typed(value: Any, kind: Any) -> Any:
    """Value, checked to be of a type."""
    if not isinstance(value, kind) or (kind is tuple and isinstance(value, _Name)):
        raise ValueError(f"a value of the wrong type, {type(value).__name__.strip('_')}")
    return value


def _plain(keys: list[Any]) -> list[Any]:
    """Keys of dicts and sets; no tuples: hashing deeply nested ones overflows the stack."""
    return [_typed(key, (str, bytes, int, float, type(None))) for key in keys]
