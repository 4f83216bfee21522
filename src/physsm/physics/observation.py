"""Observed channels: `observe theta`, a state, or `observe level = ?gain*h + ?bias`, a function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from physsm._errors import did_you_mean
from physsm.physics.expression import Product, read_products
from physsm.physics.scope import Scope, is_anonymous, is_unknown
from physsm.physics.source import Statement
from physsm.physics.tokens import check_name


@dataclass(frozen=True)
class Observation:
    """Observed channel: a sum of products, or the state of that name if `products` is empty."""

    name: str
    products: tuple[Product, ...] = ()

    @property
    def is_state(self) -> bool:
        """Whether the channel is a state, measured directly."""
        return not self.products


@dataclass(frozen=True)
class WrittenObservation:
    """Observation as written: its name and, for a function, its right-hand side."""

    name: Statement
    right_side: Statement | None

    def read(self, scope: Scope, known: Mapping[str, object]) -> Observation:
        """Observation in symbols; `known` are all names of states, controls and constants."""
        name = self.name.text
        if self.right_side is None:
            self._check_state(scope)
            return Observation(name)
        check_name(self.name)
        if name in known:
            hint = "choose another name"
            if name in scope.states:
                hint += f", or write observe {name} if the state itself is measured"
            self.name.fail(f"the observation {name} has the name of something known", hint=hint)
        return Observation(name, tuple(read_products(self.right_side, scope)))

    def _check_state(self, scope: Scope) -> None:
        text, states = self.name.text, list(scope.states)
        if text in states:
            return
        is_list = len(text.split()) > 1 and text.replace(" ", "").isidentifier()
        if is_list:
            hint = "separate names by commas"
        elif text.isidentifier():
            hint = did_you_mean(text, states) or f"for a function of states write {text} = ..."
        else:
            hint = f"give the function a name: observe y = {text}" if text else None
        self.name.fail(
            f"{text!r} is not a state",
            expected=f"a state with an equation: {', '.join(states[:12])}",
            hint=hint,
        )


def written_observations(rest: Statement) -> list[WrittenObservation]:
    """Observations of one statement, which commas outside of brackets separate."""
    written = []
    for part in rest.split():
        name, equals, _ = part.text.partition("=")
        end = len(name)
        right_side = part.part(end + 1, len(part.text)) if equals else None
        written.append(WrittenObservation(part.part(0, end), right_side))
    return written


def check_constant(
    statement: Statement, observation: Observation, kinds: Mapping[str, str]
) -> None:
    """Raise at the first unknown of an observation that is not declared constant."""
    for product in observation.products:
        for factor in product:
            symbol = factor.value
            if not is_unknown(symbol):
                continue
            assert isinstance(symbol, sp.Symbol)
            if is_anonymous(symbol):
                statement.fail(
                    "an unknown of an observation needs a name",
                    factor.span,
                    hint="write ?gain here, and declare it: unknown ?gain constant",
                )
            if kinds.get(symbol.name) != "constant":
                statement.fail(
                    f"the unknown {symbol.name} of an observation is not constant",
                    factor.span,
                    hint=f"declare it: unknown {symbol.name} constant",
                )
