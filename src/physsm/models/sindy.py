"""SINDy with known terms fixed (after Brunton, Proctor and Kutz, 2016): adds missing terms.

The terms of the given equations are fixed. Candidates are the products of states and controls up to
a degree, and the functions in the given text. They are added to every equation but those that only
define a state as the derivative of another. Their coefficients follow from a sparse regression in
integral form, of the changes of states between time steps on the integrals of the terms, which
needs no derivatives of noisy measurements: terms with a small effect are dropped, and the others
fitted again, until no effect is small. The threshold is chosen by forecasts of the validation part.
The result is a physics text; least squares forecasts with it, unknowns of the text included.
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
from physsm.models._baseline.forecaster import (
    PhysicsBaseline,
    common_fields,
    squared_errors,
    training_parts,
)
from physsm.models._baseline.state_columns import Columns, find_columns, training_statistics
from physsm.models._baseline.trajectory_fit import linear_in_unknowns
from physsm.models._files import Stored
from physsm.models.least_squares import Config as LeastSquaresConfig
from physsm.models.least_squares import FittedLeastSquares, LeastSquares
from physsm.physics.system import System

_PASSES = 20
_RIDGE = 1e-9
_SAME = 0.9999  # correlation of terms that count as the same function
_CHOICE_ORIGINS = 100  # forecasts by which the threshold is chosen


class Config(LeastSquaresConfig):
    """Settings beside those of `least_squares`, which forecasts with the extended equations.

    - `degree`: the highest degree of products of states and controls.
    - `span`: time steps between the two ends of an integral; a longer span averages out more noise.
    - `thresholds`: candidates for the least effect of a term, as a share of the root mean square
      that the known terms do not explain. It is chosen by validation.
    """

    degree: int = Field(2, ge=1, le=4)
    span: int = Field(4, ge=1)
    thresholds: tuple[Annotated[float, Field(ge=0, lt=1)], ...] = Field(
        (0.05, 0.15, 0.4), min_length=1
    )


class Candidate(NamedTuple):
    """A candidate term for the equation of a state."""

    state: int
    term: str


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FittedSINDy(FittedLeastSquares):
    """Least squares with extended equations: `terms` are those that were added, as text."""

    name: ClassVar[str] = "sindy"
    terms: tuple[str, ...] = ()

    def describe(self) -> dict[str, Any]:
        """The choices of least squares, and the added terms."""
        return {**super().describe(), "terms": list(self.terms)}

    def remarks(self) -> Sequence[str]:
        """The added terms."""
        if self.terms:
            return (f"Terms added to the equations: {'; '.join(self.terms)}.",)
        return (
            "No candidate term improves the forecasts; a higher setting degree tries more terms.",
        )

    @classmethod
    def _own_fields(cls, stored: Stored) -> dict[str, Any]:
        terms = tuple(str(term) for term in stored.description["terms"])
        return {**super()._own_fields(stored), "terms": terms}


def candidates(system: System, columns: Columns, degree: int) -> list[Candidate]:
    """Candidate terms for every equation that is not just the definition of a state."""
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
    """A physics text with terms added to the equations of states, right after the equals sign."""
    for state, name in enumerate(system.states):
        added = [term for owner, term in terms if owner == state]
        if added:
            equation = rf"^([ \t]*{re.escape(name)}\s*'\s*=)[ \t]*(-?)[ \t]*"
            head = re.search(equation, text, re.MULTILINE)
            assert head is not None
            joined = " + ".join(added).replace("+ -", "- ")
            start = f"{head[1]} {joined} {head[2] or '+'} "
            text = text[: head.start()] + start + text[head.end() :]
    return text


class Regression(NamedTuple):
    """Changes of states that the known terms do not explain, and integrals of the other terms.

    Both are in scales of the states. Unknowns of the text come first, then the candidates.
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
    """The regression over pairs of time steps, `span` steps apart, by the trapezoidal rule."""
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
    regression: Regression, text_unknowns: int, equations: Sequence[int], threshold: float
) -> tuple[Float[np.ndarray, " candidates"], Bool[np.ndarray, " candidates"]]:
    """Coefficients of the candidates, and which remain, by sequentially thresholded least squares.

    The unknowns of the text are fitted too and never dropped. Candidate k belongs to
    `equations[k]`. A candidate that is the same function as an unknown of the text is dropped.
    """
    pairs, n, unknowns = regression.factors.shape
    target = regression.target.reshape(-1)
    factors = regression.factors.reshape(pairs * n, unknowns)
    size = np.sqrt((factors**2).mean(0))
    factors = factors / np.where(size > 0, size, 1)
    unexplained = np.sqrt((regression.target**2).mean(0))[list(equations)]
    remains = size > 0
    remains[text_unknowns:] &= ~_is_repeated(factors, text_unknowns)
    effect = np.zeros(unknowns)
    for _ in range(_PASSES):
        used = np.flatnonzero(remains)
        gram = factors[:, used].T @ factors[:, used]
        gram += _RIDGE * max(len(target), 1) * np.eye(len(used))
        effect[:] = 0
        effect[used] = np.linalg.solve(gram, factors[:, used].T @ target)
        is_small = np.zeros(unknowns, bool)
        # A candidate is zero in all equations but one of n, and its size a mean over all of them.
        scale = np.where(unexplained > 0, unexplained, 1)
        relative = np.abs(effect[text_unknowns:]) * np.sqrt(n) / scale
        is_small[text_unknowns:] = relative < threshold
        if not (remains & is_small).any():
            break
        remains &= ~is_small
    coefficients = effect / np.where(size > 0, size, 1)
    return coefficients[text_unknowns:], remains[text_unknowns:]


