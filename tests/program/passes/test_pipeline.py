"""The passes together: products end up canonical, with at most one Transpose an operand."""

from __future__ import annotations

import copy

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from written import Written, counting, evaluate, ops

from smelt.program.dot_dims import DotDims
from smelt.program.instruction import Program
from smelt.program.passes import optimize


def state(program: Program) -> tuple[object, ...]:
    return program.slots, program.instructions, program.outputs


def test_a_plain_product_stays_one_instruction() -> None:
    w = Written()
    program = optimize(w.program(w.dot(w.input(2, 3), w.input(3, 4), DotDims((1,), (0,)))))
    assert ops(program) == ["DotGeneral"]
    assert program.instructions[0].last_use == (True, True)


def test_a_fold_that_the_decomposition_undoes_costs_one_transpose() -> None:
    w = Written()
    a = w.input(3, 2)
    thrice = w.transpose(w.transpose(w.transpose(a, 1, 0), 1, 0), 1, 0)
    program = optimize(w.program(w.dot(thrice, w.input(3, 4), DotDims((1,), (0,)))))
    assert ops(program) == ["Transpose", "DotGeneral"]


def test_without_decomposition_no_transpose_is_left() -> None:
    w = Written()
    a = w.transpose(w.input(3, 2), 1, 0)
    made = w.program(w.dot(a, w.input(3, 4), DotDims((1,), (0,))))
    assert ops(optimize(made, decompose=False)) == ["DotGeneral"]


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(3)), st.permutations(range(3)), st.permutations(range(3)))
def test_the_pipeline_keeps_numbers_and_is_idempotent(
    first: list[int], second: list[int], dims: list[int]
) -> None:
    w = Written()
    a, b = w.input(2, 2, 2), w.input(2, 2, 2)
    left = w.transpose(w.transpose(a, *first), *second)
    product = w.dot(
        left, w.transpose(b, *second), DotDims((dims[0],), (dims[1],), (dims[1],), (dims[0],))
    )
    again = w.dot(product, b, DotDims((1, 2), (dims[0], dims[1])))
    program = w.program(product, again)
    inputs = counting(program)
    expected = evaluate(program, *inputs)
    optimize(program)
    for x, y in zip(evaluate(program, *inputs), expected, strict=True):
        np.testing.assert_array_equal(x, y)
    before = copy.deepcopy(state(program))
    assert state(optimize(program)) == before
