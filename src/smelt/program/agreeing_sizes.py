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


def _reshape(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield the element counts of the operand and of the result."""
    yield prod(operands[0]), prod(results[0])


def _dot_general(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield the paired dims of the operands, and each free dim with its dim of the result."""
    dims = step.attributes["dims"]
    assert isinstance(dims, DotDims)
    left = (*dims.lhs_batch, *dims.lhs_contracting)
    right = (*dims.rhs_batch, *dims.rhs_contracting)
    yield from ((operands[0][i], operands[1][j]) for i, j in zip(left, right, strict=True))
    free = [operands[0][i] for i in dims.lhs_free(len(operands[0]))]
    free += [operands[1][j] for j in dims.rhs_free(len(operands[1]))]
    yield from zip(results[0][len(dims.lhs_batch) :], free, strict=True)


def _concat(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield pairs of equal sizes: the sum along ``axis`` and that dim of the result, then each
    other dim of each operand and the same dim of the result."""
    axis = step.attributes["axis"]
    assert isinstance(axis, int)
    yield sum(shape[axis] for shape in operands), results[0][axis]
    for shape in operands:
        yield from (
            pair for dim, pair in enumerate(zip(shape, results[0], strict=True)) if dim != axis
        )


def _pad(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield each padded size with the size of the result."""
    pads, rank = step.ints("pads"), len(results[0])
    for axis, (size, result_size) in enumerate(zip(operands[0], results[0], strict=True)):
        yield size + pads[axis] + pads[rank + axis], result_size


def _slice(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Return each size of the result with the number of rows that the Slice takes."""
    cuts = zip(*(step.ints(name) for name in ("starts", "ends", "steps")), strict=True)
    pairs = zip(step.ints("axes"), cuts, strict=True)
    return [(results[0][axis], count_rows(operands[0][axis], cut)) for axis, cut in pairs]


def broadcast(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield each operand dim other than 1 with the dim of the result.

    If the result is declared with lower rank than an operand, the operands do not broadcast; then
    they are compared with the operand of highest rank.
    """
    widest = max(results[:1] + operands, key=len)
    for shape in operands:
        for size, result_size in zip(reversed(shape), reversed(widest), strict=False):
            if not same(size, 1):
                yield size, result_size


def _channel_parameters(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Return the length of each parameter with the number of channels."""
    return [(shape[0], operands[0][1]) for shape in operands[1:] if shape]


def _trailing_parameters(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Return the dims of scales and biases with the last dims of the data, to which they
    broadcast."""
    return [
        (size, data_size)
        for shape in operands[1:]
        for size, data_size in zip(reversed(shape), reversed(operands[0]), strict=False)
        if not same(size, 1)
    ]


def _scatter_nd(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield each dim of the updates with the dim of the indices or of the data that it must
    equal."""
    data, indices, updates = operands
    return zip(updates, (*indices[:-1], *data[cast(int, indices[-1]) :]), strict=True)


def _indices_and_updates(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield the dims of the indices, each with that of the updates."""
    return zip(operands[1], operands[2], strict=True)


def _indices_within_data(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Return the sizes of indices and data along all axes but the operator's axis."""
    axis = step.attributes["axis"]
    dims = enumerate(zip(operands[1], operands[0], strict=True))
    return [pair for dim, pair in dims if dim != axis]


def _top_k(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield each dim of the result with the dim of the operand."""
    return zip(results[0], operands[0], strict=True)


def _expand(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield the pairs of a broadcast of the first operand."""
    return broadcast(step, operands[:1], results)


def _convolution(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield the pairs of ``x[N, groups * C, ...]``, ``w[M, C, ...]`` and a bias ``[M]``."""
    x, *others = (operands[position] for position in _OPERANDS[step.op] if position < len(operands))
    w, *bias = (shape for shape in others if shape)
    groups = step.attributes["group"]
    assert isinstance(groups, int)
    yield x[1], w[1] * groups
    yield w[0], w[0] // groups * groups
    yield from ((shape[0], w[0]) for shape in bias)
    yield from zip(w[2:], step.ints("kernel_shape"), strict=True)


def _transposed_convolution(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield the pairs of ``x[N, groups * C, ...]``, ``w[groups * C, M, ...]`` and a bias."""
    x, w, *bias = (shape for shape in operands if shape)
    groups = step.attributes["group"]
    assert isinstance(groups, int)
    yield x[1], w[0]
    yield w[0], w[0] // groups * groups
    yield from ((shape[0], w[1] * groups) for shape in bias)
    yield from zip(w[2:], step.ints("kernel_shape"), strict=True)


def _matrix_product(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield the pairs of a MatMul: left columns with right rows, and broadcast batch dims."""
    left, right = (operands[position] for position in _OPERANDS[step.op])
    yield left[-1], right[-2] if len(right) > 1 else right[-1]
    batch = results[0][: len(results[0]) - (len(left) > 1) - (len(right) > 1)]
    yield from broadcast(step, [left[:-2], right[:-2]], [batch])


def _quantization(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Return the length of each scale and zero point with the size of the axis, except for length
    1."""
    axis = step.attributes["axis"]
    assert isinstance(axis, int)
    return [
        (shape[0], operands[0][axis])
        for shape in operands[1:]
        if len(shape) == 1 and not same(shape[0], 1)
    ]


def _recurrence(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield the pairs of gates [steps, batch, rows], weights [hidden, rows] and the other
    operands."""
    gates, weights, *other_shapes = operands
    hidden = results[0][-1]
    rows = CELLS[str(step.attributes["cell"])].gates * hidden
    state = (gates[1], hidden)
    expected: tuple[Shape, ...] = (state, state, (3 * hidden,), (hidden,), (gates[1],))
    yield from ((gates[2], rows), (weights[0], hidden), (weights[1], rows))
    for shape, sizes in zip(other_shapes, expected, strict=True):
        yield from zip(shape, sizes, strict=False)  # none if it is absent


def _non_max_suppression(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Return the pairs of boxes [batch, count, 4] and scores [batch, classes, count]."""
    boxes, scores = operands[:2]
    return ((boxes[0], scores[0]), (boxes[1], scores[2]), (boxes[2], 4))


def _gather_nd(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield the batch dims of the data, each with that of the indices."""
    batch = step.attributes["batch_dims"]
    assert isinstance(batch, int)
    return zip(operands[0][:batch], operands[1][:batch], strict=True)


def _loop_rows(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Return the row counts of operands that a Loop reads row by row, which must all be equal."""
    states, count = step.attributes["states"], step.attributes["reads"]
    assert isinstance(states, int)
    assert isinstance(count, tuple)
    first = 2 + states
    return [(rows[0], operands[first][0]) for rows in operands[first : first + len(count)]]


def _square_matrix(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Return the columns and the rows of a square matrix."""
    return ((operands[0][-1], operands[0][-2]),)


def _real_and_imaginary(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield the dims of the real part, each with that of the imaginary part."""
    yield from zip(operands[0], operands[1], strict=True)


def _complex_square_matrix(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield the pairs of a square matrix of complex numbers in two parts."""
    yield from _square_matrix(step, operands, results)
    yield from _real_and_imaginary(step, operands, results)


def _triangular_solve(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield the pairs of a square matrix and as many rows (or columns) of the right side."""
    matrix, right = operands[:2]
    yield from _square_matrix(step, operands, results)
    yield right[-2 if step.attributes["left_side"] else -1], matrix[-1]
    yield from zip(matrix[:-2], right[:-2], strict=True)


def _complex_triangular_solve(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield the pairs of a triangular system of complex numbers, each operand in two parts."""
    yield from _real_and_imaginary(step, operands[:2], results)
    yield from _real_and_imaginary(step, operands[2:], results)
    yield from _triangular_solve(step, [operands[0], operands[2]], results)


def _tridiagonal_solve(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield the dims of each diagonal with those of the right side, without its columns."""
    *diagonals, right = operands
    for diagonal in diagonals:
        yield from zip(diagonal, right[:-1], strict=True)


def _householder_batch(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield the batch dims of Householder vectors, each with that of the factors."""
    yield from zip(operands[0][:-2], operands[1][:-1], strict=True)


def _householder_count(step: Instruction, operands: Shapes, results: Shapes) -> Pairs:
    """Yield the number of reflectors with each side of the matrix."""
    yield from ((operands[1][-1], side) for side in operands[0][-2:])


_OPERANDS: Mapping[str, tuple[int, ...]] = {
    "Conv": (0, 1, 2),
    "ConvInteger": (0, 1),
    "QLinearConv": (0, 3, 8),
    "MatMulInteger": (0, 1),
    "QLinearMatMul": (0, 3),
}
"""Positions of the operands of a product, between scales and zero points."""

EQUAL: Mapping[str, Rule] = {
    "Reshape": _reshape,
    "Expand": _expand,
    "DotGeneral": _dot_general,
    **dict.fromkeys(("MatMulInteger", "QLinearMatMul"), _matrix_product),
    **dict.fromkeys(("Conv", "ConvInteger", "QLinearConv"), _convolution),
    "ConvTranspose": _transposed_convolution,
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), _quantization),
    "Concat": _concat,
    "Pad": _pad,
    "Slice": _slice,
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization"), _channel_parameters),
    "GroupNormalization": _channel_parameters,
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _trailing_parameters),
    "GatherND": _gather_nd,
    "ScatterND": _scatter_nd,
    "ScatterElements": _indices_and_updates,
    "Recurrence": _recurrence,
    "NonMaxSuppression": _non_max_suppression,
    "Loop": _loop_rows,
    **dict.fromkeys(("Det", "smelt::Cholesky"), _square_matrix),
    **dict.fromkeys(("smelt::Eig", "smelt::Eigh", "smelt::Schur"), _square_matrix),
    **dict.fromkeys(("smelt::Hessenberg", "smelt::Tridiagonal"), _square_matrix),
    **dict.fromkeys(("smelt::ComplexEig", "smelt::ComplexEigh"), _complex_square_matrix),
    **dict.fromkeys(("smelt::ComplexSchur", "smelt::ComplexCholesky"), _complex_square_matrix),
    **dict.fromkeys(("smelt::ComplexLU", "smelt::ComplexQR"), _real_and_imaginary),
    **dict.fromkeys(("smelt::ComplexSVD", "smelt::ComplexSingularValues"), _real_and_imaginary),
    "smelt::TriangularSolve": _triangular_solve,
    "smelt::ComplexTriangularSolve": _complex_triangular_solve,
    "smelt::TridiagonalSolve": _tridiagonal_solve,
    "smelt::HouseholderProduct": _householder_batch,
}
"""Sizes that must be equal."""

AT_MOST: Mapping[str, Rule] = {
    "GatherElements": _indices_within_data,
    "ScatterElements": _indices_within_data,
    "TopK": _top_k,
    "smelt::HouseholderProduct": _householder_count,
}
"""Sizes of which the first must not exceed the second."""
