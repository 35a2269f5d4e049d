"""Checks of attributes whose values must be well formed: a permutation, an Einsum equation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import onnx_ir as ir

_TERM = re.compile(r"[A-Za-z]*(\.\.\.[A-Za-z]*)?")


def misfit_of_values(node: ir.Node) -> str:
    """Return the fault of an attribute value of ``node``, or an empty text."""
    check = _CHECKS.get((node.op_type, node.domain))
    return check(node) if check is not None else ""


def _permutation(node: ir.Node) -> str:
    """Return the fault of the ``perm`` of a Transpose, or an empty text."""
    perm = node.attributes.get("perm")
    if perm is None or perm.is_ref() or perm.type != ir.AttributeType.INTS:
        return ""
    axes = list(perm.as_ints())
    if sorted(axes) != list(range(len(axes))):
        return f"perm {axes[:8]} is not a permutation"
    shape = node.inputs[0].shape if node.inputs and node.inputs[0] is not None else None
    if shape is not None and len(shape) != len(axes):
        return f"perm {axes[:8]} is not of the rank {len(shape)} of its input"
    return ""


def _equation(node: ir.Node) -> str:
    """Return the fault of the ``equation`` of an Einsum, or an empty text."""
    equation = node.attributes.get("equation")
    if equation is None or equation.is_ref() or equation.type != ir.AttributeType.STRING:
        return ""
    text = equation.as_string().replace(" ", "")
    left, _, right = text.partition("->")
    terms = left.split(",")
    if not all(_TERM.fullmatch(term) for term in (*terms, right)):
        return f"equation {text[:40]!r} is not an Einsum equation"
    if len(terms) != len(node.inputs):
        return f"equation {text[:40]!r} has {len(terms)} terms for {len(node.inputs)} inputs"
    letters = right.replace(".", "")
    if len(set(letters)) < len(letters):
        return f"equation {text[:40]!r} returns an axis twice"
    unknown = set(letters) - set(left)
    if unknown or ("..." in right and "..." not in left):
        return f"equation {text[:40]!r} returns an axis that no input has"
    return ""


_CHECKS: Mapping[tuple[str, str], Callable[[ir.Node], str]] = {
    ("Transpose", ""): _permutation,
    ("Einsum", ""): _equation,
}
