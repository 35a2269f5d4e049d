"""Pairs of operand sizes that an instruction requires to be equal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import TypeAlias, cast

from smelt.program.dot_dims import DotDims
from smelt.program.instruction import Instruction
from smelt.program.recurrence import CELLS
from smelt.program.run_rows import count_rows
from smelt.program.run_sizes import Dim, same

Shape: TypeAlias = tuple[Dim, ...]
Shapes: TypeAlias = list[Shape]
"""The shapes of all operands, or of all results. An absent operand has the shape ()."""

Pairs: TypeAlias = Iterable[tuple[Dim, Dim]]
Rule: TypeAlias = Callable[[Instruction, Shapes, Shapes], Pairs]
"""Returns pairs of sizes for an instruction, the shapes of its operands and of its results."""


def _reshaped(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    yield prod(read[0]), prod(made[0])


def _multiplied(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    """Yield the pairs of sizes that a DotGeneral makes equal."""
    dims = step.attributes["dims"]
    assert isinstance(dims, DotDims)
    left = (*dims.lhs_batch, *dims.lhs_contracting)
    right = (*dims.rhs_batch, *dims.rhs_contracting)
    yield from ((read[0][i], read[1][j]) for i, j in zip(left, right, strict=True))
    free = [read[0][i] for i in dims.lhs_free(len(read[0]))]
    free += [read[1][j] for j in dims.rhs_free(len(read[1]))]
    yield from zip(made[0][len(dims.lhs_batch) :], free, strict=True)


def _joined(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    axis = step.attributes["axis"]
    assert isinstance(axis, int)
    yield sum(shape[axis] for shape in read), made[0][axis]
    for shape in read:
        yield from (pair for at, pair in enumerate(zip(shape, made[0], strict=True)) if at != axis)


def _padded(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    pads, rank = step.ints("pads"), len(made[0])
    for axis, (size, whole) in enumerate(zip(read[0], made[0], strict=True)):
        yield size + pads[axis] + pads[rank + axis], whole


def _cut(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    cuts = zip(*(step.ints(name) for name in ("starts", "ends", "steps")), strict=True)
    pairs = zip(step.ints("axes"), cuts, strict=True)
    return [(made[0][axis], count_rows(read[0][axis], cut)) for axis, cut in pairs]


def broadcast(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    """Return pairs: each operand dim other than 1, and the dim of the result.

    If the result is declared with lower rank than an operand, the operands do not broadcast; then
    they are compared with the operand of highest rank.
    """
    widest = max(made[:1] + read, key=len)
    for shape in read:
        for size, whole in zip(reversed(shape), reversed(widest), strict=False):
            if not same(size, 1):
                yield size, whole


def _by_channel(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    return [(shape[0], read[0][1]) for shape in read[1:] if shape]


def _as_last(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    """Return pairs for scales and biases that broadcast to the last dims."""
    return [
        (size, whole)
        for shape in read[1:]
        for size, whole in zip(reversed(shape), reversed(read[0]), strict=False)
        if not same(size, 1)
    ]


def _scattered(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    data, places, updates = read
    return zip(updates, (*places[:-1], *data[cast(int, places[-1]) :]), strict=True)


def _scattered_apart(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    return zip(read[1], read[2], strict=True)


def _inside(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    """Return pairs of sizes of indices and data along all axes but one."""
    axis = step.attributes["axis"]
    dims = enumerate(zip(read[1], read[0], strict=True))
    return [pair for place, pair in dims if place != axis]


def _of_no_more(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    return zip(made[0], read[0], strict=True)


def _expanded(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    return broadcast(step, read[:1], made)


def _convolved(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    """Return pairs for ``x[N, groups * C, ...]``, ``w[M, C, ...]`` and a bias ``[M]``."""
    x, *others = (read[place] for place in _OPERANDS[step.op] if place < len(read))
    w, *bias = (shape for shape in others if shape)
    groups = step.attributes["group"]
    assert isinstance(groups, int)
    yield x[1], w[1] * groups
    yield w[0], w[0] // groups * groups
    yield from ((shape[0], w[0]) for shape in bias)
    yield from zip(w[2:], step.ints("kernel_shape"), strict=True)


def _spread(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    """Return pairs for a transposed convolution: ``x[N, groups * C, ...]``, ``w[groups * C, M,
    ...]``."""
    x, w, *bias = (shape for shape in read if shape)
    groups = step.attributes["group"]
    assert isinstance(groups, int)
    yield x[1], w[0]
    yield w[0], w[0] // groups * groups
    yield from ((shape[0], w[1] * groups) for shape in bias)
    yield from zip(w[2:], step.ints("kernel_shape"), strict=True)


def _as_product(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    """Return pairs for MatMul: columns of the left equal rows of the right; batch dims
    broadcast."""
    left, right = (read[position] for position in _OPERANDS[step.op])
    yield left[-1], right[-2] if len(right) > 1 else right[-1]
    batch = made[0][: len(made[0]) - (len(left) > 1) - (len(right) > 1)]
    yield from broadcast(step, [left[:-2], right[:-2]], [batch])


def _scaled(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    """Return pairs for scales and zero points: one number, or one per index of an axis."""
    axis = step.attributes["axis"]
    assert isinstance(axis, int)
    return [
        (shape[0], read[0][axis]) for shape in read[1:] if len(shape) == 1 and not same(shape[0], 1)
    ]


def _stepped(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    """Return pairs for gates [steps, batch, rows], weights [hidden, rows], states, peepholes, bias,
    lengths."""
    gates, weights, *more = read
    hidden = made[0][-1]
    rows = CELLS[str(step.attributes["cell"])].gates * hidden
    state = (gates[1], hidden)
    wanted: tuple[Shape, ...] = (state, state, (3 * hidden,), (hidden,), (gates[1],))
    yield from ((gates[2], rows), (weights[0], hidden), (weights[1], rows))
    for shape, sizes in zip(more, wanted, strict=True):
        yield from zip(shape, sizes, strict=False)  # none if it is absent


def _suppressed(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    """Return pairs for boxes [batch, count, 4] and scores [batch, classes, count]."""
    boxes, scores = read[:2]
    return ((boxes[0], scores[0]), (boxes[1], scores[2]), (boxes[2], 4))


def _batched(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    batch = step.attributes["batch_dims"]
    assert isinstance(batch, int)
    return zip(read[0][:batch], read[1][:batch], strict=True)


def _of_equal_rows(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    """Return pairs: all operands that a Loop reads row by row have the same number of rows."""
    states, count = step.attributes["states"], step.attributes["reads"]
    assert isinstance(states, int)
    assert isinstance(count, tuple)
    first = 2 + states
    return [(rows[0], read[first][0]) for rows in read[first : first + len(count)]]


def _square(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    return ((read[0][-1], read[0][-2]),)


def _by_parts(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    yield from zip(read[0], read[1], strict=True)


def _square_by_parts(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    yield from _square(step, read, made)
    yield from _by_parts(step, read, made)


def _solved(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    """Return pairs for a square matrix and as many rows (columns if solved from the right) of the
    right side."""
    matrix, right = read[:2]
    yield from _square(step, read, made)
    yield right[-2 if step.attributes["left_side"] else -1], matrix[-1]
    yield from zip(matrix[:-2], right[:-2], strict=True)


def _solved_by_parts(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    yield from _by_parts(step, read[:2], made)
    yield from _by_parts(step, read[2:], made)
    yield from _solved(step, [read[0], read[2]], made)


def _three_diagonals(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    """Return pairs: each diagonal is as long as the right side has rows."""
    *diagonals, right = read
    for diagonal in diagonals:
        yield from zip(diagonal, right[:-1], strict=True)


def _reflected(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    """Return pairs of batch dims of Householder vectors and factors."""
    yield from zip(read[0][:-2], read[1][:-1], strict=True)


def _no_more_than_sides(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    yield from ((read[1][-1], side) for side in read[0][-2:])


_OPERANDS: Mapping[str, tuple[int, ...]] = {
    "Conv": (0, 1, 2),
    "ConvInteger": (0, 1),
    "QLinearConv": (0, 3, 8),
    "MatMulInteger": (0, 1),
    "QLinearMatMul": (0, 3),
}
"""Positions of the operands of a product, between scales and zero points."""

EQUAL: Mapping[str, Rule] = {
    "Reshape": _reshaped,
    "Expand": _expanded,
    "DotGeneral": _multiplied,
    "MatMulInteger": _as_product,
    "QLinearMatMul": _as_product,
    "Conv": _convolved,
    "ConvInteger": _convolved,
    "QLinearConv": _convolved,
    "ConvTranspose": _spread,
    "QuantizeLinear": _scaled,
    "DequantizeLinear": _scaled,
    "Concat": _joined,
    "Pad": _padded,
    "Slice": _cut,
    "BatchNormalization": _by_channel,
    "InstanceNormalization": _by_channel,
    "GroupNormalization": _by_channel,
    "LayerNormalization": _as_last,
    "RMSNormalization": _as_last,
    "GatherND": _batched,
    "ScatterND": _scattered,
    "ScatterElements": _scattered_apart,
    "Recurrence": _stepped,
    "NonMaxSuppression": _suppressed,
    "Loop": _of_equal_rows,
    "Det": _square,
    "smelt::Cholesky": _square,
    **dict.fromkeys(("smelt::Eig", "smelt::Eigh", "smelt::Schur"), _square),
    **dict.fromkeys(("smelt::Hessenberg", "smelt::Tridiagonal"), _square),
    **dict.fromkeys(("smelt::ComplexEig", "smelt::ComplexEigh"), _square_by_parts),
    **dict.fromkeys(("smelt::ComplexSchur", "smelt::ComplexCholesky"), _square_by_parts),
    **dict.fromkeys(("smelt::ComplexLU", "smelt::ComplexQR"), _by_parts),
    **dict.fromkeys(("smelt::ComplexSVD", "smelt::ComplexSingularValues"), _by_parts),
    "smelt::TriangularSolve": _solved,
    "smelt::ComplexTriangularSolve": _solved_by_parts,
    "smelt::TridiagonalSolve": _three_diagonals,
    "smelt::HouseholderProduct": _reflected,
}
"""Sizes that must be equal."""

AT_MOST: Mapping[str, Rule] = {
    "GatherElements": _inside,
    "ScatterElements": _inside,
    "TopK": _of_no_more,
    "smelt::HouseholderProduct": _no_more_than_sides,
}
"""Sizes of which the first must not exceed the second."""
