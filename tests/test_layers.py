"""Import directions: each folder and each file at the root imports downwards only."""

import ast
from pathlib import Path

import physsm

PACKAGE = Path(physsm.__file__).parent

# Each private file at the root and the files at the root that it may import, from the bottom up.
ROOT = {
    "_version": set(),
    "_errors": set(),
    "_whole_files": set(),
    "_compile_cache": set(),
    "_palette": set(),
    "_json": set(),
    "_registry": {"_errors"},
    "_arguments": {"_errors"},
    "_programs": {"_whole_files"},
    "_layout": {"_errors"},
    "_forecast_plot": {"_palette"},
    "_values": {"_errors", "_layout", "_forecast_plot"},
}

# Each folder and the other folders that it may import; all may import the private root files.
FOLDERS = {
    "physics": set(),
    "nn": set(),
    "data": set(),
    "metrics": set(),
    "training": {"nn"},
    "models": {"physics", "nn", "data", "training"},
    "datasets": {"data"},
    "report": {"metrics"},
    "benchmark": {"physics", "nn", "data", "metrics", "training", "models", "datasets"},
    "cli": {"physics", "data", "metrics", "datasets", "training", "models", "benchmark", "report"},
}

# The two doors of the package: nothing below imports them.
DOORS = {"__init__": {"physics", "data", "datasets", "metrics", "models"}, "__main__": {"cli"}}


def imported_parts(file: Path) -> set[str]:
    parts = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        modules = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: write imports in full"
            modules = [node.module or ""]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        names = [module.split(".") for module in modules]
        parts |= {[*name, "__init__"][1] for name in names if name[0] == "physsm"}
    return parts


def test_every_folder_and_root_file_has_a_rule():
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert folders == set(FOLDERS)
    assert {path.stem for path in PACKAGE.glob("*.py")} == set(ROOT) | set(DOORS)


def test_rules_of_the_root_have_no_cycle():
    below = set()
    for name, allowed in ROOT.items():
        assert allowed <= below, name
        below.add(name)


def test_imports_go_downwards():
    for folder, allowed in FOLDERS.items():
        for file in (PACKAGE / folder).rglob("*.py"):
            assert imported_parts(file) <= allowed | set(ROOT) | {folder}, file
    for name, allowed in ROOT.items():
        assert imported_parts(PACKAGE / f"{name}.py") <= allowed, name
    for name, allowed in DOORS.items():
        assert imported_parts(PACKAGE / f"{name}.py") <= allowed | set(ROOT), name


def test_only_the_command_line_prints():
    for file in PACKAGE.rglob("*.py"):
        if file.parent.name != "cli":
            calls = [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Call)]
            names = {node.func.id for node in calls if isinstance(node.func, ast.Name)}
            assert not names & {"print", "eval", "exec", "compile", "__import__"}, file
