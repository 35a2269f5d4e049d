"""Moves that move, cut and join: reshapes, transposes, slices, shapes computed at run time."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from random_graphs.draft import (
    BOOL,
    FLOAT,
    INT,
    REDUCTIONS,
    Draft,
    Move,
    NoMove,
    dims,
    inverse,
    needs_some,
    permutation,
    static,
)
from random_graphs.elementwise import UNARY


def transpose(d: Draft) -> None:
    x = d.pick(lambda v: len(dims(v)) >= 2)
    y = d.op("Transpose", x, perm=permutation(d, len(dims(x))))
    if d.chance(0.4):
        d.op("Transpose", y, perm=permutation(d, len(dims(x))))


def transposed_sandwich(d: Draft) -> None:
    """Transpose, something, and the way back, or not quite."""
    x = d.pick(lambda v: v.dtype == FLOAT and len(dims(v)) >= 2)
    perm = permutation(d, len(dims(x)))
    y = d.op("Transpose", x, perm=perm)
    for _ in range(d.rng.randint(1, 3)):
        kind = d.rng.randrange(8)
        axis = d.rng.randrange(-len(perm), len(perm))
        if kind == 0:
            y = d.op(d.rng.choice(UNARY), y)
        elif kind == 1:
            y = d.op("Add", y, d.const(d.rng.uniform(-1, 1)))
        elif kind == 2:
            last = dims(y)[-1]
            y = d.op("Mul", y, d.normal(last if isinstance(last, int) else 1))
        elif kind == 3:
            y = d.op("Add", y, d.op("Tanh", y))
        elif kind == 4:
            y = d.op("Softmax", y, axis=axis)
        elif kind == 5:
            needs_some(y)
            axes = None if d.chance(0.4) else [axis]
            y = d.reduce(d.rng.choice(REDUCTIONS), y, axes, keepdims=d.rng.choice([1, 1, 0]))
            if len(dims(y)) != len(perm):
                return
        elif kind == 6:
            y = d.op("Slice", y, d.ints(0), d.ints(d.rng.choice([2**62, 2, -1])), d.ints(axis))
        else:
            y = d.op("Pad", y, d.ints(1, d.rng.choice([0, 1])), None, d.ints(axis))
    d.op("Transpose", y, perm=inverse(perm) if d.chance(0.8) else permutation(d, len(perm)))


def joined_transposes(d: Draft) -> None:
    """Two transposed values meet, and go back."""
    x = d.pick(lambda v: v.dtype == FLOAT and len(dims(v)) >= 2)
    y = d.pick(lambda v: v.dtype == FLOAT and dims(v) == dims(x))
    perm = permutation(d, len(dims(x)))
    s, t = (d.op("Transpose", v, perm=perm) for v in (x, y))
    if d.chance(0.5):
        joined = d.op(d.rng.choice(["Add", "Mul", "Max"]), s, t)
    else:
        joined = d.op("Concat", s, t, axis=d.rng.randrange(len(perm)))
    d.op("Transpose", joined, perm=inverse(perm))


def reshape(d: Draft) -> None:
    x = d.pick(lambda v: len(dims(v)) >= 2 and all(isinstance(n, int) for n in dims(v)[1:]))
    rest = [static(x, axis) for axis in range(1, len(dims(x)))]
    count = int(np.prod(rest))
    y = d.op("Reshape", x, d.ints(0, -1) if d.chance(0.5) else d.ints(-1, count))
    if d.chance(0.7):
        again = rest if d.chance(0.6) else [count // 2, 2] if count % 2 == 0 else [1, count]
        d.op("Reshape", y, d.ints(*(d.rng.choice([0, -1]), *again)))


def computed_reshape(d: Draft) -> None:
    """The shape is put together from that of the input, as exporters do."""
    x = d.pick(lambda v: v.dtype == FLOAT and len(dims(v)) >= 2)
    rest = [static(x, axis) for axis in range(1, len(dims(x)))]
    batch = d.op("Gather", d.op("Shape", x), d.const(0, INT), axis=0)
    if d.chance(0.3):
        batch = d.op("Mul", batch, d.const(rest[0], INT))
        rest = rest[1:] or [1]
    parts = [d.op("Unsqueeze", batch, d.ints(0)), d.ints(*rest)]
    d.op("Reshape", x, d.op("Concat", *parts, axis=0))


def computed_expand(d: Draft) -> None:
    """A row, repeated as often as another value is long."""
    x = d.pick(lambda v: v.dtype == FLOAT and len(dims(v)) >= 2)
    y = d.pick(lambda v: v.dtype == FLOAT and len(dims(v)) == len(dims(x)))
    if d.chance(0.5):
        needs_some(x)
        y = d.reduce("ReduceSum", x, [d.rng.randrange(len(dims(x)))])
    first = d.op("Shape", x, start=0, end=1) if d.opset >= 15 else _batch_of(d, x)
    rest = d.ints(*(dim if isinstance(dim, int) else 1 for dim in dims(x)[1:]))
    d.op("Expand", y, d.op("Concat", first, rest, axis=0))


def _batch_of(d: Draft, x: ir.Value) -> ir.Value:
    return d.op("Gather", d.op("Shape", x), d.ints(0), axis=0)


def computed_fill(d: Draft) -> None:
    x = d.float()
    filled = d.op("ConstantOfShape", d.op("Shape", x))
    d.op(d.rng.choice(["Add", "Mul", "Sub"]), x, filled)


def unsqueeze(d: Draft) -> None:
    x = d.pick()
    axis = d.rng.randrange(len(dims(x)) + 1)
    y = d.op("Unsqueeze", x, d.ints(axis))
    if d.chance(0.7):
        d.op("Squeeze", y, d.ints(axis) if d.chance(0.9) else d.ints(axis - len(dims(y))))


def concat(d: Draft) -> None:
    x = d.pick(lambda v: bool(dims(v)))
    y = d.pick(lambda v: v.dtype == x.dtype and dims(v) == dims(x))
    inputs = [x, y] if d.chance(0.7) else [x] if d.chance(0.5) else [x, y, x]
    d.op("Concat", *inputs, axis=d.rng.randrange(-len(dims(x)), len(dims(x))))


def split(d: Draft) -> None:
    x = d.pick(lambda v: bool(dims(v)) and dims(v)[-1] in (2, 4, 6, 8, 12))
    a, c = d.halves(x, -1)
    if d.chance(0.2):
        d.op("Where", d.const(True, BOOL), a, c)
    elif d.chance(0.5):
        order = [a, c] if d.chance(0.6) else [c, a]
        d.op("Concat", *order, axis=-1 if d.chance(0.8) else 0)


def take(d: Draft) -> None:
    """A Slice: the whole, a part, backwards, with sentinels and negative numbers."""
    x = d.pick(lambda v: bool(dims(v)))
    axis = d.rng.randrange(-len(dims(x)), len(dims(x)))
    start, end, step = d.rng.choice(
        [
            *((0, 2**63 - 1, 1), (0, 2**31 - 1, 1), (-1, -(2**63), -1), (1, 2**31, 1)),
            *((0, -1, 1), (0, 2**62, 2), (-2, 2**62, 1), (0, 4, 1)),
        ]
    )
    d.op("Slice", x, d.ints(start), d.ints(end), d.ints(axis), d.ints(step))


def pad(d: Draft) -> None:
    """One Pad or two, some of them crop; the second undoes the first at times."""
    x = d.pick(lambda v: v.dtype == FLOAT and len(dims(v)) >= 2)
    pads: list[int] = []
    for _ in range(d.rng.choice([1, 2, 2])):
        undone = [-size for size in pads] if pads and d.chance(0.2) else []
        pads = undone or _pads(d, len(dims(x)))
        value = d.const(d.rng.choice([0.0, 0.0, 1.5, 2.5]))
        x = d.op("Pad", x, d.ints(*pads), *([value] if d.chance(0.8) else []))


def _pads(d: Draft, rank: int) -> list[int]:
    """Sizes at two places; or of one axis, one end as much longer as the other is shorter."""
    pads = [0] * (2 * rank)
    if d.chance(0.15):
        axis = d.rng.randrange(rank)
        pads[axis], pads[rank + axis] = d.rng.choice([(1, -1), (-1, 1), (0, 0)])
        return pads
    for place in d.rng.sample(range(2 * rank), 2):
        pads[place] = d.rng.choice([0, 1, 2, -1])
    return pads


def reflect(d: Draft) -> None:
    x = d.pick(lambda v: v.dtype == FLOAT and len(dims(v)) >= 2 and dims(v)[-1] in (4, 5, 6))
    mode = d.rng.choice(["reflect", "edge"])
    for _ in range(2):
        pads = [0] * (2 * len(dims(x)))
        pads[-1], pads[len(dims(x)) - 1] = d.rng.choice([(0, 1), (1, 0), (1, 1)])
        x = d.op("Pad", x, d.ints(*pads), mode=mode)


def gather(d: Draft) -> None:
    x = d.pick(lambda v: bool(dims(v)))
    axis = d.rng.randrange(len(dims(x)))
    last = dims(x)[axis]
    index = d.rng.choice([0, -1, (last - 1) if isinstance(last, int) else 0])
    d.op("Gather", x, d.const(d.rng.choice([index, [index], [index, 0]]), INT), axis=axis)


def repeat(d: Draft) -> None:
    x = d.pick(lambda v: v.dtype == FLOAT)
    rank = len(dims(x))
    if d.chance(0.5) and rank:
        d.op("Tile", x, d.ints(*(d.rng.choice([1, 1, 1, 2]) for _ in range(rank))))
    else:
        shape = [1] * rank if d.chance(0.6) else [2] + [1] * rank
        if not shape:
            raise NoMove
        d.op("Expand", x, d.ints(*shape))


MOVES: list[Move] = [
    *(transpose, transpose, transposed_sandwich, transposed_sandwich, joined_transposes),
    *(
        reshape,
        reshape,
        computed_reshape,
        computed_expand,
        computed_fill,
        unsqueeze,
        concat,
        split,
        take,
        take,
    ),
    *(pad, reflect, gather, repeat),
]
