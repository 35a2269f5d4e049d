"""Moves of attention: products of one operand, heads split off and merged, masks of every kind."""

from __future__ import annotations

import onnx_ir as ir
from random_graphs.draft import FLOAT, Draft, Move, NoMove, dims, static


def projections(d: Draft) -> None:
    """Several products of one operand, with rows added or not."""
    x = d.pick(lambda v: v.dtype == FLOAT and len(dims(v)) >= 2 and isinstance(dims(v)[-1], int))
    inner = static(x, -1)
    rows = d.chance(0.5)
    for _ in range(d.rng.choice([2, 3])):
        outer = d.rng.choice([1, 4, 6])
        y = d.op("MatMul", x, d.normal(inner, outer))
        if rows or d.chance(0.2):
            y = d.op("Add", y, d.normal(*d.rng.choice([(outer,), (1, outer), (1,), (1, 1, outer)])))
        if d.chance(0.8):
            d.op("Neg", y)


def split_rows(d: Draft) -> None:
    """A product whose rows are split, and a constant that is added after that."""
    x = d.float(3)
    y = d.op("MatMul", x, d.normal(static(x, -1), 6))
    y = d.op("Reshape", y, d.ints(0, 0, 2, 3))
    shape = d.rng.choice([(2, 3), (1, 1, 2, 3), (3,), (2, 1), (), (static(y, 1), 2, 3)])
    d.op("Add", y, d.normal(*shape))


def attention(d: Draft) -> None:
    """Queries, keys and values of one operand, weighed by a softmax; parts of it may be off."""
    x = d.float(3)
    heads, size = 2, d.rng.choice([2, 3])
    q, k, v = (_heads(d, x, heads, size) for _ in range(3))
    perm = [0, 1, 3, 2] if d.chance(0.9) else [0, 1, 2, 3]
    scores = d.op("MatMul", q, d.op("Transpose", k, perm=perm))
    if d.chance(0.7):
        number = d.rng.choice([0.7, -0.5, 2.0])
        scores = d.op(d.rng.choice(["Mul", "Div"]), scores, d.const(number))
    scores = _masked(d, scores)
    weights = d.op("Softmax", scores, axis=-1 if d.chance(0.9) else -2)
    y = d.op("MatMul", weights, v)
    if d.chance(0.8):
        y = d.op("Transpose", y, perm=[0, 2, 1, 3])
        d.op("Reshape", y, d.ints(0, 0, heads * size) if d.chance(0.9) else d.ints(0, -1, size))


def _heads(d: Draft, x: ir.Value, heads: int, size: int) -> ir.Value:
    y = d.op("MatMul", x, d.normal(static(x, -1), heads * size))
    y = d.op("Reshape", y, d.ints(0, 0, heads, size))
    return d.op("Transpose", y, perm=[0, 2, 1, 3])


def _masked(d: Draft, scores: ir.Value) -> ir.Value:
    kind = d.rng.randrange(6)
    if kind < 2:
        return scores
    *_, rows, columns = dims(scores)
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise NoMove
    shape = d.rng.choice([(rows, columns), (1, 1, rows, columns), (columns,), (1, rows, columns)])
    random = d.generator().normal(size=shape)
    if kind == 2:
        return d.op("Add", scores, d.const(random))
    low = d.const(d.rng.choice([-3e38, -1e31, -1e31, -4.0]))
    mask = d.const(random > -0.5, ir.DataType.BOOL)
    return d.op("Where", mask, scores, low)


MOVES: list[Move] = [attention, attention, projections, split_rows]
