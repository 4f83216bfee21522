"""Checks of the tokens of an expression, so that common mistakes get a precise message.

Python's parser decides what an expression is, but it would report `2x` or `sin theta` as "invalid
syntax" somewhere nearby. These checks name the mistake and its position.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from typing import NoReturn

from physsm.physics.source import Statement

LIFTED_FUNCTIONS = ("sin", "cos", "tan", "exp", "log", "sqrt")
ENTRY_FUNCTIONS = ("min", "max", "abs", "sign", "tanh", "clip")  # never columns
FUNCTIONS = (*LIFTED_FUNCTIONS, *ENTRY_FUNCTIONS)
MAX_NAME_CHARACTERS = 60
MAX_TOKENS = 2000
ELLIPSIS = "..."

_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>\??[A-Za-z]\w*|\?)"
    r"|(?P<operator>\*\*|//|<=|>=|==|[-+*/(),\[\].<>=])"
    r"|(?P<other>\S)"
)
_CONTROL_FLOW = {"if", "else", "elif", "and", "or", "not", "in", "is", "for", "while"}
_A_VALUE = "a name, a number, ? or a bracket"


@dataclass(frozen=True)
class Token:
    """Token of an expression; `start` is its index in the statement."""

    kind: str
    text: str
    start: int

    @property
    def ends_a_value(self) -> bool:
        """Whether a value can end here, so that only an operator may follow."""
        return self.kind in ("number", "name") or self.text in (")", "]")

    @property
    def starts_a_value(self) -> bool:
        """Whether a value can start here."""
        return self.kind in ("number", "name") or self.text in ("(", "[")


def check_name(statement: Statement) -> str:
    """Name of a state, control or constant; text that is not a usable name is an error."""
    name = statement.text
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        statement.fail(
            f"{name!r} is not a name" if name else "a name is missing here",
            expected="letters, digits and underscores, starting with a letter",
        )
    if len(name) > MAX_NAME_CHARACTERS:
        statement.fail(f"this name has more than {MAX_NAME_CHARACTERS} characters")
    if name in FUNCTIONS or name == "pi":
        statement.fail(f"{name!r} already has a meaning", hint="choose another name")
    if keyword.iskeyword(name):
        statement.fail(f"{name!r} is a reserved word", hint=f"write {reserved_word_instead(name)}")
    return name


def reserved_word_instead(name: str) -> str:
    """Usable name similar to a reserved word."""
    return "lam" if name == "lambda" else f"{name}_"


def check_expression(statement: Statement) -> None:
    """Raise a PhysicsError at the first mistake that Python's parser would describe poorly."""
    tokens = [
        Token(match.lastgroup or "other", match.group(), match.start())
        for match in _TOKEN.finditer(statement.text)
    ]
    if len(tokens) > MAX_TOKENS:
        statement.fail(
            f"this expression has more than {MAX_TOKENS:,} names, numbers and operators",
            hint="split it up",
        )
    if not tokens:
        statement.fail("there is nothing here", expected="an expression")
    for token in tokens:
        _check_token(statement, token)
    for before, after in zip([None, *tokens], [*tokens, None], strict=True):
        _check_neighbours(statement, before, after)
    _check_brackets(statement, tokens)


def _fail(statement: Statement, token: Token, message: str, **more: str | None) -> NoReturn:
    statement.fail(message, statement.span(token.start, token.start + len(token.text)), **more)


def _check_token(statement: Statement, token: Token) -> None:
    text = token.text
    if text == "'":
        is_equation = re.match(r"'\s*=", statement.text[token.start :])
        _fail(
            statement,
            token,
            "a derivative is not allowed on the right-hand side",
            hint="put each equation on its own line"
            if is_equation
            else "write that state's right-hand side instead",
        )
    if text == "_" or token.kind == "other":
        _fail(statement, token, f"{text!r} is not allowed here", expected=_A_VALUE)
    if text in ("=", "==", "<", ">", "<=", ">="):
        second = re.search(r",\s*\w+\s*'?\s*$", statement.text[: token.start])
        _fail(
            statement,
            token,
            f"{text!r} is not allowed inside an expression",
            hint="put each statement on its own line"
            if second
            else "comparisons are not part of the language",
        )
    if text == ".":
        _fail(statement, token, "attribute access ('.') is not part of the language")
    if text == "//":
        _fail(statement, token, "'//' is not part of the language", hint="write / for a quotient")
    if keyword.iskeyword(text):
        _fail(
            statement,
            token,
            f"{text!r} is a reserved word",
            hint="conditions and loops are not part of the language"
            if text in _CONTROL_FLOW
            else None
            if text in ("True", "False", "None")
            else f"to use it as a name, write {reserved_word_instead(text)}",
        )


def _check_neighbours(statement: Statement, before: Token | None, after: Token | None) -> None:
    if before is None:
        if after and after.text in ("*", "/", "**", ","):
            _fail(
                statement,
                after,
                f"there is nothing before {after.text!r}",
                expected=_A_VALUE,
                hint="to continue the line above, put the expression in parentheses",
            )
        return
    opens = before.text in ("(", "[", ",") or before.text in ("+", "-", "*", "/", "**")
    if after is None:
        if opens:
            _fail(
                statement,
                before,
                f"the expression ends after {before.text!r}",
                expected=_A_VALUE,
                hint="to continue on the next line, put the expression in parentheses",
            )
        return
    if before.ends_a_value and after.starts_a_value:
        is_call = before.kind == "name" and after.text == "("
        if not is_call:
            _fail(
                statement,
                after,
                f"an operator is missing between {before.text!r} and {after.text!r}",
                hint=_missing_operator_hint(before, after),
            )
    if opens and after.text in ("*", "/", "**", ",", ")", "]"):
        _fail(statement, after, f"{after.text!r} cannot follow {before.text!r}", expected=_A_VALUE)


def _missing_operator_hint(before: Token, after: Token) -> str:
    if before.text in FUNCTIONS:
        return f"write {before.text}({'x' if after.text == '[' else after.text})"
    if before.text.startswith("?") and after.text.startswith("?"):
        return "write one unknown"
    if before.text == "?" and after.kind == "number":
        return f"the name of an unknown starts with a letter, such as ?a{after.text}"
    left = f"({ELLIPSIS})" if before.text == ")" else before.text.replace("]", f"[{ELLIPSIS}]")
    right = {"(": f"({ELLIPSIS})", "[": f"[{ELLIPSIS}]"}.get(after.text, after.text)
    return f"write {left}*{right} for a product"


def _check_brackets(statement: Statement, tokens: list[Token]) -> None:
    opened: list[Token] = []
    for token in tokens:
        if token.text in ("(", "["):
            opened.append(token)
        elif token.text in (")", "]"):
            if not opened:
                _fail(statement, token, "this bracket was never opened")
            start = opened.pop()
            if start.text + token.text not in ("()", "[]"):
                _fail(statement, token, f"{token.text!r} closes a {start.text!r}")
        elif token.text == "," and not opened:
            _fail(statement, token, "a comma is not allowed here", expected="an operator")
