"""Partitions a graph into regions for one target and the parts between them.

Each node gets a level, in one pass. A taken node is on the level of the taken nodes it reads, and
above the level of every other node it reads; any other node is on the highest level that it reads.
All taken nodes of one level are a region:

- It is convex: a path that leaves it through another node comes back one level higher.
- It is maximal: each taken node above the first level depends, through a node not taken, on a
  taken node of the level below, so two regions merged into one would not be convex.
- Regions and the parts between them run in the order of levels, so no two wait for each other.

Nodes that depend on constants only, such as dequantized weights, could run anywhere. They go to the
first part that reads them, where they are still known to be constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import onnx_ir as ir

from smelt.ir import constants, scope
from smelt.ir.bounds import Bounds, bounds_of, keep_bounds
from smelt.ir.symbolic_dims.dims import symbols_of


@dataclass
class Part:
    """Nodes that run together, in graph order; ``taken`` if they are a region for the target.

    ``reads`` and ``writes`` are the inputs and outputs, without constants. ``extra`` are constants
    that the graph returns.
    """

    taken: bool
    nodes: list[ir.Node] = field(default_factory=list)
    reads: list[ir.Value] = field(default_factory=list)
    writes: list[ir.Value] = field(default_factory=list)
    extra: list[ir.Value] = field(default_factory=list)


def partition(
    graph: ir.Graph,
    supports: Callable[[ir.Node], bool],
    cost: Callable[[Sequence[ir.Node]], float] | None = None,
) -> list[Part]:
    """Return the parts of ``graph`` in an order in which they can run.

    ``supports`` says which nodes the target takes. A region whose ``cost`` is above 0 is given up,
    and the rest is partitioned again. A constant belongs to each part that reads it; constants that
    the graph returns are ``extra`` results of a last part that is no region. The time is linear in
    the number of nodes, for each repetition.
    """
    nodes = [node for node in graph if not is_constant_node(node)]
    taken = {node for node in nodes if supports(node)}
    while True:
        parts = _nodes_by_level(nodes, taken)
        costly = [
            candidate
            for candidate in parts
            if candidate.taken and cost is not None and cost(candidate.nodes) > 0
        ]
        if not costly:
            break
        taken.difference_update(*(part.nodes for part in costly))
    returned = [value for value in graph.outputs if constants.tensor_of(value) is not None]
    if returned:
        if not parts or parts[-1].taken:
            parts.append(Part(False))
        parts[-1].extra = list(dict.fromkeys(returned))
    connect(graph, parts)
    bounds = bounds_of(graph)
    if bounds:
        for part in parts:
            _read_sizes(part, graph, bounds)
    return parts


def _read_sizes(part: Part, graph: ir.Graph, bounds: Mapping[str, Bounds]) -> None:
    """Add to ``part.reads`` graph inputs, until each bounded symbol of the part is a dim of one.

    A target allocates memory by the bounds, and reads the size of a run off an input.
    """
    values = {*part.reads, *(value for node in part.nodes for value in node.outputs)}
    dims = [dim for value in values for dim in value.shape or ()]
    needed = {name for dim in dims for name in symbols_of(dim)} & bounds.keys()
    known = {str(dim) for value in part.reads for dim in value.shape or ()}
    for value in graph.inputs:
        new_sizes = {str(dim) for dim in value.shape or ()} & (needed - known)
        if new_sizes:
            part.reads.append(value)
            known |= new_sizes


def is_constant_node(node: ir.Node) -> bool:
    """True for a ``Constant`` node."""
    return len(node.outputs) == 1 and constants.tensor_of(node.outputs[0]) is not None


def read_by(node: ir.Node) -> Iterable[ir.Value]:
    """Return the values that ``node`` reads, including captures of its subgraphs."""
    captured = () if scope.is_flat(node) else scope.captures(node)
    return (value for value in chain(node.inputs, captured) if value is not None)


def _nodes_by_level(nodes: Sequence[ir.Node], taken: set[ir.Node]) -> list[Part]:
    """Return the nodes grouped by level, taken nodes before others on each level."""
    level: dict[ir.Node, int] = {}
    parts: dict[tuple[int, bool], Part] = {}
    for node in nodes:
        is_taken = node in taken
        highest = 0 if is_taken else -1
        for value in read_by(node):
            producer = value.producer()
            if producer is not None and producer in level:
                step = is_taken and producer not in taken
                highest = max(highest, level[producer] + step)
        level[node] = highest
    _delay_constants(nodes, taken, level)
    for node in nodes:
        is_taken = node in taken
        parts.setdefault((level[node], not is_taken), Part(is_taken)).nodes.append(node)
    return [parts[key] for key in sorted(parts)]


def _delay_constants(
    nodes: Sequence[ir.Node], taken: set[ir.Node], level: dict[ir.Node, int]
) -> None:
    """Raise the level of each node that depends only on constants to that of its first reader.

    If the reader is taken and the node is not, the node gets the level below the reader's.
    """
    free: set[ir.Node] = set()
    for node in nodes:
        if all(_is_known(value, free) for value in read_by(node)):
            free.add(node)
    latest: dict[ir.Node, int] = {}
    for node in reversed(nodes):
        if node in free and node in latest:
            level[node] = latest[node]
        for value in read_by(node):
            producer = value.producer()
            if producer is not None and producer in free:
                last = level[node] - (node in taken and producer not in taken)
                latest[producer] = min(last, latest.get(producer, last))


def _is_known(value: ir.Value, free: set[ir.Node]) -> bool:
    """True for a constant, and for a result of a node in ``free``."""
    return constants.tensor_of(value) is not None or value.producer() in free


def connect(graph: ir.Graph, parts: Sequence[Part]) -> None:
    """Set the ``reads`` and ``writes`` of each part: values of other parts, and values that other
    parts or the graph's callers need."""
    part_of = {node: i for i, part in enumerate(parts) for node in part.nodes}
    read_elsewhere: dict[ir.Value, None] = dict.fromkeys(graph.outputs)
    for i, part in enumerate(parts):
        reads: dict[ir.Value, None] = {}
        for node in part.nodes:
            for value in read_by(node):
                producer = value.producer()
                if constants.tensor_of(value) is None and part_of.get(producer) != i:  # type: ignore[arg-type]
                    reads[value] = None
        part.reads = list(reads)
        read_elsewhere.update(reads)
    for part in parts:
        written = (value for node in part.nodes for value in node.outputs)
        part.writes = [*(value for value in written if value in read_elsewhere), *part.extra]


