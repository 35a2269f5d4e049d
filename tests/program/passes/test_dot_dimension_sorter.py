"""Contracting dims are sorted where that makes them a run of neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from written import counting, dims_of, evaluate, one_dot

from smelt.program.dot_dims import DotDims
from smelt.program.passes import dot_dimension_sorter

SORTED = {
    "both sides turn into runs": ((3, 2), (2, 1), (2, 3), (1, 2)),
    "only the rhs can be a run": ((2, 0), (3, 2), (0, 2), (2, 3)),
    "only the lhs can be a run": ((2, 1), (0, 3), (1, 2), (3, 0)),
    "three in a cycle": ((3, 1, 2), (0, 1, 2), (1, 2, 3), (1, 2, 0)),
}


@pytest.mark.parametrize(("lc", "rc", "lhs", "rhs"), SORTED.values(), ids=SORTED.keys())
def test_sorts(
    lc: tuple[int, ...], rc: tuple[int, ...], lhs: tuple[int, ...], rhs: tuple[int, ...]
) -> None:
    program = one_dot((2, 2, 2, 2), (2, 2, 2, 2), DotDims(lc, rc))
    inputs = counting(program)
    before = evaluate(program, *inputs)
    assert dot_dimension_sorter.run(program)
    assert dims_of(program) == DotDims(lhs, rhs)
    np.testing.assert_array_equal(evaluate(program, *inputs), before)


KEPT = {
    "one contracting dim": DotDims((1,), (0,)),
    "sorted on both sides": DotDims((1, 2), (0, 1)),
    "no run on either side": DotDims((2, 0), (3, 1)),
    "no contracting dims": DotDims((), ()),
    "batch dims, whose order is that of the output": DotDims((2,), (2,), (1, 0), (0, 1)),
}


@pytest.mark.parametrize("dims", KEPT.values(), ids=KEPT.keys())
def test_keeps(dims: DotDims) -> None:
    program = one_dot((2, 2, 2, 2), (2, 2, 2, 2), dims)
    assert not dot_dimension_sorter.run(program)
    assert dims_of(program) == dims


def test_the_larger_operand_decides_where_only_one_can_be_sorted() -> None:
    dims = DotDims((2, 1), (0, 1))
    wide_lhs = one_dot((9, 2, 3), (3, 2, 1), dims)
    wide_rhs = one_dot((1, 2, 3), (3, 2, 9), dims)
    assert dot_dimension_sorter.run(wide_lhs)
    assert dims_of(wide_lhs) == DotDims((1, 2), (1, 0))
    assert not dot_dimension_sorter.run(wide_rhs)


@given(st.permutations(range(4)), st.permutations(range(4)), st.integers(0, 4))
def test_a_second_run_changes_nothing(left: list[int], right: list[int], count: int) -> None:
    dims = DotDims(tuple(left[:count]), tuple(right[:count]))
    program = one_dot((2, 2, 2, 2), (2, 2, 2, 2), dims)
    dot_dimension_sorter.run(program)
    once = dims_of(program)
    pairs = set(zip(dims.lhs_contracting, dims.rhs_contracting, strict=True))
    assert set(zip(once.lhs_contracting, once.rhs_contracting, strict=True)) == pairs
    assert not dot_dimension_sorter.run(program)
