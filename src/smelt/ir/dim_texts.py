"""Texts of symbolic dims: which are read as arithmetic, and which are names whatever they hold.

onnx_ir parses the text of a dim when a shape rule first computes with it. A file may call a dim
``9**9**9**9``, or nest a thousand parentheses; such a text is one symbol of that name.
"""

from __future__ import annotations

import re

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.onnx_ir_private import expression_of, has_expression, set_expression

LONGEST = 1000
"""Characters of an expression that is computed with; a name may be of any length."""

DEEPEST = 16
"""Parentheses within parentheses."""

_TOKENS = re.compile(
    r"(?:\s|[A-Za-z_][\w.]*(?![\w.])|\d{1,18}(?![\w.])"
    r"|\*\*\s*[1-9](?!\d|\s*\*\*)|\*(?!\*)|[+\-/%(),])+"
)
"""No text can be split in two ways, so a match takes one look at each character."""

_TWO_NAMES = re.compile(r"[\w.]\s+[\w.]")
_POWER = "**"
MOST_POWERS = 4


def is_plain(text: str) -> bool:
    """True for a name, and for short arithmetic of names and integers."""
    if text.isidentifier():
        return True
    if len(text) > LONGEST or text.count(_POWER) > MOST_POWERS or not _TOKENS.fullmatch(text):
        return False
    if _TWO_NAMES.search(text):
        return False
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth > DEEPEST:
            return False
    return True


def is_arithmetic(dim: ir.SymbolicDim) -> bool:
    """True if the text of ``dim`` may be written into that of another: it is no name such as
    ``a,b``, which would read as two."""
    text = dim.value or ""
    if text.isidentifier():
        return True
    if not is_plain(text):
        return False
    try:
        expression = expression_of(dim)
    except (ValueError, TypeError, ArithmeticError):
        return False
    return expression is not None and not expression.is_Symbol


def symbolic_dim(text: str) -> ir.SymbolicDim:
    """The dim that ``text`` means: arithmetic if it is plain, else a symbol of its own."""
    dim = ir.SymbolicDim(text)
    opaque_unless_plain(dim)
    return dim


def keep_opaque(model: ir.Model) -> None:
    """Let every dim of ``model`` whose text is not plain be a symbol of its own."""
    for graph in scope.graphs(model):
        values = [*graph.inputs, *graph.outputs, *graph.initializers.values()]
        for value in (*values, *(value for node in graph for value in node.outputs)):
            for dim in value.shape.dims if value.shape is not None else ():
                if not isinstance(dim, int):
                    opaque_unless_plain(dim)


def opaque_unless_plain(dim: ir.SymbolicDim) -> None:
    """Let ``dim``, of which nothing was read yet, be a symbol of its own if its text is no plain
    arithmetic."""
    text = dim.value
    if text is None or text.isidentifier() or has_expression(dim):
        return
    if not (is_plain(text) and _is_readable(dim)):
        import sympy

        set_expression(dim, sympy.Symbol(text, integer=True, nonnegative=True))


def _is_readable(dim: ir.SymbolicDim) -> bool:
    import sympy

    try:
        expression = expression_of(dim)
        return expression is not None and not expression.has(sympy.nan, sympy.zoo, sympy.oo)
    except (ValueError, TypeError, ArithmeticError):
        return False
