"""Moves that spell out what one operator can say, and near misses of it."""

from __future__ import annotations

import math

import onnx_ir as ir
from random_graphs.draft import FLOAT, Draft, Move, dims, needs_some, permutation, static


def _near(d: Draft, number: float) -> ir.Value:
    """``number``, or one beside it, of rank 0, 1 or more."""
    if d.chance(0.25):
        number *= d.rng.choice([1.001, 0.9999, -1.0, 2.0])
    return d.const([number] if d.chance(0.2) else number)


def _like(d: Draft, x: ir.Value) -> ir.Value:
    """Another value of the same shape; raises NoMove if there is none."""
    return d.pick(lambda v: v.dtype == FLOAT and dims(v) == dims(x) and v is not x)


def _product(d: Draft, *factors: ir.Value) -> ir.Value:
    """Their product in any order."""
    first, *rest = d.rng.sample(factors, len(factors))
    for factor in rest:
        first = d.op("Mul", *d.rng.sample([first, factor], 2))
    return first


def gelu(d: Draft) -> None:
    x = d.float()
    if d.chance(0.5):
        inner = d.op("Div", x, _near(d, math.sqrt(2)))
    else:
        inner = d.op("Mul", x, _near(d, 1 / math.sqrt(2)))
    other = x if d.chance(0.8) else _like(d, x)
    plus = d.op("Add", d.op("Erf", inner), _near(d, 1.0))
    _product(d, other, plus, _near(d, 0.5))


def gelu_tanh(d: Draft) -> None:
    x = d.float()
    y, z = (x if d.chance(0.9) else _like(d, x) for _ in "yz")
    cube = d.op("Pow", y, _near(d, 3.0)) if d.chance(0.5) else _product(d, y, y, y)
    inner = d.op("Add", z, d.op("Mul", cube, _near(d, 0.044715)))
    tanh = d.op("Tanh", d.op("Mul", inner, _near(d, math.sqrt(2 / math.pi))))
    _product(d, x, d.op("Add", tanh, _near(d, 1.0)), _near(d, 0.5))


def gelu_sigmoid(d: Draft) -> None:
    x = d.float()
    _product(d, x, d.op("Sigmoid", d.op("Mul", x, _near(d, 1.702))))


def swish(d: Draft) -> None:
    x = d.float()
    other = x if d.chance(0.8) else _like(d, x)
    _product(d, other, d.op("Sigmoid", x))


def leaky(d: Draft) -> None:
    x = d.float()
    rank = len(dims(x))
    alpha = d.rng.choice([0.1, 0.5, -0.2, 1.5, 1.0])
    shape = d.rng.choice([(), (1,), (1,) * (rank + 1)])
    scaled = d.op("Mul", x, d.const(d.generator().normal(size=shape) * 0 + alpha))
    other = x if d.chance(0.8) else _like(d, x)
    d.op("Max", *d.rng.sample([other, scaled], 2))


def prelu(d: Draft) -> None:
    x = d.float()
    last = dims(x)[-1] if dims(x) else 1
    slope = d.normal(last if isinstance(last, int) else 1)
    if d.chance(0.3):
        slope = d.const([0.25] * 1)
    if d.chance(0.3) and dims(x):
        d.op("PRelu", x, slope)
        return
    negative = d.op("Neg", x) if d.chance(0.5) else d.op("Mul", x, d.const(-1.0))
    below = d.op("Mul", d.op("Relu", negative), slope)
    d.op(d.rng.choice(["Add", "Sub", "Sub"]), d.op("Relu", x), below)


def softmax(d: Draft) -> None:
    x = d.pick(lambda v: v.dtype == FLOAT and bool(dims(v)))
    rank = len(dims(x))
    axis = d.rng.randrange(-rank, rank)
    other = axis if d.chance(0.85) else d.rng.randrange(-rank, rank)
    needs_some(x)
    y = d.op("Sub", x, d.reduce("ReduceMax", x, [axis])) if d.chance(0.8) else x
    e = d.op("Exp", y)
    d.op("Div", e, d.reduce("ReduceSum", e, [other]))


def norm(d: Draft) -> None:
    """Layer, instance and RMS norm as exporters spell them; the second axis is another at times."""
    x = d.pick(lambda v: v.dtype == FLOAT and len(dims(v)) >= 2)
    rank = len(dims(x))
    axes = d.rng.choice([[-1], [-1], [rank - 1], [-2, -1], [1], [-2]])
    other = axes if d.chance(0.85) else [d.rng.randrange(-rank, 0)]
    needs_some(x)
    centred, around = x, x if d.chance(0.8) else _like(d, x)
    if d.chance(0.8):
        centred = d.op("Sub", x, d.reduce("ReduceMean", around, axes))
    numerator = centred if d.chance(0.8) else d.op("Sub", x, d.reduce("ReduceMean", x, [-1]))
    square = d.op("Mul", centred, centred) if d.chance(0.5) else d.op("Pow", centred, _two(d))
    variance = d.reduce("ReduceMean", square, other)
    root = d.op("Sqrt", d.op("Add", variance, _near(d, 1e-3)))
    if d.chance(0.5):
        y = d.op("Div", numerator, root)
    else:
        y = d.op("Mul", numerator, d.op("Reciprocal", root))
    if d.chance(0.7):
        length = dims(x)[axes[-1]]
        shape = (
            length if isinstance(length, int) else 1,
            *[1] * (-1 - axes[-1] if axes[-1] < 0 else 0),
        )
        y = d.op("Mul", y, d.normal(*shape))
        d.op("Add", y, d.normal(*shape))


def _two(d: Draft) -> ir.Value:
    return d.const(2.0 if d.chance(0.8) else 3.0)


def pixel_shuffle(d: Draft) -> None:
    """Depth to space as a Reshape, a Transpose and a Reshape."""
    x = d.float(4)
    channels, height, width = (static(x, axis) for axis in (1, 2, 3))
    if channels % 4:
        return
    y = d.op("Reshape", x, d.ints(-1, channels // 4, 2, 2, height, width))
    y = d.op("Transpose", y, perm=[0, 1, 4, 2, 5, 3] if d.chance(0.7) else permutation(d, 6))
    d.op("Reshape", y, d.ints(-1, channels // 4, 2 * height, 2 * width))


def stacked(d: Draft) -> None:
    """Two values stacked, and the new axis merged with a neighbour, or taken apart again."""
    x = d.pick(lambda v: v.dtype == FLOAT and len(dims(v)) >= 2 and isinstance(dims(v)[1], int))
    y = d.pick(lambda v: v.dtype == FLOAT and dims(v) == dims(x))
    axis = d.rng.choice([1, 2])
    joined = d.op("Concat", *(d.op("Unsqueeze", v, d.ints(axis)) for v in (x, y)), axis=axis)
    if d.chance(0.5):
        rest = [static(x, i) for i in range(2, len(dims(x)))]
        d.op("Reshape", joined, d.ints(-1, 2 * static(x, 1), *rest))
        return
    for part in d.halves(joined, axis):
        d.op("Squeeze", part, d.ints(axis))


MOVES: list[Move] = [
    *(gelu, gelu_tanh, gelu_sigmoid, swish, leaky, prelu, softmax, norm, norm, pixel_shuffle),
    stacked,
]
