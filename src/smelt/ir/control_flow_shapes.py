"""Shapes of what branches and loops return, without guessing which way they go.

The library takes the shape of one branch where the other's is unknown, and assumes that what a
loop carries keeps the shape that it starts with. Neither is so: a loop may append to a tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext

from smelt.ir import scope
from smelt.ir.invented_dims import is_invented
from smelt.ir.loop_rounds import makes_a_round, rounds
from smelt.ir.same_shape import same_dim
from smelt.ir.shape_registry import ShapeRule
from smelt.ir.state_types import is_tensor


def merge(
    context: ShapeInferenceContext, a: ir.Shape | None, b: ir.Shape | None
) -> ir.Shape | None:
    """A shape that both have: equal dims stay, others become unknown; None if ranks differ."""
    if a is None or b is None or len(a) != len(b):
        return None
    pairs = zip(a.dims, b.dims, strict=True)
    return ir.Shape([x if same_dim(x, y) else context.new_symbolic_dim() for x, y in pairs])


def infer_if(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Claims every If, but where one branch gives a tensor and the other something else."""
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
        _set(context, output, merge(context, x.shape, y.shape), dtype)
    return True


def infer_loop(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Claims every Loop. What it carries that is no tensor has one type in all rounds.

    What is carried keeps the dims that a round returns as it got them. The others become symbols of
    the body, which stand for another size in each round: they are *varying*, and the body has to
    be inferred once more, with them (``varying_dims`` tells). Where even a rank may change, nothing
    in the body keeps a shape, unless the body never reads what changes: that is as the last round
    leaves it, if there is one.
    """
    body = _body(node)
    if body is None:
        return False
    carried = len(node.inputs) - 2
    ranked = _has_steady_ranks(node, body)
    if not ranked:
        _forget(body, inputs=True)
    elif _widen(context, node, body):
        _forget(body, inputs=False)
    for index, output in enumerate(node.outputs):
        inner = body.outputs[index + 1]
        if index < carried and not _are_tensors(body.inputs[index + 2], inner):
            context.set_type(output, deepcopy(inner.type or body.inputs[index + 2].type))
            continue
        if index < carried:
            shape = _carried_out(context, node, body, index) if ranked else None
        elif ranked and inner.shape is not None:
            dims = [dim if is_outer(dim) else context.new_symbolic_dim() for dim in inner.shape]
            certain = rounds(node)
            count = context.new_symbolic_dim() if certain is None else certain
            shape = ir.Shape([count, *dims])
        else:
            shape = None
        _set(context, output, shape, inner.dtype)
    return True


VARYING = "smelt.varying"
"""The key in the ``meta`` of an input of a Loop's body: which of its dims vary by the round."""


def varying_dims(model: ir.Model) -> int:
    """How many dims of what loops carry are known to vary."""
    return sum(
        len(value.meta.get(VARYING, ()))
        for node in scope.nodes(model)
        if node.op_type == "Loop"
        for graph in scope.subgraphs(node)
        for value in graph.inputs
    )


def is_open(node: ir.Node) -> bool:
    """True for a Loop that carries what may change its shape by the round, or seems to."""
    body = _body(node) if node.op_type == "Loop" else None
    return body is not None and any(
        value.shape is None or VARYING in value.meta for value in body.inputs[2:]
    )


def start_anew(model: ir.Model) -> None:
    """Let the bodies of Loops be inferred from what the loops start with, as if never before.

    A loop inside another may start with what the outer one carries, which is forgotten, too.
    """
    bodies = [
        (node, body)
        for node in scope.nodes(model)
        if node.op_type == "Loop" and (body := _body(node)) is not None
    ]
    carries = [carry for node, body in bodies for carry in _carry(node, body)]
    forgotten = [
        before for start, before, _ in carries if start is not None and start.shape is not None
    ]
    for _, before, _ in carries:
        before.meta.pop(VARYING, None)
    for before in forgotten:
        before.shape = None


def with_steady_states(theirs: ShapeRule) -> ShapeRule:
    """Scan: what is carried has one shape in all rounds (ONNX demands it), that of its start."""

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        theirs(context, node)
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
                output.shape = ir.Shape([x if not is_outer(y) else y for x, y in pairs])

    return infer


def _carried_out(
    context: ShapeInferenceContext, node: ir.Node, body: ir.Graph, index: int
) -> ir.Shape | None:
    """What a Loop returns of what it carries: how it starts, or how a round leaves it."""
    start, before, after = node.inputs[index + 2], body.inputs[index + 2], body.outputs[index + 1]
    if is_unread(before) and after.shape is not None and makes_a_round(node):
        dims = [d if is_outer(d) else context.new_symbolic_dim() for d in after.shape]
        return ir.Shape(dims)
    if start is None or start.shape is None:
        return None
    if after.shape is not None:
        return merge(context, start.shape, after.shape)
    varying = before.meta.get(VARYING, ())
    started = enumerate(start.shape.dims)
    return ir.Shape([context.new_symbolic_dim() if i in varying else dim for i, dim in started])


def is_outer(dim: int | ir.SymbolicDim) -> bool:
    """True for sizes that are the same in all rounds: numbers, and names that a model gives."""
    return isinstance(dim, int) or (dim.value is not None and not is_invented(dim.value))


def is_unread(value: ir.Value) -> bool:
    """True for an input of a body that nothing in the body reads or returns."""
    return not value.uses() and not value.is_graph_output()


def _body(node: ir.Node) -> ir.Graph | None:
    attr = node.attributes.get("body")
    if attr is None or attr.is_ref():
        return None
    body = attr.as_graph()
    fits = len(body.outputs) == len(node.outputs) + 1 and len(body.inputs) == len(node.inputs)
    return body if fits else None


def _carry(node: ir.Node, body: ir.Graph) -> Iterator[tuple[ir.Value | None, ir.Value, ir.Value]]:
    """What is carried: how it starts, as a round gets it, and as the round returns it."""
    for index in range(len(node.inputs) - 2):
        yield node.inputs[index + 2], body.inputs[index + 2], body.outputs[index + 1]


def _has_steady_ranks(node: ir.Node, body: ir.Graph) -> bool:
    """True if every round returns tensors of the ranks that it got, and all are known, but for
    what the body does not read."""
    for values in _carry(node, body):
        if is_unread(values[1]) or not _are_tensors(*values[1:]):
            continue
        shapes = [value.shape for value in values if value is not None]
        ranks = {None if shape is None else len(shape) for shape in shapes}
        if len(shapes) < 3 or len(ranks) > 1 or None in ranks:
            return False
    return True


def _widen(context: ShapeInferenceContext, node: ir.Node, body: ir.Graph) -> bool:
    """Make those dims symbols that a round may return otherwise than it got; False if none."""
    widened = False
    for start, before, after in _carry(node, body):
        if start is None or start.shape is None or before.shape is None or after.shape is None:
            continue
        if is_unread(before):
            continue
        known = before.meta.get(VARYING, frozenset())
        rows = enumerate(zip(start.shape, before.shape, after.shape, strict=True))
        found = {i for i, (x, y, z) in rows if not (same_dim(x, y) and same_dim(y, z))} - known
        if found:
            dims = enumerate(before.shape.dims)
            before.shape = ir.Shape(
                [context.new_symbolic_dim() if i in found else d for i, d in dims]
            )
            before.meta[VARYING] = known | found
            widened = True
    return widened


def _forget(body: ir.Graph, *, inputs: bool) -> None:
    """Drop the shapes inside a body that may meet other shapes in later rounds."""
    for graph in scope.graphs_below(body):
        for node in graph:
            for value in node.outputs:
                value.shape = None
    if inputs:
        for value in body.inputs[2:]:
            value.shape = None


def _are_tensors(*values: ir.Value) -> bool:
    return all(map(is_tensor, values))


def _set(
    context: ShapeInferenceContext,
    value: ir.Value,
    shape: ir.Shape | None,
    dtype: ir.DataType | None,
) -> None:
    if shape is None and context.policy == "override":
        value.shape = None
    if dtype is not None or shape is not None:
        context.set_shape_and_dtype(value, shape, dtype)
