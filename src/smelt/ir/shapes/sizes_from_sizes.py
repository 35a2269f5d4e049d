"""Result sizes that are expressions of other sizes, for Split, Pad, Tile, OneHot and others.

Examples are equal parts of a symbolic axis, and pads and depths that a model computes from shapes.
Each ``infer_`` function returns False to leave a node to the library's rule.
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext

from smelt.ir.node_inputs import optional_input
from smelt.ir.same_shape import Dim
from smelt.ir.shapes.slice_operands import is_computed_input
from smelt.ir.shapes.tracked_elements import MAX_ELEMENTS
from smelt.ir.symbolic_dims.dim_texts import is_arithmetic

UNEVEN = 18
"""The first opset in which the last part of a Split may be smaller."""


def infer_split(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Infer a Split of a symbolic axis, or with run-time sizes; False for others."""
    source = node.inputs[0]
    if source is None:
        return False
    has_computed_sizes = is_computed_input(node, 1)
    axis = node.attributes.get_int("axis", 0)
    shape = source.shape
    if shape is None or not -len(shape) <= axis < len(shape):
        return has_computed_sizes and _leave_unknown(context, node, source.dtype)
    unknown = has_computed_sizes or _has_too_many_parts(context, node, shape[axis])
    parts = None if unknown else _equal_parts(context, node, shape[axis])
    if parts is None and not unknown:
        return False
    for i, output in enumerate(node.outputs):
        dims = list(shape.dims)
        dims[axis] = context.new_symbolic_dim() if parts is None else parts[i]
        context.set_shape_and_dtype(output, ir.Shape(dims), source.dtype)
    return True


def _leave_unknown(
    context: ShapeInferenceContext, node: ir.Node, dtype: ir.DataType | None
) -> bool:
    """Leave the shapes of all outputs unknown, set their type, and return True."""
    for output in node.outputs:
        context.set_shape_and_dtype(output, None, dtype)
    return True


def _has_too_many_parts(context: ShapeInferenceContext, node: ir.Node, size: Dim) -> bool:
    """True if all parts but the last are together longer than the axis.

    Such a Split fails when it runs, but may stand in a branch that never runs, as in the body of
    AffineGrid. Readers of ONNX files infer different sizes for it.
    """
    count = node.attributes.get_int("num_outputs", 0)
    if not isinstance(size, int) or not count or context.opset < UNEVEN or _has_sizes(node):
        return False
    part = longest_part(size, count, uneven=True)
    return isinstance(part, int) and part * (count - 1) > size


def _has_sizes(node: ir.Node) -> bool:
    """True if the Split is given the sizes of its parts."""
    return "split" in node.attributes or optional_input(node, 1) is not None


