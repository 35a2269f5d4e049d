"""Turn recurrent cells that are written out step by step into one LSTM, GRU or RNN.

    before   x: B,T,I ─> Gather(0) ─> cell(h0, c0) ─> h1, c1     (Gemm, Split, Sigmoid, Tanh, ...)
             x: B,T,I ─> Gather(1) ─> cell(h1, c1) ─> h2, c2     ... h1, h2, ... ─> Concat ─> y
    after    x ─> Transpose ─> LSTM(W, R, b, h0, c0) ─> y

PyTorch's LSTMCell, GRUCell and RNNCell in a Python loop, Keras layers with ``unroll``, and JAX
cells in a Python loop are exported so. The steps may run from the last element to the first.

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
        while not rewriter.exhausted and _rolls(cx, rewriter, stats, reader, graph, version):
            pass  # a layer above may read the results of the new node


def _rolls(
    cx: PassContext,
    rewriter: Rewriter,
    stats: RuleStats,
    reader: CellReader,
    graph: ir.Graph,
    version: int,
) -> bool:
    """Replace one chain of ``graph``; return False, with near misses in ``stats``, if there is
    none."""
    against: list[tuple[str, ir.Node]] = []
    alive = [node for node in graph if node not in rewriter.dead]
    for steps in _chains(cx, reader, alive, version):
        root = _node(steps.cells[0].result)
        why = _obstacle(cx, steps)
        if why is None:
            try:
                _roll(cx, rewriter, steps)
            except Refused as refused:
                why = str(refused)
            else:
                stats.fired[f"{operator_of(steps.cells[0])} of {len(steps.cells)} steps"] += 1
                return True
        against.append((why, root))
    for why, root in against:
        stats.miss(RULE, why, root)
    return False


def _node(value: ir.Value) -> ir.Node:
    node = value.producer()
    assert node is not None
    return node


def _chains(
    cx: PassContext, reader: CellReader, nodes: list[ir.Node], version: int
) -> Iterator[Steps]:
    """Yield each chain of successive steps among ``nodes`` once, lower layers first."""
    found = [
        cell
        for node in nodes
        if not node.domain and node.op_type in ROOTS and (cell := reader.cell(node)) is not None
    ]
    by_result = {cell.result: cell for cell in found}
    linked = {c.result: _linked(c, by_result) for c in found} if len(found) >= FEWEST else {}
    followers = {before for _, before in filter(None, linked.values())}
    for cell in found:
        if cell.result not in followers and linked.get(cell.result) is not None:
            yield from _runs(cx, _chain(cell, linked, by_result), version)


Links = Mapping[ir.Value, "tuple[Cell, ir.Value] | None"]


def _linked(cell: Cell, by_result: Mapping[ir.Value, Cell]) -> tuple[Cell, ir.Value] | None:
    """Return ``cell`` with its state known, and that state: the result of the previous step."""
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
    """Return ``cell`` with the state under which it is a step of the same cell as ``other``, else
    None."""
    for state in cell.operands() if cell.state is None else (cell.state,):
        known = cell.with_state(state)
        if known is not None and _is_like(known, other):
            return known
    return None


def _chain(last: Cell, linked: Links, by_result: Mapping[ir.Value, Cell]) -> list[Cell]:
    """Return the steps that lead to ``last`` with the same constants, first to last, states
    known."""
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
    """True if both are steps of the same cell."""
    if a.state is None or b.state is None or (a.kind, a.before) != (b.kind, b.before):
        return False
    weights = [(c.input_weights(c.input()), c.state_weights(c.state)) for c in (a, b) if c.state]
    return weights[0] == weights[1] and a.biases() == b.biases()  # keeps 2


def _runs(cx: PassContext, chain: list[Cell], version: int) -> Iterator[Steps]:
    """Yield the longest segments of ``chain`` that read one sequence in order."""
    cells: list[Cell] = []
    elements: list[Element] = []
    for cell in chain:
        element = element_of(cell.input(), cx.constants, version)
        if not cells or element is None or not _continues(cells, elements, cell, element):
            if len(cells) >= FEWEST:  # needs 1
                yield Steps(tuple(cells), tuple(elements))
            cells, elements = [], []
        if element is not None:
            cells.append(cell)
            elements.append(element)
    if len(cells) >= FEWEST:
        yield Steps(tuple(cells), tuple(elements))


def _continues(cells: list[Cell], elements: list[Element], cell: Cell, element: Element) -> bool:
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
    given = [v for v in (first.state, first.memory) if v and not is_zero(v, cx.constants)]
    made = [v for cell in steps.cells for v in (cell.result, cell.next_memory) if v]
    for value in (*given, *made):  # needs 3
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
    return not value.is_graph_output() and reader_outside(value, nodes) is None


def _roll(cx: PassContext, rewriter: Rewriter, steps: Steps) -> None:
    """Insert the operator before the result of the first step, and replace all results by its
    outputs."""
    first, last = steps.cells[0], steps.cells[-1]
    nodes = {node: None for cell in steps.cells for node in cell.nodes}
    b = rewriter.builder(_node(first.result), nodes, RULE)
    order = [cell.result for cell in steps.cells]
    if steps.stride < 0:
        order.reverse()
    kept = [at for at, value in enumerate(order) if not _is_inside(value, nodes)]
    memory = last.next_memory
    is_kept = memory is not None and not _is_inside(memory, nodes)
    ends = kept == [order.index(last.result)]
    outputs = layer(cx.constants, b, steps, 3 if is_kept else 2 if ends else 1)
    shape = first.result.shape
    assert shape is not None
    batch = len(shape) == 2
    sequence = b.op("Squeeze", outputs[0], b.const_i64([1] if batch else [1, 2]))
    for concat, axis in _stacks(order, cx):
        perm = [*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)]
        whole = sequence if axis == 0 else b.op("Transpose", sequence, perm=perm)
        rewriter.replace(concat, [whole], rule=RULE)
    kept = [at for at, value in enumerate(order) if not _is_inside(value, nodes)]
    final = b.const_i64([0] if batch else [0, 1])
    for at in kept:
        if ends:
            element = b.op("Squeeze", outputs[1], final)
        else:
            element = b.op("Gather", sequence, b.constant(np.int64(at)), axis=0)
        rewriter.replace(_node(order[at]), [element], rule=RULE)
    if memory is not None and is_kept:
        rewriter.replace(_node(memory), [b.op("Squeeze", outputs[2], final)], rule=RULE)


def _stacks(order: list[ir.Value], cx: PassContext) -> list[tuple[ir.Node, int]]:
    """Return the Concats that stack the results of all steps in sequence order, with their axes."""
    found: dict[ir.Node, int] = {}
    for put in scope.consumers(order[0]):
        for concat in scope.consumers(put.outputs[0]) if put.outputs else ():
            stack = stack_of(concat.outputs[0], cx.constants, Walk(concat))
            if stack is not None and list(stack.values) == order:
                found[concat] = stack.axis
    return list(found.items())
