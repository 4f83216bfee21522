"""Files of a fitted model: `model.json` and `model.safetensors` in one folder.

Reading them executes nothing. `model.json` has the format's version, the model's name, its
description, its columns and its calibration. Files of another format version are refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from physsm._errors import PhyssmError, RunError
from physsm._json import not_finite
from physsm._registry import names_in
from physsm._values import Layout, Panel
from physsm.data.scale import channel_moments
from physsm.models._intervals import LEVELS, Calibration
from physsm.training.checkpoint import (
    make_folder,
    read_arrays,
    read_json,
    write_arrays,
    write_json,
)

FORMAT = 2
_ARRAYS = "model.safetensors"


@dataclass(frozen=True)
class Interface:
    """Columns of a fitted model, and the layout of its training table.

    `channel_scale` is the standard deviation of each channel there: the scale of scores. `horizon`
    are the time steps that its forecasts were fitted for, where a model has such a number.
    """

    channels: tuple[str, ...]
    controls: tuple[str, ...]
    layout: Layout
    median_gap: float
    channel_scale: tuple[float, ...] = ()
    horizon: int | None = None

    @classmethod
    def of(cls, panel: Panel) -> Interface:
        """The interface of a model that is trained on the panel."""
        return cls(
            channels=panel.channels,
            controls=panel.control_names,
            layout=panel.layout,
            median_gap=panel.median_gap,
            channel_scale=tuple(float(scale) for scale in channel_moments(panel)[1]),
        )


class Stored(NamedTuple):
    """The content of a model's files. `source` is their folder, for errors."""

    description: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]
    interface: Interface
    calibration: Calibration
    source: str

    def array(self, name: str, shape: Sequence[int | None]) -> np.ndarray:
        """An array of 64-bit floats, checked. A None in `shape` is any length but zero."""
        array = self.arrays.get(name)
        if array is None:
            raise RunError(f"{self.source} does not hold this model: the array {name} is missing")
        wrong = array.ndim != len(shape) or any(
            actual != wanted if wanted is not None else not actual
            for actual, wanted in zip(array.shape, shape, strict=False)
        )
        if wrong or array.dtype != np.float64 or not np.isfinite(array).all():
            raise RunError(f"{self.source} does not hold this model: the array {name} was changed")
        return array


@runtime_checkable
class Storable(Protocol):
    """The part of a fitted model that its files need."""

    name: ClassVar[str]
    interface: Interface
    calibration: Calibration

    def describe(self) -> dict[str, Any]:
        """Everything but the arrays, as plain JSON values."""
        ...

    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays by name."""
        ...


def save_model(fitted: Storable, folder: Any, extra: dict[str, Any] | None = None) -> None:
    """Write a fitted model; `extra` are further plain values for `model.json`. A model with numbers
    that are not finite is refused before anything is written.
    """
    target, arrays = Path(folder), fitted.arrays()
    described = {
        "interface": asdict(fitted.interface),
        "calibration": fitted.calibration.to_json(),
        "description": fitted.describe(),
    }
    _check_finite(fitted.name, arrays, described)
    make_folder(target)
    write_arrays(target / _ARRAYS, arrays)
    content = {
        "format": FORMAT,
        "model": fitted.name,
        "version": version("physsm"),
        "checksum": _checksum(target / _ARRAYS),
        **described,
        **(extra or {}),
    }
    write_json(target / "model.json", content)


def _check_finite(model: str, arrays: Mapping[str, np.ndarray], described: Any) -> None:
    """Fail where an array or a number of a model is not finite."""
    numbers = {name: int((~np.isfinite(array)).sum()) for name, array in arrays.items()}
    wrong = [f"{number} in the array {name}" for name, number in numbers.items() if number]
    wrong += [f"that of {place}"] if (place := not_finite(described)) is not None else []
    if wrong:
        raise RunError(
            f"{model} cannot be saved, because some of its numbers are not finite: {wrong[0]}; its "
            "fit diverged: check the scale of the data, set bounds on the unknowns, or lower the "
            "learning rate"
        )


T = TypeVar("T")


def read_model(folder: Any, restore: Callable[[str, Stored], T]) -> T:
    """Read the files of a model. `restore` builds the model from its name and their content; an
    error in it means that the files are damaged.
    """
    source = Path(folder)
    path = _model_json(source)
    content = read_json(path)
    name = _checked_name(content, path)
    arrays = read_arrays(source / _ARRAYS)
    if content.get("checksum") != _checksum(source / _ARRAYS):
        raise RunError(f"{source / _ARRAYS} is damaged or does not belong to {path}")
    try:
        interface = _interface(content["interface"])
        stored = Stored(
            description=content["description"],
            arrays=arrays,
            interface=interface,
            calibration=_calibration(content["calibration"], len(interface.channels)),
            source=str(source),
        )
        return restore(name, stored)
    except PhyssmError as error:
        raise RunError(f"{path} cannot be used: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError) as error:
        raise RunError(
            f"{path} is damaged or was changed: {type(error).__name__} {error}"
        ) from error


def _model_json(source: Path) -> Path:
    """The path of `model.json`, which must exist."""
    if not source.is_dir():
        raise RunError(f"there is no run folder {source}")
    path = source / "model.json"
    if not path.exists():
        is_unfinished = (source / "checkpoints").is_dir()
        raise RunError(
            f"{source} holds an unfinished run: fit it with --resume to continue"
            if is_unfinished
            else f"{source} holds no model: there is no model.json in it"
        )
    return path


def _checked_name(content: Any, path: Path) -> str:
    """The name of the model, if the file has this version's format."""
    if not isinstance(content, dict) or not isinstance(content.get("format"), int):
        raise RunError(f"{path} is not a model of physsm")
    file_format, writer = content["format"], content.get("version", "unknown")
    if file_format < FORMAT:
        raise RunError(
            f"{path} has format {file_format}, written by physsm {writer}, and this version reads "
            f"format {FORMAT}: fit the model again"
        )
    if file_format > FORMAT:
        raise RunError(
            f"{path} has format {file_format}, and this version of physsm reads up to {FORMAT}: "
            f"it was written by physsm {writer}; install that version"
        )
    name = content.get("model")
    if name not in names_in("models"):
        raise RunError(f"{path} holds a model {name!r} that this version of physsm does not have")
    return name


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _interface(content: dict[str, Any]) -> Interface:
    return Interface(
        channels=tuple(str(name) for name in content["channels"]),
        controls=tuple(str(name) for name in content["controls"]),
        layout=Layout(**content["layout"]),
        median_gap=float(content["median_gap"]),
        channel_scale=tuple(float(scale) for scale in content["channel_scale"]),
        horizon=None if (horizon := content.get("horizon")) is None else int(horizon),
    )


def _calibration(content: list[list[float]], channels: int) -> Calibration:
    quantiles = np.array(content, float)
    if quantiles.shape != (channels, len(LEVELS)):
        raise ValueError(f"the calibration has the shape {quantiles.shape}")
    if not np.isfinite(quantiles).all() or (np.diff(quantiles, prepend=0) < 0).any():
        raise ValueError("the calibration is not increasing")
    return Calibration(quantiles)
