"""The places of a source file where one small mistake can be made, and the mistake.

Kinds: a comparison negated or its end moved by one, ``and`` for ``or``, a ``not`` dropped, a guard
turned off, operands swapped, ``+`` for ``-``, an integer that is one too large.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
MOVED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult, ast.Pow, ast.LShift, ast.RShift)
"""Operators whose operands do not commute."""

JUMPS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True, order=True)
class Site:
    """One mistake: ``kind`` at the expression that begins at ``line`` and ``column``."""

    path: str
    line: int
    column: int
    end: tuple[int, int]
    kind: str

    @property
    def module(self) -> str:
        """The dotted name of the module that ``path`` holds, below ``src/``."""
        name = self.path.removeprefix("src/").removesuffix(".py").replace("/", ".")
        return name.removesuffix(".__init__")


def sites(source: str, path: str) -> list[Site]:
    """Every site of the source text of ``path``, in the order of the text."""
    return sorted(
        Site(path, node.lineno, node.col_offset, _end(node), kind)
        for node, parent in _expressions(ast.parse(source))
        for kind in mistakes(node, parent)
    )


def mutated(source: str, site: Site) -> ast.Module:
    """The tree of ``source`` with the mistake of ``site``."""
    tree = ast.parse(source)
    for node, parent in _expressions(tree):
        if (node.lineno, node.col_offset, _end(node)) == (site.line, site.column, site.end):
            wrong = mistakes(node, parent).get(site.kind)
            if wrong is not None:
                _replace(parent, node, ast.copy_location(wrong, node))
                return ast.fix_missing_locations(tree)
    raise LookupError(f"{site} is not in the source")


def shown(source: str, site: Site) -> str:
    """The mistake of ``site`` as ``old -> new``."""
    for node, parent in _expressions(ast.parse(source)):
        if (node.lineno, node.col_offset, _end(node)) == (site.line, site.column, site.end):
            wrong = mistakes(node, parent).get(site.kind)
            if wrong is not None:
                return f"{ast.unparse(node)} -> {ast.unparse(wrong)}"
    raise LookupError(f"{site} is not in the source")


def mistakes(node: ast.expr, parent: ast.AST) -> dict[str, ast.expr]:
    """What may be written by mistake for ``node``, by kind."""
    made: dict[str, ast.expr] = {}
    if isinstance(node, ast.Compare):
        for kind, table in (("negated", NEGATED), ("end moved", MOVED)):
            if (other := table.get(type(node.ops[0]))) is not None:
                made[kind] = _with(node, ops=[other(), *node.ops[1:]])
    elif isinstance(node, ast.BoolOp):
        made["and/or"] = _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        made["not dropped"] = copy.deepcopy(node.operand)
    elif isinstance(node, ast.BinOp):
        made |= _of_arithmetic(node)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        made["off by one"] = _with(node, value=node.value + 1)
    if isinstance(parent, ast.If) and node is parent.test:
        made["guard off" if _is_guard(parent) else "branch off"] = ast.Constant(value=False)
    elif isinstance(parent, ast.comprehension) and node in parent.ifs:
        made["filter off"] = ast.Constant(value=True)
    return made


def _of_arithmetic(node: ast.BinOp) -> dict[str, ast.expr]:
    """Operands swapped, and the sign of a sum; texts are not summed."""
    made: dict[str, ast.expr] = {}
    if any(_is_text(operand) for operand in (node.left, node.right)):
        return made
    if isinstance(node.op, ORDERED):
        made["swapped"] = _with(node, left=node.right, right=node.left)
    if isinstance(node.op, ast.Add | ast.Sub):
        made["sign"] = _with(node, op=ast.Sub() if isinstance(node.op, ast.Add) else ast.Add())
    return made


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _is_guard(branch: ast.If) -> bool:
    """Whether the branch leaves the block that it stands in."""
    return isinstance(branch.body[-1], JUMPS) and not branch.orelse


def _with(node: ast.expr, **fields: object) -> ast.expr:
    """A copy of ``node`` with other fields."""
    other = copy.deepcopy(node)
    for name, value in fields.items():
        setattr(other, name, copy.deepcopy(value))
    return other


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0


def _expressions(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Each expression that is evaluated, with its parent; no annotations and no patterns."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "type_params") or isinstance(tree, ast.pattern):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _is_of_types(child) or _is_cache_size(child):
                continue
            if isinstance(child, ast.expr):
                yield child, tree
            yield from _expressions(child)


def _is_of_types(node: ast.AST) -> bool:
    """``if TYPE_CHECKING:`` and assertions, which speak to readers and to mypy."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
        return node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Assert)


def _is_cache_size(node: ast.AST) -> bool:
    """The number of results that ``lru_cache`` keeps, which no test can see."""
    return isinstance(node, ast.keyword) and node.arg == "maxsize"


def _replace(parent: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for field, value in ast.iter_fields(parent):
        if value is old:
            setattr(parent, field, new)
        elif isinstance(value, list) and any(item is old for item in value):
            setattr(parent, field, [new if item is old else item for item in value])
