"""Shapes of the outputs of If, Loop and Scan, right for every branch and number of iterations.

The library, onnx-shape-inference, takes the shape of one branch where the other's is unknown, and
assumes that the state of a loop keeps its initial shape. Both may be wrong: a loop may append to a
tensor.
"""

from __future__ import annotations

from copy import deepcopy

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext

from smelt.ir.loop_rounds import runs_at_least_once, trip_count
from smelt.ir.same_shape import same_dim
from smelt.ir.shapes.loop_states import (
    RANK,
    VARYING,
    body_of,
    forget_body_facts,
    is_unread,
    open_states,
    states_of,
    varying,
)
from smelt.ir.shapes.shape_registry import ShapeRule
from smelt.ir.shapes.state_types import is_tensor
from smelt.ir.symbolic_dims.invented_dims import is_invented


def merge(
    context: ShapeInferenceContext, a: ir.Shape | None, b: ir.Shape | None
) -> ir.Shape | None:
    """Return a shape that covers ``a`` and ``b``: unequal dims become unknown; None if ranks
    differ."""
    if a is None or b is None or len(a) != len(b):
        return None
    pairs = zip(a.dims, b.dims, strict=True)
    return ir.Shape([x if same_dim(x, y) else context.new_symbolic_dim() for x, y in pairs])


def infer_if(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Infer the outputs of an If from those of both branches.

    False leaves the node to the library: a branch is missing, or the branches return
    sequences or optionals of different types.
    """
    branches = [node.attributes.get(name) for name in ("then_branch", "else_branch")]
    if any(branch is None or branch.is_ref() for branch in branches):
        return False
    first, second = (branch.as_graph().outputs for branch in branches if branch is not None)
    if len(first) != len(second) or len(first) != len(node.outputs):
        return False
    pairs = list(zip(first, second, strict=True))
    if any(x.type and y.type and x.type != y.type for x, y in pairs if not _are_tensors(x, y)):
        return False
    for output, (x, y) in zip(node.outputs, pairs, strict=True):
        if not _are_tensors(x, y):
            context.set_type(output, deepcopy(x.type or y.type))
            continue
        dtype = x.dtype if x.dtype is not None else y.dtype
        _set_shape(context, output, merge(context, x.shape, y.shape), dtype)
    return True


def infer_loop(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Infer the outputs of a Loop; False only if it has no valid body.

    A state keeps the dims that every iteration returns unchanged. Other dims are noted as varying,
    and the shapes in the body are erased, because they hold for the first iteration only. If the
    rank of a state may change, its shape is unknown. A state that the body never reads has the
    shape that the last iteration returns, if there is one. A state that is no tensor has one type
    in all iterations.
    """
    body = body_of(node)
    if body is None:
        return False
    if _note_varying(node, body):
        open_states(context, node)
        forget_body_facts(context, body)
    state_count = len(node.inputs) - 2
    for index, output in enumerate(node.outputs):
        inner = body.outputs[index + 1]
        if index < state_count and not _are_tensors(body.inputs[index + 2], inner):
            context.set_type(output, deepcopy(inner.type or body.inputs[index + 2].type))
            continue
        if index < state_count:
            shape = _final_shape(context, node, body, index)
        elif inner.shape is not None:
            dims = [dim if is_outer(dim) else context.new_symbolic_dim() for dim in inner.shape]
            trip_count_if_known = trip_count(node)
            count = (
                context.new_symbolic_dim() if trip_count_if_known is None else trip_count_if_known
            )
            shape = ir.Shape([count, *dims])
        else:
            shape = None
        _set_shape(context, output, shape, inner.dtype)
    return True


def with_steady_states(library_rule: ShapeRule) -> ShapeRule:
    """Wrap the rule of Scan: ONNX requires that a state keeps its initial shape in all
    iterations."""

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Infer the shapes; a dim that only the body names becomes the initial one."""
        library_rule(context, node)
        scanned = node.attributes.get("num_scan_inputs")
        if context.opset < 9 or scanned is None or scanned.is_ref():
            return
        starts = node.inputs[: len(node.inputs) - scanned.as_int()]
        for start, output in zip(starts, node.outputs, strict=False):
            if start is None or start.shape is None:
                continue
            ends = start.shape if output.shape is None else output.shape
            if len(ends) == len(start.shape):
                pairs = zip(start.shape, ends, strict=True)
                output.shape = ir.Shape(
                    [
                        initial_dim if not is_outer(final_dim) else final_dim
                        for initial_dim, final_dim in pairs
                    ]
                )

    return infer


def _final_shape(
    context: ShapeInferenceContext, node: ir.Node, body: ir.Graph, index: int
) -> ir.Shape | None:
    """Return the shape of state ``index`` of a Loop after its last iteration; None if unknown.

    The loop may run no iteration, so a dim is known only if the initial state has it, too.
    """
    start, before, after = node.inputs[index + 2], body.inputs[index + 2], body.outputs[index + 1]
    if is_unread(before) and after.shape is None:
        return None
    if is_unread(before) and after.shape is not None and runs_at_least_once(node):
        dims = [d if is_outer(d) else context.new_symbolic_dim() for d in after.shape]
        return ir.Shape(dims)
    if start is None or start.shape is None or RANK in varying(before):
        return None
    if after.shape is not None:
        return merge(context, start.shape, after.shape)
    initial_dims = enumerate(start.shape.dims)
    varying_axes = varying(before)
    return ir.Shape(
        [context.new_symbolic_dim() if i in varying_axes else dim for i, dim in initial_dims]
    )


def is_outer(dim: int | ir.SymbolicDim) -> bool:
    """True if ``dim`` is the same in all iterations of a body: a number, or a symbol of the model.

    A symbol that inference invented may stand for another size in each iteration.
    """
    return isinstance(dim, int) or (dim.value is not None and not is_invented(dim.value))


def _note_varying(node: ir.Node, body: ir.Graph) -> bool:
    """Note the dims of states that an iteration may change; False if all were noted before.

    A state that the body does not read is skipped: its dims may vary without effect on the body.
    """
    is_changed = False
    for start, before, after in states_of(node, body):
        if is_unread(before) or not _are_tensors(before, after) or RANK in varying(before):
            continue
        known = varying(before)
        axes = known | _varying_in(start, before, after)
        if axes != known:
            before.meta[VARYING] = axes
            is_changed = True
    return is_changed


def _varying_in(start: ir.Value | None, before: ir.Value, after: ir.Value) -> frozenset[int]:
    """Return the axes of a state that one iteration changes, or {RANK} if its rank is not kept."""
    states = [value for value in (start, before, after) if value is not None]
    known = [value.shape.dims for value in states if value.shape is not None]
    if len(known) < 3 or len({len(dims) for dims in known}) > 1:
        return frozenset({RANK})
    dims_of_axes = enumerate(zip(*known, strict=True))
    return frozenset(
        i
        for i, (initial_dim, dim_before, dim_after) in dims_of_axes
        if not (same_dim(initial_dim, dim_before) and same_dim(dim_before, dim_after))
    )


def _are_tensors(*values: ir.Value) -> bool:
    """True if none of ``values`` is known to be a sequence or an optional."""
    return all(map(is_tensor, values))


def _set_shape(
    context: ShapeInferenceContext,
    value: ir.Value,
    shape: ir.Shape | None,
    dtype: ir.DataType | None,
) -> None:
    """Set shape and dtype of ``value``; an unknown shape clears the old one under policy
    "override"."""
    if shape is None and context.policy == "override":
        value.shape = None
    if dtype is not None or shape is not None:
        context.set_shape_and_dtype(value, shape, dtype)
