"""Lifting of equations to a system that is linear in the extended state.

Column rule: a term is a product in written order. Its last factor that can be a column (a state, a
function of states, a control) is the column, and the other factors are the entry; a term without
such a factor has the column 1. Factors in [brackets], numbers, constants and unknowns are never
columns.

Lifting: a function in a column becomes a state. Its row follows by the chain rule from the rows of
the states it depends on, so it never needs a new column: sin and cos of one argument rotate into
each other, exp has its rate on the diagonal, any other f has df/dz times the rows of z.
"""

from __future__ import annotations

from typing import NoReturn

import sympy as sp

from physsm._errors import PhysicsError
from physsm.physics.entry_functions import EntryFunction
from physsm.physics.expression import Product
from physsm.physics.formula import to_text
from physsm.physics.invariants import lost_invariants, matrix_invariants
from physsm.physics.observation import Observation
from physsm.physics.parse import Equation, Physics
from physsm.physics.scalar import is_beyond_double
from physsm.physics.scope import is_anonymous, is_unknown
from physsm.physics.structure import Entries, Entry, Place, Structure, Unknown
from physsm.physics.uniqueness import find_overlaps

MAX_EXTENDED = 250
MAX_LIFTED_TERMS = 10_000
_KEEP_IN_THE_ENTRY = "put functions that need not be columns in [brackets]"

Row = dict[sp.Expr, Entry]


def lift(physics: Physics) -> Structure:
    """Structure of parsed equations: columns, lifted states, matrices."""
    controls = frozenset(physics.controls)
    rows: dict[sp.Expr, Row] = {}
    for equation in physics.equations:
        rows[equation.state] = _written_row(physics, equation, controls)
    states = tuple(rows)
    columns = dict.fromkeys(column for row in rows.values() for column in row)
    functions = [c for c in columns if c not in controls and c not in rows and c != 1]
    _check_size(physics, len(states) + len(functions))
    written_rows = dict(rows)
    _check_terms(physics, functions, written_rows)
    for function in functions:
        if function not in rows:  # a cosine is added with its sine
            rows |= _lifted_rows(function, written_rows)
    if sp.S.One in columns:
        rows[sp.S.One] = {}
    extended = tuple(rows)
    _check_size(physics, len(extended))
    A = _entries(rows, extended)
    B = _entries(rows, physics.controls)
    _check_numbers(physics, extended, A | {(i, -1 - j): e for (i, j), e in B.items()})
    names = tuple(to_text(column) for column in extended)
    symbols = tuple(declared.symbol for declared in physics.unknowns)
    observations = tuple(_observed(physics, observation) for observation in physics.observations)
    unknowns = _place_unknowns(physics, names, A, B, observations)
    by_symbol = dict(zip(symbols, unknowns, strict=True))
    conserved, lost = lost_invariants(len(states), extended, physics.controls, A, B)
    return Structure(
        physics=physics,
        extended=extended,
        names=names,
        symbols=symbols,
        unknowns=unknowns,
        A=A,
        B=B,
        observations=observations,
        invariants=matrix_invariants(extended, A, B),
        lost_invariants=lost,
        overlaps=find_overlaps(physics, names, by_symbol, A, B, observations, conserved),
    )


def _check_size(physics: Physics, size: int) -> None:
    if size > MAX_EXTENDED:
        raise PhysicsError(
            f"lifting {len(physics.equations)} states would make {size} or more; at most "
            f"{MAX_EXTENDED} are allowed",
            path=physics.source.path,
            hint=_KEEP_IN_THE_ENTRY,
        )


def _check_terms(physics: Physics, functions: list[sp.Expr], rows: dict[sp.Expr, Row]) -> None:
    sizes = {
        state: sum(len(list(entry.parts())) for entry in row.values())
        for state, row in rows.items()
    }
    total = sum(sizes[state] for f in functions for state in _states_in(f, rows))
    if total > MAX_LIFTED_TERMS:
        raise PhysicsError(
            f"the rows of {len(functions)} lifted functions would have {total:,} terms; at most "
            f"{MAX_LIFTED_TERMS:,} are allowed",
            path=physics.source.path,
            hint=_KEEP_IN_THE_ENTRY,
        )


