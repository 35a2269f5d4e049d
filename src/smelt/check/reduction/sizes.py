"""Reduction step: replace a size by a smaller one wherever it occurs in the model."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import onnx_ir as ir

from smelt.check.reduction.search import Search
from smelt.ir import scope

SMALL_SIZES = (1, 2, 3, 4)
"""The sizes that are tried in place of each size, in order."""

SIZE_ATTRIBUTES = frozenset({"group", "hidden_size"})
"""Attributes of operators that repeat a size of an input or a weight."""

SHAPE_LIMIT = 16
"""An int64 constant of at most this many elements may be a shape; its elements are replaced too."""


def shrink_sizes(search: Search) -> bool:
    """Try to replace each size of inputs and weights by one of ``SMALL_SIZES``, the largest sizes
    first.

    Returns True if any size was replaced.
    """
    any_replaced = False
    tried: set[int] = set()
    while untried := sorted(set(_sizes(search.model)) - tried, reverse=True):
        size = untried[0]
        tried.add(size)
        candidates = [smaller for smaller in SMALL_SIZES if smaller < size]
        any_replaced |= any(
            search.attempt(partial(_resized, old=size, new=new)) for new in candidates
        )
    return any_replaced


def _sizes(model: ir.Model) -> Iterator[int]:
    """Yield the dims of model inputs and initializers that could be smaller."""
    for value in (*model.graph.inputs, *model.graph.initializers.values()):
        for dim in value.shape or ():
            if isinstance(dim, int) and dim > SMALL_SIZES[0]:
                yield dim


def _resized(model: ir.Model, old: int, new: int) -> bool:
    """Replace ``old`` by ``new`` in all shapes, weights and attributes of ``model``."""
    for value in model.graph.inputs:
        if value.shape is not None:
            value.shape = ir.Shape([new if dim == old else dim for dim in value.shape.dims])
    for graph in scope.graphs(model):
        for value in graph.initializers.values():
            if value.const_value is not None:
                tensor = _cut_dims(value.const_value, old, new)
                value.const_value, value.shape = tensor, ir.Shape(tensor.shape.numpy())
        for node in graph:
            _resize_attributes(node, old, new)
            for result in node.outputs:
                result.shape = None
    return True


def _resize_attributes(node: ir.Node, old: int, new: int) -> None:
    """Replace ``old`` by ``new`` in the attributes of ``node`` that hold tensors or sizes."""
    for name, attribute in list(node.attributes.items()):
        if attribute.is_ref():
            continue
        if attribute.type == ir.AttributeType.TENSOR:
            node.attributes[name] = ir.AttrTensor(name, _cut_dims(attribute.as_tensor(), old, new))
        elif name in SIZE_ATTRIBUTES and attribute.type == ir.AttributeType.INT:
            if attribute.as_int() == old:
                node.attributes[name] = ir.AttrInt64(name, new)
        elif attribute.type == ir.AttributeType.INTS and node.op_type == "Constant":
            items = [new if item == old else item for item in attribute.as_ints()]
            node.attributes[name] = ir.AttrInt64s(name, items)


def _cut_dims(tensor: ir.TensorProtocol, old: int, new: int) -> ir.TensorProtocol:
    """Return ``tensor`` with each dim of size ``old`` cut to ``new``.

    In a small int64 tensor, which may be a shape, elements equal to ``old`` become ``new`` as well.
    """
    dims = tensor.shape.numpy()
    is_shape = tensor.dtype == ir.DataType.INT64 and tensor.size <= SHAPE_LIMIT
    if old not in dims and not is_shape:
        return tensor
    array = tensor.numpy()[tuple(slice(0, new if dim == old else None) for dim in dims)]
    if is_shape:
        array = np.where(array == old, new, array)
    return ir.Tensor(
        np.ascontiguousarray(array).reshape(array.shape), tensor.dtype, name=tensor.name
    )
