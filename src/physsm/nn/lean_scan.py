"""A loop over time that keeps little for its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax

Carry = TypeVar("Carry")


def lean_scan(
    body: Callable[[Carry, Any], tuple[Carry, Any]], start: Carry, inputs: Any
) -> tuple[Carry, Any]:
    """`jax.lax.scan` whose gradient computes each step again from its carry.

    A step of many small operations would otherwise store all of their results, one by one, which
    takes longer than to compute them twice.
    """
    return jax.lax.scan(jax.checkpoint(body, prevent_cse=False), start, inputs)
