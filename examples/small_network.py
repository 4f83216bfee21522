"""Settings of a network that is trained in seconds, for `--quick`: too small to be good."""

from __future__ import annotations

from typing import Any

_STACK = {"width": 8, "states": 8, "depth": 1}
_PERCEPTRON = {"width": 8, "layers": 1}

SMALL: dict[str, Any] = {
    "context": 20,
    "horizon": 20,
    "encoder": _STACK,
    "unit": _STACK,
    "encoder_perceptron": _PERCEPTRON,
    "decoder_perceptron": _PERCEPTRON,
    "samples": 8,
    "correct": False,
    "substeps": 1,
    "training": {"steps": 5, "batch_size": 8, "validations": 1},
}
