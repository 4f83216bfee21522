"""What a report is made of: the contents of a run's `evaluation.json`, checked on the way in."""

from __future__ import annotations

import json
import types
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args, get_origin, get_type_hints, is_typeddict

from physsm._errors import RunError
from physsm.metrics._metric import every_score

FORMAT = 1

Number = float | int | None  # None: not measured, not known or not a number
ScoreRow = dict[str, Any]  # the `model` and its scores by key, as the metrics declare them


class Equation(TypedDict):
    """One equation, with `?` for what is unknown and with the values found for it."""

    written: str
    learned: str


class UnknownValue(TypedDict):
    """What was found for one unknown, with its interval and, in a simulation, the truth."""

    name: str
    kind: Literal["constant", "per series", "varying"]
    unit: str | None
    value: Number
    lower: Number
    upper: Number
    true: Number


class PhysicsPart(TypedDict):
    """The physics text, and what became of its unknowns."""

    text: str
    equations: list[Equation]
    unknowns: list[UnknownValue]


class DataPart(TypedDict):
    """The table that was evaluated; `median_gap` is in the unit of `time_label`."""

    series: int
    rows: int
    channels: list[str]
    controls: list[str]
    missing_share: Number
    median_gap: Number
    time_label: str
    fingerprint: str


class ChannelExample(TypedDict):
    """One channel of an example; `others` holds the means of other models, by name."""

    name: str
    unit: str | None
    context_times: list[Number]
    context_values: list[Number]
    target_times: list[Number]
    target_values: list[Number]
    forecast_times: list[Number]
    mean: list[Number]
    lower: list[Number]
    upper: list[Number]
    others: dict[str, list[Number]]


class UnknownExample(TypedDict):
    """One unknown over the time of an example."""

    name: str
    unit: str | None
    times: list[Number]
    mean: list[Number]
    lower: list[Number]
    upper: list[Number]
    true: list[Number] | None


class Example(TypedDict):
    """The forecast of one series, observed until `boundary`."""

    series: str
    boundary: Number
    channels: list[ChannelExample]
    unknowns: list[UnknownExample]


class CurvePoint(TypedDict):
    """The losses after one training step; `validation` where it was computed."""

    step: int
    loss: Number
    validation: Number


class TrainingPart(TypedDict):
    """How the training went; `seconds` does not count `compile_seconds`."""

    curve: list[CurvePoint]
    seconds: Number
    compile_seconds: Number
    skipped_steps: int
    best_step: int


class Contents(TypedDict):
    """Everything that a page shows."""

    format: int
    title: str
    model: str
    version: str
    created: str
    physics: PhysicsPart | None
    data: DataPart
    scores: list[ScoreRow]
    coverage_wanted: Number
    examples: list[Example]
    training: TrainingPart | None
    settings: dict[str, Any]
    warnings: list[str]


