"""The order of computations that do not depend on each other."""

from __future__ import annotations

from typing import Any, TypeVar

import jax

Tree = TypeVar("Tree")


def after(values: Tree, others: Any) -> Tree:
    """The same values, but not to be had before the others.

    What is computed again from them for a gradient is then not merged by XLA with the first
    computation, whose results would have to be kept. JAX's barrier for this purpose is taken out by
    XLA on a CPU. A zero made of the others is not: they might hold a NaN, which it would keep, and
    which in a gradient spoils the result anyway.
    """
    first = jax.tree.leaves(others)[0]
    zero = first.reshape(-1)[0] * 0
    return jax.tree.map(lambda value: value + zero.astype(value.dtype), values)
