"""Parameter groups: a module declares how training treats the arrays in its fields.

The optimiser asks `groups_of` for the group of every parameter and knows no module by name. The
declaration is metadata of the field; it holds for every array below it, whatever the modules in
the field declare themselves:

    class Unit(eqx.Module):
        constants: Float[Array, " unknowns"] = eqx.field(metadata=PHYSICAL)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

Group = Literal["physical", "bypass", "undecayed", "decayed"]

_KEY = "parameter_group"


def _declaration(group: Group) -> Mapping[str, Group]:
    return MappingProxyType({_KEY: group})


# Physical constants and noises: larger steps, no weight decay.
PHYSICAL = _declaration("physical")
# A linear bypass, which starts from a least-squares fit: smaller steps, no weight decay.
BYPASS = _declaration("bypass")
# State-space parameters, norms and biases: no weight decay, which would harm them.
UNDECAYED = _declaration("undecayed")
# All other parameters are `decayed`. A field without a declaration is in this group.
_DEFAULT: Group = "decayed"


def is_parameter(leaf: Any) -> bool:
    """Whether training changes a leaf of a module: a JAX array of real or complex numbers. NumPy
    arrays are data that a module carries, such as its scales.
    """
    return isinstance(leaf, jax.Array) and bool(jnp.issubdtype(leaf.dtype, jnp.inexact))


def groups_of(tree: PyTree) -> PyTree[str]:
    """The group of every leaf, in a tree of the same structure."""
    # One level of the tree. A leaf is its own child, under an empty path.
    children, structure = jax.tree_util.tree_flatten_with_path(
        tree, is_leaf=lambda child: child is not tree
    )
    return structure.unflatten(
        _groups_below(child, _declared(tree, path[0])) if path else _DEFAULT
        for path, child in children
    )


def _groups_below(child: PyTree, declared: Group | None) -> PyTree[str]:
    return groups_of(child) if declared is None else jax.tree.map(lambda _: declared, child)


def _declared(node: Any, key: Any) -> Group | None:
    """The group that a module declares for one of its fields."""
    if not dataclasses.is_dataclass(node):
        return None
    for field in dataclasses.fields(node):
        if field.name == getattr(key, "name", None):
            return field.metadata.get(_KEY)
    return None
