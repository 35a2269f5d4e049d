"""Shape inference of Slice for symbolic dims.

Where the library, onnx-shape-inference, gives a number for a symbolic dim, it guesses. Here the
number of rows is an expression, such as ``Min(5, N)``, or a new symbol.
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext

from smelt.ir.node_inputs import optional_input
from smelt.ir.onnx_ir_private import expression_of
from smelt.ir.rows import UNBOUNDED, Cut, count_open_rows, rows_taken
from smelt.ir.same_shape import Dim
from smelt.ir.shapes.floors import one_floor
from smelt.ir.shapes.rows_between import rows_between, without_bound
from smelt.ir.shapes.shape_registry import ShapeRule
from smelt.ir.shapes.slice_operands import (
    constant_cuts,
    constant_ints,
    is_computed_input,
    sliced_axes,
)
from smelt.ir.shapes.slice_windows import window_sizes
from smelt.ir.symbolic_dims.dim_texts import is_arithmetic
from smelt.ir.symbolic_dims.redundant_bounds import without_redundant_bounds

FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE)


def slice_rule(library_rule: ShapeRule) -> ShapeRule:
    """Wrap the library's rule of Slice: ``x[0:5]`` of N rows has min(N, 5) rows, not 5.

    It also counts the rows of a dim that is a number, because an end may lie beyond it.
    """

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Infer the shape, then drop a Min or Max in its dims that never has an effect."""
        _infer_slice(library_rule, context, node)
        output = node.outputs[0]
        if output.shape is not None:
            dims = [without_redundant_bounds(dim) for dim in output.shape.dims]
            if dims != [*output.shape.dims]:
                output.shape = ir.Shape(dims)

    return infer


def _infer_slice(library_rule: ShapeRule, context: ShapeInferenceContext, node: ir.Node) -> None:
    """Infer the shape of Slice; each dim that is only a guess gets a new symbol."""
    shape = _constant_slice(context, node)
    if shape is not None:
        shape = context.name_anonymous_dims_in_shape(shape)
        dtype = node.inputs[0].dtype if node.inputs[0] is not None else None
        context.set_shape_and_dtype(node.outputs[0], shape, dtype)
        node.outputs[0].shape = shape
        return
    _without_deep_bounds(library_rule, context, node)
    source, output = node.inputs[0], node.outputs[0]
    if source is None or source.shape is None or output.shape is None:
        return
    if not len(source.shape):
        context.record_error(node, "a scalar has no axis to cut")
        return
    if any(is_computed_input(node, index) for index in range(1, 5)):
        output.shape = _run_time_slice(context, node, source.shape, output.shape)
        return
    cuts = constant_cuts(node, len(source.shape))
    dims = zip(source.shape, output.shape, strict=True)
    output.shape = ir.Shape(
        [
            _cut_dim(context, before, after, cuts.get(axis))
            for axis, (before, after) in enumerate(dims)
        ]
    )


def _cut_dim(
    context: ShapeInferenceContext, old_size: Dim, library_size: Dim, cut: Cut | None
) -> Dim:
    """Return the size that ``cut``, with constant start, end and step, leaves of ``old_size``.

    ``library_size`` is the size that the library inferred. A number for a symbolic dim is a guess,
    so a new symbol is returned in its place. ``cut`` is None for an axis that is not sliced.
    """
    if isinstance(old_size, int):
        return library_size if cut is None else _known_rows(old_size, cut, library_size)
    if cut is None:
        return context.new_symbolic_dim() if isinstance(library_size, int) else library_size
    size = None if _is_deep(old_size) else _row_count(old_size, cut)
    size_or_symbol = (
        context.new_symbolic_dim()
        if isinstance(library_size, int) or cut.step < 0
        else library_size
    )
    return size_or_symbol if size is None else size


DEEPEST = 2
"""Nested bounds ``max(0, N - 1)`` in a size, after which a further cut gives a new symbol: SymPy
takes 4 s for a chain of 20 Slices, and 27 s for one of 40."""

MOST_FLOORS = 8
"""The same limit for rounded sizes, as a chain of Slices with step 2 produces them."""


def _constant_slice(context: ShapeInferenceContext, node: ir.Node) -> ir.Shape | None:
    """Return the shape of a Slice with constant bounds whose elements are no sizes; else None.

    This covers nearly all Slices; the library takes 10 ms for each. None also for bounds that
    runtimes read differently.
    """
    source = node.inputs[0]
    shape = source.shape if source is not None else None
    if source is None or shape is None or _may_be_sizes(source, shape):
        return None
    ranges = constant_cuts(node, len(shape)) if len(shape) else {}
    if not ranges or sliced_axes(node, len(shape)) is None:
        return None
    dims = list(shape)
    for axis, cut in ranges.items():
        size = dims[axis]
        if not cut.step or (cut.step < 0 and cut.end in UNBOUNDED):
            return None
        if isinstance(size, int):
            dims[axis] = len(rows_taken(size, cut))
            continue
        rows = _row_count(size, cut)
        if rows is None:
            return None
        is_new = rows is not size and not isinstance(rows, int) and _is_deep(size)
        dims[axis] = context.new_symbolic_dim() if is_new else rows
    return ir.Shape(dims)


