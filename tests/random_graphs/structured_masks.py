"""Masks of attention scores, and softmax, in their many spellings."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper
from random_graphs.structured_builder import Builder


def lowest(b: Builder) -> float:
    return b.pick(-np.inf, float(np.finfo(b.dtype).min), -10000.0)


def allowed(b: Builder, scores: str, offset: str | None) -> str:
    """A bool causal mask, broadcast to [M, T]."""
    rows, columns = b.dim(scores, 2), b.dim(scores, 3)
    start = b.op("Sub", columns, rows) if offset is None else offset
    form = b.rng.randrange(3)
    if form == 0 and b.opset >= 14:
        one = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
        ones = b.op("ConstantOfShape", b.shape(rows, columns), value=one)
        lower = b.op("Trilu", ones, b.scalar(start), upper=0)
        return b.op("Cast", lower, to=TensorProto.BOOL)
    zero, step = b.int(0), b.int(1)
    i = b.op("Add", b.op("Range", zero, b.scalar(rows), step), start)
    i = b.op("Unsqueeze", i, b.ints(1))
    j = b.op("Unsqueeze", b.op("Range", zero, b.scalar(columns), step), b.ints(0))
    if form == 1 and b.opset >= 16:
        return b.op("LessOrEqual", j, i)
    return b.op("Not", b.op("Greater", j, i))


def padding(b: Builder, columns: str) -> str:
    """A bool mask [N, 1, 1, T] of an input of flags or integers."""
    known = [each.name for each in b.inputs]
    name = f"mask_{columns}"
    if name not in known:
        b.input(name, ["N", columns], b.pick(TensorProto.BOOL, TensorProto.INT64))
    type_ = next(e for e in b.inputs if e.name == name).type.tensor_type.elem_type
    flags = name if type_ == TensorProto.BOOL else b.op("Cast", name, to=TensorProto.BOOL)
    if b.chance(0.3):
        return b.op("Reshape", flags, b.ints(0, 1, 1, -1))
    if b.chance(0.5):
        return b.op("Unsqueeze", flags, b.ints(1, 2))
    return b.op("Unsqueeze", b.op("Unsqueeze", flags, b.ints(1)), b.ints(2))


def masked(b: Builder, scores: str, columns: str, offset: str | None) -> str:
    """Scores under no mask, padding, a causal mask or both, in one of many spellings."""
    kind = b.rng.randrange(4)
    if kind == 0:
        return scores
    parts = []
    if kind & 1:
        parts.append(padding(b, columns))
    if kind & 2:
        parts.append(allowed(b, scores, offset))
    if len(parts) == 2 and b.chance(0.6):
        parts = [b.op("And", *b.rng.sample(parts, 2))]
    for flags in parts:
        scores = _apply(b, scores, flags)
    return scores


def _apply(b: Builder, scores: str, flags: str) -> str:
    if b.chance(0.3):
        flags = b.op("Expand", flags, b.op("Shape", scores))
    low = lowest(b)
    form = b.rng.randrange(5)
    if form == 0:
        return b.op("Where", flags, scores, b.number(low))
    if form == 1:
        return b.op("Where", b.op("Not", flags), b.number(low), scores)
    if form == 2:
        bias = b.op("Where", flags, b.number(0.0), b.number(low))
        return b.op("Add", *b.rng.sample([scores, bias], 2))
    low = max(low, -60000.0)
    kept = b.op("Cast", flags, to=b.type)
    missing = b.op("Sub", b.number(1.0), kept)
    if form == 3:
        return b.op("Add", scores, b.op("Mul", missing, b.number(low)))
    return b.op("Sub", scores, b.op("Mul", b.number(-low), missing))


def softmax(b: Builder, scores: str) -> str:
    if b.chance(0.2):
        e = b.op("Exp", b.op("Sub", scores, b.mean(scores, [-1], "ReduceMax")))
        return b.op("Div", e, b.sum(e, [-1]))
    if b.type == TensorProto.FLOAT16 and b.chance(0.5):
        wide = b.op("Cast", scores, to=TensorProto.FLOAT)
        return b.op("Cast", b.op("Softmax", wide, axis=-1), to=b.type)
    weights = b.op("Softmax", scores, axis=b.pick(-1, 3))
    if b.chance(0.15):
        return b.op("Where", b.op("IsNaN", weights), b.number(0.0), weights)
    return weights
