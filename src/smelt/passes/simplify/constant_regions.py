"""Find regions of nodes that depend only on constants and are worth folding together.

A weight that the model normalizes (mean, variance, quotient) is read by several nodes whose results
are as large as the weight. After folding, one result of that size replaces all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import onnx_ir as ir

from smelt.ir import constants, scope

MOST_NODES = 64
"""Limit of nodes in a region, and of readers of a constant that are examined."""

MOST_INNER_BYTES = 1 << 24
"""A result that only the region reads may have so many bytes, even if its constants are small.

Swin V2 computes its table of positions through a layer of hundreds of channels.
"""

SHARED_INTEGERS = 64
"""Regions do not grow through integer constants of up to this many bytes."""

PRODUCT_FACTOR = 4
"""Factor on the limit for the results of a region that computes products."""

PRODUCTS = frozenset({"Conv", "Gemm", "MatMul"})

RESAMPLED = frozenset({"GridSample", "Resize"})
"""Operators whose results may have ``PRODUCT_FACTOR`` times the bytes of the constants that they
replace. A ViT resizes its table of positions for a larger image; computing that table takes longer
than reading it.
"""


def region_around(
    node: ir.Node, limit: int, may_fold: Callable[[ir.Node], bool]
) -> frozenset[ir.Node]:
    """Return the nodes to fold together with ``node``; empty if the model would grow too much.

    All operands of a region are constants or results inside of it. The model does not grow too
    much if the results that are read outside have at most as many bytes together as the constants
    that only the region reads, or ``limit``. ``may_fold`` tells whether a node could fold at all.

    Two regions are tried: ``node`` with all readers of its constants and results, and so on; and,
    if that region is too large, with readers of results only.
    """
    with_constants = _region_from(node, may_fold, shared=True)
    if _is_small(with_constants, limit):
        return frozenset(with_constants)
    by_results = _region_from(node, may_fold, shared=False)
    if by_results == with_constants or not _is_small(by_results, limit):
        return frozenset()
    return frozenset(by_results)


def _is_small(region: set[ir.Node], limit: int) -> bool:
    """True if the results of ``region`` are within the limits that ``region_around`` describes."""
    if any(node.op_type in PRODUCTS for node in region):
        limit *= PRODUCT_FACTOR
    operands = {operand: None for node in region for operand in node.inputs if operand is not None}
    tensors = {
        operand: constants.tensor_of(operand)
        for operand in operands
        if operand.producer() not in region
    }
    allowed = max(
        limit,
        sum(
            tensor.nbytes
            for operand, tensor in tensors.items()
            if tensor is not None and _is_read_only_in(operand, region)
        ),
    )
    if any(node.op_type in RESAMPLED for node in region):
        allowed *= PRODUCT_FACTOR
    outer_bytes = 0
    for node in region:
        for value in node.outputs:
            size = _bytes(value)
            is_inner = _is_read_only_in(value, region)
            if size is None or size > (max(allowed, MOST_INNER_BYTES) if is_inner else allowed):
                return False
            outer_bytes += 0 if is_inner else size
    return outer_bytes <= allowed


def _region_from(node: ir.Node, may_fold: Callable[[ir.Node], bool], shared: bool) -> set[ir.Node]:
    """Return ``node`` and all nodes around it that are constant together with it.

    The search follows results to their readers; with ``shared``, also constants to their readers.
    """
    region, worklist = {node}, [node]
    while worklist and len(region) < MOST_NODES:
        for reader in _neighbours(worklist.pop(), shared):
            if reader not in region and reader.graph is node.graph and may_fold(reader):
                operands = (v for v in reader.inputs if v is not None)
                if all(constants.is_constant(v) or v.producer() in region for v in operands):
                    region.add(reader)
                    worklist.append(reader)
    return region


def _neighbours(node: ir.Node, shared: bool) -> Iterator[ir.Node]:
    """Yield the readers of the results of ``node``; with ``shared``, also of its operands."""
    values = (*node.inputs, *node.outputs) if shared else node.outputs
    for value in values:
        if value is None or scope.num_uses(value) > MOST_NODES or _is_few_integers(value):
            continue
        yield from scope.consumers(value)


def _is_few_integers(value: ir.Value) -> bool:
    """True for a constant of a few integers, such as the sizes of a Split.

    All layers of a model share it, so a region that follows it to its readers would grow through
    the whole model.
    """
    tensor = constants.tensor_of(value)
    return (
        tensor is not None
        and tensor.dtype == ir.DataType.INT64
        and tensor.nbytes <= SHARED_INTEGERS
    )


def _is_read_only_in(value: ir.Value, region: set[ir.Node]) -> bool:
    """True if all readers of ``value`` are in ``region``."""
    if value.is_graph_output() or scope.num_uses(value) > MOST_NODES:
        return False
    return all(reader in region for reader in scope.consumers(value))


def _bytes(value: ir.Value) -> int | None:
    """Return the size of ``value`` in bytes, 0 if nothing reads it; None if it is unknown."""
    if scope.is_dead(value):
        return 0
    if value.shape is None or value.dtype is None or not value.shape.is_static():
        return None
    return math.ceil(math.prod(value.shape.numpy()) * value.dtype.itemsize)
