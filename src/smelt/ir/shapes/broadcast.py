"""Shape rules that broadcast symbolic dims without guessing.

The library, onnx-shape-inference, takes the first of two different symbols: ``[N] + [M]`` becomes
``[N]``. But N may be 1 where M is not, so the size may be either. Here the result gets a new
symbol. Otherwise a rewrite rule could drop an operand that broadcasts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import zip_longest

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext

from smelt.ir.shapes.shape_registry import registry, rewrap
from smelt.ir.symbolic_dims.clamped_dims import broadcast_sizes, is_clamped

ELEMENTWISE = (
    *("Add", "Sub", "Mul", "Div", "Pow", "Mod", "And", "Or", "Xor", "BitShift"),
    *("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Where"),
    *("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Max", "Min", "Sum", "Mean"),
)
"""Operators that broadcast all their inputs against each other."""

ALIKE = {"PRelu": "Add"}
"""Operators that use another's rule: PRelu with a slope of higher rank breaks ONNX, but runtimes
take it and raise the rank."""

MATRIX = ("MatMul", "MatMulInteger", "QLinearMatMul")
"""Operators that broadcast all dims but the last two."""

SAME_TYPE = frozenset({"Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "Pow"})
FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)

Infer = Callable[[ShapeInferenceContext, ir.Node], None]
ShapesOf = Callable[[ShapeInferenceContext, ir.Node], "list[ir.Shape | None]"]


def conflicts(
    shapes: Iterable[ir.Shape | None], skip: int = 0
) -> dict[int, int | ir.SymbolicDim | None]:
    """Return the axes on which the library may be wrong, each with the size of the result there.

    On such an axis two different symbols meet, or 1 meets a clamped dim such as Min(512, S). The
    size is None if unknown. An axis where a number other than 1 occurs is left out: that number is
    the size. Axes are counted from the end, starting at 1; the last ``skip`` axes are ignored.
    """
    known = [shape.dims[::-1] for shape in shapes if shape is not None]
    sizes_by_axis: dict[int, list[int | ir.SymbolicDim]] = {}
    if all(dims == known[0] for dims in known):
        return {}
    for axis, dims in enumerate(zip_longest(*known, fillvalue=1), start=1):
        # Asking for int first matters: onnx_ir's SymbolicDim is a Protocol, slow to ask for.
        sizes = [dim for dim in dims if isinstance(dim, int)]
        if axis <= skip or len(dims) == len(sizes) or any(size != 1 for size in sizes):
            continue
        symbols = {dim.value: dim for dim in dims if not isinstance(dim, int)}
        if len(symbols) > 1:
            sizes_by_axis[axis] = list(symbols.values())
        elif sizes and is_clamped(*symbols.values()):
            sizes_by_axis[axis] = [1, *symbols.values()]
    return broadcast_sizes(sizes_by_axis) if sizes_by_axis else {}


def register_sound_broadcasting() -> None:
    """Wrap the library's shape rule of every broadcasting operator; call this once.

    ``_with_new_symbols`` makes a new symbol where different symbols meet. PRelu gets the wrapped
    rule of Add. Expand is wrapped twice: the shape that it broadcasts to is the content of its
    second operand.
    """
    for op_type, skip in _operators():
        rewrap(partial(_with_new_symbols, skip=skip, quick=QUICK.get(op_type)), "", op_type)
    for op_type, other in ALIKE.items():
        infer = registry.get("", other, registry.version_boundaries("", other)[-1])
        if infer is not None:
            registry.register("", op_type, since_version=1)(_with_new_symbols(infer, 0))
    rewrap(partial(_with_new_symbols, skip=0, shapes_of=_shapes_of_expand), "", "Expand")
    rewrap(_expanded, "", "Expand")


def _operators() -> Iterator[tuple[str, int]]:
    """Yield each operator with the number of last axes that it does not broadcast."""
    yield from ((op_type, 0) for op_type in ELEMENTWISE)
    yield from ((op_type, 2) for op_type in MATRIX)


def _infer_floats(node: ir.Node) -> bool:
    """Infer an elementwise node of floats if one operand surely has the shape of the result.

    Return False in other cases. This common case costs a tenth of the full rule. Integers are left
    to the library, because they may be sizes whose elements it tracks.
    """
    first = node.inputs[0] if node.inputs else None
    dtype = first.dtype if first is not None else None
    if dtype not in FLOATS or first is None or first.shape is None:
        return False
    shape = first.shape
    for value in node.inputs:
        if value is None or value.shape is None or value.dtype != dtype:
            return False
        if len(value.shape) > len(shape):
            shape = value.shape
    if not all(_fits_into(value.shape, shape) for value in node.inputs if value is not None):
        return False
    if any(not isinstance(d, int) and d.value is None for d in shape.dims):
        return False
    shape.freeze()
    node.outputs[0].shape, node.outputs[0].type = shape, ir.TensorType(dtype)
    return True


def _infer_product(node: ir.Node) -> bool:
    """Infer a float MatMul with equal batch dims or a matrix on the right; return False in other
    cases."""
    left, right = node.inputs
    if left is None or right is None or left.dtype not in FLOATS or right.dtype != left.dtype:
        return False
    if left.shape is None or right.shape is None:
        return False
    rows, columns = left.shape.dims, right.shape.dims
    if min(len(rows), len(columns)) < 2 or rows[-1] != columns[-2]:
        return False
    if len(columns) > 2 and rows[:-2] != columns[:-2]:
        return False
    dims = (*rows[:-1], columns[-1])
    if any(not isinstance(dim, int) and dim.value is None for dim in (*dims, rows[-1])):
        return False
    node.outputs[0].shape, node.outputs[0].type = ir.Shape(dims), ir.TensorType(left.dtype)
    return True


QUICK: dict[str, Callable[[ir.Node], bool]] = {
    **dict.fromkeys(SAME_TYPE, _infer_floats),
    "MatMul": _infer_product,
}
"""Faster shape rules for common cases; one that returns False leaves the node to the full rule."""


def _fits_into(shape: ir.Shape | None, target: ir.Shape) -> bool:
    """True if ``shape`` broadcasts to ``target``, which has at least its rank; False for None.

    Two unnamed dims may compare equal, so the caller checks that ``target`` has none.
    """
    if shape is None or shape is target or not len(shape):
        return shape is not None
    dims, meets = shape.dims, target.dims[-len(shape) :]
    return dims == meets or all(
        dim == other or (isinstance(dim, int) and dim == 1)
        for dim, other in zip(dims, meets, strict=True)
    )


def _shapes_of(context: ShapeInferenceContext, node: ir.Node) -> list[ir.Shape | None]:
    """Return the shapes of the operands, without absent ones; None for an unknown shape."""
    return [value.shape for value in node.inputs if value is not None]


def _shapes_of_expand(context: ShapeInferenceContext, node: ir.Node) -> list[ir.Shape | None]:
    """Return the two shapes that Expand broadcasts: that of its tensor, and the one that its second
    operand holds.
    """
    x, shape = node.inputs
    elements = context.get_symbolic_value(shape) if shape is not None else None
    return [x.shape if x is not None else None, ir.Shape(elements) if elements else None]


def _with_new_symbols(
    infer: Infer,
    skip: int,
    shapes_of: ShapesOf = _shapes_of,
    quick: Callable[[ir.Node], bool] | None = None,
) -> Infer:
    """Wrap the shape rule ``infer``: a dim where different symbols meet gets a new symbol."""

    def infer_soundly(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Infer the shape, then replace the dims of axes where symbols conflict."""
        if quick is not None and quick(node):
            return
        axes = conflicts(shapes_of(context, node), skip)
        output = node.outputs[0]
        declared = output.shape if context.policy != "override" else None
        infer(context, node)
        if axes and output.shape is not None:
            rank = len(output.shape)
            dims = list(output.shape.dims)
            for axis, size in axes.items():
                if not _is_named(declared, rank - axis):
                    dims[rank - axis] = size or context.new_symbolic_dim()
            output.shape = ir.Shape(dims, frozen=True)

    return infer_soundly


