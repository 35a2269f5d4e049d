"""Turn recurrent cells that are written out step by step into one LSTM, GRU or RNN.

    before   x: B,T,I ─> Gather(0) ─> cell(h0, c0) ─> h1, c1     (Gemm, Split, Sigmoid, Tanh, ...)
             x: B,T,I ─> Gather(1) ─> cell(h1, c1) ─> h2, c2     ... h1, h2, ... ─> Concat ─> y
    after    x ─> Transpose ─> LSTM(W, R, b, h0, c0) ─> y

PyTorch's LSTMCell, GRUCell and RNNCell in a Python loop, Keras layers with ``unroll``, and JAX
cells in a Python loop are exported in this form. The steps may run from the last element to the
first.

Needs    (1) at least 3 steps of the same operators with the same constants, in float32; (2) inputs
         that are successive elements of one sequence along one axis; (3) a state, and memory, of
         the same dims in all steps.
Keeps    (1) cells if another node reads a gate, or the memory before the last step; (2) skipped
         steps, different constants in a step, and cells with peepholes or other activations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.same_shape import same_dim, same_shape
from smelt.ir.walk import Walk, reader_outside
from smelt.ir.worklist import RuleStats
from smelt.passes.base import Options, PassContext, graph_pass, rounding
from smelt.passes.recurrence.cells import ROOTS, Cell, CellReader
from smelt.passes.recurrence.gates import GateReader
from smelt.passes.recurrence.layer import Steps, is_zero, layer, operator_of
from smelt.passes.recurrence.sequence import Element, element_of
from smelt.passes.tensors.stack import stack_of

RULE = "roll_recurrent_cells"
FEWEST = 3
"""Number of steps from which one operator is smaller and faster."""


@graph_pass(RULE, __doc__, exactness=rounding(16))
def roll_recurrent_cells(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Replace every chain of steps in all graphs."""
    index = cx.index()
    if not {("", "Tanh"), ("", "Relu")} & set(index.operators):
        return
    version = cx.model.opset_imports.get("", 1)
    for graph in list(index.graphs):
        reader = CellReader(GateReader(graph, cx.constants, version))
        while not rewriter.exhausted and _roll_one_chain(
            cx, rewriter, stats, reader, graph, version
        ):
            pass  # a layer above may read the results of the new node


def _roll_one_chain(
    cx: PassContext,
    rewriter: Rewriter,
    stats: RuleStats,
    reader: CellReader,
    graph: ir.Graph,
    version: int,
) -> bool:
    """Replace one chain of ``graph`` and return True; without one, record near misses, return
    False."""
    refusals: list[tuple[str, ir.Node]] = []
    alive = [node for node in graph if node not in rewriter.dead]
    for steps in _chains(cx, reader, alive, version):
        root = _producer(steps.cells[0].result)
        why = _obstacle(cx, steps)
        if why is None:
            try:
                _roll(cx, rewriter, steps)
            except Refused as refused:
                why = str(refused)
            else:
                stats.fired[f"{operator_of(steps.cells[0])} of {len(steps.cells)} steps"] += 1
                return True
        refusals.append((why, root))
    for why, root in refusals:
        stats.miss(RULE, why, root)
    return False


def _producer(value: ir.Value) -> ir.Node:
    """Return the node that computes ``value``."""
    node = value.producer()
    assert node is not None
    return node


def _chains(
    cx: PassContext, reader: CellReader, nodes: list[ir.Node], version: int
) -> Iterator[Steps]:
    """Yield each chain of successive steps among ``nodes`` once, lower layers first."""
    roots = [node for node in nodes if not node.domain and node.op_type in ROOTS]
    cells = [cell for cell in map(reader.cell, roots) if cell is not None]
    by_result = {cell.result: cell for cell in cells}
    step_before = (
        {c.result: _with_previous_state(c, by_result) for c in cells}
        if len(cells) >= FEWEST
        else {}
    )
    has_next_step = {before for _, before in filter(None, step_before.values())}
    for cell in cells:
        # The last step of a chain; `_chain` follows it back to the first one.
        if cell.result not in has_next_step and step_before.get(cell.result) is not None:
            yield from _segments(cx, _chain(cell, step_before, by_result), version)


Links = Mapping[ir.Value, "tuple[Cell, ir.Value] | None"]
"""For the result of each cell: the cell with its state known, and that state."""


def _with_previous_state(
    cell: Cell, by_result: Mapping[ir.Value, Cell]
) -> tuple[Cell, ir.Value] | None:
    """Return ``cell`` with its state known, and that state, the result of the previous step, else
    None."""
    states = cell.operands() if cell.state is None else (cell.state,)
    for state in states:
        before = by_result.get(state)
        if before is None or before.kind != cell.kind or before.next_memory is not cell.memory:
            continue
        known = cell.with_state(state)
        if known is not None and _as_step_like(before, known) is not None:
            return known, state
    return None


def _as_step_like(cell: Cell, other: Cell) -> Cell | None:
    """Return ``cell`` with the state that makes it a step of the same cell as ``other``, else
    None."""
    candidates = cell.operands() if cell.state is None else (cell.state,)
    for state in candidates:
        known = cell.with_state(state)
        if known is not None and _is_like(known, other):
            return known
    return None


def _chain(last: Cell, linked: Links, by_result: Mapping[ir.Value, Cell]) -> list[Cell]:
    """Return the steps that lead to ``last``, first to last, with known states."""
    steps: list[Cell] = []
    result = last.result
    while (link := linked.get(result)) is not None:
        steps.append(link[0])
        result = link[1]
    first = by_result.get(result)
    known = _as_step_like(first, steps[-1]) if first is not None and steps else None
    if known is not None:
        steps.append(known)
    return steps[::-1]


