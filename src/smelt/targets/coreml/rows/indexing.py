"""Rows for gathers, scatters and shapes.

Core ML leaves negative indices undefined from iOS 17 on. So ``indices_from_zero`` adds the size to
them, unless all indices are known to be 0 or more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.ir.constants import tensor_of
from smelt.ir.same_shape import same_dim
from smelt.mlpackage.program import Element
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.rows.arithmetic import wrapped
from smelt.targets.coreml.rows.slices import take
from smelt.targets.coreml.writer import Refused, Val

MODES = {"none": "update", "add": "add", "mul": "mul", "min": "min", "max": "max"}


def _more(c: Call) -> dict[str, Any]:
    """Return the parameters that gathers and scatters have from iOS 17 on, by name."""
    return {"validate_indices": False} if c.w.ios >= 17 else {}


def indices_from_zero(c: Call, index: int, size: Val | int) -> Val:
    """Return the indices in input ``index``, with ``size`` added to negative ones.

    ``size`` is a number, or a value that broadcasts with the indices.
    """
    array = c.array(index)
    if array is not None:
        count = size.array if isinstance(size, Val) else np.asarray(size)
        if count is not None:
            places = np.where(array < 0, array + count, array)
            return c.constant(places, Element.INT32, "indices")
        if (array >= 0).all():
            return c.x(index, Element.INT32)
    indices = c.x(index, Element.INT32)
    if c.most_bits(index) is not None:
        return indices
    if _adds_size(c.input(index)):
        return indices
    negative = c.op("less", indices, 0, element=Element.BOOL)
    return c.select(negative, c.op("add", indices, size), indices, Element.INT32)


def _adds_size(value: ir.Value | None) -> bool:
    """True for ``Where(Less(i, 0), Add(i, size), i)``: the model adds the size itself."""
    chosen = None if value is None else value.producer()
    if chosen is None or chosen.op_type != "Where" or chosen.domain:
        return False
    condition, counted, index = chosen.inputs
    test = None if condition is None else condition.producer()
    total = None if counted is None else counted.producer()
    if test is None or total is None or (test.op_type, total.op_type) != ("Less", "Add"):
        return False
    limit = None if test.inputs[1] is None else tensor_of(test.inputs[1])
    is_zero = limit is not None and limit.size == 1 and not limit.numpy().any()
    return is_zero and test.inputs[0] is index and index in total.inputs


def _numbers(c: Call, index: int) -> tuple[Val, Element]:
    """Return input ``index``, bools as int32, and its own element type.

    Gathers and scatters of MIL have no bools; the result is cast back.
    """
    x = c.x(index)
    return (c.cast(x, Element.INT32) if x.element == Element.BOOL else x), x.element


@writes("Gather")
def gather(c: Call) -> None:
    """Write gather along an axis."""
    x, kind = _numbers(c, 0)
    axis = int(c.attribute("axis")) % x.rank
    indices = indices_from_zero(c, 1, c.size(x, axis))
    dims = (*x.dims[:axis], *indices.dims, *x.dims[axis + 1 :])
    taken = c.write(
        "gather", x.element, dims, x=x, indices=indices, axis=axis, batch_dims=0, **_more(c)
    )
    c.done(c.cast(taken, kind))


@writes("GatherElements")
def gather_elements(c: Call) -> None:
    """Write gather_along_axis.

    MIL requires equal sizes of operand and indices along the other axes. ONNX permits fewer
    indices; the operand is then sliced first.
    """
    x, kind = _numbers(c, 0)
    axis = int(c.attribute("axis")) % x.rank
    indices = indices_from_zero(c, 1, c.size(x, axis))
    if not _equal_elsewhere(c, axis):
        x = _covered(c, x, indices, axis)
    taken = c.write(
        "gather_along_axis", x.element, indices.dims, x=x, indices=indices, axis=axis, **_more(c)
    )
    c.done(c.cast(taken, kind))


def _equal_elsewhere(c: Call, axis: int) -> bool:
    """True if inputs 0 and 1 are proved to have the same sizes along all axes but ``axis``."""
    data, indices = c.input(0), c.input(1)
    if data is None or indices is None or data.shape is None or indices.shape is None:
        return False
    pairs = enumerate(zip(data.shape.dims, indices.shape.dims, strict=True))
    return all(place == axis or same_dim(a, b) for place, (a, b) in pairs)


def _covered(c: Call, x: Val, indices: Val, axis: int) -> Val:
    """Return ``x`` sliced along each axis but ``axis`` to the size that ``indices`` has there."""
    axes = range(x.rank)
    sizes = [c.size(x if place == axis else indices, place) for place in axes]
    dims = tuple((x if place == axis else indices).dims[place] for place in axes)
    end = c.vector([size if size.array is None else int(size.array) for size in sizes])
    return c.w.op(
        "slice_by_index",
        x.element,
        dims,
        name=f"{x.name}_covered",
        x=x,
        begin=[0] * x.rank,
        end=end,
        begin_mask=[True] * x.rank,
        end_mask=[place == axis for place in axes],
    )


def _tuple_sizes(c: Call, x: Val, first: int, count: int) -> Val | int:
    """Return the sizes of ``count`` axes from ``first`` on, which index tuples address."""
    return c.vector([x.dims[first + k] or c.size(x, first + k) for k in range(count)])


@writes("GatherND")
def gather_nd(c: Call) -> None:
    """Write gather_nd; an index tuple is along the last axis of the indices."""
    x, kind = _numbers(c, 0)
    batch = int(c.attribute("batch_dims"))
    value = c.input(1)
    count = c.dims(value)[-1]
    if count is None:
        raise Refused("the length of its index tuples is open")
    array = c.array(1)
    sizes = _tuple_sizes(c, x, batch, count)
    if array is not None and isinstance(sizes, Val) and sizes.array is not None:
        places = np.where(array < 0, array + sizes.array, array)
        indices = c.constant(places, Element.INT32, "indices")
    else:
        indices = indices_from_zero(c, 1, sizes)
    taken = c.write("gather_nd", x.element, x=x, indices=indices, batch_dims=batch, **_more(c))
    c.done(c.cast(taken, kind))


def _mode(c: Call) -> str:
    """Return the parameter ``mode`` of MIL's scatters for the attribute ``reduction``."""
    return MODES[c.attribute("reduction") or "none"]