def _equal_parts(context: ShapeInferenceContext, node: ir.Node, size: Dim) -> list[Dim] | None:
    """Return the sizes of equal parts of a symbolic ``size``; None for other Splits.

    From opset 18 on, part i of length k has ``Min(k, Max(0, size - k * i))``.
    """
    if isinstance(size, int) or _has_sizes(node) or not is_arithmetic(size):
        return None
    count = len(node.outputs)
    uneven = context.opset >= UNEVEN
    part = longest_part(size, count, uneven=uneven)
    if not uneven:
        return [part] * count
    if count == 2:
        return [part, size // 2]
    later_parts = (f"Min({part}, Max(0, {size - part * i}))" for i in range(1, count))
    return [part, *map(ir.SymbolicDim, later_parts)]


def longest_part(size: Dim, count: int, *, uneven: bool) -> Dim:
    """Return the size of the first part if ``size`` is split into ``count`` equal parts.

    ``uneven``: parts have the quotient rounded up, and the last parts may be smaller.
    """
    return (size + (count - 1)) // count if uneven else size // count


def infer_tile(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Infer the rank of a Tile with run-time repeats; False for others."""
    source = node.inputs[0]
    if (
        source is None
        or source.shape is None
        or len(node.inputs) != 2
        or not is_computed_input(node, 1)
    ):
        return False
    if _elements(context, node, 1) is not None:
        return False
    dims = [context.new_symbolic_dim() for _ in source.shape]
    context.set_shape_and_dtype(node.outputs[0], ir.Shape(dims), source.dtype)
    return True


def infer_mel(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Infer MelWeightMatrix as [length // 2 + 1, bands]; the library swaps both and does not halve
    the length.
    """
    bands, length = (_elements(context, node, index) for index in (0, 1))
    are_known = [
        bool(each) and all(isinstance(d, int) for d in each or ()) for each in (length, bands)
    ]
    rows = length[0] // 2 + 1 if length and are_known[0] else context.new_symbolic_dim()
    columns = bands[0] if bands and are_known[1] else context.new_symbolic_dim()
    to = node.attributes.get_int("output_datatype", ir.DataType.FLOAT.value)
    if to not in {each.value for each in ir.DataType}:
        context.record_error(node, f"there is no element type {to}")
        return True
    context.set_shape_and_dtype(node.outputs[0], ir.Shape([rows, columns]), ir.DataType(to))
    return True


def infer_pad(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Infer a Pad whose pads the model computes from sizes; False for others."""
    source = node.inputs[0]
    if source is None or source.shape is None or not is_computed_input(node, 1):
        return False
    pads, axes = _elements(context, node, 1), _axes(context, node, len(source.shape))
    if pads is None or axes is None or len(pads) != 2 * len(axes):
        return False
    dims = list(source.shape.dims)
    for before, after, axis in zip(pads, pads[len(axes) :], axes, strict=False):
        if before == 0 and after == 0:
            continue
        terms = (dims[axis], before, after)
        known = all(isinstance(dim, int) or is_arithmetic(dim) for dim in terms)
        dims[axis] = dims[axis] + before + after if known else context.new_symbolic_dim()
    context.set_shape_and_dtype(node.outputs[0], ir.Shape(dims), source.dtype)
    return True


def _axes(context: ShapeInferenceContext, node: ir.Node, rank: int) -> list[int] | None:
    """Return the padded axes, >= 0; None if they are unknown or invalid."""
    axes_input = optional_input(node, 3)
    if axes_input is None:
        return list(range(rank))
    tensor = ir.convenience.get_const_tensor(axes_input)
    listed = [] if tensor is None else [int(axis) for axis in tensor.numpy().reshape(-1)]
    axes = [axis + rank if axis < 0 else axis for axis in listed]
    fits = all(0 <= axis < rank for axis in axes) and len(set(axes)) == len(axes)
    return axes if tensor is not None and not is_computed_input(node, 3) and fits else None


def infer_one_hot(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Infer a OneHot whose depth is computed from sizes; False for others."""
    indices, values = node.inputs[0], node.inputs[2]
    if indices is None or indices.shape is None or values is None or not is_computed_input(node, 1):
        return False
    depth, rank = _elements(context, node, 1), len(indices.shape) + 1
    axis = node.attributes.get_int("axis", -1)
    if depth is None or len(depth) != 1 or not -rank <= axis < rank:
        return False
    if isinstance(depth[0], int) and depth[0] < 0:
        return False
    dims = list(indices.shape.dims)
    dims.insert(axis % rank, depth[0])
    context.set_shape_and_dtype(node.outputs[0], ir.Shape(dims), values.dtype)
    return True


def _elements(context: ShapeInferenceContext, node: ir.Node, index: int) -> list[Dim] | None:
    """Return the tracked elements of an input if each has a number or a name, else None."""
    value = node.inputs[index]
    elements: list[Dim] | None = context.get_symbolic_value(value) if value is not None else None
    are_named = elements is not None and all(
        isinstance(d, int) or d.value is not None for d in elements
    )
    return elements if are_named else None


def infer_concat(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Infer a Concat of long vectors; False for others.

    The library tracks the elements of vectors, and would invent a symbol for each unknown one.
    """
    first = node.inputs[0]
    if first is None:
        return False
    total: int | ir.SymbolicDim = 0
    for value in node.inputs:
        if value is None or value.shape is None or len(value.shape) != 1:
            return False
        total = total + value.shape[0]
    is_integer = first.dtype in (ir.DataType.INT64, ir.DataType.INT32)
    if total <= MAX_ELEMENTS if isinstance(total, int) else not is_integer:
        return False
    context.set_shape_and_dtype(node.outputs[0], ir.Shape([total]), first.dtype)
    return True


def infer_constant_of_shape(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Infer a ConstantOfShape whose input is not constant; return False to leave it to the library.

    The result has the dims that inference tracked as the elements of that input. If it tracked
    none, only the rank is known.
    """
    sizes, value = node.inputs[0], node.attributes.get("value")
    if sizes is None or not is_computed_input(node, 0) or (value is not None and value.is_ref()):
        return False
    known = context.get_symbolic_value(sizes)
    if known is None and sizes.shape is not None and len(sizes.shape) == 1:
        count = sizes.shape[0]
        known = [ir.SymbolicDim(None)] * count if isinstance(count, int) else None
    shape = None
    if known is not None and not any(isinstance(dim, int) and dim < 0 for dim in known):
        are_named = (isinstance(dim, int) or dim.value is not None for dim in known)
        pairs = zip(known, are_named, strict=True)
        shape = ir.Shape([dim if name else context.new_symbolic_dim() for dim, name in pairs])
    dtype = ir.DataType.FLOAT if value is None else value.as_tensor().dtype
    context.set_shape_and_dtype(node.outputs[0], shape, dtype)
    return True
