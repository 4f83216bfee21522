"""The lifted system in symbols: what the compiled `System` and `physsm explain` are made from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import sympy as sp

from physsm.physics.bounds import Bounds
from physsm.physics.formula import sum_text
from physsm.physics.parse import Kind, Physics


@dataclass(frozen=True)
class Entry:
    """One matrix entry: `known + sum of factor*unknown`, linear in the unknowns."""

    known: sp.Expr = sp.S.Zero
    factors: dict[sp.Symbol, sp.Expr] = field(default_factory=dict)

    @staticmethod
    def sum(entries: Sequence[Entry]) -> Entry:
        """All at once: adding SymPy sums one by one takes quadratic time."""
        factors: dict[sp.Symbol, list[sp.Expr]] = {}
        for entry in entries:
            for unknown, factor in entry.factors.items():
                factors.setdefault(unknown, []).append(factor)
        sums = {unknown: sp.Add(*terms) for unknown, terms in factors.items()}
        known = sp.Add(*(entry.known for entry in entries))
        return Entry(known, {unknown: factor for unknown, factor in sums.items() if factor != 0})

    def times(self, scale: sp.Expr) -> Entry:
        """The entry times a known expression."""
        return Entry(self.known * scale, {u: f * scale for u, f in self.factors.items()})

    def __bool__(self) -> bool:
        return self.known != 0 or bool(self.factors)

    def parts(self) -> Iterator[tuple[sp.Symbol | None, sp.Expr]]:
        """The known part (under None, if there is one), then each unknown with its factor."""
        if self.known != 0:
            yield None, self.known
        yield from self.factors.items()


Entries = dict[tuple[int, int], Entry]


@dataclass(frozen=True)
class Place:
    """Where an unknown stands: `factor` times it is (part of) `matrix[row, column]`."""

    matrix: str
    row: str
    column: str
    factor: str


@dataclass(frozen=True)
class Unknown:
    """An unknown of the system: one learned function of state, control and history.

    `name` is the written name without `?`, or `row:column` for an anonymous one.
    """

    name: str
    kind: Kind
    bounds: Bounds
    anonymous: bool
    places: tuple[Place, ...]

    @property
    def constraint(self) -> str:
        """The bounds as written, such as `gamma >= 0`; empty if there are none."""
        return self.bounds.describe(self.name)

    @property
    def label(self) -> str:
        """How it stands in a formula: `?beta`, or a plain `?`."""
        return "?" if self.anonymous else f"?{self.name}"


@dataclass(frozen=True)
class Overlap:
    """An entry with more than one part, so that Proposition 1 needs a second look.

    `harmless` says that the parts can be told apart all the same; `message` says why or, if not,
    what to write instead.
    """

    matrix: str
    row: str
    column: str
    harmless: bool
    message: str


@dataclass(frozen=True, eq=False)
class Structure:
    """A physics text lifted to `d/dt z_ext = A(z, u) z_ext + B(z, u) u`, entry by entry.

    `extended` holds the states, then the lifted functions, then 1 if a term needs it; `names` are
    their names. `A` and `B` hold the entries that are not zero. Two structures are equal if their
    texts are: all the rest follows from it.
    """

    physics: Physics
    extended: tuple[sp.Expr, ...]
    names: tuple[str, ...]
    symbols: tuple[sp.Symbol, ...]
    unknowns: tuple[Unknown, ...]
    A: Entries
    B: Entries
    invariants: np.ndarray
    lost_invariants: np.ndarray
    overlaps: tuple[Overlap, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def text(self) -> str:
        """The physics text."""
        return self.physics.source.text

    @property
    def states(self) -> tuple[sp.Symbol, ...]:
        """The written states."""
        return tuple(equation.state for equation in self.physics.equations)

    @property
    def controls(self) -> tuple[str, ...]:
        """The names of the controls."""
        return tuple(control.name for control in self.physics.controls)

    @property
    def is_unique(self) -> bool:
        """Whether known and unknown parts can be told apart (Proposition 1)."""
        return all(overlap.harmless for overlap in self.overlaps)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the author should change: parts that cannot be told apart, conservation lost."""
        ambiguous = [overlap.message for overlap in self.overlaps if not overlap.harmless]
        lost = [
            f"the equations conserve {text}, but the matrices do not: write equal products with "
            "their factors in the same order in every equation"
            for text in self.lost_invariant_texts
        ]
        return (*ambiguous, *lost)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the author may want to know."""
        used = {symbol for part in self._all_parts() for symbol in part.free_symbols}
        used |= {self.physics.controls[j] for _, j in self.B}
        idle = [name.name for name in self.physics.controls if name not in used]
        harmless = [overlap.message for overlap in self.overlaps if overlap.harmless]
        if idle:
            harmless.append(
                f"no equation uses the control {', '.join(idle)}: it only informs the unknowns"
            )
        return tuple(harmless)

    @property
    def invariant_texts(self) -> tuple[str, ...]:
        """The invariants as sums of extended states, such as `S + I + R`."""
        return tuple(self._weighted_sum(weights) for weights in self.invariants)

    @property
    def lost_invariant_texts(self) -> tuple[str, ...]:
        """What the equations conserve and the matrices do not."""
        return tuple(self._weighted_sum(weights) for weights in self.lost_invariants)

    def _weighted_sum(self, weights: np.ndarray) -> str:
        terms = []
        for weight, name in zip(weights, self.names, strict=True):
            if weight:
                number = f"{abs(weight):.6g}"
                term = name if number == "1" else f"{number}*{name}"
                terms.append(f"-{term}" if weight < 0 else term)
        return sum_text(terms)

    def _all_parts(self) -> Iterator[sp.Expr]:
        for entries in (self.A, self.B):
            for entry in entries.values():
                yield from (value for _, value in entry.parts())

    def mask(self, matrix: str) -> np.ndarray:
        """True where an unknown stands: the knowledge mask of "A" or "B"."""
        size = len(self.names)
        mask = np.zeros((size, size if matrix == "A" else len(self.controls)), bool)
        for place, entry in (self.A if matrix == "A" else self.B).items():
            mask[place] = bool(entry.factors)
        return mask