def _expanded(infer: Infer) -> Infer:
    """Wrap the rule of Expand: if its target shape is computed at run time, keep only proved dims.

    The rank follows from the length of the target; dims other than 1 cannot grow. A shape that the
    model declares is not trusted.
    """

    def infer_expand(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Infer the shape of Expand; dims that may grow get new symbols."""
        infer(context, node)
        x, target = node.inputs[:2]
        if x is None or target is None or context.get_symbolic_value(target) is not None:
            return
        length = target.shape[0] if target.shape else None
        if x.shape is None or not isinstance(length, int):
            node.outputs[0].shape = None
            return
        rank = max(len(x.shape), length)
        dims = (*(1,) * (rank - len(x.shape)), *x.shape.dims)
        are_fixed = [isinstance(dim, int) and dim != 1 for dim in dims]
        node.outputs[0].shape = ir.Shape(
            [
                dim if is_fixed else context.new_symbolic_dim()
                for dim, is_fixed in zip(dims, are_fixed, strict=True)
            ],
            frozen=True,
        )

    return infer_expand


def _is_named(declared: ir.Shape | None, axis: int) -> bool:
    """True if the shape ``declared`` has a number or a name at ``axis``, which inference then
    keeps.
    """
    if declared is None or not 0 <= axis < len(declared):
        return False
    dim = declared[axis]
    return isinstance(dim, int) or dim.value is not None
