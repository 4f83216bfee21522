"""The public surface, and that it costs nothing until it is used."""

import subprocess
import sys

import pytest

import physsm


def test_public_names():
    assert set(physsm.__all__) == {
        "ConfigError",
        "DataError",
        "Forecast",
        "Panel",
        "PhySSM",
        "PhysicsError",
        "PhyssmError",
        "RunError",
        "System",
        "__version__",
        "load",
        "panel_from_arrays",
        "read_table",
        "to_panel",
        "use_compile_cache",
    }
    assert dir(physsm) == sorted(physsm.__all__)
    for name in physsm.__all__:
        assert getattr(physsm, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Sytem'"):
        physsm.Sytem  # noqa: B018


def loaded_by(code: str) -> set[str]:
    program = f"{code}\nimport sys\nprint(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return set(result.stdout.split())


@pytest.mark.parametrize("module", ["physsm", "physsm.cli.main"])
def test_importing_does_not_load_heavy_modules(module):
    assert not loaded_by(f"import {module}") & {"jax", "sympy", "numpy", "equinox", "polars"}


def test_explaining_needs_no_jax():
    modules = loaded_by("import physsm.physics.read, physsm.physics.explain")
    assert "sympy" in modules
    assert not modules & {"jax", "equinox"}
