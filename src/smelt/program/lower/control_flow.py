"""Lowers If, Loop and Scan to instructions with bodies; a Scan is a Loop over rows of its operands.

Operands of the instruction Loop are the count, the condition, the initial states, the scan inputs
and the captured values. Its attributes:

- ``trip``: the number of iterations, ``UNKNOWN`` if the count or the scan inputs decide it.
- ``states``: the number of states.
- ``counted``: the body takes the iteration number and the condition first, and returns the next
  condition first.
- ``reads``, ``writes``: for each scan input and output, true if its rows go backwards.
- ``most``: the count as an expression of model sizes.
- ``finds``: the run compares the number of rows that it stacked with the declared one, or its
  bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.loop_rounds import runs_at_least_once, trip_count
from smelt.ir.operand_facts.check import misfit
from smelt.ir.same_shape import same_dim
from smelt.ir.scope import is_dead
from smelt.ir.shapes.loop_states import VARYING, is_unread
from smelt.ir.shapes.ruled_out import ruled_out_in
from smelt.program.instruction import FAIL, Dim
from smelt.program.lower.builder import ABSENT, ProgramBuilder
from smelt.program.lower.nodes import lower_body
from smelt.program.lower.registry import lowers

FIRST_SCAN = 9
"""The first opset in which Scan has no batch dim."""

UNKNOWN = -1
"""The number of iterations that is not known before the run."""


@lowers("If")
def branch(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit an If with both branches as bodies.

    Its operands are the condition, then the values that the first branch captures (``split`` is
    their number), then those of the second. Both branches must return the same element types and
    ranks. A size in which they differ depends on data.
    """
    condition = cx.slot(node.inputs[0])
    graphs = [node.attributes[f"{name}_branch"].as_graph() for name in ("then", "else")]
    then, otherwise = _bodies(cx, graphs)
    outputs = []
    for value, then_slot, else_slot in zip(
        node.outputs, then.program.outputs, otherwise.program.outputs, strict=True
    ):
        shape = _branch_shape(cx, value, then.shape(then_slot), otherwise.shape(else_slot))
        outputs.append(cx.new(then.dtype(then_slot), shape, value.name or ""))
        cx.alias(value, outputs[-1])
    inputs = (condition, *then.captured, *otherwise.captured)
    bodies = (then.program, otherwise.program)
    cx.emit_control("If", inputs, outputs, bodies, split=len(then.captured))


def _bodies(cx: ProgramBuilder, graphs: Sequence[ir.Graph]) -> list[ProgramBuilder]:
    """Return the builders of both branches.

    Exporters write a branch for a case that cannot occur, with operands that never fit. Such a
    branch becomes a body that aborts the run, with the results of the other branch.
    """
    failing = [_failing_node(cx, graph) for graph in graphs]
    bodies = [
        lower_body(cx, g, ()) for g, fault in zip(graphs, failing, strict=True) if fault is None
    ]
    if not bodies:
        raise cx.refuse("both branches fail in every run", "correct the operands in one of them")
    for position, fault in enumerate(failing):
        if fault is not None:
            bodies.insert(position, _failing_body(cx, *fault, bodies[0]))
    return bodies


def _failing_node(cx: ProgramBuilder, graph: ir.Graph) -> tuple[ir.Node, str] | None:
    """Return a node at which every run of ``graph`` fails, and the requirement that does not hold;
    None if no node is known to fail. An If fails if both its branches do."""
    failing = ruled_out_in(graph) or misfit(graph, cx.elements, cx.opset)
    branching = (node for node in graph if node.op_type == "If" and not node.domain)
    while failing is None and (node := next(branching, None)) is not None:
        in_branches = [_failing_node(cx, branch) for branch in scope.subgraphs(node)]
        failing = in_branches[0] if in_branches and None not in in_branches else None
    return failing


def _failing_body(
    cx: ProgramBuilder, node: ir.Node, requirement: str, like: ProgramBuilder
) -> ProgramBuilder:
    """Return a body that aborts the run at ``node``, because ``requirement`` does not hold; its
    results have the types and shapes of those of the body ``like``."""
    body = ProgramBuilder(cx.model, cx)
    body.node = node
    body.program.outputs = tuple(
        body.emit_new(FAIL, (), like.shape(slot), dtype=like.dtype(slot), why=requirement)
        for slot in like.program.outputs
    )
    return body


