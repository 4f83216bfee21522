"""Programs that a later process need not trace again.

JAX's cache spares compiling but not tracing, which is done in Python and takes seconds. With
`use_compile_cache`, the traced program is kept too, beside the compiled ones, in the form of
`jax.export`, of which nothing executes but the computation. Its name is a digest of all that it
depends on: the function's identity, the shapes of its arguments, physsm's own source, the versions
beneath it, and JAX's settings. With or without a cache the same program runs, to the last bit.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
from jax import export

from physsm._whole_files import whole_file

_BENEATH = ("jax", "jaxlib", "equinox", "optax")
_SETTINGS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
    "jax_numpy_dtype_promotion",
)
_CHECK_SIZE = 32
_compiled: dict[Any, Callable[..., Any]] = {}


class Program:
    """A function of arrays, compiled once for each shape of its arguments.

    `identity` must tell it from every other function: two with one identity are taken to be the
    same. Without one, nothing is kept for other processes or objects. Arguments may be any trees;
    results must be arrays in tuples, lists or named tuples that are registered with `serialisable`.
    """

    def __init__(self, function: Callable[..., Any], identity: str | None):
        self._function = function
        self._identity = None if identity is None else _digest(identity)
        self._compiled = {} if identity is None else _compiled

    def __call__(self, *arguments: Any) -> Any:
        """The function's result."""
        leaves, structure = jax.tree.flatten(arguments)
        return self._find(leaves, structure)(*leaves)

    def prepare(self, *arguments: Any) -> None:
        """Compile for the shapes of these arguments, without running."""
        self._find(*jax.tree.flatten(arguments))

    def _find(self, leaves: list[Any], structure: Any) -> Callable[..., Any]:
        shapes = tuple((leaf.shape, leaf.dtype, _is_weak(leaf)) for leaf in leaves)
        key = (self._identity, structure, shapes, _settings())
        run = self._compiled.get(key)
        if run is None:
            run = self._compiled[key] = self._compile(leaves, structure)
        return run

    def _compile(self, leaves: list[Any], structure: Any) -> Callable[..., Any]:
        def of_leaves(*leaves: Any) -> Any:
            return self._function(*structure.unflatten(leaves))

        kept = self._kept_file(leaves, structure)
        traced = _read(kept)
        if traced is None:
            traced = export.export(jax.jit(of_leaves))(*leaves)
            _write(kept, traced)
        return jax.jit(traced.call).lower(*leaves).compile()

    def _kept_file(self, leaves: list[Any], structure: Any) -> Path | None:
        folder = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
        if folder is None or self._identity is None:
            return None
        shapes = [f"{leaf.dtype}{leaf.shape}{_is_weak(leaf)}" for leaf in leaves]
        digest = _digest(self._identity, str(structure), *shapes, *_surroundings())
        return Path(folder) / f"physsm-{digest}.program"


def serialisable(*kinds: type) -> None:
    """Let named tuples be results of programs."""
    for kind in kinds:
        export.register_namedtuple_serialization(
            kind, serialized_name=f"{kind.__module__}.{kind.__qualname__}"
        )


def release_memory() -> None:
    """Return freed memory to the operating system. With glibc, compiling leaves about one gigabyte,
    which would add to the memory of training. Other C libraries need no such call.
    """
    try:
        library = ctypes.CDLL(None)
    except (TypeError, OSError):  # no such look-up, as on Windows
        return
    trim = getattr(library, "malloc_trim", None)
    if trim is not None:
        trim(0)


def _read(path: Path | None) -> export.Exported | None:
    """A kept program; None if there is none, or if it is not as it was written."""
    if path is None:
        return None
    try:
        content = path.read_bytes()
        check, program = content[:_CHECK_SIZE], content[_CHECK_SIZE:]
        return export.deserialize(bytearray(program)) if check == _checksum(program) else None
    except Exception:  # by another version of JAX, perhaps
        return None


def _write(path: Path | None, traced: export.Exported) -> None:
    """Keep a program, unless it calls foreign code, such as LAPACK: tracing makes that ready, and
    without it the call would crash the process.
    """
    if path is not None and "custom_call" not in traced.mlir_module():
        with contextlib.suppress(OSError):  # a cache may be full or read-only
            path.parent.mkdir(parents=True, exist_ok=True)
            program = bytes(traced.serialize())
            with whole_file(path) as file:
                file.write(_checksum(program) + program)


def _checksum(program: bytes) -> bytes:
    return hashlib.sha256(program).digest()


def _is_weak(leaf: Any) -> bool:
    """Whether JAX would let the type of this array give way."""
    return getattr(leaf, "weak_type", False)


def _settings() -> tuple[Any, ...]:
    """JAX's settings that change what a program computes."""
    return tuple(getattr(jax.config, name) for name in _SETTINGS)


def _surroundings() -> tuple[str, ...]:
    device = (jax.default_backend(), jax.device_count())
    return (_source(), *(version(name) for name in _BENEATH), *map(str, (*device, *_settings())))


@cache
def _source() -> str:
    """A digest of physsm's own files."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return _digest(*(file.read_text(encoding="utf-8") for file in files))


def _digest(*texts: str) -> str:
    found = hashlib.sha256()
    for text in texts:
        found.update(len(text).to_bytes(8, "little") + text.encode())
    return found.hexdigest()[:32]
