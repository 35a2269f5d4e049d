"""Only operands that no matrix product reads where they lie are transposed."""

from __future__ import annotations

import numpy as np
import pytest
from written import Written, counting, dims_of, evaluate, one_dot, ops

from smelt.program.dot_dims import DotDims
from smelt.program.passes import operand_layout

READABLE = {
    "transposed": ((3, 2), (4, 3), DotDims((0,), (1,))),
    "batch last": ((2, 3, 5), (3, 4, 5), DotDims((1,), (0,), (2,), (2,))),
    "batch between": ((2, 5, 3), (3, 5, 4), DotDims((2,), (0,), (1,), (1,))),
    "a 1 between free dims": ((2, 1, 3), (1, 4), DotDims((1,), (0,))),
    "nothing summed": ((2, 3), (3, 2), DotDims((), (), (0, 1), (1, 0))),
}


@pytest.mark.parametrize(("lhs", "rhs", "dims"), READABLE.values(), ids=READABLE)
def test_they_stay_as_they_are(lhs, rhs, dims) -> None:
    program = one_dot(lhs, rhs, dims)
    assert not operand_layout.run(program)
    assert (ops(program), dims_of(program)) == (["DotGeneral"], dims)


def test_the_larger_operand_says_in_which_order_is_summed() -> None:
    dims = DotDims((1, 0), (1, 0))
    program = one_dot((2, 3, 8), (3, 2), DotDims((1, 0), (0, 1)))
    inputs = counting(program)
    expected = np.einsum("klm,lk->m", *inputs)
    assert operand_layout.run(program)
    assert ops(program) == ["Transpose", "DotGeneral"]
    assert program.instructions[0].inputs == (program.inputs[1],)
    assert dims_of(program) == DotDims((0, 1), (0, 1))
    np.testing.assert_array_equal(evaluate(program, *inputs)[0], expected)
    both = one_dot((2, 3, 8), (2, 3), dims)
    assert operand_layout.run(both)
    assert (ops(both), dims_of(both)) == (["DotGeneral"], DotDims((0, 1), (0, 1)))


def test_free_dims_that_are_apart_are_brought_together() -> None:
    program = one_dot((2, 3, 4), (3, 5), DotDims((1,), (0,)))
    inputs = counting(program)
    assert operand_layout.run(program)
    assert ops(program) == ["Transpose", "DotGeneral"]
    assert program.instructions[0].attributes == {"perm": (0, 2, 1)}
    assert not operand_layout.run(program)
    np.testing.assert_array_equal(evaluate(program, *inputs)[0], np.einsum("akb,kn->abn", *inputs))


def test_one_operand_on_both_sides() -> None:
    w = Written()
    a = w.input(2, 3, 2)
    program = w.program(w.dot(a, a, DotDims((1,), (1,))))
    (x,) = counting(program)
    assert operand_layout.run(program)
    assert ops(program) == ["Transpose", "Transpose", "DotGeneral"]
    np.testing.assert_array_equal(evaluate(program, x)[0], np.einsum("akb,ckd->abcd", x, x))
