"""Parser of physics text: declarations and equations, with their positions for messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import sympy as sp

from physsm._errors import PhysicsError, Span, did_you_mean
from physsm.physics.bounds import Bounds, read_bounds, unknown_name
from physsm.physics.declarations import Kind, KindDeclaration, read_hold, read_kind
from physsm.physics.expression import Product, read_products
from physsm.physics.observation import (
    Observation,
    WrittenObservation,
    check_constant,
    written_observations,
)
from physsm.physics.scalar import read_number
from physsm.physics.scope import Scope, is_anonymous
from physsm.physics.source import Source, Statement, statements
from physsm.physics.tokens import FUNCTIONS, check_name
from physsm.physics.unreadable import KEYWORDS, fail_unreadable

MAX_STATES = 200


@dataclass(frozen=True)
class DeclaredUnknown:
    """Unknown of the text: its symbol, first position, and declared kind, bounds and guess."""

    symbol: sp.Symbol
    span: Span
    kind: Kind = "varying"
    bounds: Bounds = field(default_factory=Bounds)
    guess: float | None = None


@dataclass(frozen=True)
class Equation:
    """Equation of one state: its right-hand side as a sum of products."""

    state: sp.Symbol
    products: tuple[Product, ...]
    span: Span


@dataclass(frozen=True)
class Physics:
    """Parsed physics text. `summary` is the comment on its first line.

    `holds` are the controls with a declared hold: "previous", "linear" or "mean".
    """

    source: Source
    summary: str
    equations: tuple[Equation, ...]
    controls: tuple[sp.Symbol, ...]
    unknowns: tuple[DeclaredUnknown, ...]
    constants: dict[str, float]
    observations: tuple[Observation, ...]
    holds: dict[str, str]
    units: dict[str, str]
    state_bounds: dict[str, Bounds]


def parse(source: Source) -> Physics:
    """Parsed physics text. Statements may be in any order; constants must precede their use."""
    source = replace(source, text=source.text.replace("\r\n", "\n").replace("\r", "\n"))
    return _Parser(source).parse()


_EQUATION = re.compile(r"(\w+)\s*'\s*=", re.ASCII)
_MAX_UNIT_CHARACTERS = 40


class _Parser:
    def __init__(self, source: Source):
        self.source = source
        self.scope = Scope()
        self.places: dict[str, Span] = {}
        self.right_sides: list[tuple[sp.Symbol, Statement, Span]] = []
        self.postponed: list[Callable[[], None]] = []
        self.observed: dict[str, WrittenObservation] = {}
        self.holds: dict[str, str] = {}
        self.units: dict[str, str] = {}
        self.kinds: dict[str, tuple[KindDeclaration, Span]] = {}
        self.bounds: dict[str, tuple[Bounds, Span]] = {}

    def parse(self) -> Physics:
        for statement in statements(self.source):
            self.read(statement)
        equations = tuple(
            Equation(state, tuple(read_products(text, self.scope)), span)
            for state, text, span in self.right_sides
        )
        observations = tuple(
            written.read(self.scope, self.places) for written in self.observed.values()
        )
        self.check_unknown_names()
        for check in self.postponed:  # checks that need all names and unknowns
            check()
        if not equations:
            raise PhysicsError(
                "the physics text has no equation",
                path=self.source.path,
                expected="an equation per state, such as x' = -0.5*x",
            )
        self.check_observations(observations)
        first_line = self.source.text.lstrip().split("\n", 1)[0]
        return Physics(
            source=self.source,
            summary=first_line[1:].strip() if first_line.startswith("#") else "",
            equations=equations,
            controls=tuple(self.scope.controls.values()),
            unknowns=self.declared_unknowns(),
            constants={name: float(value) for name, value in self.scope.constants.items()},
            observations=observations,
            holds=self.holds,
            units=self.units,
            state_bounds={
                name: bounds for name, (bounds, _) in self.bounds.items() if name[0] != "?"
            },
        )

    def read(self, statement: Statement) -> None:
        equation = _EQUATION.match(statement.text)
        if equation:
            return self.read_equation(statement, equation)
        word = re.match(r"\w*", statement.text)
        keyword = word.group() if word else ""
        if keyword in KEYWORDS and re.match(r"\s", statement.text[len(keyword) :]):
            rest = statement.part(len(keyword), len(statement.text))
            return getattr(self, f"read_{keyword}")(rest)
        if re.search(r"[<>]", statement.text):
            return self.read_constraint(statement)
        return fail_unreadable(statement, keyword)

    def read_equation(self, statement: Statement, match: re.Match[str]) -> None:
        name = self.new_name(statement.part(*match.span(1)))
        if len(self.scope.states) >= MAX_STATES:
            statement.fail(f"there are more than {MAX_STATES} states")
        self.scope.states[name] = sp.Symbol(name)
        right_side = statement.part(match.end(), len(statement.text))
        if not right_side.text:
            statement.fail(
                f"the equation of {name} has no right-hand side", expected=f"{name}' = ..."
            )
        self.right_sides.append((self.scope.states[name], right_side, statement.whole))

    def read_control(self, rest: Statement) -> None:
        names, hold = read_hold(rest)
        for part in names.split():
            name = self.new_name(part)
            self.scope.controls[name] = sp.Symbol(name)
            if hold:
                self.holds[name] = hold

    def read_constant(self, rest: Statement) -> None:
        for part in rest.split():
            name, value = _assignment(part, "constant g = 9.81")
            # Read immediately, so that a constant can only use constants above it.
            number = read_number(value, Scope(constants=self.scope.constants))
            self.scope.constants[self.new_name(name)] = number

    def read_unit(self, rest: Statement) -> None:
        for part in rest.split(inside_brackets=True):  # a unit may have any characters
            name, unit = _assignment(part, "unit omega = rad/s")
            if (
                not unit.text
                or len(unit.text) > _MAX_UNIT_CHARACTERS
                or not unit.text.isprintable()
            ):
                unit.fail("this is not a unit", expected="a short text, such as m/s")
            if name.text in self.units:
                name.fail(f"{name.text!r} already has a unit")
            self.units[name.text] = unit.text
            self.postponed.append(lambda name=name: self.check_has_unit(name))

    def check_has_unit(self, name: Statement) -> None:
        unknowns = [symbol.name for symbol in self.scope.unknowns if not is_anonymous(symbol)]
        self.check_known(
            name, [*self.scope.known_names(), *unknowns, *self.observed], "name of this text"
        )

    def read_observe(self, rest: Statement) -> None:
        for written in written_observations(rest):
            name = written.name.text
            if name in self.observed:
                written.name.fail(f"{name!r} is observed twice")
            self.observed[name] = written

    def check_observations(self, observations: tuple[Observation, ...]) -> None:
        kinds = {name: declaration.kind for name, (declaration, _) in self.kinds.items()}
        for observation in observations:
            check_constant(self.observed[observation.name].name, observation, kinds)

    def check_state(self, name: Statement) -> None:
        self.check_known(name, list(self.scope.states), "state")

    def check_known(self, name: Statement, known: list[str], what: str) -> None:
        if name.text in known:
            return
        if re.search(r"\w\s+\w", name.text):
            name.fail(f"{name.text!r} is not a {what}", hint="separate names by commas")
        name.fail(
            f"{name.text!r} is not a {what}",
            expected=f"a {what} with an equation: {', '.join(known[:12])}"
            if what == "state"
            else f"one of {', '.join(known[:12])}",
            hint=did_you_mean(name.text, known),
        )

    def read_unknown(self, rest: Statement) -> None:
        declaration = read_kind(rest)
        for part in declaration.names:
            if part.text in self.kinds:
                part.fail(f"{part.text} is declared twice")
            self.kinds[part.text] = (declaration, part.whole)

    def read_state(self, rest: Statement) -> None:
        if not re.search(r"[<>]", rest.text):
            rest.fail("this gives no bound for a state", expected="state x >= 0")
        self.read_constraint(rest, of_states=True)

    def read_constraint(self, statement: Statement, of_states: bool = False) -> None:
        self.postponed.append(lambda: self.read_bound_list(statement.split(), of_states))

    def read_bound_list(self, parts: list[Statement], of_states: bool) -> None:
        """Read `?a >= 0, ?b <= 1`, or `?a, ?b >= 0`, in which the names share a bound."""
        names: list[Statement] = []
        for part, following in zip(parts, [*parts[1:], None], strict=True):
            if not re.search("[<>]", part.text):
                names.append(part)
                continue
            name, bounds, span = read_bounds(part, self.scope, of_states)
            is_first, is_last = part.text.startswith(name), part.text.endswith(name)
            continues = following and re.match(r"\?|[A-Za-z]", following.text)
            if (names and not is_first) or (is_last and continues):
                part.fail(
                    "it is not clear which bounds belong to which name",
                    hint="write ?a, ?b >= 0 for a shared bound, or the bounds of each name alone",
                )
            for shared in names:
                if not of_states:
                    unknown_name(shared, shared.text)
                self.add_bounds(shared, shared.text, bounds, of_states)
            place = replace(part, text=name, line=span.line, column=span.column)
            self.add_bounds(place, name, bounds, of_states)
            names = []
        if names:
            names[0].fail("a bound is missing here", expected="?a, ?b >= 0")

    def add_bounds(self, part: Statement, name: str, bounds: Bounds, of_states: bool) -> None:
        span = part.whole
        if of_states:
            self.check_state(part)
        old, _ = self.bounds.get(name, (Bounds(), span))
        for side in ("lower", "upper"):
            if getattr(old, side) is not None and getattr(bounds, side) is not None:
                part.fail(f"{name} has two {side} bounds", span)
        merged = old.merged(bounds)
        if merged.lower is not None and merged.upper is not None and merged.lower >= merged.upper:
            part.fail(
                f"no value of {name} fits: {merged.lower:g} is not below {merged.upper:g}", span
            )
        self.bounds[name] = (merged, span)

    def new_name(self, statement: Statement) -> str:
        name = check_name(statement)
        if name in self.places:
            line = self.places[name].line
            statement.fail(f"the name {name!r} is already taken in line {line}")
        self.places[name] = statement.whole
        return name

    def check_unknown_names(self) -> None:
        """Refuse ?x beside a state x: the user nearly always meant ?*x."""
        for symbol, span in self.scope.unknowns.items():
            name = symbol.name[1:]
            if name in self.places or name in (*FUNCTIONS, "pi"):
                self.source.fail(
                    f"the unknown ?{name} has the name of something known",
                    span,
                    hint=f"write ?*{name} for an unknown times {name}, or choose another name",
                )

    def declared_unknowns(self) -> tuple[DeclaredUnknown, ...]:
        used = {symbol.name for symbol in self.scope.unknowns if not is_anonymous(symbol)}
        for name, (_, span) in [*self.kinds.items(), *self.bounds.items()]:
            if name[0] == "?" and name not in used:
                self.source.fail(
                    f"no equation uses {name}", span, hint=did_you_mean(name, sorted(used))
                )
        bounds = {name: interval for name, (interval, _) in self.bounds.items()}
        unknowns = []
        for symbol, span in self.scope.unknowns.items():
            name = symbol.name
            declaration = self.kinds[name][0] if name in self.kinds else None
            unknowns.append(
                DeclaredUnknown(
                    symbol=symbol,
                    span=span,
                    kind=declaration.kind if declaration else "varying",
                    bounds=bounds.get(name, Bounds()),
                    guess=declaration.read_guess(self.scope, bounds) if declaration else None,
                )
            )
        return tuple(unknowns)


def _assignment(part: Statement, example: str) -> tuple[Statement, Statement]:
    name, equals, _ = part.text.partition("=")
    if not equals:
        part.fail("'=' is missing here", expected=example)
    return part.part(0, len(name)), part.part(len(name) + 1, len(part.text))