def _is_repeated(
    factors: Float[np.ndarray, "samples unknowns"], text_unknowns: int
) -> Bool[np.ndarray, " candidates"]:
    """Whether a candidate correlates with an unknown of the text where it is not zero."""
    own, new = factors[:, :text_unknowns], factors[:, text_unknowns:]
    is_repeated = np.zeros(new.shape[1], bool)
    for k, column in enumerate(new.T):
        samples = column != 0
        product = np.abs(own[samples].T @ column[samples])
        norms = np.sqrt((own[samples] ** 2).sum(0) * (column[samples] ** 2).sum())
        is_repeated[k] = (product > _SAME * np.where(norms > 0, norms, np.inf)).any()
    return is_repeated


@final
class SINDy(PhysicsBaseline):
    """Known equations with added terms of a sparse regression."""

    name: ClassVar[str] = "sindy"
    without_system: ClassVar[str] = (
        "sindy adds terms to the equations of a system, and none is given: write a .phys file with "
        "an equation for each state, such as x' = ?*x"
    )
    Config: ClassVar[type[BaseModel]] = Config
    Fitted: ClassVar[type[AbstractFitted]] = FittedSINDy

    @classmethod
    def test_settings(cls) -> dict[str, Any]:
        """One candidate of every setting, for tests of the interface."""
        return {**LeastSquares.test_settings(), "thresholds": [0.3], "degree": 2}

    def fit(self, train: Any, validation: Any = None, *, seed: int = 0) -> FittedSINDy:
        """Propose terms for each threshold, and choose those that forecast validation best."""
        system, config = self.system, self.config
        assert system is not None
        parts = training_parts(train, validation, system, config.horizon, seed)
        columns = find_columns(system, parts.train.channels, parts.train.control_names)
        fitted: dict[str, FittedSINDy] = {}
        for terms in _proposals(system, parts.train, columns, config):
            text = with_terms(system.text, system, terms)
            if text not in fitted and (usable := self._fitted(text, terms, parts, seed)):
                fitted[text] = usable

        def error(one: FittedSINDy) -> float:
            panel = one.check(parts.validation)
            return float(squared_errors(one, panel, parts.horizon, _CHOICE_ORIGINS).mean())

        return min(fitted.values(), key=error) if len(fitted) > 1 else next(iter(fitted.values()))

    def _fitted(
        self, text: str, terms: Sequence[tuple[int, str]], parts: Any, seed: int
    ) -> FittedSINDy | None:
        """Least squares with a physics text; None where a text with added terms cannot be used."""
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
    """Names of candidates' coefficients, none of which occurs in the text."""
    stem = "sindy"
    while stem in system.text:
        stem += "_"
    return [f"{stem}_{k}" for k in range(number)]


def _proposals(
    system: System, train: Panel, columns: Columns, config: Config
) -> list[list[tuple[int, str]]]:
    """No terms, and the terms of each threshold with their coefficients."""
    scales = common_fields(train)["channel_scales"]
    statistics, states = training_statistics(system, train, columns, scales.mean, scales.scale)
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
            f"with degree = {config.degree} sindy has {len(proposed)} candidates for terms, "
            "too many for one system: set a lower degree"
        ) from error
    # `with_terms` puts candidates before the terms of the text: bring the text's unknowns first.
    order = {unknown.name: k for k, unknown in enumerate(larger.unknowns)}
    new = [order[name] for name in names]
    old = [k for k in range(len(larger.unknowns)) if k not in set(new)]
    pairs = regression(larger, train, columns, states, statistics.scale, config.span)
    pairs = pairs._replace(factors=pairs.factors[..., [*old, *new]])
    equations = [candidate.state for candidate in proposed]
    proposals: list[list[tuple[int, str]]] = [[]]
    for threshold in config.thresholds:
        coefficients, remains = sparse(pairs, len(old), equations, threshold)
        proposals.append(
            [
                (proposed[k].state, f"{coefficients[k]:.6g}*{proposed[k].term}")
                for k in np.flatnonzero(remains)
            ]
        )
    return proposals


MODEL = SINDy
