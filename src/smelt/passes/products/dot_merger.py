"""Merge products of one operand with several constant matrices into one product and a Split.

    before   x ─┬─> MatMul(W1) ─> Add(b1) ─> y1
                └─> MatMul(W2) ─> Add(b2) ─> y2
    after    x ─> MatMul(W1 | W2) ─> Add(b1 | b2) ─> Split ─> y1, y2

Queries, keys and values of attention are such products, and so are the halves of a gated unit.

Needs    (1) constant matrices of one dtype without other readers; (2) a constant row added to each
         of the products, or to none.
Keeps    (1) products that are outputs, or that have other readers before the row is added;
         (2) results of 4 MiB or more from an operand with at most 512 columns: the copies of the
         Split take longer than the merge saves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.constants import is_constant, tensor_of
from smelt.ir.known_forms import is_known
from smelt.ir.rewrite import Rewriter
from smelt.ir.tensors.lazy_concat import LazyConcat
from smelt.ir.worklist import RuleStats
from smelt.passes.base import Options, PassContext, graph_pass, rounding

MOST_WEIGHT_BYTES = 2**28
"""Limit of all matrices of a group together; larger weights may be files and stay separate."""

LEAST_COPIED_BYTES, MOST_NARROW_COLUMNS = 2**22, 512
"""A group with at least so large a result, from an operand of at most so many columns, is kept (2).

ONNX Runtime's time of three products, relative to one product and a Split: 0.82 - 0.96 for results
of 5 to 38 MB and operands of 64 to 512 columns, 0.98 - 1.01 for results of 1 to 4 MB, and
0.98 - 1.07 for operands of 768 and 1024 columns.
"""


@dataclass(frozen=True)
class _Layer:
    """A product with ``weight``, and ``last``, the Add of ``row`` to it.

    A merge replaces the result of ``last``. Without a row, ``last`` is the product itself and
    ``row`` is None.
    """

    product: ir.Node
    last: ir.Node
    weight: ir.TensorProtocol
    row: np.ndarray | None


@graph_pass(
    "dot_merger",
    __doc__,
    exactness=rounding(4, "kernels sum in another order"),
    source="XLA DotMerger",
    before=("fuse_attention",),
)
def dot_merger(cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options) -> None:
    """Merge each group of layers with the same operand."""
    for layers in _groups(cx):
        if rewriter.exhausted:
            break
        _merge(layers, rewriter)
        stats.fired["products merged"] += 1


def _groups(cx: PassContext) -> Iterator[list[_Layer]]:
    """Yield the groups of layers to merge: two or more that read one operand in one graph.

    The layers of a group all have a row, or all have none. Groups too large to pay are left out.
    """
    groups: dict[tuple[ir.Value, *tuple[object, ...]], list[_Layer]] = {}
    for node in cx.index().nodes([("", "MatMul")]):
        x, weight = node.inputs
        if x is None or x.shape is None or len(x.shape) < 2 or is_constant(x) or not is_known(node):
            continue
        layer = _layer(cx, node, weight)
        if layer is not None:
            key = (x, node.graph, layer.weight.dtype, layer.row is None)  # needs 2
            groups.setdefault(key, []).append(layer)
    for (x, *_), layers in groups.items():
        weight_bytes = sum(layer.weight.nbytes for layer in layers)
        if len(layers) < 2 or weight_bytes > MOST_WEIGHT_BYTES:
            continue
        if not _costs_more_to_split(x, weight_bytes):  # keeps 2
            yield layers


def _costs_more_to_split(x: ir.Value, weight_bytes: int) -> bool:
    """True if the merged product of ``x`` saves less time than its Split costs.

    That is so for a large result from narrow rows (see LEAST_COPIED_BYTES). ``weight_bytes`` is the
    size of all matrices together; False if the sizes of ``x`` are not known.
    """
    if x.shape is None or not x.shape.is_static():
        return False
    *lead, columns = x.shape.numpy()
    if not 0 < columns <= MOST_NARROW_COLUMNS:
        return False
    bytes_of_result_row = weight_bytes // columns  # the matrices have one row per column of x
    return math.prod(lead) * bytes_of_result_row >= LEAST_COPIED_BYTES


def _layer(cx: PassContext, node: ir.Node, weight: ir.Value | None) -> _Layer | None:
    """Return the MatMul ``node`` with the Add of a row behind it, or alone if there is no such Add.

    None if its weight is not a constant matrix that only it reads, or if the result is an output.
    """
    product = node.outputs[0]
    # needs 1
    tensor = tensor_of(weight) if weight is not None and scope.has_one_use(weight) else None
    if tensor is None or len(tensor.shape) != 2:
        return None
    if product.is_graph_output() or not tensor.size:  # keeps 1
        return None
    if not scope.has_one_use(product):
        return _Layer(node, node, tensor, row=None)
    (reader,) = scope.consumers(product)
    row = _row(cx, reader, product, tensor.shape.numpy()[1])
    if row is None or reader.graph is not node.graph:
        return _Layer(node, node, tensor, row=None)
    return None if reader.outputs[0].is_graph_output() else _Layer(node, reader, tensor, row)


def _row(cx: PassContext, node: ir.Node, product: ir.Value, width: int) -> np.ndarray | None:
    """Return the constant row of ``width`` elements that ``node`` adds to ``product``, else
    None."""
    if (node.domain, node.op_type) != ("", "Add") or product.shape is None or not is_known(node):
        return None
    other = node.inputs[1] if node.inputs[0] is product else node.inputs[0]
    array = cx.constants.get(other, limit=None)
    if array is None or array.ndim > len(product.shape) or array.size not in (1, width):
        return None
    if array.size == width and array.shape[-1:] != (width,):
        return None
    return np.broadcast_to(array.reshape(-1), (width,))


def _merge(layers: list[_Layer], rewriter: Rewriter) -> None:
    """Build the merged product and Split; its parts replace the results of the layers."""
    nodes = [node for layer in layers for node in {layer.product: None, layer.last: None}]
    first = layers[0].product
    b = rewriter.builder(first, nodes, "dot_merger")
    weights = [layer.weight for layer in layers]
    result = b.op("MatMul", first.inputs[0], b.tensor(LazyConcat(weights)))
    rows = [layer.row for layer in layers if layer.row is not None]
    if rows:
        result = b.op("Add", result, b.constant(np.concatenate(rows)))
    sizes = b.const_i64([weight.shape.numpy()[1] for weight in weights])
    parts = b.ops("Split", result, sizes, outputs=len(layers), axis=-1)
    for layer, part in zip(layers, parts, strict=True):
        if rewriter.exhausted:  # the remaining layers still compute their own products
            break
        rewriter.replace(layer.last, (part,), trust_shape=True)
