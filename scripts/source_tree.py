"""Writes the tree of CONTRIBUTING.md from the first line of each module's docstring.

`--check` changes nothing and fails if the page is stale.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
SOURCE = ROOT / "src" / "physsm"
WIDTH = 112  # characters of a line of the tree
# Folders of files that are not Python: they have no docstring to read.
FOLDERS = {
    "configurations": "settings of many models for one experiment, one TOML file each",
    "datasets/sources": "addresses, checksums and licences of public files, one TOML file each",
    "experiments": "tables of `physsm bench`, one TOML file each",
    "physics/systems": "built-in systems, one .phys file each",
}
_MARKED = re.compile(r"(<!-- tree -->\n).*?(<!-- end -->)", re.DOTALL)


def summary(module: Path) -> str:
    """First sentence of a module's docstring; without one, that of its first documented object."""
    tree = ast.parse(module.read_text("utf-8"))
    objects = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    for node in (tree, *objects):
        text = ast.get_docstring(node)
        if text:
            paragraph = " ".join(text.split("\n\n")[0].split())
            return re.split(r"(?<=[^.\d])\.(?:\s|$)", paragraph)[0]
    return ""


def folder_summary(folder: Path) -> str:
    """Docstring of the package, or what `FOLDERS` says."""
    known = FOLDERS.get(folder.relative_to(SOURCE).as_posix())
    package = folder / "__init__.py"
    return known or (summary(package) if package.exists() else "")


def lines(folder: Path, depth: int = 1) -> Iterator[str]:
    """Lines of the tree: modules first, then folders."""
    for module in sorted(folder.glob("*.py")):
        if module.name not in ("__init__.py", "__main__.py"):
            yield _line(module.name, summary(module), depth)
    for inner in sorted(path for path in folder.iterdir() if path.is_dir()):
        if inner.name != "__pycache__" and any(inner.iterdir()):
            yield _line(f"{inner.name}/", folder_summary(inner), depth)
            yield from lines(inner, depth + 1)


def _line(name: str, words: str, depth: int) -> str:
    text = f"{'  ' * depth}{name:<{32 - 2 * depth}} {words}".rstrip()
    return text if len(text) <= WIDTH else text[: WIDTH - 4].rsplit(" ", 1)[0] + " ..."


def with_tree(page: str) -> str:
    """The page with the tree as the source has it now."""
    tree = "\n".join(["src/physsm/", *lines(SOURCE)])
    return _MARKED.sub(lambda match: f"{match[1]}\n```text\n{tree}\n```\n\n{match[2]}", page)


if __name__ == "__main__":
    page = PAGE.read_text("utf-8")
    if "--check" not in sys.argv:
        PAGE.write_text(with_tree(page), "utf-8")
    elif with_tree(page) != page:
        sys.exit("CONTRIBUTING.md is stale: run python -m scripts.source_tree")
