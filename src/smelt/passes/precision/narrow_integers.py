"""Compute in int32 instead of int64 where bounds prove that all numbers fit.

    before   ids: int64 ─> Gather(table, ids + 2) ─> y
    after    ids: int64 ─> Cast(int32) ─> Gather(table, ids + 2) ─> y

For consumers that have no int64 inside, such as WebGPU and most accelerators. Inputs and outputs
keep their types; with the option ``inputs``, the int64 inputs become int32.

Needs    (1) an operator that takes int32 in place of int64; (2) bounds of all its int64 operands
         and results within 32 bits. An input that is read as indices has the bounds of the axis,
         because ONNX allows no others.
Keeps    (1) arithmetic of sizes: Shape gives int64, and Reshape reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import tensor_of
from smelt.ir.defaults import default_of, replace_default
from smelt.ir.interface_change import PortChange, ports_of
from smelt.ir.opset import RESHAPES
from smelt.ir.rewrite import Rewriter
from smelt.ir.value_facts.integer_bounds import IntegerBounds
from smelt.ir.worklist import RuleStats, replace_or_miss
from smelt.passes.base import EXACT, PassContext, graph_pass

NAME = "narrow_integers"
NARROW = -(2**31), 2**31 - 1
WIDE = ir.DataType.INT64

EVERY = range(64)
"""All operands of an operator hold data."""

DATA: Mapping[str, range | tuple[int, ...]] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Neg", "Abs"), EVERY),
    **dict.fromkeys(("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"), EVERY),
    **dict.fromkeys(("Cast", "Clip", "Concat", "Identity", "Where", "Gather", "Range"), EVERY),
    **dict.fromkeys((*RESHAPES, "Transpose", "Expand"), (0,)),
    **dict.fromkeys(("Slice", "Split", "Tile", "ReduceSum", "ReduceMax", "ReduceMin"), (0,)),
    "CumSum": (0,),
    "GatherElements": (0, 1),
}
"""The operands of each operator that may be int32 instead of int64, with the result."""

SIZES = frozenset({"Shape", "Size"})


@dataclass(frozen=True)
class Inputs:
    """``inputs``: also give the int64 inputs of the model the type int32, a promise of the user."""

    inputs: bool = False


@graph_pass(NAME, __doc__, exactness=EXACT, default=False, options_type=Inputs)
def narrow_integers(cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Inputs) -> None:
    """Narrow every node whose int64 operands and results fit into int32."""
    if options.inputs:
        _narrow_inputs(cx, rewriter, stats)
    facts = _Facts(cx.model.graph)
    for graph in cx.index().graphs:
        for node in list(graph):
            if node in rewriter.dead or node.domain or node.op_type not in DATA:  # needs 1
                continue
            places = [i for i in DATA[node.op_type] if _is_wide_input(node, i)]
            results = [value for value in node.outputs if value.dtype == WIDE]
            inputs = [node.inputs[place] for place in places]
            operands = [value for value in inputs if value is not None]
            if not operands or all(map(facts.is_size, operands)):  # keeps 1
                continue
            if not all(map(facts.fits, (*operands, *results))):  # needs 2
                stats.miss(NAME, "its numbers may need more than 32 bits", node)
            elif not rewriter.exhausted:
                _narrow_node(rewriter, node, places, stats)


def _is_wide_input(node: ir.Node, index: int) -> bool:
    """True if the operand ``index`` of ``node`` is int64."""
    value = node.inputs[index] if index < len(node.inputs) else None
    return value is not None and value.dtype == WIDE


def _narrow_node(rewriter: Rewriter, node: ir.Node, places: list[int], stats: RuleStats) -> None:
    """Replace ``node`` by one of int32 operands, and Casts before and after it."""
    b = rewriter.builder(node, [node], NAME)
    operands = list(node.inputs)
    for place in places:
        value = operands[place]
        assert value is not None
        operands[place] = b.cast(value, ir.DataType.INT32)
    attributes = list(node.attributes.values())
    narrow = b.add(ir.Node("", node.op_type, operands, attributes, num_outputs=len(node.outputs)))
    results = [
        b.cast(new, WIDE) if old.dtype == WIDE else new
        for old, new in zip(node.outputs, narrow, strict=True)
    ]
    replace_or_miss(rewriter, stats, NAME, node, results, b, node.op_type)


def _narrow_inputs(cx: PassContext, rewriter: Rewriter, stats: RuleStats) -> None:
    """Give each int64 input the type int32, and cast it for its readers.

    An input whose default needs more than 32 bits stays.
    """
    graph = cx.model.graph
    first = next(iter(graph), None)
    for value in list(graph.inputs):
        if value.dtype != WIDE or value.is_graph_output() or rewriter.exhausted:
            continue
        default = default_of(value)
        if default is not None:
            array = default.numpy()
            if array.size and not (NARROW[0] <= array.min() and array.max() <= NARROW[1]):
                continue
            replace_default(value, ir.tensor(array.astype(np.int32), name=value.name))
        uses = list(value.uses())
        value.type = ir.TensorType(ir.DataType.INT32)
        wide = Builder(cx.model, graph, cx.shapes, before=first).op("Cast", value, to=int(WIDE))
        for use in uses:
            use.node.replace_input_with(use.idx, wide)
        ports = ports_of(graph, value)
        stats.interface += [PortChange(*port, dtype=ir.DataType.INT32) for port in ports]
        rewriter.count += 1
        stats.fired["input"] += 1
    cx.forget_index()


class _Facts:
    """Which values fit into 32 bits, and which hold sizes of tensors only."""

    def __init__(self, main: ir.Graph) -> None:
        """Begin with empty caches: bounds, and whether a value is computed from sizes only."""
        self._main = main
        self._bounds = IntegerBounds()
        self._sizes: dict[ir.Value, bool] = {}

    def fits(self, value: ir.Value) -> bool:
        """True if 32 bits hold every element of ``value`` that does not make an operator fail.

        An input that a Gather reads as indices fits, because a valid index is less than a known
        size.
        """
        bounds = self._bounds.of(value)
        if bounds is not None and NARROW[0] <= bounds[0] and bounds[1] <= NARROW[1]:
            return True
        return value in self._main.inputs and any(map(self._is_index, value.uses()))

    def _is_index(self, use: tuple[ir.Node, int]) -> bool:
        """True for the indices of a Gather that always runs, along an axis of known size."""
        node, place = use
        data = node.inputs[0]
        if node.domain or node.op_type != "Gather" or place != 1 or node.graph is not self._main:
            return False
        if data is None or data.shape is None:
            return False
        axis = node.attributes.get_int("axis", 0)
        return -len(data.shape) <= axis < len(data.shape) and isinstance(data.shape[axis], int)

    def is_size(self, value: ir.Value) -> bool:
        """True if ``value`` is computed from shapes and constants alone."""
        pending = [value]
        while pending:
            current = pending[-1]
            node = current.producer()
            operands = [] if node is None or _is_size_source(current) else node.inputs
            unknown = [
                operand
                for operand in operands
                if operand is not None and operand not in self._sizes
            ]
            if unknown and current not in self._sizes:
                pending += unknown
                continue
            reads_sizes_only = bool(operands) and all(
                operand is None or self._sizes[operand] for operand in operands
            )
            self._sizes.setdefault(current, _is_size_source(current) or reads_sizes_only)
            pending.pop()
        return self._sizes[value]


def _is_size_source(value: ir.Value) -> bool:
    """True if ``value`` is a constant, or a Shape or Size returns it."""
    node = value.producer()
    return tensor_of(value) is not None or (node is not None and node.op_type in SIZES)
