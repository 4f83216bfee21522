"""JSON text of plain values: the only place that makes it. Numbers that are not finite, for which
JSON has no word, become null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Nested values as JSON takes them; numbers that are not finite become None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def to_json(content: Any, **options: Any) -> str:
    """Strict JSON; `options` are those of `json.dumps`."""
    return json.dumps(plain(content), allow_nan=False, **options)


def not_finite(content: Any, path: str = "") -> str | None:
    """Path of the first number in nested plain values that is not finite; None if there is none."""
    if isinstance(content, Mapping):
        inner = ((f"{path}.{key}" if path else str(key), item) for key, item in content.items())
    elif isinstance(content, list | tuple):
        inner = ((f"{path}[{i}]", item) for i, item in enumerate(content))
    else:
        return path if isinstance(content, float) and not math.isfinite(content) else None
    return next(filter(None, (not_finite(item, name) for name, item in inner)), None)
