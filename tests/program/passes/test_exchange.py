"""A Reshape of a Transpose is a Transpose of a Reshape where merged dims were neighbours."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from written import Written, counting, dims_of, evaluate, ops

from smelt.program.dot_dims import DotDims
from smelt.program.passes import dead_code_elimination, transpose_folding

FOLDED = {
    "merged": ((2, 3, 4), (2, 0, 1), (4, 6), DotDims((0,), (0,))),
    "with a 1 more": ((2, 3, 4), (2, 0, 1), (4, 1, 6), DotDims((0,), (0,))),
    "with a 1 less": ((1, 3, 4), (2, 0, 1), (4, 3), DotDims((0,), (0,))),
    "a 1 between": ((2, 1, 4), (2, 0, 1), (4, 2), DotDims((0,), (0,))),
}
STAYS = {
    "empty": ((2, 0, 4), (2, 0, 1), (4, 0), DotDims((0,), (0,))),
    "merged dims that change places": ((2, 3, 4), (2, 1, 0), (4, 6), DotDims((0,), (0,))),
    "merged dims that were apart": ((2, 3, 4), (1, 0, 2), (3, 8), DotDims((0,), (0,))),
    "a dim that is split": ((6, 4), (1, 0), (4, 2, 3), DotDims((0,), (0,))),
    "dims that are cut elsewhere": ((4, 6), (1, 0), (4, 6), DotDims((0,), (0,))),
    "free dims that change places": ((2, 3, 4, 5), (3, 2, 0, 1), (5, 4, 6), DotDims((0,), (0,))),
}


def written(
    shape: tuple[int, ...], perm: tuple[int, ...], to: tuple[int, ...], dims: DotDims
) -> Written:
    w = Written()
    moved = w.op("Reshape", w.transpose(w.input(*shape), *perm), shape=to)
    w.made.outputs = (w.dot(moved, w.input(to[0], 7), dims),)
    return w


@pytest.mark.parametrize(("shape", "perm", "to", "dims"), FOLDED.values(), ids=FOLDED)
def test_the_transpose_is_folded(shape, perm, to, dims) -> None:
    program = written(shape, perm, to, dims).made
    inputs = counting(program)
    expected = evaluate(program, *inputs)
    assert transpose_folding.run(program, across_reshapes=True)
    dead_code_elimination.run(program)
    assert ops(program) == ["Reshape", "DotGeneral"]
    np.testing.assert_array_equal(evaluate(program, *inputs), expected)
    assert not transpose_folding.run(program, across_reshapes=True)


@pytest.mark.parametrize(("shape", "perm", "to", "dims"), STAYS.values(), ids=STAYS)
def test_it_stays(shape, perm, to, dims) -> None:
    program = written(shape, perm, to, dims).made
    assert not transpose_folding.run(program, across_reshapes=True)
    assert ops(program) == ["Transpose", "Reshape", "DotGeneral"]
    assert dims_of(program) == dims


def test_sizes_with_names_are_equal_by_name_only() -> None:
    for name, folds in (("N", True), ("M", False)):
        w = Written()
        n, to = ir.SymbolicDim("N"), ir.SymbolicDim(name)
        moved = w.op("Reshape", w.transpose(w.input(2, 3, n), 2, 0, 1), shape=(to, 6))
        program = w.program(w.dot(moved, w.input(6, 5), DotDims((1,), (0,))))
        assert transpose_folding.run(program, across_reshapes=True) is folds


def test_a_reshape_that_others_read_stays() -> None:
    w = Written()
    moved = w.op("Reshape", w.transpose(w.input(2, 3, 4), 2, 0, 1), shape=(4, 6))
    program = w.program(w.dot(moved, w.input(4, 5), DotDims((0,), (0,))), w.op("Neg", moved))
    inputs = counting(program)
    expected = evaluate(program, *inputs)
    assert transpose_folding.run(program, across_reshapes=True)
    dead_code_elimination.run(program)
    assert ops(program) == ["Transpose", "Reshape", "Reshape", "DotGeneral", "Neg"]
    for found, right in zip(evaluate(program, *inputs), expected, strict=True):
        np.testing.assert_array_equal(found, right)