def _branch_shape(
    cx: ProgramBuilder, value: ir.Value, then: Sequence[Dim], otherwise: Sequence[Dim]
) -> list[Dim]:
    """Return the shape of a result of an If; sizes that differ get the symbols of shape
    inference."""
    if len(then) != len(otherwise):
        sizes = " and ".join(str(list(map(str, shape))) for shape in (then, otherwise))
        raise cx.refuse(
            f"the branches give {value.name!r} the sizes {sizes}",
            "reshape both to one rank, or bound the sizes that decide the condition",
        )
    return [
        size if same_dim(size, other_size) else _data_dependent_size(cx, value, axis)
        for axis, (size, other_size) in enumerate(zip(then, otherwise, strict=True))
    ]


@lowers("Loop")
def loop(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a Loop. Its operands are those of the node, then the values that the body captures.

    If the number of iterations is not known and scan outputs have a row for each iteration, their
    number of rows depends on data: ``finds`` is then true.
    """
    graph = node.attributes["body"].as_graph()
    count, condition = cx.slot(cx.input(node, 0)), cx.slot(cx.input(node, 1))
    states = [cx.slot(value) for value in node.inputs[2:]]
    types = [(ir.DataType.INT64, ()), (ir.DataType.BOOL, ())]
    state_types = [_state_type(cx, *pair) for pair in zip(states, graph.inputs[2:], strict=True)]
    body = lower_body(cx, graph, [*types, *state_types])
    scanned = node.outputs[len(states) :]
    known_trip_count = trip_count(node)
    finds = bool(scanned) and known_trip_count is None
    trip = UNKNOWN if known_trip_count is None else known_trip_count
    count_of_rows = _data_dependent_size(cx, scanned[0], 0) if finds else trip
    outputs = _states(cx, node, body, states)
    for value, slot in zip(scanned, body.program.outputs[1 + len(states) :], strict=True):
        shape = (count_of_rows, *body.shape(slot))
        outputs.append(cx.new(body.dtype(slot), shape, value.name or ""))
        cx.alias(value, outputs[-1])
    inputs = (count, condition, *states, *body.captured)
    # memory for rows, and for states that grow, is bounded by the largest number of iterations
    grows = any(VARYING in value.meta for value in graph.inputs[2:])
    limit = node.inputs[0]
    needs_limit = known_trip_count is None and (finds or grows)
    most = (cx.elements(limit) or ()) if needs_limit and limit is not None else ()
    cx.emit_control(
        "Loop",
        inputs,
        outputs,
        (body.program,),
        trip=trip,
        states=len(states),
        counted=True,
        reads=(),
        writes=(False,) * len(scanned),
        most=most,
        finds=finds,
    )


def _state_type(cx: ProgramBuilder, state: int, before: ir.Value) -> tuple[ir.DataType, list[Dim]]:
    """Return element type and dims of the body's input ``before``, whose initial value is in slot
    ``state``; a dim that varies is a symbol."""
    dims, varying = list(cx.shape(state)), before.meta.get(VARYING, ())
    if before.shape is not None and len(before.shape) == len(dims):
        dims = [before.shape[i] if i in varying else dim for i, dim in enumerate(dims)]
    return cx.dtype(state), dims


def _data_dependent_size(cx: ProgramBuilder, value: ir.Value, axis: int) -> Dim:
    """Return the symbol of a data-dependent size: that of shape inference, or a new one."""
    known = value.shape[axis] if value.shape is not None and len(value.shape) > axis else None
    if known is None or (isinstance(known, ir.SymbolicDim) and known.value is None):
        return ir.SymbolicDim(f"_found{len(cx.program.slots)}_{axis}")
    return known


@lowers("Scan")
def scan(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a Scan as a Loop over the first dim of its scan inputs.

    An input that is scanned along another axis is transposed first. A scan output whose rows lie
    along another axis is transposed after the loop.
    """
    if cx.opset < FIRST_SCAN:
        raise cx.refuse(
            "a Scan before opset 9 has a batch dim, which smelt does not lower",
            f"raise the model to opset {FIRST_SCAN}",
        )
    graph, count = node.attributes["body"].as_graph(), node.attributes.get_int("num_scan_inputs", 0)
    slots = [cx.slot(value) for value in node.inputs]
    states, sequences = slots[: len(slots) - count], slots[len(slots) - count :]
    axes = cx.ints(node, "scan_input_axes") or (0,) * count
    rows = [_axis_first(cx, s, axis) for s, axis in zip(sequences, axes, strict=True)]
    types = [(cx.dtype(s), cx.shape(s)) for s in states]
    body = lower_body(
        cx, graph, [*types, *((cx.dtype(row_slot), cx.shape(row_slot)[1:]) for row_slot in rows)]
    )
    outputs = _states(cx, node, body, states)
    scanned_outputs = node.outputs[len(states) :]
    steps = cx.shape(rows[0])[0]
    for slot in body.program.outputs[len(states) :]:
        outputs.append(cx.new(body.dtype(slot), (steps, *body.shape(slot)), node.name or "rows"))
    loop_count = loop_condition = ABSENT  # the rows of the scan inputs end the loop
    inputs = (loop_count, loop_condition, *states, *rows, *body.captured)
    cx.emit_control(
        "Loop",
        inputs,
        outputs,
        (body.program,),
        trip=UNKNOWN,
        states=len(states),
        counted=False,
        reads=_backwards(cx, node, "scan_input_directions", count),
        writes=_backwards(cx, node, "scan_output_directions", len(scanned_outputs)),
        most=(),
        finds=False,
    )
    output_axes = cx.ints(node, "scan_output_axes") or (0,) * len(scanned_outputs)
    for value, slot, axis in zip(scanned_outputs, outputs[len(states) :], output_axes, strict=True):
        scan_axis = cx.axis(axis, len(cx.shape(slot)))
        if scan_axis == 0:
            cx.alias(value, slot)
        elif not is_dead(value):
            perm = (*range(1, scan_axis + 1), 0, *range(scan_axis + 1, len(cx.shape(slot))))
            moved_shape = [cx.shape(slot)[i] for i in perm]
            cx.alias(value, cx.emit_new("Transpose", (slot,), moved_shape, perm=perm))


def _states(
    cx: ProgramBuilder, node: ir.Node, body: ProgramBuilder, states: Sequence[int]
) -> list[int]:
    """Return new slots for the final states of a loop.

    A state keeps the element type and the shape with which it starts, else the node is refused. A
    dim that varies is a symbol in the body, and its final size depends on data. One exception: a
    state that no iteration reads, in a loop that runs at least once, gets the type and shape that
    the body returns.
    """
    # The body of a Loop takes the iteration and a condition first, and returns a condition first.
    outputs, head = [], int(node.op_type == "Loop")
    for index, (value, initial) in enumerate(zip(node.outputs, states, strict=False)):
        inside = body.shape(body.program.inputs[2 * head + index])
        returned = body.program.outputs[head + index]
        varies = [not same_dim(*pair) for pair in zip(inside, cx.shape(initial), strict=True)]
        keeps_type = cx.dtype(initial) == body.dtype(returned) and _same_except(
            inside, body.shape(returned), varies
        )
        if not keeps_type and not _is_replaced(node, index):
            before, after = (list(map(str, s)) for s in (inside, body.shape(returned)))
            raise cx.refuse_size(f"{value.name!r} begins with the sizes {before}, then has {after}")
        dims = [
            _data_dependent_size(cx, value, axis) if keeps_type and varies[axis] else dim
            for axis, dim in enumerate(body.shape(returned))
        ]
        outputs.append(cx.new(body.dtype(returned), dims, value.name or ""))
        cx.alias(value, outputs[-1])
    return outputs


def _is_replaced(node: ir.Node, index: int) -> bool:
    """True if no iteration of a Loop reads state ``index``, and at least one writes it: its initial
    value is a placeholder, whose type does not matter."""
    inputs = node.attributes["body"].as_graph().inputs
    return node.op_type == "Loop" and is_unread(inputs[2 + index]) and runs_at_least_once(node)


def _same_except(shape: Sequence[Dim], other: Sequence[Dim], ignored: Sequence[bool]) -> bool:
    """True if two shapes are equal, apart from the dims that ``ignored`` marks."""
    if len(shape) != len(other):
        return False
    return all(
        is_ignored or same_dim(x, y) for x, y, is_ignored in zip(shape, other, ignored, strict=True)
    )


def _axis_first(cx: ProgramBuilder, slot: int, axis: int) -> int:
    """Return ``slot`` transposed so that ``axis`` comes first."""
    shape = cx.shape(slot)
    scan_axis = cx.axis(axis, len(shape))
    if scan_axis == 0:
        return slot
    perm = (scan_axis, *(i for i in range(len(shape)) if i != scan_axis))
    return cx.emit_new("Transpose", (slot,), [shape[i] for i in perm], perm=perm)


def _backwards(cx: ProgramBuilder, node: ir.Node, name: str, count: int) -> tuple[bool, ...]:
    """Return, for each row operand, True if the attribute ``name`` sets its direction backwards."""
    return tuple(bool(direction) for direction in cx.ints(node, name) or (0,) * count)
