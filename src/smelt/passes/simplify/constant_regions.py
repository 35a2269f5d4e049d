"""Regions of nodes that depend on constants alone, folded as one: what lies inside is never kept.

A weight that the model itself normalizes (mean, variance, quotient) is read by several nodes, whose
results are as large as it is; in the end one of that size takes its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import onnx_ir as ir

from smelt.ir import constants, scope

MOST = 64
"""Nodes of a region, and readers of a constant that are looked at."""

INSIDE = 1 << 24
"""Bytes of each result inside a region, however small the constants that it begins with: the table
of positions of a Swin V2 goes through a layer of hundreds of channels to one for each head."""

PLACES = 64
"""Bytes of constants of integers by which a region does not grow."""

LAYERS = 4
"""Times its limit that the results of a region may have which computes products."""

PRODUCTS = frozenset({"Conv", "Gemm", "MatMul"})

RESAMPLED = frozenset({"GridSample", "Resize"})
"""Operators whose results may have ``LAYERS`` times the bytes of the constants that they replace.
The table of positions of a ViT for a larger image takes longer to compute than to read."""


def region_around(
    node: ir.Node, limit: int, may_fold: Callable[[ir.Node], bool]
) -> frozenset[ir.Node]:
    """The nodes that fold with ``node``, if nothing grows by it; none otherwise.

    They read constants, and results of each other. What others read of them has together at most
    the bytes of the constants that nobody else reads, or ``limit``; each result inside has at most
    as many, or ``INSIDE``. ``may_fold`` says of a node whether it could be computed from constants
    at all. Where readers of the same constants do not fold with it, those of its results may.
    """
    together = _grown(node, may_fold, shared=True)
    if _is_small(together, limit):
        return frozenset(together)
    alone = _grown(node, may_fold, shared=False)
    return frozenset(alone) if alone != together and _is_small(alone, limit) else frozenset()


def _is_small(region: set[ir.Node], limit: int) -> bool:
    if any(each.op_type in PRODUCTS for each in region):
        limit *= LAYERS
    leaves = {v: None for each in region for v in each.inputs if v is not None}
    tensors = {v: constants.tensor_of(v) for v in leaves if v.producer() not in region}
    allowed = max(
        limit,
        sum(t.nbytes for v, t in tensors.items() if t is not None and _only_inside(v, region)),
    )
    if any(each.op_type in RESAMPLED for each in region):
        allowed *= LAYERS
    kept = 0
    for each in region:
        for value in each.outputs:
            size = _bytes(value)
            inside = _only_inside(value, region)
            if size is None or size > (max(allowed, INSIDE) if inside else allowed):
                return False
            kept += 0 if inside else size
    return kept <= allowed


def _grown(node: ir.Node, may_fold: Callable[[ir.Node], bool], shared: bool) -> set[ir.Node]:
    """``node``, and what reads its results and is constant with it; its constants, too, if
    ``shared``."""
    region, waiting = {node}, [node]
    while waiting and len(region) < MOST:
        for reader in _neighbours(waiting.pop(), shared):
            if reader not in region and reader.graph is node.graph and may_fold(reader):
                given = (v for v in reader.inputs if v is not None)
                if all(constants.is_constant(v) or v.producer() in region for v in given):
                    region.add(reader)
                    waiting.append(reader)
    return region


def _neighbours(node: ir.Node, shared: bool) -> Iterator[ir.Node]:
    for value in (*node.inputs, *node.outputs) if shared else node.outputs:
        if value is not None and scope.num_uses(value) <= MOST and not _is_place(value):
            yield from scope.consumers(value)


def _is_place(value: ir.Value) -> bool:
    """True for a few integers, such as where gates are cut: nothing is won if they go, and all
    layers share them."""
    tensor = constants.tensor_of(value)
    return tensor is not None and tensor.dtype == ir.DataType.INT64 and tensor.nbytes <= PLACES


def _only_inside(value: ir.Value, region: set[ir.Node]) -> bool:
    if value.is_graph_output() or scope.num_uses(value) > MOST:
        return False
    return all(reader in region for reader in scope.consumers(value))


def _bytes(value: ir.Value) -> int | None:
    if scope.is_dead(value):
        return 0
    if value.shape is None or value.dtype is None or not value.shape.is_static():
        return None
    return math.ceil(math.prod(value.shape.numpy()) * value.dtype.itemsize)
