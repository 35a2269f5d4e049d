"""Turn a convolution over images of height 1 back into a one-dimensional convolution.

    before   x ─> Unsqueeze(2) ─> Conv(W: M,C,1,k) ─> Squeeze(2) ─> y
    after    x ─> Conv(W: M,C,k) ─> y

A Reshape that inserts or removes one dim counts as Unsqueeze or Squeeze. The inserted dim may be
the height or the width. Transposes around the convolution (models with channels last) lose the dim,
too.

Needs    (1) a kernel of known size along the inserted dim. If the size is 1, the weight may be
         computed; else it is a constant, and only one of its rows meets the input, not the padding.
Keeps    (1) a result of more than one row; (2) inner results with other readers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.pattern import one_of, op, optional, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import rounding, rule_pass
from smelt.passes.convolution.padded_axis import PaddedAxis
from smelt.passes.simplify.merge_consecutive_reshapes import inserted as inserted_axes
from smelt.passes.tensors.stack import dims_of, same_dims

_wide = op(["Unsqueeze", "Reshape"], var("x"), rest=True, name="wide")
_source = one_of(_wide, op("Transpose", _wide, name="first"))
_conv = op("Conv", _source, var("weight"), optional(var("bias")), name="conv")
_result = one_of(_conv, op("Transpose", _conv, name="second"))


@rule(op(["Squeeze", "Reshape"], _result, rest=True))  # keeps 2
def through_image(m: Match, b: Builder) -> Replacement:
    """Replace the reshapes and the 2-D convolution between them by a 1-D convolution."""
    inserted, weight = _inserted_axis(m), m["weight"]
    first, second = _perm_of(m, "first"), _perm_of(m, "second")
    if inserted is None or weight.shape is None or len(weight.shape) != 4:
        return None
    axis = first.index(inserted)
    if axis < 2 or not _removes_axis(m, second.index(axis)):
        return Miss("the removed dim is not the inserted spatial dim")
    row = _kernel_row(m, axis)
    if isinstance(row, Miss):
        return row
    kernel = _slice(m, axis, row, b)  # needs 1
    if kernel is None:
        return Miss("the kernel has several rows and is not constant")
    x = _transposed(m["x"], first, inserted, b)
    attributes = _attributes_without_dim(m.node("conv"), axis - 2)
    y = b.add(ir.Node("", "Conv", _without_missing_bias(x, kernel, m.get("bias")), attributes))[0]
    return _transposed(y, second, axis, b)


def _without_missing_bias(*values: ir.Value | None) -> list[ir.Value | None]:
    """Return ``values`` as the inputs of a Conv, without the last one, the bias, if it is None."""
    return list(values if values[-1] is not None else values[:-1])


def _inserted_axis(m: Match) -> int | None:
    """Return the axis of the dim of size 1 that the Unsqueeze or Reshape inserts into ``x``.

    None if it inserts no dim or several, or changes others.
    """
    node = m.node("wide")
    axes = opset.axes_of(node, m.constants) if node.op_type == "Unsqueeze" else None
    axes = axes or inserted_axes(m["x"].shape, m["wide"].shape)
    return axes[0] % 4 if axes is not None and len(axes) == 1 else None


def _removes_axis(m: Match, axis: int) -> bool:
    """True if the root removes ``axis`` of its input of rank 4, or another dim of size 1 in its
    place."""
    axes = opset.axes_of(m.root, m.constants) if m.root.op_type == "Squeeze" else None
    if axes:
        return len(axes) == 1 and axes[0] % 4 == axis
    image, result = dims_of(m.root.inputs[0]), dims_of(m.root.outputs[0])
    if image is None or result is None:
        return False
    return same_dims((*image[:axis], *image[axis + 1 :]), result)


def _perm_of(m: Match, name: str) -> list[int]:
    """Return the permutation of the Transpose called ``name``; the identity if the match has
    none."""
    if m.get(name) is None:
        return [0, 1, 2, 3]
    return list(opset.attribute(m.node(name), "perm", m.opset) or (3, 2, 1, 0))


def _transposed(value: ir.Value, perm: Sequence[int], axis: int, b: Builder) -> ir.Value:
    """Return ``value``, which lacks ``axis``, transposed by ``perm`` without that axis."""
    reduced_perm = [a if a < axis else a - 1 for a in perm if a != axis]
    if reduced_perm == sorted(reduced_perm):
        return value
    return b.op("Transpose", value, perm=reduced_perm)


def _kernel_row(m: Match, axis: int) -> int | Miss:
    """Return the index along ``axis`` of the kernel row that meets the input, or a Miss.

    The input has one element along ``axis``, the inserted dim; other kernel rows multiply padding.
    """
    conv, weight, index = m.node("conv"), m["weight"], axis - 2
    assert weight.shape is not None
    size = weight.shape[axis]
    pads = list(opset.attribute(conv, "pads", m.opset) or (0, 0, 0, 0))
    before, after = pads[index], pads[index + 2]
    automatic = opset.attribute(conv, "auto_pad", m.opset) not in (None, "NOTSET")
    if size == 1 and (automatic or (before, after) == (0, 0)):
        return 0
    if not isinstance(size, int):
        return Miss("the size of the kernel along the inserted dim is not known")
    if automatic:
        return Miss("auto_pad of the convolution is not NOTSET")
    dilation = (opset.attribute(conv, "dilations", m.opset) or (1, 1))[index]
    stride = (opset.attribute(conv, "strides", m.opset) or (1, 1))[index]
    window = dilation * (size - 1) + 1
    results = (1 + before + after - window) // stride + 1
    kernel_rows = PaddedAxis(1, results, stride, size, dilation, before).useful_taps()
    if results != 1:
        return Miss("the result does not have size 1 along the inserted dim")
    if not kernel_rows:  # keeps 1
        return Miss("no kernel row meets the input")
    return kernel_rows.start


def _slice(m: Match, axis: int, row: int, b: Builder) -> ir.Value | None:
    """Return the weight without ``axis``: row ``row`` of a constant, or a Squeeze of a dim of size
    1.

    None for a computed weight with several rows.
    """
    weight = m["weight"]
    assert weight.shape is not None
    array = m.array(weight, limit=None)
    if array is not None:
        return b.constant(np.ascontiguousarray(array.take(row, axis)), name=weight.name)
    if weight.shape[axis] != 1:
        return None
    return b.op("Squeeze", weight, b.const_i64([axis]))


def _attributes_without_dim(conv: ir.Node, index: int) -> list[ir.Attr]:
    """Return the attributes of ``conv`` without the spatial dim ``index``, 0 or 1."""
    attributes = []
    for attr in conv.attributes.values():
        if attr.type != ir.AttributeType.INTS:
            attributes.append(attr)
            continue
        # Two strides, dilations or sizes; four pads: both begins, then both ends.
        numbers = [number for i, number in enumerate(attr.as_ints()) if i % 2 != index]
        attributes.append(ir.AttrInt64s(attr.name, numbers))
    return attributes


compose_conv1d = rule_pass(
    "compose_conv1d",
    __doc__,
    [through_image],
    exactness=rounding(4, "products with padded zeros are no longer added"),
    before=("fuse_conv_bias", "fuse_conv_batchnorm", "fuse_conv_scale"),
    source="Core ML MIL: common::compose_conv1d",
)
