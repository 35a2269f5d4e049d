"""Store an output projection that is its embedding transposed as a Transpose of the embedding.

::

    before   w = {1, 2, 3, 4, 5, 6}: [3, 2], h = {1, 3, 5, 2, 4, 6}: [2, 3]
             Gather(w, ids) ... MatMul(x, h)
    after    Gather(w, ids) ... MatMul(x, Transpose(w))
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from smelt.ir import scope

SMALLEST = 1 << 16
"""Smaller weights, in bytes, are not tied."""

ROWS = 256
"""Rows that are compared at once."""


def tie_embeddings(model: ir.Model) -> list[str]:
    """Replace each weight of the main graph that is an embedding transposed; return their names.

    An embedding is a matrix from which a Gather reads rows. The Transpose stands at the start of
    the main graph, where ONNX Runtime computes it once, when it opens the model.
    """
    weights = list(_matrices(model.graph))
    embeddings = [value for value, _ in weights if _is_gathered(value)]
    tied: list[str] = []
    for value, tensor in weights:
        if value in embeddings or value.name is None:
            continue
        for embedding in embeddings:
            rows = embedding.const_value
            if rows is not None and _is_transposed(rows, tensor):
                tied.append(value.name)
                _replace(model.graph, value, embedding)
                break
    return tied


def _matrices(graph: ir.Graph) -> Iterator[tuple[ir.Value, ir.TensorProtocol]]:
    """Yield the large matrices among the weights of ``graph``, without its inputs and outputs."""
    for value in graph.initializers.values():
        tensor = value.const_value
        is_own = not (value.is_graph_output() or value.is_graph_input())
        if tensor is None or len(tensor.shape) != 2 or not is_own:
            continue
        if tensor.dtype.bitwidth in (8, 16, 32, 64) and tensor.nbytes >= SMALLEST:
            yield value, tensor


def _is_gathered(value: ir.Value) -> bool:
    """True if a Gather reads rows of ``value``, as a model looks up its embedding."""
    return any(
        node.op_type == "Gather"
        and not node.domain
        and node.inputs[0] is value
        and node.attributes.get_int("axis", 0) == 0
        for node in scope.consumers(value)
    )


def _is_transposed(rows: ir.TensorProtocol, columns: ir.TensorProtocol) -> bool:
    """True if ``columns`` is ``rows`` transposed, bit by bit."""
    sizes = tuple(rows.shape.numpy())
    if rows.dtype != columns.dtype or tuple(columns.shape.numpy()) != sizes[::-1]:
        return False
    bits = f"u{rows.dtype.bitwidth // 8}"
    a, b = rows.numpy().view(bits), columns.numpy().view(bits)
    return all(
        np.array_equal(a[start : start + ROWS], b[:, start : start + ROWS].T)
        for start in range(0, sizes[0], ROWS)
    )


def _replace(graph: ir.Graph, value: ir.Value, embedding: ir.Value) -> None:
    """Replace the weight ``value`` by ``embedding`` transposed."""
    node = ir.node("Transpose", [embedding], {"perm": [1, 0]}, name=f"transpose_{embedding.name}")
    result = node.outputs[0]
    result.name, result.type, result.shape = value.name, value.type, value.shape
    for use in list(value.uses()):
        use.node.replace_input_with(use.idx, result)
    del graph.initializers[str(value.name)]
    graph.insert_before(graph[0], node)
