"""Arithmetic on shapes: sizes asked, changed and used to move elements."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper
from random_graphs.structured_builder import Builder
from random_graphs.structured_control import around


def sizes(b: Builder) -> None:
    """Several moves on a matrix [M, 4] or [N, M, 4]."""
    x = b.input("x", ["N", "M", 4])
    for _ in range(b.pick(3, 5, 7)):
        x = b.pick(
            flatten_back,
            patches,
            padded,
            positions,
            scattered,
            chosen,
            repeated,
            windows,
            inside,
            halves,
            summed,
        )(b, x)
        if b.chance(0.2):
            b.outputs.append(b.op("Shape", x))
    b.outputs.append(x)


def flatten_back(b: Builder, x: str) -> str:
    flat = b.op(
        "Reshape", x, b.pick(b.ints(-1, 4), b.shape(b.op("Mul", b.dim(x, 0), b.dim(x, 1)), 4))
    )
    flat = b.op("Mul", flat, b.weight(4)) if b.chance(0.5) else b.op("MatMul", flat, b.weight(4, 4))
    return b.op("Reshape", flat, b.shape(b.dim(x, 0), b.pick(b.ints(-1), b.dim(x, 1)), 4))


def patches(b: Builder, x: str) -> str:
    y = b.op("Reshape", x, b.pick(b.ints(0, 0, 2, 2), b.shape(b.dim(x, 0), -1, 2, 2)))
    y = b.op("Transpose", y, perm=[0, 1, 3, 2])
    return b.op("Reshape", y, b.pick(b.ints(0, 0, -1), b.op("Shape", x)))


def padded(b: Builder, x: str) -> str:
    """Rows padded to a multiple of 3, and cut again or not."""
    m, three = b.dim(x, 1), b.ints(3)
    rest = b.op("Mod", b.op("Sub", three, b.op("Mod", m, three)), three)
    pads = b.op("Concat", b.ints(0, 0, 0, 0), rest, b.ints(0), axis=0)
    y = b.op("Pad", x, pads)
    y = b.op("Reshape", y, b.shape(b.dim(x, 0), -1, 3, 4))
    y = b.op("Sub", y, b.mean(y, [2]))
    y = b.op("Reshape", y, b.shape(b.dim(x, 0), -1, 4))
    return b.op("Slice", y, b.ints(0), m, b.ints(1)) if b.chance(0.7) else y


def positions(b: Builder, x: str) -> str:
    m = b.scalar(b.dim(x, 1))
    r = b.op("Range", b.int(0), m, b.int(1))
    if b.chance(0.5):
        r = b.op("Mod", r, b.int(3))
        row = b.op("Gather", b.weight(3, 4), r)
    else:
        row = b.op("Unsqueeze", b.op("Cast", r, to=b.type), b.ints(1))
    if b.chance(0.4):
        row = b.op("Expand", b.op("Unsqueeze", row, b.ints(0)), b.shape(b.dim(x, 0), 1, 1))
    return b.op("Add", x, row)


def scattered(b: Builder, x: str) -> str:
    """Rows overwritten by ScatterND at computed indices."""
    if b.chance(0.5):
        last = b.op("Sub", b.dim(x, 0), b.ints(1))
        indices = b.op("Unsqueeze", last, b.ints(0))
        return b.op(
            "ScatterND", x, indices, b.op("Slice", b.op("Neg", x), b.ints(0), b.ints(1), b.ints(0))
        )
    shape = b.op("Shape", x)
    changed = b.op("ScatterND", shape, b.const(np.array([[2]], np.int64)), b.ints(1))
    return b.op(
        "Add",
        x,
        b.op("ConstantOfShape", changed, value=helper.make_tensor("v", b.type, [1], [0.5])),
    )


def chosen(b: Builder, x: str) -> str:
    """A Reshape or Expand whose shape a Where chooses, as PyTorch writes expand."""
    given = b.shape(b.dim(x, 0), -1, 4)
    ones = b.op(
        "ConstantOfShape", b.ints(3), value=helper.make_tensor("v", TensorProto.INT64, [1], [1])
    )
    minus = b.op("Equal", given, b.op("Mul", ones, b.ints(-1)))
    shape = b.op("Where", minus, ones, given)
    row = b.op("Slice", x, b.ints(0), b.ints(1), b.ints(1))
    return b.op("Sub", x, b.op("Expand", row, shape))


def repeated(b: Builder, x: str) -> str:
    if b.chance(0.5):
        y = b.op("Concat", x, b.op("Neg", x), axis=1)
        half = b.op("Div", b.dim(y, 1), b.ints(2))
        return b.op("Slice", y, half, b.ints(2**62), b.ints(1))
    y = b.op("Tile", x, b.ints(1, 2, 1))
    return b.op("Slice", y, b.ints(0), b.ints(2**62), b.ints(1), b.ints(2))


def windows(b: Builder, x: str) -> str:
    """Rows turned around or shifted by a computed amount."""
    if b.chance(0.4):
        return b.op("Slice", x, b.ints(-1), b.ints(-(2**62)), b.ints(1), b.ints(-1))
    cut = b.op("Div", b.dim(x, 1), b.ints(2))
    front = b.op("Slice", x, b.ints(0), cut, b.ints(1))
    back = b.op("Slice", x, cut, b.ints(2**62), b.ints(1))
    return b.op("Concat", back, front, axis=1)


def inside(b: Builder, x: str) -> str:
    return around(b, x, lambda y: b.pick(flatten_back, patches, positions, chosen)(b, y))


def halves(b: Builder, x: str) -> str:
    first, second = b.op_n("Split", 2, x, b.ints(*b.pick((1, 3), (2, 2))), axis=2)
    return b.op("Concat", second, b.op("Tanh", first), axis=-1)


def summed(b: Builder, x: str) -> str:
    """Division by a count, or a running sum."""
    if b.chance(0.5):
        count = b.op("Cast", b.op("ReduceProd", b.op("Shape", x), keepdims=0), to=b.type)
        return b.op("Sub", x, b.op("Div", b.sum(x, [0, 1]), count))
    half = b.type == TensorProto.FLOAT16  # ONNX Runtime has no kernel for these
    x = b.op("Cast", x, to=TensorProto.FLOAT) if half else x
    axis = b.int(b.pick(0, 1, -2))
    y = b.op("CumSum", x, axis, exclusive=b.pick(0, 1), reverse=b.pick(0, 1))
    return b.op("Cast", y, to=b.type) if half else y
