"""JAX's persistent compilation cache: a second process does not compile a program again."""

from __future__ import annotations

import gc
import os
from pathlib import Path


def use_compile_cache(folder: str | Path | None = None) -> Path:
    """Store compiled programs in a folder, by default `physsm/compiled` in the user's cache folder.

    Returns the folder.
    """
    # Call it before JAX is imported: otherwise XLA prints a long warning for each program that it
    # reads back, even on the machine that compiled it.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import jax
    import platformdirs

    chosen = Path(folder) if folder else Path(platformdirs.user_cache_dir("physsm")) / "compiled"
    jax.config.update("jax_compilation_cache_dir", str(chosen))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    return chosen


def prepare_command() -> None:
    """Settings of a process that is all ours, such as a command: the compilation cache, and rare
    garbage collections.
    """
    use_compile_cache()
    # Tracing makes millions of objects, of which hardly any is garbage: with Python's thresholds, a
    # fit spends a twentieth of its time on looking for it.
    gc.set_threshold(100_000, 50, 50)
