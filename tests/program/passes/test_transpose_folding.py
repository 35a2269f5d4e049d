"""A DotGeneral reads what a Transpose reads, where the order of free dims allows it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written import Written, counting, dims_of, evaluate, ops

from smelt.program.dot_dims import DotDims
from smelt.program.instruction import Program
from smelt.program.passes import dead_code_elimination, transpose_folding

MATMUL = DotDims((1,), (0,))


def transposed_dot(
    lhs: tuple[int, ...],
    rhs: tuple[int, ...],
    dims: DotDims,
    lhs_perm: tuple[int, ...] | None = None,
    rhs_perm: tuple[int, ...] | None = None,
) -> Program:
    w = Written()
    a, b = w.input(*lhs), w.input(*rhs)
    left = a if lhs_perm is None else w.transpose(a, *lhs_perm)
    right = b if rhs_perm is None else w.transpose(b, *rhs_perm)
    return w.program(w.dot(left, right, dims))


def check(program: Program) -> bool:
    """Run the pass; the numbers stay, and a second run finds nothing."""
    inputs = counting(program)
    before = evaluate(program, *inputs)
    changed = transpose_folding.run(program)
    np.testing.assert_array_equal(evaluate(program, *inputs), before)
    assert not transpose_folding.run(program)
    return changed


FOLDED = {
    "lhs": ((3, 2), (3, 4), MATMUL, (1, 0), None, DotDims((0,), (0,))),
    "rhs": ((2, 3), (4, 3), MATMUL, None, (1, 0), DotDims((1,), (1,))),
    "both": ((3, 2), (4, 3), MATMUL, (1, 0), (1, 0), DotDims((0,), (1,))),
    "batch dims may change places": (
        (3, 2, 4, 5),
        (2, 3, 5, 6),
        DotDims((3,), (2,), (0, 1), (0, 1)),
        (1, 0, 2, 3),
        None,
        DotDims((3,), (2,), (1, 0), (0, 1)),
    ),
    "a batch dim may move": (
        (3, 4, 2),
        (2, 4, 5),
        DotDims((2,), (1,), (0,), (0,)),
        (2, 0, 1),
        None,
        DotDims((1,), (1,), (2,), (0,)),
    ),
    "two free dims in order": (
        (2, 5, 3),
        (5, 7),
        DotDims((2,), (0,)),
        (0, 2, 1),
        None,
        DotDims((1,), (0,)),
    ),
    "no contracting dims": (
        (3, 2),
        (3, 5),
        DotDims((), (), (1,), (0,)),
        (1, 0),
        None,
        DotDims((), (), (0,), (0,)),
    ),
}


@pytest.mark.parametrize(
    ("lhs", "rhs", "dims", "lhs_perm", "rhs_perm", "expected"), FOLDED.values(), ids=FOLDED.keys()
)
def test_folds(
    lhs: tuple[int, ...],
    rhs: tuple[int, ...],
    dims: DotDims,
    lhs_perm: tuple[int, ...] | None,
    rhs_perm: tuple[int, ...] | None,
    expected: DotDims,
) -> None:
    program = transposed_dot(lhs, rhs, dims, lhs_perm, rhs_perm)
    assert check(program)
    assert dims_of(program) == expected
    assert dead_code_elimination.run(program)
    assert ops(program) == ["DotGeneral"]


def test_two_free_dims_that_change_places_are_not_folded_even_if_equal() -> None:
    program = transposed_dot((2, 2, 2, 2), (2, 2), DotDims((2,), (0,), (3,), (1,)), (1, 0, 2, 3))
    assert not check(program)


def test_a_reshape_in_between_is_not_folded() -> None:
    w = Written()
    a, b = w.input(3, 2), w.input(3, 4)
    flat = w.op("Reshape", w.transpose(a, 1, 0), shape=(2, 3))
    program = w.program(w.dot(flat, b, MATMUL))
    assert not check(program)


def test_a_chain_is_folded_to_its_source() -> None:
    w = Written()
    a, b = w.input(3, 2), w.input(3, 4)
    twice = w.transpose(w.transpose(w.transpose(a, 1, 0), 1, 0), 1, 0)
    program = w.program(w.dot(twice, b, MATMUL))
    assert check(program)
    assert program.instructions[-1].inputs == (a, b)


def test_one_transpose_may_serve_both_sides_and_stay_for_others() -> None:
    w = Written()
    a = w.input(2, 2)
    t = w.transpose(a, 1, 0)
    program = w.program(w.dot(t, t, MATMUL), t)
    assert check(program)
    assert program.instructions[-1].inputs == (a, a)
    dead_code_elimination.run(program)
    assert ops(program) == ["Transpose", "DotGeneral"]


@settings(max_examples=60, deadline=None)
@given(st.permutations(range(4)), st.permutations(range(4)), st.permutations(range(4)), st.data())
def test_any_fold_keeps_the_numbers(
    perm: list[int], left: list[int], right: list[int], data: st.DataObject
) -> None:
    count, batch = data.draw(st.sampled_from([(1, 1), (1, 0), (2, 1), (0, 2), (2, 2), (1, 2)]))
    dims = DotDims(
        tuple(left[:count]),
        tuple(right[:count]),
        tuple(left[count : count + batch]),
        tuple(right[count : count + batch]),
    )
    program = transposed_dot((2, 2, 2, 2), (2, 2, 2, 2), dims, tuple(perm))
    free = [perm[d] for d in dims.lhs_free(4)]
    increasing = all(x < y for x, y in itertools.pairwise(free))
    assert check(program) == increasing