def _is_like(a: Cell, b: Cell) -> bool:
    """True if both are steps of the same cell, with the same constants."""
    if a.state is None or b.state is None or (a.kind, a.before) != (b.kind, b.before):
        return False
    return (
        a.input_weights(a.input()) == b.input_weights(b.input())
        and a.state_weights(a.state) == b.state_weights(b.state)
        and a.biases() == b.biases()
    )  # keeps 2


def _segments(cx: PassContext, chain: list[Cell], version: int) -> Iterator[Steps]:
    """Yield the longest segments of ``chain`` that read one sequence in order."""
    cells: list[Cell] = []
    elements: list[Element] = []
    for cell in chain:
        element = element_of(cell.input(), cx.constants, version)
        if not cells or element is None or not _is_next_step(cells, elements, cell, element):
            if len(cells) >= FEWEST:  # needs 1
                yield Steps(tuple(cells), tuple(elements))
            cells, elements = [], []
        if element is not None:
            cells.append(cell)
            elements.append(element)
    if len(cells) >= FEWEST:
        yield Steps(tuple(cells), tuple(elements))


def _is_next_step(cells: list[Cell], elements: list[Element], cell: Cell, element: Element) -> bool:
    """True if ``cell`` reads the next element of the sequence with the same constants."""
    last = elements[-1]
    if (last.source, last.axis) != (element.source, element.axis):  # needs 2
        return False
    stride = element.index - last.index
    usual = (1, -1) if len(elements) == 1 else (last.index - elements[-2].index,)
    return stride in usual and _is_like(cells[-1], cell)


def _obstacle(cx: PassContext, steps: Steps) -> str | None:
    """Return why ``steps`` cannot become one operator; None if they can."""
    first, last = steps.cells[0], steps.cells[-1]
    if first.result.dtype != ir.DataType.FLOAT:
        return "the elements are not float32"
    if first.result.shape is None or len(first.result.shape) not in (1, 2):
        return "the rank of the state is not 1 or 2"
    initial_states = [v for v in (first.state, first.memory) if v and not is_zero(v, cx.constants)]
    states = [v for cell in steps.cells for v in (cell.result, cell.next_memory) if v]
    for value in (*initial_states, *states):  # needs 3
        if not same_shape(value.shape, first.result.shape):
            return "a state is not proved to have the dims of the others"
    if len(first.result.shape) == 2:
        rows = first.input().shape
        if rows is None or not same_dim(rows[0], first.result.shape[0]):
            return "the batch sizes of state and sequence differ"
    nodes = set().union(*(cell.nodes for cell in steps.cells))
    results = {cell.result for cell in steps.cells} | {last.next_memory}
    for node in nodes:  # keeps 1
        for value in node.outputs:
            if value not in results and not _is_inside(value, nodes):
                return f"the result of the {node.op_type} is read elsewhere"
    return None


def _is_inside(value: ir.Value, nodes: Collection[ir.Node]) -> bool:
    """True if only ``nodes`` read ``value``, so that it disappears with them."""
    return not value.is_graph_output() and reader_outside(value, nodes) is None


def _roll(cx: PassContext, rewriter: Rewriter, steps: Steps) -> None:
    """Insert the operator before the result of the first step; its outputs replace all results."""
    first, last = steps.cells[0], steps.cells[-1]
    nodes = {node: None for cell in steps.cells for node in cell.nodes}
    b = rewriter.builder(_producer(first.result), nodes, RULE)
    results = [cell.result for cell in steps.cells]
    if steps.stride < 0:
        results.reverse()
    read_outside = [index for index, value in enumerate(results) if not _is_inside(value, nodes)]
    memory = last.next_memory
    memory_is_read = memory is not None and not _is_inside(memory, nodes)
    only_last_is_read = read_outside == [results.index(last.result)]
    if memory_is_read:
        count = 3
    elif only_last_is_read:
        count = 2
    else:
        count = 1
    outputs = layer(cx.constants, b, steps, count)
    shape = first.result.shape
    assert shape is not None
    has_batch = len(shape) == 2
    sequence = b.op("Squeeze", outputs[0], b.const_i64([1] if has_batch else [1, 2]))
    for concat, axis in _stacks(results, cx):
        perm = [*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)]
        stacked = sequence if axis == 0 else b.op("Transpose", sequence, perm=perm)
        rewriter.replace(concat, [stacked], rule=RULE)
    read_outside = [index for index, value in enumerate(results) if not _is_inside(value, nodes)]
    final = b.const_i64([0] if has_batch else [0, 1])
    for index in read_outside:
        if only_last_is_read:
            element = b.op("Squeeze", outputs[1], final)
        else:
            element = b.op("Gather", sequence, b.constant(np.int64(index)), axis=0)
        rewriter.replace(_producer(results[index]), [element], rule=RULE)
    if memory is not None and memory_is_read:
        rewriter.replace(_producer(memory), [b.op("Squeeze", outputs[2], final)], rule=RULE)


def _stacks(order: list[ir.Value], cx: PassContext) -> list[tuple[ir.Node, int]]:
    """Return the Concats that stack the results of all steps in sequence order, with their axes."""
    axes: dict[ir.Node, int] = {}
    for unsqueeze in scope.consumers(order[0]):
        if not unsqueeze.outputs:
            continue
        for concat in scope.consumers(unsqueeze.outputs[0]):
            stack = stack_of(concat.outputs[0], cx.constants, Walk(concat))
            if stack is not None and list(stack.values) == order:
                axes[concat] = stack.axis
    return list(axes.items())
