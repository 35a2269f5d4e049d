"""What asks for more than our code knows of its operator is left alone, by every pass."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import onnx_ir as ir

from smelt.errors import UsageError
from smelt.ir import scope, text
from smelt.ir.constants import is_constant
from smelt.passes.base import Pass

ASKS_NOBODY = frozenset({"dead_code_elimination", "const_elimination", "dequantize_to_constexpr"})
"""Passes for which a node need not be understood: nobody reads it, or what computes it knows it."""


def check_keeps_the_unknown(
    pass_: Pass, graph: str, opset: int, run: Callable[[ir.Model], object]
) -> None:
    """Each node in turn gets an attribute that nobody knows, and is still there after ``run``."""
    if pass_.name in ASKS_NOBODY:
        return
    model = text.parse(graph, opset)
    sizes = _sizes(model)
    for index, node in enumerate(scope.nodes(model)):
        if node.domain or node in sizes:
            continue
        changed = text.parse(graph, opset)
        marked = list(scope.nodes(changed))[index]
        marked.attributes.add(ir.AttrInt64("novel", 1))
        run(changed)
        kept = [n.op_type for n in scope.nodes(changed) if "novel" in n.attributes]
        with_its_loop = not kept and marked.graph is not changed.graph
        assert with_its_loop or kept == [marked.op_type], f"{marked.op_type} of {graph}"


def check_survives_hidden_types(graph: str, opset: int, run: Callable[[ir.Model], object]) -> None:
    """``run`` fails for no graph whose inputs have unknown ranks, each in turn, or unknown types.

    A rule reads ``value.shape`` and ``value.dtype``, and either may be None. A pass may say that it
    cannot do what its options ask for.
    """
    with suppress(UsageError):
        _run_with_hidden_types(graph, opset, run)


def _run_with_hidden_types(graph: str, opset: int, run: Callable[[ir.Model], object]) -> None:
    for place in range(len(text.parse(graph, opset).graph.inputs)):
        changed = text.parse(graph, opset)
        changed.graph.inputs[place].shape = None
        run(changed)
    changed = text.parse(graph, opset)
    for value in list(changed.graph.inputs):
        hidden = ir.node("Hidden", [value], domain="of.nobody")
        value.replace_all_uses_with(hidden.outputs[0])
        hidden.replace_input_with(0, value)
        changed.graph.insert_before(changed.graph[0], hidden)
    run(changed)


def _sizes(model: ir.Model) -> set[ir.Node]:
    """Nodes that compute with sizes and constants alone, of which inference knows the results.

    It knows every attribute: models of opsets whose changes were not read are refused.
    """
    found: set[ir.Node] = set()
    for node in scope.nodes(model):
        read = [value for value in node.inputs if value is not None and not is_constant(value)]
        known = [value.producer() in found for value in read]
        if node.op_type in ("Constant", "Shape") or (known and all(known)):
            found.add(node)
    return found