def _written_row(physics: Physics, equation: Equation, controls: frozenset[sp.Symbol]) -> Row:
    terms: dict[sp.Expr, list[Entry]] = {}
    for product in equation.products:
        column = _column(physics, product, controls)
        key = sp.S.One if column is None else product[column].value
        terms.setdefault(key, []).append(_entry(physics, product, column))
    return _summed(terms)


def _summed(terms: dict[sp.Expr, list[Entry]]) -> Row:
    sums = {column: Entry.sum(entries) for column, entries in terms.items()}
    return {column: entry for column, entry in sums.items() if entry}


def _column(physics: Physics, product: Product, controls: frozenset[sp.Symbol]) -> int | None:
    """Index of the factor that is the column; None for the column 1."""
    for index in reversed(range(len(product))):
        factor = product[index]
        value = factor.value
        if factor.entry_only or value.is_number or is_unknown(value):
            continue
        if value.has(EntryFunction):
            _fail_no_column(physics, product, index)
        inputs = value.free_symbols & controls
        if inputs and value not in controls:
            names = ", ".join(sorted(str(symbol) for symbol in inputs))
            text = to_text(value)
            physics.source.fail(
                f"{text} would become a state, and its row would need the time derivative of the "
                f"control {names}, which is not known",
                factor.span,
                hint=f"write [{text}] to keep it in the entry, or give {names} an equation",
            )
        return index
    return None


def _fail_no_column(physics: Physics, product: Product, index: int) -> NoReturn:
    """Refuse a function without a chain rule as a column; the hint is the term with brackets."""
    text = to_text(product[index].value)
    physics.source.fail(
        f"{text} cannot be a column: it has no useful chain rule",
        product[index].span,
        expected="a state, a function such as sin, or a control as the last factor of the term",
        hint=f"to keep it in the entry, write {_bracketed_term(product)}",
    )


def _bracketed_term(product: Product) -> str:
    """Term with brackets around the last factors that cannot be columns."""
    texts: list[str] = []
    has_column = False
    for factor in reversed(product):
        value = factor.value
        text = _label(value) if is_unknown(value) else to_text(value)
        if not (value.is_number or is_unknown(value)):
            keep = factor.entry_only or (value.has(EntryFunction) and not has_column)
            has_column = has_column or not keep
            text = f"[{text}]" if keep else text
        texts.append(text)
    words = [text for text in reversed(texts) if text != "1"]
    minus = "-" if words.count("-1") % 2 else ""
    return minus + "*".join(word for word in words if word != "-1")


def _entry(physics: Physics, product: Product, column: int | None) -> Entry:
    others = [factor for index, factor in enumerate(product) if index != column]
    unknowns = [factor for factor in others if is_unknown(factor.value)]
    if len(unknowns) > 1:
        first, second = (_label(factor.value) for factor in unknowns[:2])
        physics.source.fail(
            f"the unknowns {first} and {second} are multiplied: only their product matters",
            unknowns[1].span,
            hint="write one unknown for the product",
        )
    factor = sp.Mul(*(other.value for other in others if not is_unknown(other.value)))
    if unknowns:
        symbol = unknowns[0].value
        assert isinstance(symbol, sp.Symbol)
        return Entry(factors={symbol: factor})
    return Entry(known=factor)


def _label(symbol: sp.Expr) -> str:
    assert isinstance(symbol, sp.Symbol)
    return "?" if is_anonymous(symbol) else symbol.name


def _lifted_rows(function: sp.Expr, rows: dict[sp.Expr, Row]) -> dict[sp.Expr, Row]:
    """Row of a lifted function; rows of both for the pair of sin and cos."""
    if isinstance(function, sp.sin | sp.cos):
        rate = _rate(function.args[0], rows)  # type: ignore[arg-type]
        sine, cosine = sp.sin(function.args[0]), sp.cos(function.args[0])
        return {sine: {cosine: rate}, cosine: {sine: rate.times(sp.S.NegativeOne)}}
    if isinstance(function, sp.exp):
        return {function: {function: _rate(function.args[0], rows)}}  # type: ignore[arg-type]
    terms: dict[sp.Expr, list[Entry]] = {}
    for state in _states_in(function, rows):
        slope = function.diff(state)
        for column, entry in rows[state].items():
            terms.setdefault(column, []).append(entry.times(slope))
    return {function: _summed(terms)}


