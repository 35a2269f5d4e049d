"""Readers of branches and loops."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.frontends.coreml.call import Call
from smelt.frontends.coreml.lowering import Scope, tensor_type
from smelt.frontends.coreml.registry import reads
from smelt.frontends.coreml.types import onnx_type
from smelt.ir.build import Builder
from smelt.mlpackage.program import Block, TensorType


@reads("cond")
def _cond(call: Call) -> Sequence[ir.Value]:
    """Return the results of the first block where ``pred`` is true, else of the second: an If."""
    blocks = call.operation.blocks
    if len(blocks) != 2:
        raise call.refused(f"it has {len(blocks)} blocks instead of two")
    then, other = (_branch(call, block) for block in blocks)
    count = len(call.operation.outputs)
    return call.builder.ops(
        "If",
        _scalar(call.builder, call.value("pred")),
        outputs=count,
        then_branch=then,
        else_branch=other,
    )


def _scalar(builder: Builder, value: ir.Value) -> ir.Value:
    """Return a bool of one element as a scalar, which ONNX requires of conditions."""
    if value.shape is not None and len(value.shape) == 0:
        return value
    return builder.op("Reshape", value, builder.const_i64([]))


def _branch(call: Call, block: Block) -> ir.Graph:
    """Return a block without inputs as a graph, for a branch of an If."""
    builder, _ = call.builder.branch([])
    scope = Scope(builder, call.scope.shared, call.scope)
    results = scope.body(block, [])
    builder.graph.outputs.extend(_returned(scope, builder, known) for known in results)
    return builder.graph


def _returned(scope: Scope, builder: Builder, known: object) -> ir.Value:
    """Return ``known``, or a copy, in a form that ``builder``'s graph may return.

    A graph returns values of its own nodes, each once; any other value is copied by Identity.
    """
    value = scope.as_value(known)  # type: ignore[arg-type]
    producer = value.producer()
    own = producer is not None and producer.graph is builder.graph
    if not own or any(value is output for output in builder.graph.outputs):
        return builder.op("Identity", value)
    return value


@reads("while_loop")
def _while_loop(call: Call) -> Sequence[ir.Value]:
    """Return the loop variables after the last iteration: an ONNX Loop.

    MIL's first block tests before each iteration, ONNX at the end of each. So the nodes of this
    block are added before the Loop, and again at the end of its body. The inputs of the body are
    the iteration number, the condition, and the loop variables.
    """
    condition, body = call.operation.blocks
    initial = call.values("loop_vars")
    shared = call.scope.shared
    first = call.scope.body(condition, initial)[0]
    kinds = [tensor_type(named.type) for named in body.inputs]
    types = [
        (ir.DataType.INT64, ()),
        (ir.DataType.BOOL, ()),
        *(
            (onnx_type(kind.element), _carried(kind, value in shared.growing))
            for kind, value in zip(kinds, initial, strict=True)
        ),
    ]
    builder, values = call.builder.branch(types)
    growing = [index for index, value in enumerate(initial) if value in shared.growing]
    shared.growing.update(values[2 + index] for index in growing)
    scope = Scope(builder, shared, call.scope)
    results = [scope.as_value(known) for known in scope.body(body, values[2:])]
    again = _scalar(builder, scope.as_value(scope.body(condition, results)[0]))
    for known in (again, *results):
        builder.graph.outputs.append(_returned(scope, builder, known))
    start = _scalar(call.builder, call.scope.as_value(first))
    last = call.builder.ops("Loop", None, start, *initial, outputs=len(initial), body=builder.graph)
    shared.growing.update(last[index] for index in growing)
    return last


def _carried(kind: TensorType, grows: bool) -> tuple[int | None, ...] | None:
    """Return the dims of a loop variable; a list that grows has an open length, its first dim."""
    return kind.dims if not grows or kind.dims is None else (None, *kind.dims[1:])
