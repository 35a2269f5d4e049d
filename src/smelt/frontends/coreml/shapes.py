"""Readers of operators that change or compute shapes."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.frontends.coreml.call import Call
from smelt.frontends.coreml.registry import reads


@reads("shape")
def _shape(call: Call) -> ir.Value:
    """Return the sizes of ``x``, as int32."""
    return call.builder.cast(call.op("Shape", call.x), call.result_type())


@reads("reshape")
def _reshape(call: Call) -> ir.Value:
    """Return ``x`` reshaped to ``shape``, where 0 copies a size of ``x`` and -1 is inferred.

    From iOS 17 on, the ranks may differ: 0 then copies the size at the same axis from the end.
    """
    constant = call.constant("shape")
    if constant is None:
        return call.op("Reshape", call.x, call.i64("shape"))
    numbers = [int(n) for n in np.asarray(constant.value).reshape(-1)]
    rank = call.rank(call.x)
    if 0 in numbers and len(numbers) != rank:
        if call.scope.shared.ios < 17:
            raise call.refused("a size of 0 asks for as many sizes as x has dims")
        return call.op("Reshape", call.x, _kept_from_the_end(call, numbers, rank))
    return call.op("Reshape", call.x, call.ints(numbers))


def _kept_from_the_end(call: Call, numbers: list[int], rank: int) -> ir.Value:
    """Return ``numbers`` as a shape in which each 0 is the size of ``x`` at the same axis from the
    end, and 1 where ``x`` has no such axis."""
    dims = call.dims(call.x)
    parts: list[ir.Value] = []
    for index, number in enumerate(numbers):
        axis = rank - len(numbers) + index
        if number:
            parts.append(call.ints([number]))
        elif axis < 0:
            parts.append(call.ints([1]))
        else:
            size = dims[axis]
            parts.append(
                call.ints([size]) if isinstance(size, int) else call.builder.size(call.x, axis)
            )
    return call.op("Concat", *parts, axis=0)


@reads("reshape_like")
def _reshape_like(call: Call) -> ir.Value:
    """Return ``x`` in the shape that consists of ``shape(ref)[begin:end]`` for each ref tensor."""
    references = call.values("ref_tensors")
    begins, ends, masks = (_constants(call, name) for name in ("begins", "ends", "end_masks"))
    parts = []
    for reference, begin, end, mask in zip(references, begins, ends, masks, strict=True):
        last = None if mask else int(end)
        parts.append(call.op("Shape", reference, start=int(begin), end=last))
    return call.op("Reshape", call.x, call.op("Concat", *parts, axis=0))


def _constants(call: Call, name: str) -> list[int]:
    """Return the numbers of a variadic parameter in one list; raises E121 if one is computed."""
    numbers: list[int] = []
    for argument in call.arguments.get(name, ()):
        known = call.scope.known(argument)
        if isinstance(known, ir.Value):
            raise call.refused(f"{name} is computed, where Core ML asks for constants")
        items = known.value if isinstance(known.value, list) else [known]
        for item in items:
            numbers += [int(n) for n in np.asarray(item.value).reshape(-1)]
    return numbers


@reads("expand_dims")
def _expand_dims(call: Call) -> ir.Value:
    """Return ``x`` with dims of size 1 at ``axes`` of the result."""
    return call.op("Unsqueeze", call.x, call.ints(call.integers("axes")))


@reads("squeeze")
def _squeeze(call: Call) -> ir.Value:
    """Return ``x`` without the axes ``axes``, by default without all of known size 1."""
    if call.has("axes"):
        axes = call.integers("axes")
    else:
        axes = [axis for axis, dim in enumerate(call.dims(call.x)) if dim == 1]
    return call.op("Squeeze", call.x, call.ints(axes)) if axes else call.op("Identity", call.x)


@reads("flatten2d")
def _flatten2d(call: Call) -> ir.Value:
    """Return ``x`` as a matrix: the axes before ``axis`` become rows, the others columns."""
    axis, rank = call.integer("axis", 1), call.rank(call.x)
    if not -rank <= axis <= rank:
        raise call.refused(f"axis {axis} does not fit rank {rank}")
    return call.op("Flatten", call.x, axis=axis)


@reads("fill")
def _fill(call: Call) -> ir.Value:
    """Return a tensor of the given shape, filled with ``value``."""
    return call.op("ConstantOfShape", call.i64("shape"), value=_filling(call))


@reads("fill_like")
def _fill_like(call: Call) -> ir.Value:
    """Return a tensor of the shape of another, filled with ``value``."""
    shape = call.op("Shape", call.value("ref_tensor"))
    return call.op("ConstantOfShape", shape, value=_filling(call))


def _filling(call: Call) -> ir.Tensor:
    """Return the number to fill with, as the attribute of ConstantOfShape."""
    number = call.array("value", np.float32(0))
    return ir.Tensor(np.asarray(number.reshape(-1)[:1], call.result_type().numpy()))


@reads("range_1d")
def _range_1d(call: Call) -> ir.Value:
    """Return the numbers from ``start`` to before ``end`` in steps."""
    return call.op("Range", call.value("start"), call.value("end"), call.value("step"))


@reads("tile")
def _tile(call: Call) -> ir.Value:
    """Return ``x`` repeated ``reps[axis]`` times along each axis."""
    return call.op("Tile", call.x, call.i64("reps"))


@reads("non_zero")
def _non_zero(call: Call) -> ir.Value:
    """Return the indices of the elements that are not 0, (count, rank)."""
    places = call.op("Transpose", call.op("NonZero", call.x), perm=[1, 0])
    return call.builder.cast(places, call.result_type())


@reads("one_hot")
def _one_hot(call: Call) -> ir.Value:
    """Return vectors that hold ``on_value`` at ``indices`` and ``off_value`` elsewhere."""
    dtype = call.result_type().numpy()
    ends = [call.array("off_value", 0), call.array("on_value", 1)]
    values = np.array([end.reshape(()) for end in ends]).astype(dtype)
    depth = call.i64("one_hot_vector_size")
    constant = call.scope.shared.constant(values)
    return call.op("OneHot", call.value("indices"), depth, constant, axis=call.integer("axis", -1))
