"""Strict arrays in all tests: shapes checked at run time, no silent promotion or broadcasting."""

import jax
from hypothesis import settings
from jaxtyping import install_import_hook

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

install_import_hook("physsm", "beartype.beartype")

settings.register_profile("physsm", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("physsm")
