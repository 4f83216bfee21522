"""Strict arrays in all tests: shapes checked at run time, no silent promotion or broadcasting."""

import os
from pathlib import Path

# Set before JAX is imported. Tests compile many programs and run each for milliseconds: without
# optimisation, compiling takes a quarter of the time. Programs that tests start inherit this.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
)

import jax
import jaxtyping
import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# Many tests fit the same small networks: programs are compiled once for all workers.
jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parent.parent / ".xla_cache"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)

install_import_hook("physsm", "beartype.beartype")

settings.register_profile("physsm", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("physsm")


@pytest.fixture
def without_type_checks():
    """As for a user: elsewhere, the tests check all types and shapes before the code does."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
