"""Choose values for inputs that hold a shape, scale or region, for which random numbers do not fit.

A Reshape needs sizes with the right product, a Split sizes with the right sum, a Resize positive
factors, a RoiPool a sample and two corners. If the shape of the result is known, the input gets
that shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir.symbolic_dims.dims import size_of

Sizes: TypeAlias = Mapping[str, int]
Maker: TypeAlias = Callable[[ir.Node, Sizes, "tuple[int, ...]"], "np.ndarray | None"]
"""Returns the array for an input, from the node that reads it, the sizes and the input's shape;
None if it cannot tell.
"""

PASSED = frozenset({"Cast", "Identity"})
"""Operators that pass their operand through."""


def required_input(value: ir.Value, sizes: Sizes, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return the array that input ``value`` of ``shape`` needs at ``sizes``; None if any array
    fits.
    """
    for node, index in _readers(value):
        make = MAKERS.get((node.op_type, index))
        array = make(node, sizes, shape) if make is not None else None
        if array is not None and array.shape == shape and value.dtype is not None:
            return array.astype(value.dtype.numpy())
    return None


def shape_inputs(model: ir.Model) -> list[str]:
    """Return the names of inputs that hold a shape, which only the user can choose."""
    return [
        value.name or ""
        for value in model.graph.inputs
        if any((node.op_type, index) in SHAPE_OPERANDS for node, index in _readers(value))
    ]


def _readers(value: ir.Value) -> Iterator[tuple[ir.Node, int]]:
    """Yield the consumers of ``value`` and of its copies, each with the operand index."""
    pending = [value]
    while pending:
        for use in pending.pop().uses():
            if use.node.domain:
                continue
            yield use.node, use.idx
            if use.node.op_type in PASSED:
                pending.extend(use.node.outputs)


def _shape_of_result(node: ir.Node, sizes: Sizes, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return the shape of the node's result; None if a size is unknown."""
    result = node.outputs[0].shape
    if result is None or shape != (len(result),):
        return None
    dims = [size_of(dim, sizes) for dim in result.dims]
    numbers = [dim for dim in dims if isinstance(dim, int)]
    return np.asarray(numbers) if len(numbers) == len(dims) else None


def _reshape(node: ir.Node, sizes: Sizes, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return the result's known shape, with one unknown size as -1; else one long axis."""
    if len(shape) != 1:
        return None
    result = node.outputs[0].shape
    dims = [1] * shape[0]
    if result is not None and len(result) == shape[0]:
        sizes_of_dims = [size_of(dim, sizes) for dim in result.dims]
        dims = [dim if isinstance(dim, int) else 1 for dim in sizes_of_dims]
        if all(isinstance(dim, int) for dim in sizes_of_dims):
            return np.asarray(dims)
        unknown = [index for index, dim in enumerate(sizes_of_dims) if not isinstance(dim, int)]
        dims[unknown[-1]] = -1
        return np.asarray(dims)
    dims[-1:] = [-1] if dims else []
    return np.asarray(dims)


def _split(node: ir.Node, sizes: Sizes, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return sizes for the ``shape[0]`` parts of a Split: 1 for each but the last, which gets the
    rest.

    Returns None if the size of the split axis is unknown or less than the number of parts.
    """
    data, axis = node.inputs[0], node.attributes.get_int("axis", 0)
    if data is None or data.shape is None or not len(data.shape) or len(shape) != 1:
        return None
    size = size_of(data.shape.dims[axis], sizes)
    if not isinstance(size, int) or not 0 < shape[0] <= size:
        return None
    return np.asarray([1] * (shape[0] - 1) + [size - shape[0] + 1])


def _factors(node: ir.Node, sizes: Sizes, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return factor 1 for samples and channels, 2 for spatial axes."""
    return np.asarray([1.0, 1.0, 2.0, 2.0, 2.0][: shape[0]]) if len(shape) == 1 else None


def _regions(node: ir.Node, sizes: Sizes, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return rows with sample 0, one corner and the opposite corner."""
    row = [0.0, 0.0, 0.0, 2.0, 3.0]
    return (
        np.asarray([row] * shape[0]).reshape(shape) if len(shape) == 2 and shape[1] == 5 else None
    )


def _corners(node: ir.Node, sizes: Sizes, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return the box [0.5, 0.5, 3, 4] in each row, for the regions of RoiAlign."""
    row = [0.5, 0.5, 3.0, 4.0]
    return (
        np.asarray([row] * shape[0]).reshape(shape) if len(shape) == 2 and shape[1] == 4 else None
    )


MAKERS: Mapping[tuple[str, int], Maker] = {
    ("Reshape", 1): _reshape,
    ("Expand", 1): _shape_of_result,
    ("ConstantOfShape", 0): _shape_of_result,
    ("CenterCropPad", 1): _shape_of_result,
    ("Resize", 3): _shape_of_result,
    ("Split", 1): _split,
    ("Resize", 2): _factors,
    ("Upsample", 1): _factors,
    ("MaxRoiPool", 1): _regions,
    ("RoiAlign", 1): _corners,
}
"""(Operator, operand) to the function that returns the input."""

SHAPE_OPERANDS = frozenset(
    {
        *(("Reshape", 1), ("Expand", 1), ("ConstantOfShape", 0), ("CenterCropPad", 1)),
        *(("Split", 1), ("Resize", 2), ("Resize", 3), ("Upsample", 1), ("Tile", 1), ("Pad", 1)),
        *(("Slice", 1), ("Slice", 2)),
    }
)
"""Operands that determine a shape."""
