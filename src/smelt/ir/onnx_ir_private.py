"""What smelt reads of onnx_ir beyond its public names; nothing else of smelt does.

``docs/moving-to-a-new-jax.md`` says what to do when one of them moves.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import onnx_ir as ir


def uses_of(value: ir.Value) -> Collection[Any]:
    """Who reads ``value``: pairs ``(node, idx)``, not copied as ``Value.uses()`` does."""
    uses: Collection[Any] = value._uses
    return uses


def expression_of(dim: ir.SymbolicDim) -> Any:
    """The SymPy expression of a dim, with what is assumed of its symbols; None if it has none."""
    return dim._expr


def has_expression(dim: ir.SymbolicDim) -> bool:
    """True if the name of the dim has been read as an expression, or was given one."""
    return dim._expr_cache is not None


def set_expression(dim: ir.SymbolicDim, expression: Any) -> None:
    """Let ``dim`` stand for ``expression``, whatever its name reads as."""
    dim._expr_cache = expression


def replace_inputs(node: ir.Node, inputs: Sequence[ir.Value | None]) -> None:
    """Let ``node`` read ``inputs``, as many as before, in one piece."""
    before = node.inputs
    node._inputs = tuple(inputs)
    for index, (old, new) in enumerate(zip(before, inputs, strict=True)):
        if old is not new:
            if old is not None:
                old._remove_usage(node, index)
            if new is not None:
                new._add_usage(node, index)


def replace_one_input(node: ir.Node, index: int, value: ir.Value | None) -> None:
    """The same for a single input, without a walk over the others in Python."""
    before = node.inputs
    old = before[index]
    node._inputs = (*before[:index], value, *before[index + 1 :])
    if old is not None:
        old._remove_usage(node, index)
    if value is not None:
        value._add_usage(node, index)


def times_returned(graph: ir.Graph, value: ir.Value) -> int:
    """How often ``graph`` returns ``value``."""
    count: int = graph.outputs._ref_counter[value]  # type: ignore[attr-defined]
    return count