def _rate(argument: sp.Expr, rows: dict[sp.Expr, Row]) -> Entry:
    """Time derivative of a function of states, as one entry that is linear in the unknowns."""
    terms = []
    for state in _states_in(argument, rows):
        slope = argument.diff(state)
        terms += [entry.times(slope * column) for column, entry in rows[state].items()]
    return Entry.sum(terms)


def _states_in(function: sp.Expr, rows: dict[sp.Expr, Row]) -> list[sp.Expr]:
    return [state for state in rows if state in function.free_symbols]


def _entries(rows: dict[sp.Expr, Row], columns: tuple[sp.Expr, ...]) -> Entries:
    index = {column: j for j, column in enumerate(columns)}
    return {
        (i, index[column]): entry
        for i, row in enumerate(rows.values())
        for column, entry in sorted(row.items(), key=lambda item: index.get(item[0], -1))
        if column in index and entry
    }


def _observed(physics: Physics, observation: Observation) -> Entry:
    """Value of an observed channel, linear in the unknowns; it has no column."""
    if observation.is_state:
        return Entry(sp.Symbol(observation.name))
    entry = Entry.sum([_entry(physics, product, None) for product in observation.products])
    if _has_extreme_number(entry):
        physics.source.fail(
            f"a number in the observation {observation.name} is too large or too finely divided",
            observation.products[0][0].span,
        )
    return entry


def _has_extreme_number(entry: Entry) -> bool:
    return any(
        is_beyond_double(number)
        for _, value in entry.parts()
        for number in value.atoms(sp.Rational)
    )


def _check_numbers(physics: Physics, extended: tuple[sp.Expr, ...], entries: Entries) -> None:
    for (row, _), entry in entries.items():
        if _has_extreme_number(entry):
            physics.source.fail(
                f"a number in the row of {to_text(extended[row])} is too large or too finely "
                "divided",
                physics.equations[min(row, len(physics.equations) - 1)].span,
            )


def _place_unknowns(
    physics: Physics,
    names: tuple[str, ...],
    A: Entries,
    B: Entries,
    observations: tuple[Entry, ...],
) -> tuple[Unknown, ...]:
    places: dict[sp.Symbol, list[Place]] = {u.symbol: [] for u in physics.unknowns}
    columns = {"A": names, "B": tuple(control.name for control in physics.controls)}
    for matrix, entries in (("A", A), ("B", B)):
        for (i, j), entry in entries.items():
            for symbol, factor in entry.factors.items():
                place = Place(matrix, names[i], columns[matrix][j], to_text(factor))
                places[symbol].append(place)
    for observation, entry in zip(physics.observations, observations, strict=True):
        for symbol, factor in entry.factors.items():
            places[symbol].append(Place("observe", observation.name, "1", to_text(factor)))
    uses: dict[str, int] = {}
    unknowns = []
    for declared in physics.unknowns:
        if not places[declared.symbol]:
            physics.source.fail(
                f"the unknown {_label(declared.symbol)} cancels out of the equations", declared.span
            )
        first = places[declared.symbol][0]
        anonymous = is_anonymous(declared.symbol)
        name = f"{first.row}:{first.column}" if anonymous else declared.symbol.name[1:]
        uses[name] = uses.get(name, 0) + 1
        if uses[name] > 1:
            name = f"{name}#{uses[name]}"
        unknowns.append(
            Unknown(
                name=name,
                kind=declared.kind,
                bounds=declared.bounds,
                anonymous=anonymous,
                places=tuple(places[declared.symbol]),
                guess=declared.guess,
            )
        )
    return tuple(unknowns)
