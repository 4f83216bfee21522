"""A fitted model as a folder: `model.json` and `model.safetensors`.

Nothing in them executes when they are read. `model.json` has the format's version, the model's
name, its description, the columns and the calibration; a newer format is refused by name.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from physsm._errors import PhyssmError, RunError
from physsm._registry import find, names_in
from physsm._values import Layout
from physsm.models._base import AbstractFitted
from physsm.models._calibration import LEVELS, Calibration
from physsm.models._stored import Interface, Stored
from physsm.training.checkpoint import (
    make_folder,
    read_arrays,
    read_json,
    write_arrays,
    write_json,
)

FORMAT = 1
_ARRAYS = "model.safetensors"


def save_model(fitted: AbstractFitted, folder: Any, extra: dict[str, Any] | None = None) -> None:
    """Write a fitted model; `extra` are further plain values for `model.json`."""
    from physsm import __version__

    target = Path(folder)
    make_folder(target)
    write_arrays(target / _ARRAYS, fitted.arrays())
    content = {
        "format": FORMAT,
        "model": fitted.name,
        "version": __version__,
        "checksum": _checksum(target / _ARRAYS),
        "interface": asdict(fitted.interface),
        "calibration": fitted.calibration.to_json(),
        "description": fitted.describe(),
        **(extra or {}),
    }
    write_json(target / "model.json", content)


def load(folder: Any) -> AbstractFitted:
    """Read a fitted model from its folder."""
    source = Path(folder)
    if not source.is_dir():
        raise RunError(f"there is no run folder {source}")
    path = source / "model.json"
    if not path.exists():
        is_unfinished = (source / "checkpoints").is_dir()
        raise RunError(
            f"{source} holds a run that was not finished: its fit with --resume continues it"
            if is_unfinished
            else f"{source} holds no model: there is no model.json in it"
        )
    content = read_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("format"), int):
        raise RunError(f"{path} is not a model of physsm")
    if content["format"] > FORMAT:
        raise RunError(
            f"{path} has format {content['format']}, and this version of physsm reads up to "
            f"{FORMAT}: it was written by physsm {content.get('version', 'newer')}; install that"
        )
    name = content.get("model")
    if name not in names_in("models"):
        raise RunError(f"{path} holds a model {name!r} that this version of physsm does not have")
    arrays = read_arrays(source / _ARRAYS)
    if content.get("checksum") != _checksum(source / _ARRAYS):
        raise RunError(f"{source / _ARRAYS} is damaged or does not belong to {path}")
    try:
        interface = _interface(content["interface"])
        calibration = _calibration(content["calibration"], len(interface.channels))
        return find("models", name, "MODEL").Fitted.restore(
            Stored(content["description"], arrays, interface, calibration, str(source))
        )
    except PhyssmError as error:
        raise RunError(f"{path} cannot be used: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError) as error:
        raise RunError(
            f"{path} is damaged or was changed: {type(error).__name__} {error}"
        ) from error


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _interface(content: dict[str, Any]) -> Interface:
    return Interface(
        channels=tuple(str(name) for name in content["channels"]),
        controls=tuple(str(name) for name in content["controls"]),
        layout=Layout(**content["layout"]),
        median_gap=float(content["median_gap"]),
        channel_scale=tuple(float(scale) for scale in content["channel_scale"]),
    )


def _calibration(content: list[list[float]], channels: int) -> Calibration:
    quantiles = np.array(content, float)
    if quantiles.shape != (channels, len(LEVELS)):
        raise ValueError(f"the calibration has the shape {quantiles.shape}")
    if not np.isfinite(quantiles).all() or (np.diff(quantiles, prepend=0) < 0).any():
        raise ValueError("the calibration is not increasing")
    return Calibration(quantiles)
