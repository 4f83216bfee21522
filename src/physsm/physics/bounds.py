"""Bounds of unknowns and states: `?a >= 0`, `0 <= ?a <= 1`, `state x >= 0`."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from physsm._errors import Span
from physsm.physics.scalar import read_number
from physsm.physics.scope import Scope
from physsm.physics.source import Statement
from physsm.physics.syntax import node_span, read_tree


@dataclass(frozen=True)
class Bounds:
    """Interval; None means no bound on that side."""

    lower: float | None = None
    upper: float | None = None

    def __bool__(self) -> bool:
        return self.lower is not None or self.upper is not None

    def merged(self, later: Bounds) -> Bounds:
        """Bounds of both; where both bound one side, the one of `later`."""
        lower = self.lower if later.lower is None else later.lower
        upper = self.upper if later.upper is None else later.upper
        return Bounds(lower, upper)

    @property
    def ends(self) -> tuple[float, float]:
        """Lower and upper end as numbers, infinite where there is no bound."""
        lower = -math.inf if self.lower is None else self.lower
        return lower, math.inf if self.upper is None else self.upper

    def describe(self, name: str) -> str:
        """Interval in the physics language, such as `0 <= beta <= 1`; empty if unbounded."""
        if self.lower is not None and self.upper is not None:
            return f"{self.lower:g} <= {name} <= {self.upper:g}"
        if self.lower is not None:
            return f"{name} >= {self.lower:g}"
        return f"{name} <= {self.upper:g}" if self.upper is not None else ""


def limits(bounds: Sequence[Bounds]) -> tuple[list[float], list[float]]:
    """Lower and upper ends of several intervals."""
    return [one.ends[0] for one in bounds], [one.ends[1] for one in bounds]


def unknown_name(place: Statement, text: str) -> str:
    """Name of an unknown; anything else is an error at `place`."""
    if text == "?":
        place.fail(
            "an anonymous ? cannot be declared or bounded",
            hint="give it a name, such as ?rate, here and in its equation",
        )
    if not re.fullmatch(r"\?[A-Za-z]\w*", text, re.ASCII):
        place.fail(f"{text!r} is not the name of an unknown", expected="a name such as ?rate")
    return text


def read_bounds(part: Statement, scope: Scope, of_states: bool) -> tuple[str, Bounds, Span]:
    """Name, bounds and position of `?a >= 0`, `0 <= ?a` or `0 <= ?a <= 1`.

    `<` and `<=` mean the same.
    """
    expected = "state x >= 0 or state 0 <= x <= 1" if of_states else "?a >= 0 or 0 <= ?a <= 1"
    if re.search(r"[<>]\s*[<>]|==|=[<>]|'|(?<![\w?])_|\w\?|\?[?\d_]", part.text):
        part.fail("this comparison cannot be read", expected=expected)
    if re.match(r"[<>]", part.text) or re.search(r"[<>]=?$", part.text):
        part.fail("a bound is missing here", expected=expected)
    tree = read_tree(part)
    if not isinstance(tree, ast.Compare):
        part.fail("a bound is missing here", expected=expected)
    if not all(isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for operator in tree.ops):
        part.fail("this comparison cannot be read", expected=expected)
    sides = [tree.left, *tree.comparators]
    rising = [isinstance(operator, ast.Lt | ast.LtE) for operator in tree.ops]
    subjects = [i for i, side in enumerate(sides) if _is_subject(side, scope, of_states)]
    if len(subjects) != 1 or len(sides) > 3 or (len(sides) == 3 and subjects != [1]):
        part.fail(
            "this is not a bound", expected=expected, hint=_likely_intent(sides, scope, of_states)
        )
    if len(rising) == 2 and rising[0] != rising[1]:
        part.fail("the two comparisons point in different directions", expected=expected)
    subject = subjects[0]
    node = sides[subject]
    assert isinstance(node, ast.Name)
    span = node_span(part, node)
    place = replace(part, text=node.id, line=span.line, column=span.column)
    name = node.id if of_states else unknown_name(place, "?" + node.id[1:])
    limits: dict[str, float] = {}
    for index, side in enumerate(sides):
        if index != subject:
            below = (index < subject) == rising[min(index, len(rising) - 1)]
            limits["lower" if below else "upper"] = _limit(part, side, scope)
    return name, Bounds(**limits), span


def _likely_intent(sides: list[ast.expr], scope: Scope, of_states: bool) -> str | None:
    """Hint for a bound on a name that is not an unknown."""
    for side in sides:
        if isinstance(side, ast.Name) and not of_states:
            if side.id in scope.states:
                return f"for a bound of a state write state {side.id} >= 0"
            if any(symbol.name == f"?{side.id}" for symbol in scope.unknowns):
                return f"did you mean ?{side.id}?"
    return None


def _is_subject(node: ast.expr, scope: Scope, of_states: bool) -> bool:
    if not isinstance(node, ast.Name):
        return False
    return node.id not in scope.constants if of_states else node.id.startswith("_")


def _limit(part: Statement, node: ast.expr, scope: Scope) -> float:
    span = node_span(part, node)
    text = ast.get_source_segment("(" + part.text + "\n)", node) or ""
    limit = Statement(part.source, text, span.line, span.column)
    return float(read_number(limit, Scope(constants=scope.constants)))
