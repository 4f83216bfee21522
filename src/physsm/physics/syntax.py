"""Python's parser applied to physics text; `?` becomes `_`, so that positions do not change."""

from __future__ import annotations

import ast
import warnings

from physsm._errors import Span
from physsm.physics.source import Statement

TOO_DEEP = "this expression is nested too deeply"


def read_tree(statement: Statement) -> ast.expr:
    """Syntax tree of a statement; no name may start with `_`, which replaces `?`."""
    code = "(" + statement.text.replace("?", "_") + "\n)"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about Python code do not apply
            tree = ast.parse(code, mode="eval").body
    except SyntaxError as error:
        if "integer string conversion" in str(error):
            statement.fail("a number here has too many digits")
        index = _index(statement, error.lineno or 1, (error.offset or 1) - 1)
        statement.fail(
            "this cannot be read",
            statement.span(index, index + 1),
            expected="an expression of names, numbers, ?, + - * / ** and brackets",
        )
    except (RecursionError, MemoryError, ValueError):
        statement.fail(TOO_DEEP, hint="split it up")
    return tree


def node_span(statement: Statement, node: ast.expr) -> Span:
    """Position of a node that `read_tree` returned."""
    start = _index(statement, node.lineno, node.col_offset)
    end = _index(statement, node.end_lineno or node.lineno, node.end_col_offset or 0)
    return statement.span(start, max(end, start + 1))


def _index(statement: Statement, line: int, offset: int) -> int:
    """Index into `statement.text` of a position in the parenthesised code."""
    before = 0
    if line > 1:
        before = sum(len(text) + 1 for text in statement.text.split("\n")[: line - 1])
    return max(0, min(before + offset - (line == 1), len(statement.text)))


def written(statement: Statement, node: ast.expr) -> str:
    """Node as the user wrote it."""
    start = _index(statement, node.lineno, node.col_offset)
    end = _index(statement, node.end_lineno or 1, node.end_col_offset or 0)
    return " ".join(statement.text[start:end].split())


def is_unknown_node(node: ast.AST) -> bool:
    """Whether a node is a `?` or a `?name`."""
    return isinstance(node, ast.Name) and node.id.startswith("_")