def read_contents(path: Path) -> Contents:
    """Read and check an `evaluation.json`."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunError(f"{path}: there is no such file; `physsm fit` writes it") from error
    except OSError as error:
        raise RunError(f"{path}: the file cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise RunError(
            f"{path}: the file is no valid JSON, perhaps cut short; fit again into another folder "
            "for a report, or score the run on a table with `physsm evaluate`"
        ) from error
    return check_contents(content, str(path))


def check_contents(content: object, where: str = "evaluation") -> Contents:
    """The same object, if it has the form of `Contents`; `where` names it in the error."""
    version = content.get("format") if isinstance(content, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise RunError(f"{where}: this is not an evaluation that physsm wrote")
    if version > FORMAT:
        raise RunError(
            f"{where}: the file has format {version}, but this version of physsm reads formats up "
            f"to {FORMAT}; update physsm"
        )
    # Once the form is right, scores and lengths can be checked.
    fault = (
        _fault_of_form(content, Contents, "")
        or _fault_of_scores(content["scores"])  # type: ignore[index]
        or _fault_of_lengths(content)  # type: ignore[arg-type]
    )
    if fault:
        raise RunError(f"{where}: {fault}; the file is damaged, run `physsm evaluate` again")
    return content  # type: ignore[return-value]


_NAMES = {str: "a text", int: "a whole number", float: "a number"}


def _fault_of_form(value: object, expected: Any, place: str) -> str | None:
    """What is wrong with a JSON value, in words, or None. `place` is its path, as `data.rows`."""
    if expected is Any:
        return None
    if is_typeddict(expected):
        return _fault_of_object(value, _fields(expected), place)
    origin, arguments = get_origin(expected), get_args(expected)
    if origin is types.UnionType or type(None) in arguments:
        return _fault_of_union(value, arguments, place)
    if origin is list:
        if not isinstance(value, list):
            return f"{place} should be a list"
        faults = (_fault_of_form(v, arguments[0], f"{place}[{i}]") for i, v in enumerate(value))
        return next(filter(None, faults), None)
    if origin is dict:
        if not isinstance(value, dict):
            return f"{place} should be an object"
        faults = (_fault_of_form(v, arguments[1], f"{place}.{key}") for key, v in value.items())
        return next(filter(None, faults), None)
    if origin is Literal:
        return None if value in arguments else f"{place} should be one of {', '.join(arguments)}"
    # In JSON, true is no number, as it would be in Python.
    fits = isinstance(value, expected) and not isinstance(value, bool)
    return None if fits else f"{place} should be {_NAMES[expected]}"


def _fault_of_object(value: object, fields: dict[str, Any], place: str) -> str | None:
    if not isinstance(value, dict):
        return f"{place} should be an object"
    for key, expected in fields.items():
        inner = f"{place}.{key}" if place else key
        if key not in value:
            return f"{inner} is missing"
        if fault := _fault_of_form(value[key], expected, inner):
            return fault
    return None


def _fault_of_union(value: object, alternatives: tuple[Any, ...], place: str) -> str | None:
    if value is None and type(None) in alternatives:
        return None
    faults = [_fault_of_form(value, a, place) for a in alternatives if a is not type(None)]
    return None if None in faults else faults[0]


@cache
def _fields(form: Any) -> dict[str, Any]:
    return get_type_hints(form)


def _fault_of_scores(rows: list[ScoreRow]) -> str | None:
    """A score may be missing: the file may be older than its metric."""
    for i, row in enumerate(rows):
        numbers = {score.key: Number for score in every_score() if score.key in row}
        if fault := _fault_of_object(row, {"model": str, **numbers}, f"scores[{i}]"):
            return fault
    return None


def _fault_of_lengths(contents: Contents) -> str | None:
    for i, example in enumerate(contents["examples"]):
        for j, channel in enumerate(example["channels"]):
            steps = len(channel["forecast_times"])
            expected = {
                "context_values": (channel["context_values"], len(channel["context_times"])),
                "target_values": (channel["target_values"], len(channel["target_times"])),
                **{key: (channel[key], steps) for key in ("mean", "lower", "upper")},
                **{f"others.{name}": (row, steps) for name, row in channel["others"].items()},
            }
            if fault := _first_other_length(expected, f"examples[{i}].channels[{j}]"):
                return fault
        for j, unknown in enumerate(example["unknowns"]):
            steps = len(unknown["times"])
            expected = {key: (unknown[key], steps) for key in ("mean", "lower", "upper")}
            if unknown["true"] is not None:
                expected["true"] = (unknown["true"], steps)
            if fault := _first_other_length(expected, f"examples[{i}].unknowns[{j}]"):
                return fault
    return None


def _first_other_length(expected: dict[str, tuple[list[Number], int]], place: str) -> str | None:
    for key, (values, length) in expected.items():
        if len(values) != length:
            return f"{place}.{key} has {len(values)} values for {length} times"
    return None
