"""Decide which values of a model are quantized for the chosen forms: operands and results.

A static convolution quantizes its result, too, because integer kernels of convolutions store
integers. So do all kernels of the target C, for which all static products quantize their results.
Operators between quantized values then also compute in integers where ONNX Runtime has
kernels: residual sums, poolings, concatenations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir.constants import is_constant
from smelt.precision.int8.candidates import Candidate, operand_name, result_name

RESCALING = frozenset(
    {"Add", "Mul", "Sigmoid", "LeakyRelu", "AveragePool", "GlobalAveragePool", "Concat"}
)
"""Operators with integer kernels that store their result with a scale of its own."""

MOVING = frozenset({"MaxPool", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten"})
"""Operators that only move or choose elements: their result keeps the scale of the operand."""

FUSED = frozenset({"Relu", "Clip"})
"""Activation functions that cost nothing after a convolution: clipping the codes computes them."""


@dataclass(frozen=True)
class Plan:
    """The form of each product, by the name of its result, and the values that are quantized.

    ``operands`` are quantized for the static products that read them; other readers read floats.
    ``results`` are quantized for all readers. ``scale_of`` maps results of operators that only move
    elements to the value whose scale they share.
    """

    forms: Mapping[str, str]
    operands: frozenset[str]
    results: frozenset[str]
    scale_of: Mapping[str, str]


def make_plan(
    model: ir.Model,
    chosen: Mapping[Candidate, str],
    measured: frozenset[str],
    *,
    links: bool = True,
) -> Plan:
    """Return the plan for the ``chosen`` forms; ``measured`` values have a finite range.

    ``links``: operators between static convolutions, whose operands are all quantized results,
    compute in integers, too. One such operator may follow another.
    """
    forms = {name: form for candidate, form in chosen.items() for name in candidate.nodes}
    static = {candidate for candidate, form in chosen.items() if form == "static"}
    operands = frozenset(candidate.source for candidate in static)
    storing = {name for each in static if each.stores_codes for name in each.nodes}
    results: dict[str, None] = {}
    linked: dict[str, ir.Node] = {}
    scale_of: dict[str, str] = {}
    for node in model.graph:
        name = result_name(node)
        if name in storing:
            end = str(result_of(node).name)
            if end in measured:
                results[end] = None
        elif links and _links(node, results, measured):
            end = str(result_of(node).name) if node.op_type == "Add" else name
            if end not in measured and node.op_type not in MOVING:
                continue
            results[end] = None
            linked[end] = node
            if node.op_type in MOVING:
                source = operand_name(node)
                scale_of[name] = scale_of.get(source, source)
    _drop_unread(results, linked, operands)
    kept = {name: source for name, source in scale_of.items() if name in results}
    return Plan(forms, operands, frozenset(results), kept)


def result_of(node: ir.Node) -> ir.Value:
    """Return the result of ``node``, or that of a Relu or Clip if it is the only reader.

    The activation function is fused, so its result is the one to quantize.
    """
    value = node.outputs[0]
    readers = list(value.uses())
    if len(readers) != 1 or value.is_graph_output():
        return value
    reader = readers[0].node
    if reader.domain or reader.op_type not in FUSED or reader.graph is not node.graph:
        return value
    if reader.op_type == "Clip" and not all(
        each is None or is_constant(each) for each in reader.inputs[1:]
    ):
        return value
    return reader.outputs[0] if readers[0].idx == 0 else value


def _links(node: ir.Node, results: Mapping[str, None], measured: frozenset[str]) -> bool:
    """True if ``node`` has an integer kernel, and all its operands are among ``results``."""
    if node.domain or len(node.outputs) != 1 or node.op_type not in RESCALING | MOVING:
        return False
    moving = node.op_type in MOVING
    operands = node.inputs[:1] if moving else node.inputs
    return all(each is not None and each.name in results for each in operands)


def _drop_unread(
    results: dict[str, None], linked: Mapping[str, ir.Node], operands: frozenset[str]
) -> None:
    """Drop from ``results`` those of linked nodes that no quantized node reads.

    To quantize them would only lose accuracy. ``linked`` maps a result to its node. The last nodes
    come first, because a dropped node does not count as a reader of those before it.
    """
    kept: set[ir.Node] = set()
    for end, node in reversed(list(linked.items())):
        value = node.outputs[0] if result_name(node) == end else result_of(node)
        if end in operands or any(use.node in kept for use in value.uses()):
            kept.add(node)
        else:
            del results[end]