def _without_deep_bounds(
    library_rule: ShapeRule, context: ShapeInferenceContext, node: ir.Node
) -> None:
    """Call ``library_rule`` with a fresh symbol for each dim whose text nests many bounds."""
    source = node.inputs[0]
    shape = source.shape if source is not None else None
    deep_axes = [axis for axis, dim in enumerate(shape or ()) if _is_deep(dim)]
    if source is None or shape is None or not deep_axes:
        library_rule(context, node)
        return
    symbols = {axis: context.new_symbolic_dim() for axis in deep_axes}
    source.shape = ir.Shape([symbols.get(axis, dim) for axis, dim in enumerate(shape)])
    try:
        library_rule(context, node)
    finally:
        source.shape = shape
    output = node.outputs[0]
    if output.shape is not None and len(output.shape) == len(shape):
        dims = list(output.shape)
        for axis, symbol in symbols.items():
            dims[axis] = shape[axis] if dims[axis] == symbol else context.new_symbolic_dim()
        output.shape = ir.Shape(dims)


def _may_be_sizes(source: ir.Value, shape: ir.Shape) -> bool:
    """True if the library tracks the elements of ``source``."""
    return len(shape) < 2 and source.dtype not in FLOATS


def _is_deep(dim: int | ir.SymbolicDim) -> bool:
    """True if the text of ``dim`` has as many bounds or floors as the limits allow.

    Another Slice would make it longer and slower to compute with, so a new symbol stands for it.
    """
    text = "" if isinstance(dim, int) or dim.value is None else dim.value.lower()
    bounds = text.count("max(") + text.count("min(")
    return bounds >= DEEPEST or text.count("floor(") + text.count("ceiling(") >= MOST_FLOORS


def _known_rows(size: int, cut: Cut, library_result: int | ir.SymbolicDim) -> int | ir.SymbolicDim:
    """Return the number of rows of ``cut`` in ``size`` rows; ``library_result`` where runtimes
    disagree."""
    _, end, step = cut
    if not step or (step < 0 and end in UNBOUNDED):
        return library_result
    return len(rows_taken(size, cut))


def _run_time_slice(
    context: ShapeInferenceContext, node: ir.Node, source: ir.Shape, guess: ir.Shape
) -> ir.Shape:
    """Return the shape of a Slice with run-time bounds: a sliced axis gets a new symbol.

    Two cases are known: bounds that are expressions of sizes, and windows of constant length.
    ``guess`` is the library's shape, which stays if the sliced axes are unknown.
    """
    axes = sliced_axes(node, len(source))
    if axes is None:
        return guess
    known: dict[int, Dim] = {
        **_between_sizes(context, node, source, axes),
        **(window_sizes(node) or {}),
    }
    dims: list[int | ir.SymbolicDim] = []
    for axis, before in enumerate(source):
        if axis in axes and axis not in known:
            # The library takes an end N - 4 for one from the front, but of 3 rows it is the last.
            dims.append(context.new_symbolic_dim())
        else:
            dims.append(known.get(axis, before))
    return ir.Shape(dims)


def _between_sizes(
    context: ShapeInferenceContext, node: ir.Node, source: ir.Shape, axes: list[int]
) -> dict[int, Dim]:
    """Return, by axis, the number of rows of a Slice with step 1 whose bounds are sizes.

    An example is ``x[N - 1 :]``. Axes whose number of rows is unknown are left out.
    """
    stepped = optional_input(node, 4) is not None
    if stepped and set(constant_ints(node, 4) or [0]) != {1}:
        return {}
    starts, ends = (
        context.get_symbolic_value(value) if value is not None else None
        for value in node.inputs[1:3]
    )
    if starts is None or ends is None or not len(starts) == len(ends) == len(axes):
        return {}
    rows = zip(axes, starts, ends, strict=True)
    sizes = {axis: rows_between(source[axis], start, end) for axis, start, end in rows}
    return {axis: size for axis, size in sizes.items() if size is not None}


def _row_count(dim: ir.SymbolicDim, cut: Cut) -> int | ir.SymbolicDim | None:
    """Return the number of rows that ``cut`` takes of a symbolic dim; None if it is not known."""
    rows = count_open_rows(str(dim), cut) if is_arithmetic(dim) else None
    if rows is None or rows == dim.value:
        return None if rows is None else dim
    if rows.isdigit():
        return int(rows)
    rows_dim = ir.SymbolicDim(without_bound(rows))
    # SymPy writes ``floor(N/2 + 1/2)``, which every other rule then gives for the same size.
    return one_floor(ir.SymbolicDim(expression_of(rows_dim))) if "floor(" in rows else rows_dim
