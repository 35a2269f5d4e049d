"""Make the indices of Gather, GatherElements and GatherND nonnegative, for targets that need it.

    before   data, i ─> Gather(axis) ─> y
    after    data, Where(i < 0, i + n, i) ─> Gather(axis) ─> y

``n`` is the size of the axis. ONNX counts negative indices from the end; some runtimes do not.

Needs    (1) a known type of the indices, and for GatherND a known length of the index tuples.
Keeps    (1) indices that are proved to be nonnegative: ArgMax, NonZero, Mod by a constant and
         similar operators, or this guard. Constant indices are changed directly if sizes are known.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.walk import producer_of
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.tensors.integer_range import integer_range


@rule(
    op(["Gather", "GatherElements", "GatherND"], var("data"), var("indices")),
    min_opset=11,
    same_shape=True,
)
def guarded(m: Match, b: Builder) -> Replacement:
    """Replace the indices i by ``Where(i < 0, i + n, i)``."""
    data, indices = m["data"], m["indices"]
    bounds = integer_range(indices, m.constants)
    if bounds is None:  # needs 1
        return Miss("the indices are not known to be integers")
    if bounds[0] >= 0:  # keeps 1
        return None
    axes = _axes(m)
    if axes is None:
        return Miss("the indexed axes are not known")
    if data.shape is None:
        return Miss("the rank of the data is unknown")
    if _is_guard(indices, axes, m):
        return None
    sizes = [data.shape[axis] for axis in axes]
    known_sizes = [size for size in sizes if isinstance(size, int)]
    assert indices.dtype is not None
    is_scalar, array = m.root.op_type != "GatherND", m.array("indices", limit=None)
    numbers = None
    if len(known_sizes) == len(sizes):
        numbers = np.asarray(known_sizes[0] if is_scalar else known_sizes, indices.dtype.numpy())
    if array is not None and numbers is not None:
        from_start = np.where(array < 0, array + numbers, array)
        if from_start.size and from_start.min() < 0:
            return Miss("an index is before the start of the axis")
        return b.like(m.root, data, b.constant(from_start))
    if numbers is not None:
        count = b.constant(numbers)
    else:
        count = _computed_sizes(b, data, axes, is_scalar, indices.dtype)
    negative = b.op("Less", indices, b.const_like(0, indices))
    return b.like(m.root, data, b.op("Where", negative, b.op("Add", indices, count), indices))


def _axes(m: Match) -> range | None:
    """Return the axes of the data that the indices address; None if unknown."""
    data, indices = m["data"], m["indices"]
    if data.shape is None:
        return None
    if m.root.op_type != "GatherND":
        axis = opset.attribute(m.root, "axis", m.opset) % len(data.shape)
        return range(axis, axis + 1)
    first = opset.attribute(m.root, "batch_dims", m.opset) or 0
    length = indices.shape[-1] if indices.shape is not None and len(indices.shape) else None
    return range(first, first + length) if isinstance(length, int) else None


def _computed_sizes(
    b: Builder, data: ir.Value, axes: range, is_scalar: bool, dtype: ir.DataType
) -> ir.Value:
    """Return the sizes of ``axes`` of ``data``, computed at run time."""
    shape = b.op("Shape", data)
    if is_scalar:
        count = b.op("Gather", shape, b.const_i64(axes.start))
    else:
        count = b.op("Slice", shape, b.const_i64([axes.start]), b.const_i64([axes.stop]))
    return count if dtype == ir.DataType.INT64 else b.op("Cast", count, to=int(dtype))


def _is_guard(indices: ir.Value, axes: range, m: Match) -> bool:
    """True for ``Where(i < 0, i + n, i)``, which this pass builds."""
    where = producer_of(indices, "Where")
    less = producer_of(where.inputs[0], "Less") if where is not None else None
    plus = producer_of(where.inputs[1], "Add") if where is not None else None
    if where is None or less is None or plus is None:
        return False
    source = where.inputs[2]
    return (
        source is less.inputs[0]
        and source is plus.inputs[0]
        and m.constants.is_number(less.inputs[1], 0)
        and _is_count(plus.inputs[1], axes, m)
    )


def _is_count(value: ir.Value | None, axes: range, m: Match) -> bool:
    """True if ``value`` holds the sizes of ``axes`` of the data, as a constant or from a Shape."""
    shape, array = m["data"].shape, m.array(value)
    if array is not None:
        return shape is not None and array.reshape(-1).tolist() == [shape[axis] for axis in axes]
    cast = producer_of(value, "Cast")
    node = producer_of(value if cast is None else cast.inputs[0], "Gather", "Slice")
    shape_of_data = producer_of(node.inputs[0], "Shape") if node is not None else None
    if (
        node is None
        or shape_of_data is None
        or shape_of_data.inputs[0] is not m["data"]
        or shape_of_data.attributes
    ):
        return False
    bounds = [m.ints(bound) for bound in node.inputs[1:]]
    start = [(axes.start,)]
    return bounds == [*start, (axes.stop,)] or (len(axes) == 1 and bounds == start)


guard_negative_gather_indices = rule_pass(
    "guard_negative_gather_indices",
    __doc__,
    [guarded],
    exactness=EXACT,
    default=False,
    source="Core ML MIL: common::guard_negative_gather_indices",
)
