"""Strict arrays in all tests: shapes checked at run time, no silent promotion or broadcasting."""

import gc
import os
import platform
import re
from pathlib import Path

# Set before JAX is imported. Tests compile many programs and run each for milliseconds: without
# optimisation, compiling takes a quarter of the time. LLVM compiles a tenth faster for a processor
# with few features. Programs that tests start inherit this.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1"
    + (" --xla_cpu_max_isa=SSE4_2" if platform.machine() in ("x86_64", "AMD64") else ""),
)
# Each core already has a worker. Threads of BLAS would wait for work, and take a core to do so.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import equinox  # noqa: F401 - what physsm imports is imported before the hook: see below
import jax
import jaxtyping
import matplotlib.figure  # noqa: F401
import optax  # noqa: F401
import pandas  # noqa: F401
import polars  # noqa: F401
import pydantic  # noqa: F401
import pytest
import rich.progress  # noqa: F401
import scipy.optimize  # noqa: F401
import sympy  # noqa: F401
import typer  # noqa: F401
from hypothesis import settings
from jaxtyping import install_import_hook
from xdist.scheduler import LoadScopeScheduling

from tests.examples import examples

# Tracing makes millions of objects, of which hardly any is garbage: look for it less often.
gc.set_threshold(400_000, 50, 50)

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# Many tests fit the same small networks: programs are compiled once for all workers.
jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parent.parent / ".xla_cache"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)

# While the hook imports a module, Python finds no byte code of the libraries that this one imports.
install_import_hook("physsm", "beartype.beartype")

settings.register_profile(
    "physsm", max_examples=examples(25), deadline=None, print_blob=True, derandomize=True
)
settings.load_profile("physsm")

# Rough times of the longest pieces of work on one core with an empty cache. They need not be right:
# long pieces must only start early.
SECONDS = {
    "tests/cli/test_runs.py": 60,
    "tests/test_docs.py": 55,
    "tests/test_examples.py": 35,
    "tests/models/phy_ssm/test_network.py": 30,
    "tests/contracts s5": 30,
    "tests/benchmark/test_pipeline.py": 25,
    "tests/models/encode_decode/test_goku.py": 25,
    "tests/models/phy_ssm/test_linear_bypass.py": 25,
    "tests/models/phy_ssm/test_promises.py": 22,
    "tests/report/test_browser.py": 20,
    "tests/benchmark/test_jobs.py": 20,
    "tests/models/phy_ssm/grey_box/test_fit.py": 20,
    "tests/models/test_least_squares.py": 17,
    "tests/models/encode_decode/test_windows.py": 17,
    "tests/cli/test_commands.py": 16,
    "tests/contracts pi_vae": 16,
    "tests/models/phy_ssm/test_interpolate.py": 15,
    "tests/nn/test_ode.py": 14,
    "tests/contracts contiformer": 13,
    "tests/contracts grey_box": 13,
    "tests/contracts ode2vae": 13,
    "tests/contracts strict": 12,
    "tests/contracts nuscenes": 12,
    "tests/models/phy_ssm/grey_box/test_substeps.py": 11,
    "tests/contracts goku": 11,
    "tests/contracts phy_ssm": 11,
    "tests/datasets/test_nuscenes_labels.py": 11,
    "tests/report/test_page.py": 10,
    "tests/datasets/test_nuscenes_scenarionet.py": 10,
    "tests/models/phy_ssm/grey_box/test_observations.py": 10,
    "tests/models/phy_ssm/test_standard_errors.py": 10,
    "tests/contracts sdvae": 9,
    "tests/datasets/test_nuscenes.py": 9,
    "tests/nn/test_s5.py": 9,
    "tests/models/encode_decode/test_pi_vae.py": 8,
    "tests/datasets/test_memory.py": 8,
}


WITH_TYPE_CHECKS = tuple(
    f"tests/{part}/"
    for part in ("data", "datasets", "metrics", "models", "nn", "physics", "training")
)
MOST_MAPS = 30_000  # Linux allows 65,530, and one piece adds up to 5,000


class PiecesOfWork(LoadScopeScheduling):
    """A process tests one piece after the other: a file, or all contracts of one model."""

    def _split_scope(self, nodeid: str) -> str:
        return piece_of_work(nodeid)


def piece_of_work(nodeid: str) -> str:
    """In a contract, the name comes last: `test_forecasts[50.0-7-s5]` is a test of `s5`."""
    file, _, test = nodeid.partition("::")
    of_a_name = re.search(r"([^[-]+)\]$", test) if "contracts" in file else None
    return f"tests/contracts {of_a_name[1]}" if of_a_name else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return PiecesOfWork(config, log)


def pytest_collection_modifyitems(items):
    """Tests of one piece follow each other, and long pieces come first: a long one at the end would
    keep one process busy while the others are done.
    """
    pieces = dict.fromkeys(piece_of_work(item.nodeid) for item in items)
    in_order = sorted(pieces, key=lambda piece: -SECONDS.get(piece, 0))
    place = {piece: i for i, piece in enumerate(in_order)}
    items.sort(key=lambda item: place[piece_of_work(item.nodeid)])


def pytest_collection_finish():
    """What all modules hold is no garbage; to look through it takes half a second each time."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Types and shapes are checked where parts are tested. Contracts, commands, pages and reports
    run as for a user, who has no such checks: they are slow, and would come before our own.
    """
    jaxtyping.config.update("jaxtyping_disable", not item.nodeid.startswith(WITH_TYPE_CHECKS))


def pytest_runtest_teardown(item, nextitem):
    """Each compiled program is some memory maps; a process that has too many of them crashes. While
    there are few, the next piece need not trace again what all pieces use.
    """
    is_end = nextitem is None or piece_of_work(item.nodeid) != piece_of_work(nextitem.nodeid)
    if is_end and memory_maps() > MOST_MAPS:
        from physsm import _programs  # not before the hook that checks what is imported

        _programs._compiled.clear()
        jax.clear_caches()
        gc.collect()


def memory_maps() -> float:
    """Number of memory maps of this process; infinite where the system does not say."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            return sum(1 for _ in maps)
    except OSError:
        return float("inf")


@pytest.fixture
def without_type_checks():
    """As for a user: elsewhere, the tests check all types and shapes before the code does."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
