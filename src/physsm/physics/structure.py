"""Lifted system in symbols: the source of the compiled `System` and of `physsm explain`."""

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
    """Matrix entry `known + sum of factor*unknown`, linear in the unknowns."""

    known: sp.Expr = sp.S.Zero
    factors: dict[sp.Symbol, sp.Expr] = field(default_factory=dict)

    @staticmethod
    def sum(entries: Sequence[Entry]) -> Entry:
        """Sum of entries, added at once: adding SymPy sums one by one takes quadratic time."""
        factors: dict[sp.Symbol, list[sp.Expr]] = {}
        for entry in entries:
            for unknown, factor in entry.factors.items():
                factors.setdefault(unknown, []).append(factor)
        sums = {unknown: sp.Add(*terms) for unknown, terms in factors.items()}
        known = sp.Add(*(entry.known for entry in entries))
        return Entry(known, {unknown: factor for unknown, factor in sums.items() if factor != 0})

    def times(self, scale: sp.Expr) -> Entry:
        """Entry times a known expression."""
        return Entry(self.known * scale, {u: f * scale for u, f in self.factors.items()})

    def __bool__(self) -> bool:
        return self.known != 0 or bool(self.factors)

    def parts(self) -> Iterator[tuple[sp.Symbol | None, sp.Expr]]:
        """Nonzero parts: the known part under None, then each unknown with its factor."""
        if self.known != 0:
            yield None, self.known
        yield from self.factors.items()


Entries = dict[tuple[int, int], Entry]


@dataclass(frozen=True)
class Place:
    """Position of an unknown: `factor` times the unknown is a part of `matrix[row, column]`.

    In an observation, `matrix` is "observe", `row` the observed channel and `column` is "1".
    """

    matrix: str
    row: str
    column: str
    factor: str


@dataclass(frozen=True)
class Unknown:
    """Unknown of the system: one learned function of state, control and history.

    `name` is the written name without `?`, or `row:column` for an anonymous one. `guess` is the
    first guess of its value, if the text has one.
    """

    name: str
    kind: Kind
    bounds: Bounds
    anonymous: bool
    places: tuple[Place, ...]
    guess: float | None = None

    @property
    def constraint(self) -> str:
        """Bounds as text, such as `gamma >= 0`; empty if there are none."""
        return self.bounds.describe(self.name)

    @property
    def label(self) -> str:
        """Symbol in a formula: `?beta`, or a plain `?`."""
        return "?" if self.anonymous else f"?{self.name}"


@dataclass(frozen=True)
class Overlap:
    """Matrix entry with more than one part, which the check of Proposition 1 reports.

    `harmless` means that the parts are identifiable all the same. `message` says why or, if they
    are not, what to write instead.
    """

    matrix: str
    row: str
    column: str
    harmless: bool
    message: str


