"""Report contents: the types of a run's `evaluation.json`, and its checks."""

from __future__ import annotations

import json
import types
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args, get_origin, get_type_hints, is_typeddict

from physsm._errors import RunError
from physsm.metrics._metric import every_score

FORMAT = 1

Number = float | int | None  # None: not measured, not known or not a number
ScoreRow = dict[str, Any]  # the `model` and its scores by key, as the metrics declare them


class ChannelError(TypedDict):
    """Errors of one channel past the context, in its own unit (None: not known)."""

    mae: Number
    rmse: Number
    unit: str | None


class Equation(TypedDict):
    """Equation as written, with `?` for unknowns, and with their learned values."""

    written: str
    learned: str


class _RequiredUnknownValue(TypedDict):
    """Learned value of one unknown, its interval and, in a simulation, the true value."""

    name: str
    kind: Literal["constant", "per series", "varying"]
    unit: str | None
    value: Number
    lower: Number
    upper: Number
    true: Number


class UnknownValue(_RequiredUnknownValue, total=False):
    """The same, with the bound that the interval reaches. Older files have none."""

    bound: Number


class PhysicsPart(TypedDict):
    """Physics text, and the learned values of its unknowns."""

    text: str
    equations: list[Equation]
    unknowns: list[UnknownValue]


class DataPart(TypedDict):
    """Evaluated table; `median_gap` is in the unit of `time_label`."""

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
    """Values of one unknown over the times of an example."""

    name: str
    unit: str | None
    times: list[Number]
    mean: list[Number]
    lower: list[Number]
    upper: list[Number]
    true: list[Number] | None


class Example(TypedDict):
    """Forecast of one series, observed until `boundary`."""

    series: str
    boundary: Number
    channels: list[ChannelExample]
    unknowns: list[UnknownExample]


class CurvePoint(TypedDict):
    """Losses after one training step; `validation` is None if it was not computed."""

    step: int
    loss: Number
    validation: Number


class TrainingPart(TypedDict):
    """Course of the training; `seconds` does not include `compile_seconds`."""

    curve: list[CurvePoint]
    seconds: Number
    compile_seconds: Number
    skipped_steps: int
    best_step: int


class QuestionPart(TypedDict):
    """Question of a run: context and horizon of its evaluation windows, and a sentence."""

    context: int
    horizon: int
    sentence: str


class _RequiredContents(TypedDict):
    """Contents that every file has."""

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


class Contents(_RequiredContents, total=False):
    """Contents of a page. Older files have no question."""

    question: QuestionPart | None


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
            f"{path}: the file is not valid JSON, perhaps truncated; fit again into another folder "
            "for a report, or score the run on a table with `physsm evaluate`"
        ) from error
    return check_contents(content, str(path))


def check_contents(content: object, where: str = "evaluation") -> Contents:
    """Contents, if the object has their form; `where` names it in the error."""
    version = content.get("format") if isinstance(content, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise RunError(f"{where}: this is not an evaluation that physsm wrote")
    if version > FORMAT:
        raise RunError(
            f"{where}: the file has format {version}, but this version of physsm reads formats up "
            f"to {FORMAT}; update physsm"
        )
    # Scores and lengths can be checked only if the form is right.
    error = (
        _form_error(content, Contents, "")
        or _score_error(content["scores"])  # type: ignore[index]
        or _length_error(content)  # type: ignore[arg-type]
    )
    if error:
        raise RunError(f"{where}: {error}; the file is damaged, run `physsm evaluate` again")
    return content  # type: ignore[return-value]


_NAMES = {str: "a text", int: "a whole number", float: "a number"}


def _form_error(value: object, expected: Any, path: str) -> str | None:
    """Error of a JSON value as text, or None. `path` is its path, such as `data.rows`."""
    if expected is Any:
        return None
    if is_typeddict(expected):
        return _object_error(value, _fields(expected), path, expected.__optional_keys__)
    origin, arguments = get_origin(expected), get_args(expected)
    if origin is types.UnionType or type(None) in arguments:
        return _union_error(value, arguments, path)
    if origin is list:
        if not isinstance(value, list):
            return f"{path} should be a list"
        errors = (_form_error(v, arguments[0], f"{path}[{i}]") for i, v in enumerate(value))
        return next(filter(None, errors), None)
    if origin is dict:
        if not isinstance(value, dict):
            return f"{path} should be an object"
        errors = (_form_error(v, arguments[1], f"{path}.{key}") for key, v in value.items())
        return next(filter(None, errors), None)
    if origin is Literal:
        return None if value in arguments else f"{path} should be one of {', '.join(arguments)}"
    # In JSON, true is not a number, as it would be in Python.
    fits = isinstance(value, expected) and not isinstance(value, bool)
    return None if fits else f"{path} should be {_NAMES[expected]}"


def _object_error(
    value: object, fields: dict[str, Any], path: str, optional: Collection[str] = ()
) -> str | None:
    if not isinstance(value, dict):
        return f"{path} should be an object"
    for key, expected in fields.items():
        inner = f"{path}.{key}" if path else key
        if key not in value and key in optional:
            continue
        if key not in value:
            return f"{inner} is missing"
        if error := _form_error(value[key], expected, inner):
            return error
    return None


def _union_error(value: object, alternatives: tuple[Any, ...], path: str) -> str | None:
    if value is None and type(None) in alternatives:
        return None
    errors = [_form_error(value, a, path) for a in alternatives if a is not type(None)]
    return None if None in errors else errors[0]


@cache
def _fields(form: Any) -> dict[str, Any]:
    return get_type_hints(form)


def _score_error(rows: list[ScoreRow]) -> str | None:
    """Error of the scores as text, or None. A score may be missing from an older file."""
    for i, row in enumerate(rows):
        numbers = {score.key: Number for score in every_score() if score.key in row}
        errors = {"channel_errors": dict[str, ChannelError]} if "channel_errors" in row else {}
        if error := _object_error(row, {"model": str, **numbers, **errors}, f"scores[{i}]"):
            return error
    return None


def _length_error(contents: Contents) -> str | None:
    for i, example in enumerate(contents["examples"]):
        for j, channel in enumerate(example["channels"]):
            steps = len(channel["forecast_times"])
            expected = {
                "context_values": (channel["context_values"], len(channel["context_times"])),
                "target_values": (channel["target_values"], len(channel["target_times"])),
                **{key: (channel[key], steps) for key in ("mean", "lower", "upper")},
                **{f"others.{name}": (row, steps) for name, row in channel["others"].items()},
            }
            if error := _first_wrong_length(expected, f"examples[{i}].channels[{j}]"):
                return error
        for j, unknown in enumerate(example["unknowns"]):
            steps = len(unknown["times"])
            expected = {key: (unknown[key], steps) for key in ("mean", "lower", "upper")}
            if unknown["true"] is not None:
                expected["true"] = (unknown["true"], steps)
            if error := _first_wrong_length(expected, f"examples[{i}].unknowns[{j}]"):
                return error
    return None


def _first_wrong_length(expected: dict[str, tuple[list[Number], int]], path: str) -> str | None:
    for key, (values, length) in expected.items():
        if len(values) != length:
            return f"{path}.{key} has {len(values)} values for {length} times"
    return None
