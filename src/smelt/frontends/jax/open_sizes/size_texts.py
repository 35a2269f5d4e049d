"""Texts of sizes such as ``S // 2``: read as Python, and written in the form of ``jax.export``."""

from __future__ import annotations

import ast

from smelt.errors import UsageError
from smelt.frontends.jax.open_sizes import multiples


def read_size(text: str) -> ast.expr:
    """Return the syntax tree of the size ``text``.

    Raises UsageError E104 if the text is not an expression, or uses a reserved name.
    """
    try:
        tree = ast.parse(text.strip().replace("^", "**"), mode="eval").body
    except (SyntaxError, ValueError):
        raise _no_size(text.strip()) from None
    names = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    if any(map(multiples.is_quotient, names)):
        raise _no_size(text.strip(), "names that end in __over_ and a number are reserved")
    return tree


def _no_size(text: str, why: str = "") -> UsageError:
    """Return UsageError E104 for ``text``."""
    return UsageError(
        "E104",
        f"{text!r} is not a size",
        why=why,
        fix="use numbers and names, combined by + - * // % ** max() min()",
    )


def spelled(tree: ast.expr) -> str:
    """Return ``tree`` in the spelling of ``jax.export``; raises UsageError E104."""
    try:
        return _spell(tree)
    except ValueError:
        raise _no_size(ast.unparse(tree)) from None


_SPELLED = {
    ast.Add: "{} + {}",
    ast.Sub: "{} - {}",
    ast.Mult: "{}*{}",
    ast.FloorDiv: "floordiv({}, {})",
    ast.Mod: "mod({}, {})",
    ast.Pow: "{}^{}",
}


def _spell(tree: ast.expr) -> str:
    """Return ``tree`` in the spelling of ``jax.export``, or raise ValueError."""
    match tree:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return str(number)
        case ast.Name(id=name):
            return name
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"-1*{_factor(operand)}"
        case ast.BinOp(left=left, op=(ast.Mult() | ast.Pow()) as op, right=right):
            return _SPELLED[type(op)].format(_factor(left), _factor(right))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return f"{_spell(left)} - {_factor(right)}"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SPELLED:
            return _SPELLED[type(op)].format(_spell(left), _spell(right))
        case ast.Call(func=ast.Name(id=("max" | "min" | "floordiv" | "mod") as name), args=args):
            return f"{name}({', '.join(_spell(arg) for arg in args)})"
    raise ValueError(ast.unparse(tree))


def _factor(tree: ast.expr) -> str:
    """Return ``tree`` as a factor; JAX reads no parentheses, so a sum raises ValueError."""
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Add | ast.Sub):
        raise ValueError(ast.unparse(tree))
    return _spell(tree)


class InPython(ast.NodeTransformer):
    """Rewrite ``floordiv(S, 2)`` and ``mod(S, 2)`` as ``S // 2`` and ``S % 2``."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Return the quotient or the remainder that the call computes."""
        args = [self.visit(arg) for arg in node.args]
        match node.func:
            case ast.Name(id="floordiv"):
                return ast.BinOp(args[0], ast.FloorDiv(), args[1])
            case ast.Name(id="mod"):
                return ast.BinOp(args[0], ast.Mod(), args[1])
        return ast.Call(node.func, args, [])
