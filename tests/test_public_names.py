"""The public surface, and that it costs nothing until it is used."""

import subprocess
import sys

import pytest

import physsm
from physsm._registry import find, names_in


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
        "datasets",
        "load",
        "metrics",
        "models",
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


@pytest.mark.parametrize(
    ("package", "attribute"), [("models", "MODEL"), ("datasets", "DATASET"), ("metrics", "METRIC")]
)
def test_each_family_is_listed_and_importable_by_name(package, attribute):
    family = getattr(physsm, package)
    listed = dir(family)
    assert len(listed) == len(names_in(package))
    for name in listed:
        assert getattr(family, name) is not None
    for file in names_in(package):
        exported = find(package, file, attribute)
        name = exported.__name__ if package == "models" else file
        assert name in listed
    with pytest.raises(AttributeError, match="no attribute 'Gokku'"):
        family.Gokku  # noqa: B018


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
