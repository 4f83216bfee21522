"""JAX's persistent compilation cache: the second start of a program need not compile it again."""

from __future__ import annotations

import os
from pathlib import Path


def use_compile_cache(folder: str | Path | None = None) -> Path:
    """Keep compiled programs in a folder, by default physsm's part of the user's cache folder."""
    # Best called before JAX is imported: else XLA warns of each program that it reads back, at
    # length, and on the very machine that compiled it.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import jax
    import platformdirs

    chosen = Path(folder) if folder else Path(platformdirs.user_cache_dir("physsm")) / "compiled"
    jax.config.update("jax_compilation_cache_dir", str(chosen))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    return chosen
