"""Texts of symbolic dims: arithmetic to compute with, or opaque names.

onnx_ir parses the text of a dim when a shape rule first computes with it. A file may call a dim
``9**9**9**9``, or nest a thousand parentheses; such a text is treated as one symbol.
"""

from __future__ import annotations

import re

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.onnx_ir_private import expression_of, has_expression, set_expression

LONGEST = 1000
"""Maximum length of an expression; a name may be of any length."""

DEEPEST = 16
"""Maximum nesting of parentheses."""

_TOKENS = re.compile(
    r"(?:\s|[A-Za-z_][\w.]*(?![\w.])|\d{1,18}(?![\w.])"
    r"|\*\*\s*[1-9](?!\d|\s*\*\*)|\*(?!\*)|[+\-/%(),])+"
)
"""Unambiguous: a match looks at each character once."""

_TWO_NAMES = re.compile(r"[\w.]\s+[\w.]")
_POWER = "**"
MOST_POWERS = 4


def is_plain(text: str) -> bool:
    """True for an identifier, and for short arithmetic of names and integers."""
    if text.isidentifier():
        return True
    if len(text) > LONGEST or text.count(_POWER) > MOST_POWERS or not _TOKENS.fullmatch(text):
        return False
    if _TWO_NAMES.search(text):
        return False
    depth = 0
    for character in text:
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        if depth > DEEPEST:
            return False
    return True


def is_arithmetic(dim: ir.SymbolicDim) -> bool:
    """True if the text of ``dim`` may be part of another expression; a name such as ``a,b`` may
    not."""
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
    """Return the dim for ``text``: an expression if the text is plain arithmetic, else one
    symbol."""
    dim = ir.SymbolicDim(text)
    opaque_unless_plain(dim)
    return dim


def keep_opaque(model: ir.Model) -> None:
    """Make every dim of ``model`` whose text is not plain arithmetic one symbol."""
    for graph in scope.graphs(model):
        values = [*graph.inputs, *graph.outputs, *graph.initializers.values()]
        for value in (*values, *(value for node in graph for value in node.outputs)):
            for dim in value.shape or ():
                if not isinstance(dim, int):
                    opaque_unless_plain(dim)


def opaque_unless_plain(dim: ir.SymbolicDim) -> None:
    """Make ``dim``, which must not have been parsed yet, one symbol unless its text is plain
    arithmetic."""
    text = dim.value
    if text is None or text.isidentifier() or has_expression(dim):
        return
    if not (is_plain(text) and _is_readable(dim)):
        import sympy

        set_expression(dim, sympy.Symbol(text, integer=True, nonnegative=True))


def _is_readable(dim: ir.SymbolicDim) -> bool:
    """True if SymPy parses the text of ``dim`` to a finite expression."""
    import sympy

    try:
        expression = expression_of(dim)
        return expression is not None and not expression.has(sympy.nan, sympy.zoo, sympy.oo)
    except (ValueError, TypeError, ArithmeticError):
        return False
