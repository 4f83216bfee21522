"""Recomputation in the backward pass, where storing intermediate results would take longer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax

Carry = TypeVar("Carry")
Tree = TypeVar("Tree")


def lean_scan(
    body: Callable[[Carry, Any], tuple[Carry, Any]], start: Carry, inputs: Any
) -> tuple[Carry, Any]:
    """`jax.lax.scan` whose backward pass recomputes each step from its carry.

    A step of many small operations would otherwise store all of their results one by one, which
    takes longer than computing them twice.
    """
    return jax.lax.scan(jax.checkpoint(body, prevent_cse=False), start, inputs)


def after(values: Tree, others: Any) -> Tree:
    """The same values, but available only after the others have been computed.

    XLA then cannot merge a recomputation from them with the first computation, whose results it
    would have to store. XLA removes JAX's own barrier for this purpose on a CPU. It does not remove
    a zero made from the others: they might hold a NaN, which the zero would pass on, and which
    spoils a gradient anyway.
    """
    first = jax.tree.leaves(others)[0]
    zero = first.reshape(-1)[0] * 0
    return jax.tree.map(lambda value: value + zero.astype(value.dtype), values)
