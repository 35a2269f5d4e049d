"""Emulate half-precision kernels: put casts around the nodes that compute in a half type.

Each such node computes in float32, and its results are rounded to half, as a half kernel would do.
ONNX Runtime has few such kernels on a CPU. Without them, it refuses a model in bfloat16, and skips
the rounding between two nodes in float16, which hides overflows.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.names import names_of
from smelt.operators.onnxruntime.without_kernel import lacks_bfloat16

WIDE = ir.DataType.FLOAT


def round_each_result(model: ir.Model, half: ir.DataType) -> int:
    """Cast operands and results of all nodes that compute in ``half``; return the number of casts.

    A node that only moves elements stays as it is: it rounds nothing and has kernels for any type.
    """
    wide: dict[ir.Value, ir.Value] = {}
    count = 0
    for graph in list(scope.graphs(model)):
        for node in list(graph):
            if not lacks_bfloat16(node) or scope.carries_graphs(node):
                continue
            for index, value in enumerate(node.inputs):
                if value is None or value.dtype != half:
                    continue
                if value not in wide:
                    wide[value] = _cast(model, value, WIDE)
                    count += 1
                node.replace_input_with(index, wide[value])
            for value in node.outputs:
                if value.dtype == half:
                    _round(model, value, half)
                    count += 1
    return count


def _round(model: ir.Model, value: ir.Value, half: ir.DataType) -> None:
    """Make ``value`` float32, and let its readers read a copy that is cast to ``half``.

    If ``value`` is a graph output, the copy becomes the output and gets its name.
    """
    uses, graph = list(value.uses()), value.graph
    value.type = ir.TensorType(WIDE)
    rounded = _cast(model, value, half)
    for use in uses:
        use.node.replace_input_with(use.idx, rounded)
    assert graph is not None
    if value in graph.outputs:
        value.name, rounded.name = rounded.name, value.name
        for index, output in enumerate(list(graph.outputs)):
            if output is value:
                graph.outputs[index] = rounded


def _cast(model: ir.Model, value: ir.Value, to: ir.DataType) -> ir.Value:
    """Return ``value`` cast to ``to`` by a new node behind its producer."""
    node = ir.Node("", "Cast", [value], [ir.AttrInt64("to", int(to))], num_outputs=1)
    graph, producer = value.graph, value.producer()
    assert graph is not None
    if producer is not None:
        graph.insert_after(producer, node)
    else:
        graph.insert_before(next(iter(graph)), node)
    result = node.outputs[0]
    result.name = names_of(model).free(f"{value.name}_{to.name.lower()}")
    result.type, result.shape = ir.TensorType(to), value.shape
    return result
