"""Section on the physics: known equations and learned unknowns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from physsm.report.contents import Equation, Number, PhysicsPart, UnknownValue
from physsm.report.markup import NOTHING, Column, escape, is_finite, number, share, table


def physics_section(physics: PhysicsPart | None) -> str:
    """Section of the equations, as written and as learned, with a table of the unknowns."""
    if physics is None:
        body = "<p>This model has no physics: it is learned from the data alone.</p>"
    else:
        equations = "\n".join(_equation(equation) for equation in physics["equations"])
        body = (
            f"<div class=equations>\n{equations}\n</div>\n"
            + _unknown_table(physics["unknowns"])
            + f"\n<details>\n<summary>The physics text</summary>\n<pre>{escape(physics['text'])}"
            "</pre>\n</details>"
        )
    return f"<section id=physics>\n<h2>Known and learned physics</h2>\n{body}\n</section>"


def _equation(equation: Equation) -> str:
    # Escaping does not change question marks and names.
    written = re.sub(r"\?\w*", r"<span class=unknown>\g<0></span>", escape(equation["written"]))
    return (
        f"<dl class=equation><dt>as written</dt><dd><code>{written}</code></dd>"
        f"<dt>as learned</dt><dd><code>{escape(equation['learned'])}</code></dd></dl>"
    )


def _unknown_table(unknowns: list[UnknownValue]) -> str:
    if not unknowns:
        return "<p>The physics has no unknowns.</p>"
    columns = [
        Column("Unknown"),
        Column("Kind"),
        Column("Value", is_number=True),
        Column("90 % interval", is_number=True),
        Column("Unit"),
    ]
    has_truth = any(unknown["true"] is not None for unknown in unknowns)
    if has_truth:
        columns += [Column("True value", is_number=True), Column("Relative error", is_number=True)]
    rows = []
    for unknown in unknowns:
        row = [
            f"<code>{escape(unknown['name'])}</code>",
            unknown["kind"],
            number(unknown["value"]),
            _interval(unknown),
            escape(unknown["unit"] or NOTHING),
        ]
        if has_truth:
            row += [number(unknown["true"]), _relative_error(unknown["value"], unknown["true"])]
        rows.append(row)
    return f"{table(columns, rows)}\n<p class=note>{escape(interval_note(unknowns))}</p>"


def _interval(unknown: UnknownValue) -> str:
    lower, upper = number(unknown["lower"]), number(unknown["upper"])
    return NOTHING if lower == upper == NOTHING else f"{lower} to {upper}"


def interval_note(unknowns: Sequence[UnknownValue]) -> str:
    """Note on the meaning of values and intervals of unknowns in a table."""
    kinds = {unknown["kind"] for unknown in unknowns}
    parts = []
    if "constant" in kinds:
        has_error = any(u["kind"] == "constant" and u["lower"] is not None for u in unknowns)
        parts.append(
            "The interval of a constant assumes that the rest of the model is right."
            if has_error
            else "This model gives no standard errors of constants."
        )
    parts.append(_bound_note([u for u in unknowns if u["kind"] == "constant"]))
    if kinds - {"constant"}:
        parts.append(
            "An unknown that varies is given by its mean, in equations too; its interval is where "
            "nine tenths of its values are. In a grey box it does not vary, and its interval is "
            "that of a constant."
        )
    return " ".join(filter(None, parts))


def _bound_note(constants: Sequence[UnknownValue]) -> str:
    """A sentence on constants whose intervals reach a bound of the text; empty without one."""
    bounds = {u["name"]: bound for u in constants if (bound := u.get("bound")) is not None}
    if not bounds:
        return ""
    names, ends = ", ".join(bounds), ", ".join(f"{bound:g}" for bound in bounds.values())
    place = f"its bound {ends}" if len(bounds) == 1 else f"their bounds {ends}"
    return (
        f"{names} may lie on {place}: the intervals of the other constants hold for the values "
        "here, and are too narrow if these are others."
    )


def _relative_error(value: Number, true: Number) -> str:
    if value is None or true is None or true == 0 or not (is_finite(value) and is_finite(true)):
        return NOTHING
    return share(abs(value / true - 1))
