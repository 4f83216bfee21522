"""Message for a line that is not a statement of the physics language."""

from __future__ import annotations

import re
from typing import NoReturn

from physsm._errors import did_you_mean
from physsm.physics.source import Statement

KEYWORDS = ("control", "constant", "observe", "state", "unknown", "unit")


def fail_unreadable(statement: Statement, word: str) -> NoReturn:
    """Raise a PhysicsError with a guess at what the line was meant to be; `word` is its first."""
    statement.fail(
        "this is not a statement of the physics language",
        expected="an equation such as x' = -0.5*x, a constraint such as ?a >= 0, or "
        + ", ".join(KEYWORDS),
        hint=_likely_intent(statement.text, word),
    )


def _likely_intent(text: str, word: str) -> str | None:
    if second := re.match(r"(\w+)\s*''", text):
        name = second.group(1)
        return f"a second derivative takes two states: {name}' = {name}_rate, {name}_rate' = ..."
    if leibniz := re.match(r"d(\w+)\s*/\s*dt\s*=", text):
        return f"write {leibniz.group(1)}' = ..."
    if missing_prime := re.match(r"(\w+)\s*=", text):
        name = missing_prime.group(1)
        return f"write {name}' = ... for an equation or constant {name} = ... for a number"
    if re.match(r"\?\w+\s*=", text):
        name = text.split("=")[0].strip()[1:]
        return f"for a known number write constant {name} = ..., and {name} in the equations"
    if guess := re.match(r"(\?\w+)\s*~\s*(.*)", text):
        return (
            f"a first guess follows the kind: unknown {guess.group(1)} constant ~ {guess.group(2)}"
        )
    if re.match(r"[-+*/]", text):
        return "to continue the line above, put the expression in parentheses"
    if text in KEYWORDS:
        return f"'{text}' must be followed by a name"
    return did_you_mean(word, KEYWORDS) if word else None
