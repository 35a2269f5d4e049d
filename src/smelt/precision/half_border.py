"""Set up the minimum cut that decides which nodes compute in float32 and which in a half type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import onnx_ir as ir

from smelt.ir import opset, scope
from smelt.ir.constants import Constants
from smelt.passes.precision.half_places import WIDE, Places
from smelt.passes.precision.retype import AGNOSTIC
from smelt.precision.islands import CAST, UNBOUNDED, Border

HEAVY = frozenset(
    {
        *("Attention", "Conv", "ConvTranspose", "DeformConv", "Einsum", "GRU", "Gemm", "LSTM"),
        *("MatMul", "RNN"),
    }
)
"""Operators that gain most from half precision: they use it even if that needs casts."""

LARGE = 1 << 14
"""A node with a constant of so many elements is converted, because that makes the file smaller."""

SMALL_PART = 100
"""A product with fewer than 1/100 of all weights may stay in float32 if that saves casts."""

FLOAT_SIDE, HALF_SIDE = "in float32", "in half"
"""The two pseudo-nodes of the cut: one that is always in float32, and one that is always in half.
They stand for everything whose type is fixed, such as inputs and outputs of the model."""


def border_of(
    model: ir.Model,
    possible: Mapping[ir.Node, Places],
    fixed: Mapping[ir.Node, str],
    constants: Constants,
    half: ir.DataType,
    *,
    half_interface: bool,
) -> Border:
    """Return the problem whose minimum cut decides which nodes are in half.

    ``possible`` maps each node that can compute in half to the operands and results that would
    become half; the ``fixed`` ones among them must stay in float32. With ``half_interface``, inputs
    and outputs of the model become half, else they stay float32. A float32 value between two nodes
    costs a Cast if one of them is in half and the other is not.
    """
    border = Border()
    border.add(FLOAT_SIDE, in_half=UNBOUNDED)
    border.add(HALF_SIDE, in_float=UNBOUNDED)
    weight_count = sum(
        _elements(value) for graph in scope.graphs(model) for value in graph.initializers.values()
    )
    for node in possible:
        if node in fixed:
            border.add(node, in_half=UNBOUNDED)
        else:
            in_float, in_half = _preference(node, constants, half, weight_count)
            border.add(node, in_float=in_float, in_half=in_half)
    for graph in scope.graphs(model):
        interface_side = HALF_SIDE if half_interface and graph is model.graph else FLOAT_SIDE
        outputs = set(graph.outputs)
        for value, writer in _written(graph, possible, interface_side):
            if value.dtype != WIDE or constants.get(value, limit=None) is not None:
                continue
            readers = dict.fromkeys(_reader(use.node, use.idx, possible) for use in value.uses())
            if value in outputs:
                readers[interface_side] = None
            other_sides = [each for each in readers if each is not None and each != writer]
            if other_sides:
                border.connect(writer, other_sides)
    return border


def _written(
    graph: ir.Graph, possible: Mapping[ir.Node, Places], interface_side: str
) -> Iterator[tuple[ir.Value, ir.Node | str]]:
    """Yield each value of ``graph`` with the node that decides its type, or with a pseudo-node.

    ``interface_side`` is the pseudo-node for graph inputs, ``FLOAT_SIDE`` that for results whose
    type no choice changes.
    """
    for value in graph.inputs:
        yield value, interface_side
    for node in graph:
        for index, value in enumerate(node.outputs):
            changes = node in possible and index in possible[node][1]
            yield value, node if changes else FLOAT_SIDE


def _reader(node: ir.Node, index: int, possible: Mapping[ir.Node, Places]) -> ir.Node | str | None:
    """Return the node or pseudo-node that decides the type of operand ``index`` of ``node``.

    None if ``node`` takes either type.
    """
    if node in possible and index in possible[node][0]:
        return node
    if not node.domain and node.op_type in AGNOSTIC:
        return None
    return FLOAT_SIDE


def _preference(
    node: ir.Node, constants: Constants, half: ir.DataType, weight_count: int
) -> tuple[int, int]:
    """Return ``(cost in float32, cost in half)`` of ``node``, for the minimum cut.

    ``weight_count`` is the number of float32 elements in the weights of the model.

    Heavy operators and large constants are always in half; except that a product with a small part
    of the weights gains little: it stays in float32 if that saves two Casts. A residual sum (an Add
    without constants) and a Mul or Div by a number that is inexact in half prefer float32, because
    half drops bits. Operators that move elements have almost no preference. All others prefer half
    by less than a Cast.
    """
    largest = max((_elements(v) for v in node.inputs if v is not None), default=0)
    if node.op_type in ("Gemm", "MatMul") and 0 < largest * SMALL_PART < weight_count:
        return CAST + CAST // 2, 0
    if node.op_type in HEAVY or largest >= LARGE:
        return UNBOUNDED, 0
    if node.op_type in opset.MOVEMENT or node.op_type == "Cast":
        return 1, 0
    if node.op_type == "Add" and not any(constants.get(v) is not None for v in node.inputs):
        return 0, CAST // 3
    if node.op_type in ("Mul", "Div") and any(_is_inexact(constants, v, half) for v in node.inputs):
        return 0, CAST // 3
    return CAST // 4, 0


def _elements(value: ir.Value) -> int:
    """Return the number of elements of a stored float32 constant, 0 for other values."""
    producer, tensor = value.producer(), value.const_value
    if value.is_graph_input() or value.dtype != WIDE:
        return 0
    if tensor is None and producer is not None and "value" in producer.attributes:
        is_constant = producer.op_type == "Constant"
        tensor = producer.attributes["value"].as_tensor() if is_constant else None
    return 0 if tensor is None else tensor.size


def _is_inexact(constants: Constants, value: ir.Value | None, half: ir.DataType) -> bool:
    """True for a constant of one element that ``half`` cannot represent exactly."""
    array = constants.get(value)
    if array is None or array.size != 1:
        return False
    with np.errstate(over="ignore"):
        return bool(np.any(array.astype(half.numpy()).astype(array.dtype) != array))