@writes("ScatterElements", "Scatter")
def scatter_elements(c: Call) -> None:
    """Write scatter_along_axis."""
    data, kind = _numbers(c, 0)
    updates, _ = _numbers(c, 2)
    axis = int(c.attribute("axis")) % data.rank
    indices = indices_from_zero(c, 1, c.size(data, axis))
    if not _equal_elsewhere(c, axis):
        raise Refused(
            "its indices may be fewer than the elements of its operand along another axis",
            "give equal sizes one name, or bind them with --dim",
        )
    result = c.write(
        "scatter_along_axis",
        data.element,
        data.dims,
        data=data,
        indices=indices,
        updates=updates,
        axis=axis,
        mode=_mode(c),
        **_more(c),
    )
    c.done(wrapped(c, c.cast(result, kind)))


@writes("ScatterND")
def scatter_nd(c: Call) -> None:
    """Write scatter_nd."""
    data, kind = _numbers(c, 0)
    updates, _ = _numbers(c, 2)
    count = c.dims(c.input(1))[-1]
    if count is None:
        raise Refused("the length of its index tuples is open")
    indices = indices_from_zero(c, 1, _tuple_sizes(c, data, 0, count))
    result = c.write(
        "scatter_nd",
        data.element,
        data.dims,
        data=data,
        indices=indices,
        updates=updates,
        mode=_mode(c),
        **_more(c),
    )
    c.done(wrapped(c, c.cast(result, kind)))


@writes("NonZero")
def non_zero(c: Call) -> None:
    """Write the transpose of non_zero: MIL returns (element, axis), ONNX (axis, element)."""
    x = c.x()
    rows = c.w.op("non_zero", Element.INT32, (None, x.rank), x=x)
    c.done(c.transpose(rows, [1, 0]))


@writes("Compress")
def compress(c: Call) -> None:
    """Write a gather at the places where the condition is True."""
    x, kind = _numbers(c, 0)
    condition = c.x(1, Element.BOOL)
    axis = c.node.attributes.get("axis")
    if axis is None:
        total = None if None in x.dims else int(np.prod([d for d in x.dims if d is not None]))
        x = c.reshape(x, (total,))
    place = 0 if axis is None else int(axis.value) % x.rank
    rows = c.w.op("non_zero", Element.INT32, (None, 1), x=condition)
    indices = c.squeeze(rows, [1])
    dims = (*x.dims[:place], None, *x.dims[place + 1 :])
    taken = c.write(
        "gather", x.element, dims, x=x, indices=indices, axis=place, batch_dims=0, **_more(c)
    )
    c.done(c.cast(taken, kind))


@writes("Shape")
def shape(c: Call) -> None:
    """Write shape, or a part of it."""
    value = c.input(0)
    x = c.x(0, Element.INT32 if value is not None and value.dtype is None else None)
    sizes = c.shape(x)
    start = int(c.attribute("start") or 0)
    end = c.node.attributes.get("end")
    places = range(x.rank)[slice(start, None if end is None else int(end.value))]
    if not len(places):
        raise Refused("a dimension of its result is 0, which Core ML does not have")
    if len(places) == x.rank:
        c.done(sizes)
    else:
        c.done(take(c, sizes, np.arange(places[0], places[-1] + 1), 0))


@writes("Size")
def size(c: Call) -> None:
    """Write the product of the sizes."""
    c.done(c.reduce("reduce_prod", c.shape(c.x()), [0], keep=False))


@writes("ConstantOfShape")
def constant_of_shape(c: Call) -> None:
    """Write fill with the node's number, 0 by default."""
    value = c.attribute("value")
    array = np.zeros(1, np.float32) if value is None else value.numpy()
    kind = c.out_element()
    filler = c.constant(array.reshape(()), kind, "value").array
    c.done(c.write("fill", shape=c.x(0, Element.INT32), value=filler))


@writes("EyeLike")
def eye_like(c: Call) -> None:
    """Write the constant matrix."""
    rows, columns = c.out_dims()
    if rows is None or columns is None:
        raise Refused("its sizes are open")
    matrix = np.eye(rows, columns, int(c.attribute("k") or 0))
    c.done(c.constant(matrix, c.out_element(), "eye"))


@writes("Range")
def number_range(c: Call) -> None:
    """Write range_1d of three scalars; of floats in float32, since float16 has gaps above 2048."""
    c.widen()
    start, limit, delta = (c.x(index) for index in range(3))
    c.done(c.write("range_1d", start=start, end=limit, step=delta))
