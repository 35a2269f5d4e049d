"""Marks at the beginning of each block of a module, which tell what a test runs.

A block is a run of statements of a function that are run together unless one raises: the mark is
``__reach__[7] = 1``.
"""

from __future__ import annotations

import ast

RECORD = "__reach__"
BRANCHES = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)


class _Marks(ast.NodeTransformer):
    """Puts marks into bodies of functions and counts them; ``lines`` is the first line of each."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, int]] = []
        self.depth = 0

    def mark(self, node: ast.stmt, last: int) -> ast.stmt:
        place = len(self.lines)
        self.lines.append((node.lineno, last))
        (made,) = ast.parse(f"{RECORD}[{place}] = 1").body
        for part in ast.walk(made):
            ast.copy_location(part, node)
        return made

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements with a mark in front, and one behind each branch."""
        made: list[ast.stmt] = []
        last = max((node.end_lineno or 0 for node in body), default=0)
        is_open = False
        for place, node in enumerate(body):
            is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not is_open and not (place == 0 and is_text and len(body) > 1):
                made.append(self.mark(node, last))
                is_open = True
            visited = self.visit(node)
            made.append(visited)
            is_open = is_open and not isinstance(node, BRANCHES)
        return made

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.depth += 1
        node.body = self.block(node.body)
        self.depth -= 1
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not self.depth:
            return super().generic_visit(node)
        for field, value in ast.iter_fields(node):
            is_block = isinstance(value, list) and value and isinstance(value[0], ast.stmt)
            if is_block and not isinstance(node, ast.ClassDef):
                setattr(node, field, self.block(value))
            elif isinstance(value, list):
                for child in value:
                    if isinstance(child, ast.ExceptHandler | ast.match_case | ast.stmt):
                        self.visit(child)
        return node


def marked(tree: ast.Module) -> tuple[ast.Module, int]:
    """The tree with marks, and how many there are."""
    marks = _Marks()
    made = marks.visit(tree)
    return ast.fix_missing_locations(made), len(marks.lines)


def block_of(tree: ast.Module, line: int) -> int | None:
    """The number of the innermost block that ``line`` stands in; None outside of functions."""
    marks = _Marks()
    marks.visit(tree)
    around = [
        (first, -last, place)
        for place, (first, last) in enumerate(marks.lines)
        if first <= line <= last
    ]
    return max(around)[2] if around else None