@dataclass(frozen=True, eq=False)
class Structure:
    """Physics text lifted to `d/dt z_ext = A(z, u) z_ext + B(z, u) u`, entry by entry.

    `extended` holds the states, then the lifted functions, then 1 if a term needs it; `names` are
    their names. `A` and `B` hold the nonzero entries. `observations` are the values of the observed
    channels, as sums that are linear in the unknowns. Two structures are equal if their texts are:
    everything else follows from the text.
    """

    physics: Physics
    extended: tuple[sp.Expr, ...]
    names: tuple[str, ...]
    symbols: tuple[sp.Symbol, ...]
    unknowns: tuple[Unknown, ...]
    A: Entries
    B: Entries
    observations: tuple[Entry, ...]
    invariants: np.ndarray
    lost_invariants: np.ndarray
    overlaps: tuple[Overlap, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def text(self) -> str:
        """Physics text."""
        return self.physics.source.text

    @property
    def states(self) -> tuple[sp.Symbol, ...]:
        """States that have an equation in the text."""
        return tuple(equation.state for equation in self.physics.equations)

    @property
    def state_bounds(self) -> tuple[Bounds, ...]:
        """Bounds of the written states."""
        bounds = self.physics.state_bounds
        return tuple(bounds.get(state.name, Bounds()) for state in self.states)

    @property
    def bounded(self) -> tuple[sp.Symbol, ...]:
        """Written states that have a bound."""
        pairs = zip(self.states, self.state_bounds, strict=True)
        return tuple(state for state, bounds in pairs if bounds)

    @property
    def controls(self) -> tuple[str, ...]:
        """Names of the controls."""
        return tuple(control.name for control in self.physics.controls)

    @property
    def observed(self) -> tuple[str, ...]:
        """Names of the observed channels."""
        return tuple(observation.name for observation in self.physics.observations)

    @property
    def observed_states(self) -> tuple[int, ...]:
        """Index of the state that an observed channel is, or -1 for a function of states."""
        index = {state.name: i for i, state in enumerate(self.states)}
        return tuple(
            index[observation.name] if observation.is_state else -1
            for observation in self.physics.observations
        )

    @property
    def is_unique(self) -> bool:
        """Whether known and unknown parts are identifiable (Proposition 1)."""
        return all(overlap.harmless for overlap in self.overlaps)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Problems of the text: parts that are not identifiable, and lost conservation."""
        ambiguous = [overlap.message for overlap in self.overlaps if not overlap.harmless]
        lost = [
            f"the equations conserve {text}, but the matrices do not: write equal products with "
            "their factors in the same order in every equation"
            for text in self.lost_invariant_texts
        ]
        return (*ambiguous, *lost)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the text that need no change: harmless overlaps, controls in no equation."""
        used = {symbol for part in self._all_parts() for symbol in part.free_symbols}
        used |= {self.physics.controls[j] for _, j in self.B}
        unused = [name.name for name in self.physics.controls if name not in used]
        harmless = [overlap.message for overlap in self.overlaps if overlap.harmless]
        if unused:
            harmless.append(
                f"no equation uses the control {', '.join(unused)}: it only informs the unknowns"
            )
        return tuple(harmless)

    @property
    def invariant_texts(self) -> tuple[str, ...]:
        """Invariants as sums of extended states, such as `S + I + R`."""
        return tuple(self._weighted_sum(weights) for weights in self.invariants)

    @property
    def lost_invariant_texts(self) -> tuple[str, ...]:
        """Quantities that the equations conserve and the matrices do not."""
        return tuple(self._weighted_sum(weights) for weights in self.lost_invariants)

    @property
    def control_terms(self) -> tuple[sp.Expr, ...]:
        """Functions of the controls alone in the equations, such as rpm1**2 in `[rpm1**2]*?`.

        They tell how controls act, even where everything else is unknown. Each is listed once, in
        the order of the text, without its numerical factor; plain controls are left out.
        """
        controls = set(self.physics.controls)
        functions: dict[sp.Expr, None] = {}
        for term in self._written_terms():
            function = term.as_coeff_Mul()[1]
            if function.free_symbols and function.free_symbols <= controls:
                functions.setdefault(function)
        return tuple(function for function in functions if function not in controls)

    def _written_terms(self) -> Iterator[sp.Expr]:
        """Terms of the written equations without their unknowns: factor times column."""
        for entries, columns in ((self.A, self.extended), (self.B, self.physics.controls)):
            for (row, column), entry in entries.items():
                if row < len(self.states):
                    for _, factor in entry.parts():
                        yield from (part * columns[column] for part in sp.Add.make_args(factor))

    def _weighted_sum(self, weights: np.ndarray) -> str:
        terms = []
        for weight, name in zip(weights, self.names, strict=True):
            if weight:
                number = f"{abs(weight):.6g}"
                term = name if number == "1" else f"{number}*{name}"
                terms.append(f"-{term}" if weight < 0 else term)
        return sum_text(terms)

    def _all_parts(self) -> Iterator[sp.Expr]:
        for entries in (self.A.values(), self.B.values(), self.observations):
            for entry in entries:
                yield from (value for _, value in entry.parts())

    def mask(self, matrix: str) -> np.ndarray:
        """Knowledge mask of "A" or "B": True where the entry has an unknown."""
        size = len(self.names)
        mask = np.zeros((size, size if matrix == "A" else len(self.controls)), bool)
        for place, entry in (self.A if matrix == "A" else self.B).items():
            mask[place] = bool(entry.factors)
        return mask


def slope_of(structure: Structure, state: int) -> int:
    """The state whose derivative is this state, as x for v in `x' = v`; -1 if there is none."""
    for i in range(len(structure.states)):
        entries = {place: entry for place, entry in structure.A.items() if place[0] == i}
        has_control = any(place[0] == i for place in structure.B)
        if list(entries) == [(i, state)] and not has_control:
            entry = entries[i, state]
            if entry.known == 1 and not entry.factors:
                return i
    return -1
