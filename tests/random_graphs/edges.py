"""Moves to the edges of what ONNX says: nothing, one, what is left out, and graphs in graphs."""

from __future__ import annotations

import onnx_ir as ir
from random_graphs import control
from random_graphs.draft import FLOAT, INT, Draft, Move, dims, needs_some, static

LARGE = 2**31


def nothing(d: Draft) -> None:
    """A part without elements, put back at one end, or filled."""
    x = d.pick(lambda v: v.dtype == FLOAT and bool(dims(v)))
    axis = d.rng.randrange(len(dims(x)))
    at = d.rng.choice([0, LARGE])
    # Past the draft, which has no values without elements to draw from.
    empty = d.b.op("Slice", x, d.ints(at), d.ints(at), d.ints(axis))
    if d.chance(0.5):
        empty = d.b.op(d.rng.choice(["Relu", "Neg", "Identity"]), empty)
    d.op("Concat", *([empty, x] if d.chance(0.5) else [x, empty]), axis=axis)


def ones(d: Draft) -> None:
    """Sizes of 1 that meet each other, larger ones, and ones that only a run tells."""
    x = d.pick(lambda v: v.dtype == FLOAT and bool(dims(v)))
    needs_some(x)
    rank = len(dims(x))
    small = d.reduce("ReduceMax", x, [d.rng.randrange(rank)], keepdims=1)
    if d.chance(0.5):
        small = d.op("Unsqueeze", small, d.ints(0))
    y = d.op(d.rng.choice(["Add", "Sub", "Mul"]), x, small)
    if d.chance(0.5):
        d.op("Expand", y, d.ints(*[1] * (len(dims(y)) + d.rng.choice([0, 1]))))


def left_out(d: Draft) -> None:
    """Operators without one of their optional operands, in the middle or at the end."""
    x = d.pick(lambda v: v.dtype == FLOAT and bool(dims(v)))
    kind = d.rng.choice(["Clip", "Clip", "Pad", "LayerNormalization", "Dropout"])
    bound = d.const(d.rng.choice([-1.0, 0.0, 0.5]))
    if kind == "Clip":
        d.op("Clip", x, *d.rng.choice([(bound,), (None, bound), (None,)]))
    elif kind == "Pad":
        pads = [d.rng.choice([0, 0, 1]) for _ in range(2 * len(dims(x)))]
        d.op("Pad", x, d.ints(*pads), *d.rng.choice([(), (bound,)]))
    elif kind == "Dropout":
        d.op(
            "Dropout",
            x,
            *d.rng.choice([(), (d.const(0.5),), (None, d.const(False, ir.DataType.BOOL))]),
        )
    else:
        d.op("LayerNormalization", x, d.normal(static(x, -1)))


def many_readers(d: Draft) -> None:
    """A value that is read three times, twice by one node."""
    x = d.float()
    y = d.op(d.rng.choice(["Relu", "Neg", "Identity", "Sigmoid"]), x)
    z = d.op("Mul", y, y)
    d.op("Add", z, y)
    d.op("Sub", z, x)


def scan(d: Draft) -> None:
    """Rows one after another, with a state and what is captured."""
    x = d.pick(lambda v: v.dtype == FLOAT and len(dims(v)) >= 2)
    needs_some(x)
    row, mark = dims(x)[1:], d.rng.getrandbits(32)
    outside = d.const(d.rng.choice([0.0, 0.5, -1.0]))
    first = d.op("Gather", x, d.const(0, INT), axis=0)
    with control.Body(d) as graph:
        state, slice_ = (control.typed_input(graph, f"{c}_{mark}", FLOAT, row) for c in "st")
        d.values += [state, slice_]
        step = d.op("Add", d.op("Tanh", d.op("Mul", slice_, outside)), state)
        graph.outputs.extend([step, d.op(d.rng.choice(["Neg", "Identity", "Relu"]), step)])
    d.ops("Scan", first, x, outputs=2, body=graph, num_scan_inputs=1)


def nested(d: Draft) -> None:
    """Branches in branches and loops, which capture from both."""
    x = d.pick(lambda v: v.dtype == FLOAT and bool(dims(v)))
    flag = d.pick(lambda v: v.dtype == ir.DataType.BOOL and not dims(v))
    outer = []
    for _ in range(2):
        with control.Body(d) as graph:
            inside = d.op("Neg", x)
            inner = []
            for _ in range(2):
                with control.Body(d) as deep:
                    d.op("Add", inside, x)
                    deep.outputs.append(control._grow(d, x))
                inner.append(deep)
            condition = d.op("Not", flag) if d.chance(0.5) else flag
            y = d.op("If", condition, then_branch=inner[0], else_branch=inner[1])
            graph.outputs.append(d.op("Mul", y, inside))
        outer.append(graph)
    d.op("If", flag, then_branch=outer[0], else_branch=outer[1])


MOVES: list[Move] = [nothing, ones, left_out, left_out, many_readers, scan, nested, control.loop]
