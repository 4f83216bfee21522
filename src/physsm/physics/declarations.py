"""Declarations of unknowns and controls: `unknown ?k constant ~ 3.5`, `control u hold linear`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from physsm._errors import did_you_mean
from physsm.physics.bounds import Bounds, unknown_name
from physsm.physics.scalar import read_number
from physsm.physics.scope import Scope
from physsm.physics.source import Statement

Kind = Literal["varying", "constant", "per series"]
HOLDS = ("previous", "linear", "mean")


@dataclass(frozen=True)
class KindDeclaration:
    """Names, kind and first guess of `unknown ?a, ?b constant ~ 3.5`."""

    names: tuple[Statement, ...]
    kind: Kind
    guess: Statement | None

    def read_guess(self, scope: Scope, bounds: dict[str, Bounds]) -> float | None:
        """First guess, which must lie within the bounds of all names; None without one."""
        if self.guess is None:
            return None
        if len(self.guess.split()) > 1:
            self.guess.fail(
                "a declaration has one first guess",
                expected="unknown ?a, ?b constant ~ 3.5, for both",
                hint="declare each unknown with a guess of its own on its own line",
            )
        value = float(read_number(self.guess, Scope(constants=scope.constants)))
        for name in (part.text for part in self.names):
            interval = bounds.get(name, Bounds())
            lower, upper = interval.ends
            if not lower <= value <= upper:
                self.guess.fail(
                    f"the first guess {value:g} of {name} is outside of its bounds",
                    expected=f"a number with {interval.describe(name)}",
                )
        return value


def read_kind(rest: Statement) -> KindDeclaration:
    """Declaration of the kind of unknowns."""
    head, tilde, _ = rest.text.partition("~")
    guess = rest.part(len(head) + 1, len(rest.text)) if tilde else None
    declared = rest.part(0, len(head))
    match = re.fullmatch(r"(.*?)\s+(constant|per\s+series|varying)", declared.text, re.DOTALL)
    if not match:
        last = re.search(r"\w*$", declared.text)
        bound = "write the bound on its own line: ?name >= 0"
        declared.fail(
            "this declaration gives no kind of unknown",
            expected="unknown ?name constant (or: per series, varying)",
            hint=bound
            if re.search("[<>]", rest.text)
            else did_you_mean(last.group() if last else "", ("constant", "varying")),
        )
    kind: Kind = "per series" if match.group(2).startswith("per") else match.group(2)  # type: ignore[assignment]
    names = tuple(declared.part(*match.span(1)).split())
    for name in names:
        unknown_name(name, name.text)
    return KindDeclaration(names, kind, guess)


def read_hold(rest: Statement) -> tuple[Statement, str | None]:
    """Names of a control statement, and how their values are held between time steps."""
    match = re.fullmatch(r"(.*?\w)\s+hold(\s.*)?", rest.text, re.DOTALL)
    if not match:
        return rest, None
    word = rest.part(match.end(1), len(rest.text)).text.removeprefix("hold").strip()
    if word not in HOLDS:
        place = rest.part(match.end(1), len(rest.text))
        place.fail(
            f"{word!r} is not a way to hold a control" if word else "the way to hold is missing",
            expected=f"hold {', hold '.join(HOLDS[:-1])} or hold {HOLDS[-1]}",
            hint="write one control statement for each hold"
            if "," in word
            else did_you_mean(word, HOLDS),
        )
    return rest.part(*match.span(1)), word
