"""Assumptions about the shapes of loop states in the body of a Loop.

In the first iteration a state has its initial shape. Inference assumes this for all iterations, and
notes each dim that the body shows to vary. Then it starts again with symbols for these dims, until
no further one is found (``ShapeInference.infer_model``).
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext

from smelt.ir import scope
from smelt.ir.shapes.inferred_facts import forget
from smelt.ir.shapes.state_types import is_tensor

VARYING = "smelt.varying"
"""Key in the ``meta`` of an input of a Loop's body: the axes whose size varies between
iterations."""

RANK = -1
"""Among the varying axes: the rank of the state varies or is unknown."""


def body_of(node: ir.Node) -> ir.Graph | None:
    """Return the body of a Loop; None for other nodes and for bodies with the wrong number of
    ports."""
    attr = node.attributes.get("body") if node.op_type == "Loop" and not node.domain else None
    if attr is None or attr.is_ref():
        return None
    body = attr.as_graph()
    fits = len(body.outputs) == len(node.outputs) + 1 and len(body.inputs) == len(node.inputs)
    return body if fits else None


def states_of(
    node: ir.Node, body: ir.Graph
) -> Iterator[tuple[ir.Value | None, ir.Value, ir.Value]]:
    """Yield each state as (initial value, body input, body output)."""
    for index in range(len(node.inputs) - 2):
        yield node.inputs[index + 2], body.inputs[index + 2], body.outputs[index + 1]


def is_unread(value: ir.Value) -> bool:
    """True for an input of a body that nothing in the body reads or returns."""
    return not value.uses() and not value.is_graph_output()


def varying(state: ir.Value) -> frozenset[int]:
    """Return the axes of a Loop's body input that are known to vary between iterations."""
    axes: frozenset[int] = state.meta.get(VARYING, frozenset())
    return axes


def varying_dims(model: ir.Model) -> int:
    """Return the number of dims of loop states that are known to vary.

    Inference repeats until this number no longer grows.
    """
    states = (before for node, body in _loops(model) for _, before, _ in states_of(node, body))
    return sum(len(varying(before)) for before in states)


def is_open(node: ir.Node) -> bool:
    """True for a Loop with a state whose shape may change between iterations."""
    body = body_of(node)
    return body is not None and any(
        value.shape is None or VARYING in value.meta for value in body.inputs[2:]
    )


def forget_varying(model: ir.Model) -> None:
    """Remove the notes which dims of loop states vary between iterations."""
    for node, body in _loops(model):
        for _, before, _ in states_of(node, body):
            before.meta.pop(VARYING, None)


def open_states(context: ShapeInferenceContext, node: ir.Node) -> None:
    """Give the body inputs of a Loop the initial shapes of the states, with new symbols for varying
    dims.

    Call this each time before the body is inferred.
    """
    body = body_of(node)
    if body is None:
        return
    for start, before, _ in states_of(node, body):
        if not is_tensor(before) or start is None or not is_tensor(start):
            continue
        axes = varying(before)
        if start.shape is None or RANK in axes:
            before.shape = None
            continue
        dims = context.name_anonymous_dims_in_shape(start.shape).dims
        before.shape = ir.Shape(
            [context.new_symbolic_dim() if i in axes else dim for i, dim in enumerate(dims)]
        )


def forget_body_facts(context: ShapeInferenceContext, body: ir.Graph) -> None:
    """Erase the facts inferred in a body, because sizes may vary between iterations."""
    for graph in scope.graphs_below(body):
        inner_inputs = [] if graph is body else graph.inputs
        for value in inner_inputs:
            if value.shape is not None:
                value.shape = ir.Shape([context.new_symbolic_dim() for _ in value.shape])
        for node in graph:
            for value in node.outputs:
                forget(context, value)


def forget_varying_bodies(context: ShapeInferenceContext, model: ir.Model) -> None:
    """Erase inferred and declared facts in each loop body that has a varying state."""
    for node, body in _loops(model):
        if any(varying(before) for _, before, _ in states_of(node, body)):
            forget_body_facts(context, body)


def _loops(model: ir.Model) -> list[tuple[ir.Node, ir.Graph]]:
    """Return the Loops of ``model`` that have a valid body, each with the body."""
    bodies = ((node, body_of(node)) for node in scope.nodes(model) if node.op_type == "Loop")
    return [(node, body) for node, body in bodies if body is not None]
