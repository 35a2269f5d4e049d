"""The scales, sizes and region of a Resize of some axes, extended to all axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import tensor_of


def inputs_of_all_axes(
    inputs: Sequence[ir.Value | None], axes: Sequence[int], rank: int, b: Builder
) -> list[ir.Value | None]:
    """Return the inputs x, roi, scales and sizes of the Resize without the attribute ``axes``.

    Other axes get the scale 1, their own size, and the region 0 to 1. The attribute
    ``keep_aspect_ratio_policy`` must be ``stretch``: any other value would count the added sizes.
    """
    places = [axis % rank for axis in axes]
    x, roi, scales, sizes = (*inputs, None, None, None)[:4]
    if roi is not None and not _is_empty(roi):
        whole = np.asarray([0] * rank + [1] * rank)
        roi = _extended(roi, [*places, *(rank + axis for axis in places)], whole, b)
    if scales is not None and not _is_empty(scales):
        scales = _extended(scales, places, np.ones(rank), b)
    if sizes is not None and not _is_empty(sizes):
        sizes = _extended(sizes, places, _known_sizes(x, places), b, x)
    return [x, roi, scales, sizes]


def _is_empty(value: ir.Value) -> bool:
    """True if ``value`` is a constant without elements, which stands for an absent input."""
    return value.shape is not None and value.shape.dims == (0,)


def _known_sizes(x: ir.Value | None, changed: Sequence[int]) -> np.ndarray | None:
    """Return the sizes of ``x`` if those of all axes but ``changed`` are known, else None."""
    dims = () if x is None or x.shape is None else x.shape.dims
    numbers = [0 if axis in changed else dim for axis, dim in enumerate(dims)]
    known_numbers = [dim for dim in numbers if isinstance(dim, int)]
    return (
        np.asarray(known_numbers, np.int64)
        if known_numbers and len(known_numbers) == len(numbers)
        else None
    )


def _extended(
    value: ir.Value,
    places: Sequence[int],
    base: np.ndarray | None,
    b: Builder,
    x: ir.Value | None = None,
) -> ir.Value:
    """Return ``base`` with the elements at ``places`` replaced by those of ``value``.

    Without a ``base``, the shape of ``x`` takes its place.
    """
    tensor = tensor_of(value)
    if tensor is not None and base is not None:
        array = base.astype(tensor.numpy().dtype)
        array[list(places)] = tensor.numpy().reshape(-1)
        return b.constant(array)
    if base is None or value.dtype is None:
        whole = b.op("Shape", x)
    else:
        whole = b.constant(base.astype(value.dtype.numpy()))
    return b.op("ScatterElements", whole, b.const_i64(list(places)), value, axis=0)
