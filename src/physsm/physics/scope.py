"""Names that expressions may use, and the unknowns that they have used."""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy as sp

from physsm._errors import Span


@dataclass
class Scope:
    """States, controls and constants by name; unknowns with the position of their first use.

    The symbol of a named unknown is `?name`; anonymous ones are numbered as written: `?1`, `?2`.
    """

    states: dict[str, sp.Symbol] = field(default_factory=dict)
    controls: dict[str, sp.Symbol] = field(default_factory=dict)
    constants: dict[str, sp.Rational] = field(default_factory=dict)
    unknowns: dict[sp.Symbol, Span] = field(default_factory=dict)
    anonymous_count: int = 0

    def use_unknown(self, name: str, span: Span) -> sp.Symbol:
        """Symbol of a named unknown or, if the name is empty, of a new anonymous one."""
        if not name:
            self.anonymous_count += 1
        symbol = sp.Symbol(f"?{name or self.anonymous_count}")
        self.unknowns.setdefault(symbol, span)
        return symbol

    def known_names(self) -> list[str]:
        """Names of states, controls and constants."""
        return [*self.states, *self.controls, *self.constants]


def is_unknown(symbol: sp.Basic) -> bool:
    """Whether a SymPy object is the symbol of an unknown."""
    return isinstance(symbol, sp.Symbol) and symbol.name.startswith("?")


def is_anonymous(symbol: sp.Symbol) -> bool:
    """Whether an unknown was written as a plain `?`."""
    return symbol.name[1:].isdigit()
