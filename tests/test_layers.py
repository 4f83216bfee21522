"""Which folder may import which: downwards only."""

import ast
from pathlib import Path

import physsm

PACKAGE = Path(physsm.__file__).parent

# Each folder and what it may import besides itself and the private modules of the root.
ALLOWED = {
    "physics": set(),
    "nn": set(),
    "data": set(),
    "metrics": set(),
    "training": {"nn"},
    "models": {"physics", "nn", "data", "training"},
    "datasets": {"data"},
    "report": {"metrics"},
    "benchmark": {"physics", "data", "metrics", "training", "models", "datasets"},
    "cli": {"physics", "data", "metrics", "datasets", "training", "models", "benchmark", "report"},
}
SHARED = {
    "_arguments",
    "_compile_cache",
    "_errors",
    "_programs",
    "_registry",
    "_values",
    "_whole_files",
}


def imported_parts(file: Path) -> set[str]:
    parts = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        modules = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: write imports in full"
            modules = [node.module or ""]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        parts |= {m.split(".")[1] for m in modules if m.startswith("physsm.")}
    return parts


def test_every_folder_has_a_rule():
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert folders == set(ALLOWED)


def test_imports_go_downwards():
    for folder, allowed in ALLOWED.items():
        for file in (PACKAGE / folder).rglob("*.py"):
            assert imported_parts(file) <= allowed | SHARED | {folder}, file


def test_only_the_command_line_prints():
    for file in PACKAGE.rglob("*.py"):
        if file.parent.name != "cli":
            calls = [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Call)]
            names = {node.func.id for node in calls if isinstance(node.func, ast.Name)}
            assert not names & {"print", "eval", "exec", "compile", "__import__"}, file
