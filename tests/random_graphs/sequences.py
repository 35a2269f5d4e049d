"""Moves of what is no tensor of one size: sequences, optionals, and states of loops that grow."""

from __future__ import annotations

import onnx_ir as ir
from random_graphs.control import Body, typed_input
from random_graphs.draft import BOOL, FLOAT, INT, Draft, Move, NoMove, dims, static


def _of_one_shape(d: Draft) -> list[ir.Value]:
    """Two or three tensors of equal dims, none of them a scalar."""
    first = d.pick(lambda v: v.dtype == FLOAT and bool(dims(v)))
    count = d.rng.choice([1, 2])
    return [
        first,
        *(d.pick(lambda v: v.dtype == FLOAT and dims(v) == dims(first)) for _ in range(count)),
    ]


def _read(d: Draft, sequence: ir.Value, count: int, like: ir.Value) -> None:
    """One element, all of them together, or how many there are."""
    rank = len(dims(like))
    kind = d.rng.choice(["at", "at", "concat", "stack", "length"])
    if kind == "at":
        place = d.const(d.rng.randrange(-count, count), INT)
        d.op("Neg", _shaped(d.b.op("SequenceAt", sequence, place), like))
    elif kind == "length":
        d.op("Add", d.const(1, INT), d.b.op("SequenceLength", sequence))
    else:
        stacked = kind == "stack"
        axis = d.rng.randrange(rank + stacked)
        whole = d.b.op("ConcatFromSequence", sequence, axis=axis, new_axis=int(stacked))
        if whole.shape is None:
            raise NoMove
        d.op("Relu", whole)


def _shaped(value: ir.Value, like: ir.Value) -> ir.Value:
    """``value`` with a type, which inference may not tell of an element of a sequence."""
    if value.shape is None:
        value.type, value.shape = like.type, like.shape
    return value


def constructed(d: Draft) -> None:
    """A sequence of tensors, into which one is put, or of which one is taken away."""
    items = _of_one_shape(d)
    sequence, count = d.b.op("SequenceConstruct", *items), len(items)
    for _ in range(d.rng.choice([0, 1, 2])):
        places = [] if d.chance(0.4) else [d.const(d.rng.randrange(-count, count), INT)]
        if count > 1 and d.chance(0.4):
            sequence, count = d.b.op("SequenceErase", sequence, *places), count - 1
        else:
            sequence = d.b.op("SequenceInsert", sequence, d.rng.choice(items), *places)
            count += 1
    _read(d, sequence, count, items[0])


def empty(d: Draft) -> None:
    """One that begins with nothing."""
    items = _of_one_shape(d)
    sequence = d.b.op("SequenceEmpty", dtype=int(FLOAT))
    for item in items:
        sequence = d.b.op("SequenceInsert", sequence, item)
    _read(d, sequence, len(items), items[0])


def split(d: Draft) -> None:
    """The parts of a tensor, equal or not."""
    x = d.pick(lambda v: v.dtype == FLOAT and bool(dims(v)))
    axis = d.rng.randrange(len(dims(x)))
    size = static(x, axis)
    part = d.rng.randint(1, size)
    parts = d.const(part, INT)
    sequence, count = d.b.op("SplitToSequence", x, parts, axis=axis), -(-size // part)
    if d.chance(0.5):
        d.op("Add", d.const(1, INT), d.b.op("SequenceLength", sequence))
    whole = d.b.op("ConcatFromSequence", sequence, axis=axis)
    d.op("Tanh", _shaped(whole, x))
    if d.chance(0.4):
        last = d.b.op("SequenceAt", sequence, d.const(d.rng.randrange(count), INT))
        if last.shape is not None:
            d.op("Neg", last)


def optional(d: Draft) -> None:
    """A tensor that is there, asked for from opset 15 on."""
    if d.opset < 15:
        raise NoMove
    x = d.pick(lambda v: v.dtype == FLOAT and bool(dims(v)))
    maybe = d.b.op("Optional", x)
    if d.chance(0.5):
        there = d.b.op("OptionalHasElement", maybe)
        d.op("Not", d.op("Identity", there))
    d.op("Relu", _shaped(d.b.op("OptionalGetElement", maybe), x))


def growing(d: Draft) -> None:
    """A loop that appends to what it carries: rows, or tensors of a sequence."""
    row = d.pick(lambda v: v.dtype == FLOAT and len(dims(v)) > 1)
    turns = d.rng.choice([0, 1, 3])
    mark = d.rng.getrandbits(32)
    outside = d.rng.choice([row, d.pick(lambda v: v.dtype == FLOAT and dims(v) == dims(row))])
    rest = dims(row)[1:]
    with Body(d) as graph:
        typed_input(graph, f"count_{mark}", INT, [])
        going = typed_input(graph, f"going_{mark}", BOOL, [])
        grown = typed_input(graph, f"grown_{mark}", FLOAT, [None, *rest])
        appended = [grown, outside] if d.chance(0.7) else [outside, grown]
        longer = d.b.op("Concat", *appended, axis=0)
        graph.outputs.extend([d.b.op("Identity", going), longer])
    result = d.b.op("Loop", d.const(turns, INT), None, row, body=graph)
    if result.shape is None or len(result.shape) != len(dims(row)):
        raise NoMove
    d.values.append(result)
    if d.chance(0.6):
        d.reduce("ReduceSum", result, [0], keepdims=0)


def scanned(d: Draft) -> None:
    """Sums along an axis, forward or backward, and what each step gives."""
    x = d.pick(lambda v: v.dtype == FLOAT and len(dims(v)) > 1)
    axis = d.rng.randrange(len(dims(x)))
    static(x, axis)
    rest = [dim for place, dim in enumerate(dims(x)) if place != axis]
    like = d.reduce("ReduceMax", x, [axis], keepdims=0)
    mark = d.rng.getrandbits(32)
    with Body(d) as graph:
        total = typed_input(graph, f"total_{mark}", FLOAT, rest)
        part = typed_input(graph, f"part_{mark}", FLOAT, rest)
        d.values += [total, part]
        step = d.op(d.rng.choice(["Add", "Max", "Sub"]), total, part)
        graph.outputs.extend([step, d.op(d.rng.choice(["Tanh", "Identity", "Neg"]), step)])
    directions = [d.rng.choice([0, 1])]
    d.ops(
        "Scan",
        like,
        x,
        outputs=2,
        body=graph,
        num_scan_inputs=1,
        scan_input_axes=[axis],
        scan_input_directions=ir.AttrInt64s("scan_input_directions", directions),
    )


MOVES: list[Move] = [constructed, constructed, empty, split, optional, growing, growing, scanned]
