"""Moves with graphs inside: branches and loops that capture values from around them."""

from __future__ import annotations

import onnx_ir as ir
from random_graphs import elementwise, structure
from random_graphs.draft import BOOL, FLOAT, INT, Draft, Move, NoMove, dims

from smelt.ir.build import Builder

INNER: list[Move] = [
    elementwise.unary,
    elementwise.neutral,
    elementwise.binary,
    elementwise.same_twice,
    structure.transposed_sandwich,
    structure.unsqueeze,
]


class Body:
    """Points the draft at an inner graph while its nodes are drawn."""

    def __init__(self, d: Draft) -> None:
        self.d = d
        self.graph = ir.Graph([], [], nodes=[], name="inner")
        self.outer, self.seen = d.b, list(d.values)

    def __enter__(self) -> ir.Graph:
        self.d.b = Builder(self.d.model, self.graph, self.outer.shapes)
        return self.graph

    def __exit__(self, *_: object) -> None:
        self.d.b, self.d.values = self.outer, self.seen


def _grow(d: Draft, x: ir.Value) -> ir.Value:
    """A few nodes, and a last one of the shape of ``x``."""
    for _ in range(d.rng.randint(1, 3)):
        try:
            d.rng.choice(INNER)(d)
        except NoMove:
            continue
    same = d.pick(lambda v: v.dtype == FLOAT and dims(v) == dims(x))
    return d.op(d.rng.choice(["Tanh", "Neg", "Identity", "Relu"]), same)


def branch(d: Draft) -> None:
    x = d.pick(lambda v: v.dtype == FLOAT and bool(dims(v)))
    condition = d.pick(lambda v: v.dtype == BOOL and not dims(v))
    if d.chance(0.3):
        condition = d.const(d.rng.choice([True, False]), BOOL)
    bodies = []
    for _ in range(2):
        with Body(d) as graph:
            graph.outputs.append(_grow(d, x))
        bodies.append(graph)
    d.op("If", condition, then_branch=bodies[0], else_branch=bodies[1])


def loop(d: Draft) -> None:
    """A few turns or none; one state changes, one does not, one is a value from outside.

    The shape of what no turn has collected is up to the runtime, so that is not an output.
    """
    x = d.pick(lambda v: v.dtype == FLOAT and bool(dims(v)))
    outside = d.pick(lambda v: v.dtype == FLOAT and dims(v) == dims(x))
    turns = d.rng.choice([0, 1, 3])
    mark = d.rng.getrandbits(32)
    with Body(d) as graph:
        turn = typed_input(graph, f"count_{mark}", INT, [])
        going = typed_input(graph, f"going_{mark}", BOOL, [])
        changed, kept, other = (typed_input(graph, f"{c}_{mark}", FLOAT, dims(x)) for c in "abc")
        d.values += [changed, kept, other, turn]
        step = d.op("Add", _grow(d, x), changed)
        on = d.op("Identity", going)
        same = kept if d.chance(0.3) else d.op("Identity", kept)
        last = d.op("Identity", d.rng.choice([other, outside]))
        graph.outputs.extend([on, step, same, last])
        if turns:
            graph.outputs.append(d.op("Neg", changed))
    states = [x, d.rng.choice([x, outside]), outside]
    count = len(graph.outputs) - 1
    d.ops("Loop", d.const(turns, INT), None, *states, outputs=count, body=graph)


def typed_input(graph: ir.Graph, name: str, dtype: ir.DataType, shape: list) -> ir.Value:
    value = ir.Value(name=name, type=ir.TensorType(dtype))
    value.shape = ir.Shape(shape)
    graph.inputs.append(value)
    return value


MOVES: list[Move] = [branch, loop]
