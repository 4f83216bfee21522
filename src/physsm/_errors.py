"""Errors that physsm raises on purpose.

PhyssmError
├── PhysicsError    a physics text that cannot be read: position, expected text, hint
├── DataError       a table or array that cannot be used: file, row, column
├── ConfigError     a setting that cannot be used, or settings that contradict each other
└── RunError        a run folder that cannot be read or written
    └── TrainingError   a training whose loss is not a finite number
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


class PhyssmError(Exception):
    """Base of all errors that are the input's fault, not the program's."""


@dataclass(frozen=True)
class Span:
    """Position in a physics text. `line` and `column` count from 1; `length` is in characters."""

    line: int
    column: int
    length: int = 1


class PhysicsError(PhyssmError):
    """A physics text that cannot be read or lifted.

    `message` is one sentence. `span` and `source_line` give the position (None where there is none,
    as for a missing file); `expected` and `hint` say what to write instead.
    """

    def __init__(
        self,
        message: str,
        *,
        span: Span | None = None,
        source_line: str | None = None,
        path: str | None = None,
        expected: str | None = None,
        hint: str | None = None,
    ):
        self.message = message
        self.span = span
        self.source_line = source_line
        self.path = path
        self.expected = expected
        self.hint = hint
        super().__init__(self._render())

    @property
    def line(self) -> int | None:
        """Line of the error, counted from 1."""
        return self.span.line if self.span else None

    @property
    def column(self) -> int | None:
        """Column of the error, counted from 1."""
        return self.span.column if self.span else None

    def _render(self) -> str:
        position = [self.path] if self.path else []
        if self.span:
            position.append(f"line {self.span.line}, column {self.span.column}")
        lines = [f"{', '.join(position)}: {self.message}" if position else self.message]
        if self.span and self.source_line is not None:
            lines += _underlined(self.span, self.source_line)
        if self.expected:
            lines.append(f"  expected {self.expected}")
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)


class DataError(PhyssmError):
    """Data that cannot be used.

    `message` is one sentence. `path` is the file. `row` is the row of the table, counted as in a
    spreadsheet (the header is row 1, the first data row is row 2). `column` is the column's name.
    Each is None where it does not apply. `hint` says what to do.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        row: int | None = None,
        column: str | None = None,
        hint: str | None = None,
    ):
        self.message = message
        self.path = path
        self.row = row
        self.column = column
        self.hint = hint
        position = [path] if path else []
        position += [f"row {row}"] if row is not None else []
        position += [f"column {column}"] if column is not None else []
        text = f"{', '.join(position)}: {message}" if position else message
        super().__init__(f"{text}\n  {hint}" if hint else text)


class ConfigError(PhyssmError):
    """A setting that is unknown, out of range, or contradicts another."""


class RunError(PhyssmError):
    """A run folder or model file that is missing, foreign, damaged, newer, or not writable."""


class TrainingError(RunError):
    """A training that cannot continue, because its loss is not a finite number."""


_SHOWN_WIDTH = 100


def _underlined(span: Span, source_line: str) -> list[str]:
    """Source line and a line of carets under the span; a very long line is cut around it."""
    start = max(0, span.column - 1 - _SHOWN_WIDTH // 2)
    shown = source_line[start : start + _SHOWN_WIDTH].expandtabs(1)
    number = str(span.line)
    before = span.column - 1 - start
    carets = "^" * max(1, min(span.length, len(shown) - before))
    return [f"  {number} | {shown}", f"  {' ' * len(number)} | {' ' * before}{carets}"]


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Hint with the known name most similar to `name`; None if no name is similar."""
    by_lower = {known_name.lower(): known_name for known_name in known}
    matches = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f"did you mean {by_lower[matches[0]]}?" if matches else None
