"""SINDy with known terms fixed (after Brunton, Proctor and Kutz, 2016): finds what is missing.

What the equations say stays. Candidates, the products of states and controls up to a degree and the
functions that the text itself uses, are added to every equation but those that only define a state
as another's derivative. Their coefficients follow from a regression of what happens between rows on
the integrals of the terms, which needs no derivatives of noisy data; terms with a small effect are
dropped, and the rest fitted again, until none is left to drop. How small is chosen by forecasts of
the validation part. The equations found are a text that can be read, and forecast by least squares,
unknowns of the text included.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, NamedTuple, final

import jax
import numpy as np
from jaxtyping import Bool, Float
from pydantic import BaseModel, Field

from physsm._errors import ConfigError, PhysicsError, PhyssmError
from physsm._values import Panel
from physsm.models._base import AbstractFitted
from physsm.models._baseline.first_guess import learn_states
from physsm.models._baseline.forecaster import (
    PhysicsBaseline,
    common_fields,
    squared_errors,
    training_parts,
)
from physsm.models._baseline.state_columns import Columns, find_columns
from physsm.models._baseline.trajectory_fit import linear_in_unknowns
from physsm.models._files import Stored
from physsm.models.least_squares import Config as LeastSquaresConfig
from physsm.models.least_squares import FittedLeastSquares, LeastSquares
from physsm.physics.system import System

_PASSES = 20
_RIDGE = 1e-9
_SAME = 0.9999  # correlation of terms that are taken to be one
_DECIDING = 100  # forecasts that choose a threshold


class Config(LeastSquaresConfig):
    """Settings beside those of `least_squares`, which forecasts with the equations found.

    - `degree`: of products of states and controls.
    - `span`: rows between the two ends of a regression; more of them average noise out.
    - `thresholds`: what may be the least effect of a term, as a share of the root mean square of
      what the known terms leave open; validation decides.
    """

    degree: int = Field(2, ge=1, le=4)
    span: int = Field(4, ge=1)
    thresholds: tuple[Annotated[float, Field(ge=0, lt=1)], ...] = Field(
        (0.05, 0.15, 0.4), min_length=1
    )


class Candidate(NamedTuple):
    """A term that may be missing in the equation of a state."""

    state: int
    term: str


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FittedSINDy(FittedLeastSquares):
    """`system` has the equations found; `terms` are those that were added, as they stand there."""

    name: ClassVar[str] = "sindy"
    terms: tuple[str, ...] = ()

    def describe(self) -> dict[str, Any]:
        """The terms found too."""
        return {**super().describe(), "terms": list(self.terms)}

    def remarks(self) -> Sequence[str]:
        """Which terms were found."""
        if self.terms:
            return (f"Terms that were added to the equations: {'; '.join(self.terms)}.",)
        return (
            "No term that was tried makes the equations forecast better; the setting degree says "
            "which are tried.",
        )

    @classmethod
    def _own_fields(cls, stored: Stored) -> dict[str, Any]:
        terms = tuple(str(term) for term in stored.description["terms"])
        return {**super()._own_fields(stored), "terms": terms}


def candidates(system: System, columns: Columns, degree: int) -> list[Candidate]:
    """Terms for every equation that is more than the definition of a state."""
    factors = (*system.states, *system.controls)
    products = [
        "*".join(chosen)
        for size in range(1, degree + 1)
        for chosen in itertools.combinations_with_replacement(factors, size)
    ]
    functions = [name for name in system.names[len(system.states) :] if name != "1"]
    defined = {source for source in columns.slope_of if source >= 0}
    open_states = [i for i in range(len(system.states)) if i not in defined]
    return [Candidate(i, term) for i in open_states for term in ("1", *products, *functions)]


def with_terms(text: str, system: System, terms: Sequence[tuple[int, str]]) -> str:
    """A physics text with terms added to the equations of states, right after their sign."""
    for state, name in enumerate(system.states):
        added = [term for where, term in terms if where == state]
        if added:
            equation = rf"^([ \t]*{re.escape(name)}\s*'\s*=)[ \t]*(-?)[ \t]*"
            found = re.search(equation, text, re.MULTILINE)
            assert found is not None
            joined = " + ".join(added).replace("+ -", "- ")
            start = f"{found[1]} {joined} {found[2] or '+'} "
            text = text[: found.start()] + start + text[found.end() :]
    return text


class Regression(NamedTuple):
    """What known terms leave open between rows, in scales of the states, and the integrals of the
    unknowns' factors: those of the text first, then the candidates.
    """

    target: Float[np.ndarray, "pairs states"]
    factors: Float[np.ndarray, "pairs states unknowns"]


def regression(
    system: System,
    panel: Panel,
    columns: Columns,
    states: Float[np.ndarray, "series steps states"],
    scale: Float[np.ndarray, " states"],
    span: int,
) -> Regression:
    """Pairs of rows, `span` apart, and the trapezoidal rule between them."""
    series, steps, n = states.shape
    u = panel.controls[..., list(columns.control)]
    with jax.enable_x64(True):
        known, factors = linear_in_unknowns(
            system, states.reshape(-1, n), u.reshape(series * steps, -1)
        )
    both = np.concatenate([np.asarray(known)[..., None], np.asarray(factors)], -1)
    both = both.reshape(series, steps, n, -1)
    gaps = np.diff(panel.times, axis=1)[..., None, None]
    area = np.cumsum(gaps * (both[:, 1:] + both[:, :-1]) / 2, axis=1)
    area = np.concatenate([np.zeros_like(area[:, :1]), area], axis=1)
    last = np.arange(span, steps)
    valid = last[None, :] < panel.lengths[:, None]
    total = (area[:, span:] - area[:, :-span])[valid]
    moved = (states[:, span:] - states[:, :-span])[valid]
    usable = np.isfinite(total).all((1, 2)) & np.isfinite(moved).all(1)
    total, moved = total[usable] / scale[:, None], moved[usable] / scale
    return Regression(moved - total[..., 0], total[..., 1:])


def sparse(
    found: Regression, text_unknowns: int, places: Sequence[int], threshold: float
) -> tuple[Float[np.ndarray, " candidates"], Bool[np.ndarray, " candidates"]]:
    """Coefficients of the candidates, and which are kept, by least squares and dropping in turn.

    The unknowns of the text are fitted beside them and never dropped. A candidate of the equation
    `places[k]` that is the same function as one of these says nothing new.
    """
    pairs, n, unknowns = found.factors.shape
    target, factors = found.target.reshape(-1), found.factors.reshape(pairs * n, unknowns)
    size = np.sqrt((factors**2).mean(0))
    factors = factors / np.where(size > 0, size, 1)
    left_open = np.sqrt((found.target**2).mean(0))
    kept = size > 0
    own = factors[:, :text_unknowns]
    for k in range(text_unknowns, unknowns):
        rows = factors[:, k] != 0
        like = np.abs(own[rows].T @ factors[rows, k])
        both = np.sqrt((own[rows] ** 2).sum(0) * (factors[rows, k] ** 2).sum())
        kept[k] &= not (like > _SAME * np.where(both > 0, both, np.inf)).any()
    effect = np.zeros(unknowns)
    share = left_open[list(places)]
    for _ in range(_PASSES):
        used = np.flatnonzero(kept)
        gram = factors[:, used].T @ factors[:, used]
        gram += _RIDGE * max(len(target), 1) * np.eye(len(used))
        effect[:] = 0
        effect[used] = np.linalg.solve(gram, factors[:, used].T @ target)
        small = np.zeros(unknowns, bool)
        # A candidate is zero in all equations but one of n, and its size a mean over all of them.
        relative = np.abs(effect[text_unknowns:]) * np.sqrt(n) / np.where(share > 0, share, 1)
        small[text_unknowns:] = relative < threshold
        if not (kept & small).any():
            break
        kept &= ~small
    coefficients = effect / np.where(size > 0, size, 1)
    return coefficients[text_unknowns:], kept[text_unknowns:]


@final
class SINDy(PhysicsBaseline):
    """Known terms, and terms that the data add to them."""

    name: ClassVar[str] = "sindy"
    without_system: ClassVar[str] = (
        "sindy adds terms to the equations of a system, and none is given: write a .phys file with "
        "an equation for each state, such as x' = ?*x"
    )
    Config: ClassVar[type[BaseModel]] = Config
    Fitted: ClassVar[type[AbstractFitted]] = FittedSINDy

    @classmethod
    def test_settings(cls) -> dict[str, Any]:
        """One candidate of everything, for tests of the interface."""
        return {**LeastSquares.test_settings(), "thresholds": [0.3], "degree": 2}

    def fit(self, train: Any, validation: Any = None, *, seed: int = 0) -> FittedSINDy:
        """Find terms for each threshold, and keep those that forecast the validation part best."""
        system, config = self.system, self.config
        assert system is not None
        parts = training_parts(train, validation, system, config.horizon, seed)
        columns = find_columns(system, parts.train.channels, parts.train.control_names)
        tried: dict[str, FittedSINDy] = {}
        for terms in _proposals(system, parts.train, columns, config):
            text = with_terms(system.text, system, terms)
            if text not in tried and (found := self._forecaster(text, terms, parts, seed)):
                tried[text] = found

        def error(found: FittedSINDy) -> float:
            held_out = found.check(parts.validation)
            return float(squared_errors(found, held_out, parts.horizon, _DECIDING).mean())

        return min(tried.values(), key=error) if len(tried) > 1 else next(iter(tried.values()))

    def _forecaster(
        self, text: str, terms: Sequence[tuple[int, str]], parts: Any, seed: int
    ) -> FittedSINDy | None:
        """Least squares with the equations; None where these cannot be used, unless nothing was
        added to them.
        """
        own = LeastSquaresConfig.model_validate(
            self.config.model_dump(include=set(LeastSquaresConfig.model_fields))
        )
        own = own.model_copy(update={"horizon": parts.horizon})
        try:
            fitted = LeastSquares(System.parse(text), own).fit(
                parts.train, parts.validation, seed=seed
            )
        except PhyssmError:
            if not terms:
                raise
            return None
        same = {field.name: getattr(fitted, field.name) for field in fields(FittedLeastSquares)}
        named = tuple(f"{fitted.system.states[state]}': {term}" for state, term in terms)
        return FittedSINDy(**same, terms=named)


def free_names(system: System, number: int) -> list[str]:
    """Names for coefficients of candidates, which the text does not use."""
    stem = "sindy"
    while stem in system.text:
        stem += "_"
    return [f"{stem}_{k}" for k in range(number)]


def _proposals(
    system: System, train: Panel, columns: Columns, config: Config
) -> list[list[tuple[int, str]]]:
    """Terms for each threshold, with their coefficients; and none at all."""
    usual = common_fields(train)["usual"]
    learned, states = learn_states(system, train, columns, usual.mean, usual.scale)
    proposed = candidates(system, columns, config.degree)
    names = free_names(system, len(proposed))
    marked = [
        (state, f"?{name}*{term}") for name, (state, term) in zip(names, proposed, strict=True)
    ]
    constants = "".join(f"unknown ?{name} constant\n" for name in names)
    try:
        larger = System.parse(with_terms(system.text, system, marked) + "\n" + constants)
    except PhysicsError as error:
        raise ConfigError(
            f"with degree = {config.degree} sindy has {len(proposed)} candidates for a term, "
            "too many for one system: set a lower degree"
        ) from error
    # With_terms puts candidates before the terms of the text: bring the text's unknowns first.
    order = {unknown.name: k for k, unknown in enumerate(larger.unknowns)}
    new = [order[name] for name in names]
    old = [k for k in range(len(larger.unknowns)) if k not in set(new)]
    found = regression(larger, train, columns, states, learned.scale, config.span)
    found = found._replace(factors=found.factors[..., [*old, *new]])
    places = [candidate.state for candidate in proposed]
    proposals: list[list[tuple[int, str]]] = [[]]
    for threshold in config.thresholds:
        coefficients, kept = sparse(found, len(old), places, threshold)
        proposals.append(
            [
                (proposed[k].state, f"{coefficients[k]:.6g}*{proposed[k].term}")
                for k in np.flatnonzero(kept)
            ]
        )
    return proposals


MODEL = SINDy
