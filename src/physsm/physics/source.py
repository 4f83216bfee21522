"""Physics text as logical lines, with the position of each character."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from physsm._errors import PhysicsError, Span

MAX_CHARACTERS = 200_000
MAX_LINE_CHARACTERS = 10_000
MAX_BRACKETS = 20

_ALLOWED = re.compile(r"[A-Za-z0-9_.+\-*/()\[\],?'=<>~ \t\n]")
_UNIT = re.compile(r"\s*unit\s")
_INSTEAD = {
    "^": "powers are written with **: x**2",
    "−": "this is a typographic minus: write -",
    "·": "write * for a product",
    "×": "write * for a product",
    "’": "this is a typographic quote: write '",
    "′": "this is a typographic prime: write '",
    "≤": "write <=",
    "≥": "write >=",
    ";": "put each statement on its own line",
    "%": "the language has no remainder or percent",
    ":": "statements have no colon",
    "@": "write * for a product",
    "\\": "to continue on the next line, open a parenthesis",
}
_GREEK_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lam mu nu xi omicron pi rho sigma "
    "tau upsilon phi chi psi omega"
)
_GREEK = dict(zip("αβγδεζηθικλμνξοπρστυφχψω", _GREEK_NAMES.split(), strict=True))


@dataclass(frozen=True)
class Source:
    """Physics text and, if it was read from a file, the file's name."""

    text: str
    path: str | None = None

    def fail(
        self, message: str, span: Span, *, expected: str | None = None, hint: str | None = None
    ) -> NoReturn:
        """Raise a PhysicsError that points at `span`."""
        lines = self.text.split("\n")
        source_line = lines[span.line - 1] if span.line <= len(lines) else ""
        raise PhysicsError(
            message,
            span=span,
            source_line=source_line,
            path=self.path,
            expected=expected,
            hint=hint,
        )


@dataclass(frozen=True)
class Statement:
    """Logical line without comments.

    `text` has newlines where a bracket was open at the end of a line; `line` and `column` are the
    position of its first character.
    """

    source: Source
    text: str
    line: int
    column: int = 1

    def span(self, start: int, end: int) -> Span:
        """Position of the characters from `start` up to `end` of `text`."""
        if "\n" not in self.text:
            return Span(self.line, self.column + start, max(1, end - start))
        before = self.text[:start]
        newlines = before.count("\n")
        column = start - before.rfind("\n") if newlines else self.column + start
        first_line = self.text[start:end].split("\n", 1)[0]
        return Span(self.line + newlines, column, max(1, len(first_line)))

    @property
    def whole(self) -> Span:
        """Position of the statement."""
        return self.span(0, len(self.text))

    def part(self, start: int, end: int) -> Statement:
        """Statement of the characters from `start` up to `end`, without surrounding blanks."""
        text = self.text[start:end]
        start += len(text) - len(text.lstrip())
        place = self.span(start, start + 1)
        return Statement(self.source, text.strip(), place.line, place.column)

    def split(self, inside_brackets: bool = False) -> list[Statement]:
        """Statements between commas; commas inside brackets only count if `inside_brackets`."""
        parts, start, depth = [], 0, 0
        for index, character in enumerate(self.text):
            depth += (character in "([") - (character in ")]")
            if character == "," and (inside_brackets or depth == 0):
                parts.append(self.part(start, index))
                start = index + 1
        return [*parts, self.part(start, len(self.text))]

    def fail(
        self,
        message: str,
        span: Span | None = None,
        *,
        expected: str | None = None,
        hint: str | None = None,
    ) -> NoReturn:
        """Raise a PhysicsError that points at `span`, or at the whole statement."""
        self.source.fail(message, span or self.whole, expected=expected, hint=hint)


def statements(source: Source) -> Iterator[Statement]:
    """Logical lines of a text: a line continues while a bracket is open."""
    if len(source.text) > MAX_CHARACTERS:
        raise PhysicsError(
            f"the physics text has {len(source.text):,} characters; "
            f"at most {MAX_CHARACTERS:,} are read",
            path=source.path,
        )
    open_lines: list[str] = []
    first_line = depth = length = 0
    for number, raw in enumerate(source.text.split("\n"), start=1):
        code = raw.split("#", 1)[0].rstrip()
        # A unit may have any characters, such as m² or °C.
        is_unit = not open_lines and _UNIT.match(code)
        if not is_unit:
            _check_characters(source, code, number)
        if not open_lines:
            if not code.strip():
                continue
            first_line, length = number, 0
        open_lines.append(code)
        if not is_unit:
            depth = _bracket_depth(source, code, number, depth)
        length += len(code) + 1
        if length > MAX_LINE_CHARACTERS:
            source.fail(
                f"this statement has more than {MAX_LINE_CHARACTERS:,} characters",
                Span(first_line, 1),
            )
        if depth == 0:
            text = "\n".join(open_lines)
            yield Statement(source, text, first_line).part(0, len(text))
            open_lines = []
    if open_lines:
        statement = Statement(source, "\n".join(open_lines), first_line)
        opened = _last_open_bracket(statement.text)
        statement.fail("this bracket is never closed", statement.span(opened, opened + 1))


def _check_characters(source: Source, code: str, number: int) -> None:
    for index, character in enumerate(code):
        if _ALLOWED.match(character):
            continue
        name = _GREEK.get(character) or _GREEK.get(character.lower())
        hint = f"write {name}" if name else _INSTEAD.get(character)
        source.fail(
            f"the character {character!r} is not part of the language",
            Span(number, index + 1),
            hint=hint,
        )


def _bracket_depth(source: Source, code: str, number: int, depth: int) -> int:
    for index, character in enumerate(code):
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        if depth > MAX_BRACKETS:
            source.fail(f"more than {MAX_BRACKETS} brackets are open here", Span(number, index + 1))
        if depth < 0:
            source.fail("this bracket was never opened", Span(number, index + 1))
    return depth


def _last_open_bracket(text: str) -> int:
    opened: list[int] = []
    for index, character in enumerate(text):
        if character in "([":
            opened.append(index)
        elif character in ")]":
            opened.pop()
    return opened[-1]
