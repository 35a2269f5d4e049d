"""The handler for Resize: its parameters of each axis move with the axis.

Kernels interpolate in some layouts only. ONNX Runtime interpolates linearly over the last two of
four axes or over the two between batch and channels, and cubically over the last two. Nearest
neighbours work in any layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.passes.layout.commuted import Commuted, Operands, Perm, inverse, normalized, rebuilt

UNRESIZED_AXES: Mapping[str, tuple[tuple[int, ...], ...]] = {
    "linear": ((0, 1), (0, 3)),
    "cubic": ((0, 1),),
}
"""By mode, the axes of four that must keep their size for a kernel to interpolate along the
others."""

ROI, SCALES, SIZES = 1, 2, 3


def resize(
    node: ir.Node, perm: Perm, perms: Mapping[ir.Value, Perm], constants: Constants
) -> Commuted | None:
    """Commute Resize: renumber its axes if given, else permute regions, scales or sizes."""
    if not _has_kernel(node, perm, constants):
        return None
    attribute = node.attributes.get("axes")
    if attribute is not None:
        axes = normalized(attribute.as_ints(), len(perm))
        if not axes:
            return None
        old_axes = [perm[axis] for axis in axes]
        return Commuted(perm, lambda b, operands: rebuilt(b, node, operands, axes=old_axes))
    permuted: dict[int, np.ndarray] = {}
    for index, value in enumerate(node.inputs[1:], 1):
        array = constants.get(value) if value is not None else None
        if value is None or (array is not None and not array.size):
            continue
        if array is None or array.size != len(perm) * (2 if index == ROI else 1):
            return None
        rows = array.reshape(-1, len(perm))[:, inverse(perm)]
        permuted[index] = np.ascontiguousarray(rows.reshape(-1))

    def build(b: Builder, operands: Operands) -> Sequence[ir.Value]:
        """Return the Resize of the untransposed operand with permuted regions, scales and sizes."""
        inputs = [b.constant(permuted[i]) if i in permuted else v for i, v in enumerate(operands)]
        return rebuilt(b, node, inputs)

    return Commuted(perm, build)


def _has_kernel(node: ir.Node, perm: Perm, constants: Constants) -> bool:
    """True if runtimes are known to support the Resize in the other layout."""
    mode = node.attributes.get_string("mode", "nearest")
    if mode == "nearest":
        return True
    coordinates = node.attributes.get_string("coordinate_transformation_mode", "half_pixel")
    if len(perm) != 4 or coordinates == "tf_crop_and_resize":
        return False
    if node.attributes.get_int("antialias", 0):
        return False
    unresized = _unresized_axes(node, constants)
    return tuple(sorted(perm[axis] for axis in unresized)) in UNRESIZED_AXES.get(mode, ())


def _unresized_axes(node: ir.Node, constants: Constants) -> list[int]:
    """Return the axes that are proved to keep their size."""
    source = node.inputs[0]
    attribute = node.attributes.get("axes")
    rank = len(source.shape) if source is not None and source.shape is not None else 0
    axes = normalized(attribute.as_ints(), rank) if attribute is not None else tuple(range(rank))
    if source is None or source.shape is None or axes is None:
        return []
    unresized = [axis for axis in range(rank) if axis not in axes]
    inputs = [*node.inputs, None, None, None]
    for index in (SCALES, SIZES):
        value = inputs[index]
        array = constants.get(value) if value is not None else None
        if array is None or array.size != len(axes):
            continue
        for axis, number in zip(axes, array.reshape(-1), strict=True):
            if number == (1 if index == SCALES else source.shape[axis]):
                unresized.append(axis)
    return unresized
