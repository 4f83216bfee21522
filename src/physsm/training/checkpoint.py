"""Files of arrays and JSON values: written whole or not at all, and never executed when read."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as to_safetensors

from physsm._errors import RunError
from physsm._json import to_json
from physsm._whole_files import whole_file


@contextlib.contextmanager
def _explaining(path: Path, doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(f"{path} cannot be {doing}: {error.strerror or error}") from error


def make_folder(path: Path) -> None:
    """Make a folder and its parents."""
    with _explaining(path, "made"):
        path.mkdir(parents=True, exist_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace the content of a file, or leave it unchanged if writing fails."""
    with _explaining(path, "written"), whole_file(path) as file:
        file.write(content)


def write_json(path: Path, content: Any) -> None:
    """Write JSON; numbers that are not finite become null."""
    write_atomically(path, to_json(content, indent=1).encode())


def read_bytes(path: Path) -> bytes:
    """The content of a file."""
    with _explaining(path, "read"):
        return path.read_bytes()


def read_json(path: Path) -> Any:
    """The content of a JSON file."""
    content = read_bytes(path)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is not JSON, or is cut short: {error}") from error


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays as safetensors."""
    whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    write_atomically(path, to_safetensors(whole))


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Named arrays of a safetensors file."""
    content = read_bytes(path)
    try:
        return load_safetensors(content)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} is no safetensors file, or is cut short ({error})") from error


def named_arrays(tree: PyTree) -> dict[str, np.ndarray]:
    """The arrays of a tree by the names of their paths, such as `.encoder.W`."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def restore_arrays(tree: PyTree, arrays: Mapping[str, np.ndarray], source: Path) -> PyTree:
    """A tree of the same structure with the arrays of a file, whose names, shapes and types are
    checked. Of the leaves of `tree` only shapes and types are used.
    """
    leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
    names = [jax.tree_util.keystr(path) for path, _ in leaves]
    if missing := [name for name in names if name not in arrays]:
        raise RunError(f"{source} does not hold this model: the array {missing[0]} is missing")
    if extra := sorted(set(arrays) - set(names)):
        raise RunError(f"{source} does not hold this model: it has an array {extra[0]} too many")
    restored = []
    for name, (_, leaf) in zip(names, leaves, strict=True):
        array, shape = arrays[name], np.shape(leaf)
        dtype = leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype
        if array.shape != shape or array.dtype != dtype:
            raise RunError(
                f"{source} does not hold this model: the array {name} is {array.dtype}"
                f"{list(array.shape)} and should be {dtype}{list(shape)}"
            )
        restored.append(jax.numpy.asarray(array))
    return jax.tree_util.tree_unflatten(structure, restored)
