"""Cache of traced programs, so that a later process does not trace them again.

JAX's compilation cache saves compiling, but not tracing, which runs in Python and takes seconds.
With `use_compile_cache`, the traced program is stored too, beside the compiled ones, in the format
of `jax.export`, which executes nothing but the computation. The file name is a digest of everything
that the program depends on: the function's identity, the shapes of its arguments, physsm's source,
the versions of the libraries below, and JAX's settings. With or without a cache the same program
runs, bit for bit.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
from jax import export

from physsm._whole_files import whole_file

_LIBRARIES = ("jax", "jaxlib", "equinox", "optax")
_SETTINGS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
    "jax_numpy_dtype_promotion",
)
_CHECK_SIZE = 32
# XLA's options for programs that are compiled for longer than they run.
_QUICK: dict[str, Any] = {
    "xla_backend_optimization_level": 1,
    "xla_cpu_use_fusion_emitters": False,
}
_compiled: dict[Any, Callable[..., Any]] = {}


class Program:
    """A function of arrays, compiled once for each shape of its arguments.

    `identity` must be unique to the function: two functions with the same identity share compiled
    programs. With None, programs are neither stored on disk nor shared between objects. Arguments
    may be any trees; results must be arrays in tuples, lists or named tuples that are registered
    with `serialisable`. A `quick` program is compiled with less optimisation, for a function that
    is called a few hundred times; on a CPU only.
    """

    def __init__(self, function: Callable[..., Any], identity: str | None, *, quick: bool = False):
        self._function, self._quick = function, quick
        self._identity = None if identity is None else _digest(identity, str(quick))
        self._compiled = {} if identity is None else _compiled

    def __call__(self, *arguments: Any) -> Any:
        """Result of the function."""
        leaves, structure = jax.tree.flatten(arguments)
        return self._lookup(leaves, structure)(*leaves)

    def prepare(self, *arguments: Any) -> None:
        """Compile for the shapes of these arguments, without running."""
        self._lookup(*jax.tree.flatten(arguments))

    def is_prepared(self, *arguments: Any) -> bool:
        """Whether it is compiled for the shapes of these arguments."""
        return self._key(*jax.tree.flatten(arguments)) in self._compiled

    def _key(self, leaves: list[Any], structure: Any) -> tuple[Any, ...]:
        shapes = tuple((leaf.shape, leaf.dtype, _is_weak(leaf)) for leaf in leaves)
        return (self._identity, structure, shapes, _settings())

    def _lookup(self, leaves: list[Any], structure: Any) -> Callable[..., Any]:
        key = self._key(leaves, structure)
        run = self._compiled.get(key)
        if run is None:
            run = self._compiled[key] = self._compile(leaves, structure)
        return run

    def _compile(self, leaves: list[Any], structure: Any) -> Callable[..., Any]:
        def from_leaves(*leaves: Any) -> Any:
            return self._function(*structure.unflatten(leaves))

        path = self._cache_path(leaves, structure)
        traced = _read(path)
        if traced is None:
            traced = export.export(jax.jit(from_leaves))(*leaves)
            _write(path, traced)
        is_quick = self._quick and jax.default_backend() == "cpu"
        return jax.jit(traced.call).lower(*leaves).compile(_quick_options() if is_quick else None)

    def _cache_path(self, leaves: list[Any], structure: Any) -> Path | None:
        folder = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
        if folder is None or self._identity is None:
            return None
        shapes = [f"{leaf.dtype}{leaf.shape}{_is_weak(leaf)}" for leaf in leaves]
        digest = _digest(self._identity, str(structure), *shapes, *_environment())
        return Path(folder) / f"physsm-{digest}.program"


def serialisable(*kinds: type) -> None:
    """Register named tuples as results of programs."""
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


def _quick_options() -> dict[str, Any]:
    """Options of a quick program; one that the user has set in XLA_FLAGS stays as it is."""
    flags = os.environ.get("XLA_FLAGS", "")
    return {name: value for name, value in _QUICK.items() if f"--{name}=" not in flags}


def _read(path: Path | None) -> export.Exported | None:
    """Stored program; None if there is none or its checksum is wrong."""
    if path is None:
        return None
    try:
        content = path.read_bytes()
        check, program = content[:_CHECK_SIZE], content[_CHECK_SIZE:]
        return export.deserialize(bytearray(program)) if check == _checksum(program) else None
    except Exception:  # such as a file of another version of JAX
        return None


def _write(path: Path | None, traced: export.Exported) -> None:
    """Store a program, unless it calls foreign code such as LAPACK.

    Tracing initialises foreign code; without it the call would crash the process.
    """
    # The name of an operation stands in the byte code as it is; to print the program takes longer
    # than to compile it.
    if path is not None and b"custom_call" not in traced.mlir_module_serialized:
        with contextlib.suppress(OSError):  # a cache may be full or read-only
            path.parent.mkdir(parents=True, exist_ok=True)
            program = bytes(traced.serialize())
            with whole_file(path) as file:
                file.write(_checksum(program) + program)


def _checksum(program: bytes) -> bytes:
    return hashlib.sha256(program).digest()


def _is_weak(leaf: Any) -> bool:
    """Whether the array has one of JAX's weak types."""
    return getattr(leaf, "weak_type", False)


def _settings() -> tuple[Any, ...]:
    """JAX settings that change what a program computes."""
    return tuple(getattr(jax.config, name) for name in _SETTINGS)


def _environment() -> tuple[str, ...]:
    device = (jax.default_backend(), jax.device_count())
    return (_source(), *(version(name) for name in _LIBRARIES), *map(str, (*device, *_settings())))


@cache
def _source() -> str:
    """Digest of physsm's own source files."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return _digest(*(file.read_text(encoding="utf-8") for file in files))


def _digest(*texts: str) -> str:
    checksum = hashlib.sha256()
    for text in texts:
        checksum.update(len(text).to_bytes(8, "little") + text.encode())
    return checksum.hexdigest()[:32]