def models_of_parts(model: ir.Model, parts: Sequence[Part]) -> list[ir.Model]:
    """Return each of ``parts`` of the main graph as a model; ``model`` is emptied.

    Inputs and outputs of each model are the part's ``reads`` and ``writes`` in order. A constant
    that several parts read is copied into each.
    """
    for part in parts:
        model.graph.remove(part.nodes)
    model.graph.outputs.clear()
    return [_model(model, part, f"part{i}") for i, part in enumerate(parts)]


def body_of(model: ir.Model, graph: ir.Graph) -> tuple[ir.Model, list[ir.Value]]:
    """Return ``graph``, a subgraph of ``model``, as a model, and the list of the values that it
    captures.

    The inputs of the model are those of the graph, then the captured values (no constants).
    ``graph`` is emptied.
    """
    local_values = {*graph.inputs, *(value for node in graph for value in node.outputs)}
    read = [value for node in graph for value in read_by(node)]
    captured = [
        value
        for value in dict.fromkeys([*read, *graph.outputs])
        if value not in local_values and constants.tensor_of(value) is None
    ]
    nodes, writes = list(graph), list(graph.outputs)
    graph.remove(nodes)
    graph.outputs.clear()
    part = Part(False, nodes, [*graph.inputs, *captured], writes)
    return _model(model, part, graph.name or "body"), captured


def _model(model: ir.Model, part: Part, name: str) -> ir.Model:
    """Return ``part`` as a model called ``name``, with its own inputs and copies of constants."""
    own_value_of = {value: _value_like(value) for value in part.reads}
    weights: list[ir.Value] = []

    def value_in_part(value: ir.Value) -> ir.Value:
        """Return the value that stands for ``value`` in the part: an input, a copy of a constant,
        or itself.
        """
        tensor = constants.tensor_of(value)
        if tensor is not None and value not in own_value_of:
            weights.append(ir.Value(name=value.name, const_value=tensor))
            weights[-1].dtype, weights[-1].shape = tensor.dtype, ir.Shape(tensor.shape.numpy())
            own_value_of[value] = weights[-1]
        return own_value_of.get(value, value)

    outputs = [value_in_part(value) for value in part.writes]
    for node in part.nodes:
        captured = frozenset() if scope.is_flat(node) else frozenset(scope.captures(node))
        for i, value in enumerate(node.inputs):
            if value is not None and value_in_part(value) is not value:
                node.replace_input_with(i, value_in_part(value))
        for inner in scope.nested_nodes(node):
            for i, value in enumerate(inner.inputs):
                if value is not None and value in captured and value_in_part(value) is not value:
                    inner.replace_input_with(i, value_in_part(value))
            _replace_outputs(inner, captured, value_in_part)
        _replace_outputs(node, captured, value_in_part)
    graph = ir.Graph(
        [own_value_of[value] for value in part.reads],
        outputs,
        nodes=part.nodes,
        initializers=weights,
        opset_imports=dict(model.opset_imports),
        name=name,
    )
    keep_bounds(model.graph, graph)
    return ir.Model(graph, ir_version=model.ir_version)


def _replace_outputs(
    node: ir.Node, captured: frozenset[ir.Value], value_in_part: Callable[[ir.Value], ir.Value]
) -> None:
    """Replace captured values among the outputs of subgraphs of ``node`` by copies in the part."""
    for inner in scope.subgraphs(node):
        for i, value in enumerate(inner.outputs):
            if value in captured:
                inner.outputs[i] = value_in_part(value)


def _value_like(value: ir.Value) -> ir.Value:
    """Return a new value with the name, type and shape of ``value``."""
    return ir.Value(name=value.name, type=value.type, shape=value.shape)
