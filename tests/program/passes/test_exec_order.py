"""The pipeline ``exec`` prints the examples of its specification, and keeps numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written import Written, counting, evaluate, ops

from smelt.errors import UsageError
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import Program
from smelt.program.passes import optimize
from smelt.program.passes.exec_order import STEPS


def printed(program: Program) -> list[str]:
    """Each instruction: operator, permutation or dims, shape of the result."""
    lines = []
    for each in program.instructions:
        dims = each.attributes.get("dims")
        shape = list(program.slots[each.outputs[0]].shape)
        if isinstance(dims, DotDims):
            about = f" cont={list(dims.lhs_contracting)},{list(dims.rhs_contracting)}"
            about += f" batch={list(dims.lhs_batch)},{list(dims.rhs_batch)}"
        else:
            about = f" perm={list(each.ints('perm'))}" if each.op == "Transpose" else ""
        lines.append(f"{each.op}{about} -> {shape}")
    return lines


def after(program: Program, last: str) -> Program:
    """Return ``program`` after the passes up to ``last``."""
    for name, step in STEPS.items():
        step(program)
        if name == last:
            break
    return program


def test_the_order_of_the_passes() -> None:
    assert list(STEPS) == [
        "DotDimensionSorter",
        "TransposeFolding",
        "DotDecomposer",
        "DeadCodeElimination",
        "LastUse",
    ]


SORTED = {
    "by the lhs": ((3, 2), (2, 1), (2, 3), (1, 2)),
    "by the lhs, although the rhs is sorted": ((3, 2), (1, 2), (2, 3), (2, 1)),
    "by the rhs, as the lhs is sorted": ((2, 3), (2, 1), (3, 2), (1, 2)),
    "by the rhs, as the lhs has a gap": ((3, 1), (2, 1), (1, 3), (1, 2)),
    "not at all": ((3, 1), (3, 1), (3, 1), (3, 1)),
}


@pytest.mark.parametrize(("lhs", "rhs", "left", "right"), SORTED.values(), ids=SORTED)
def test_contracting_dims_are_sorted(
    lhs: tuple[int, ...], rhs: tuple[int, ...], left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    w = Written()
    made = w.program(w.dot(w.input(2, 2, 2, 2), w.input(2, 2, 2, 2), DotDims(lhs, rhs)))
    (dot,) = after(made, "DotDimensionSorter").instructions
    assert dot.attributes["dims"] == DotDims(left, right)


def test_a_transpose_is_folded_and_emitted_again() -> None:
    """The product reads A itself after the fold; the decomposition transposes it once more."""

    def made() -> Program:
        w = Written()
        a, b = w.input(3, 2), w.input(3, 4)
        return w.program(w.dot(w.transpose(a, 1, 0), b, DotDims((1,), (0,))))

    assert printed(after(made(), "TransposeFolding")) == [
        "Transpose perm=[1, 0] -> [2, 3]",
        "DotGeneral cont=[0],[0] batch=[],[] -> [2, 4]",
    ]
    assert printed(optimize(made(), pipeline="exec")) == [
        "Transpose perm=[1, 0] -> [2, 3]",
        "DotGeneral cont=[1],[0] batch=[],[] -> [2, 4]",
    ]


@pytest.mark.parametrize(
    ("perm", "dims"),
    [
        ((1, 0, 2), DotDims((2,), (1,), (0,), (0,))),
        ((0, 2, 1), DotDims((1, 2), (1, 2), (0,), (0,))),
        ((1, 0, 2), DotDims((2,), (2,))),
    ],
    ids=["a batch dim moves", "two contracting dims", "free dims change order"],
)
def test_transposes_that_stay(perm: tuple[int, ...], dims: DotDims) -> None:
    w = Written()
    made = w.program(w.dot(w.transpose(w.input(2, 2, 2), *perm), w.input(2, 2, 2), dims))
    folded = after(made, "TransposeFolding").instructions[-1]
    assert folded.inputs[0] == made.instructions[0].outputs[0]


def test_the_decomposition_of_a_product_with_two_batch_dims() -> None:
    """a, b, M, K1, K2, N = 2, 3, 4, 5, 6, 7; the batch dims lead the result, as in any Program."""
    w = Written()
    dims = DotDims((3, 4), (2, 3), (0, 1), (0, 1))
    made = w.program(w.dot(w.input(2, 3, 4, 5, 6), w.input(2, 3, 5, 6, 7), dims))
    assert printed(optimize(made, pipeline="exec")) == [
        "Transpose perm=[2, 3, 4, 0, 1] -> [4, 5, 6, 2, 3]",
        "Reshape -> [4, 30, 2, 3]",
        "Transpose perm=[2, 3, 4, 0, 1] -> [5, 6, 7, 2, 3]",
        "Reshape -> [30, 7, 2, 3]",
        "DotGeneral cont=[1],[0] batch=[2, 3],[2, 3] -> [2, 3, 4, 7]",
    ]


def test_several_free_dims_are_restored_by_a_reshape() -> None:
    w = Written()
    made = w.program(w.dot(w.input(2, 3, 4), w.input(4, 5, 6), DotDims((2,), (0,))))
    assert printed(optimize(made, pipeline="exec")) == [
        "Reshape -> [6, 4]",
        "Reshape -> [4, 30]",
        "DotGeneral cont=[1],[0] batch=[],[] -> [6, 30]",
        "Reshape -> [2, 3, 5, 6]",
    ]


CANONICAL = {
    "matrices": ((2, 3), (3, 4), DotDims((1,), (0,))),
    "with a batch": ((2, 3, 5), (3, 4, 5), DotDims((1,), (0,), (2,), (2,))),
    "no free dim": ((3, 5), (3, 5), DotDims((0,), (0,), (1,), (1,))),
}


@pytest.mark.parametrize(("lhs", "rhs", "dims"), CANONICAL.values(), ids=CANONICAL)
def test_canonical_products_stay(lhs: tuple[int, ...], rhs: tuple[int, ...], dims: DotDims) -> None:
    w = Written()
    made = w.program(w.dot(w.input(*lhs), w.input(*rhs), dims))
    assert ops(optimize(made, pipeline="exec")) == ["DotGeneral"]
    assert made.instructions[0].attributes["dims"] == dims
    assert made.instructions[0].last_use == (True, True)


def test_a_check_of_singular_matrices_stays() -> None:
    w = Written()
    a = w.input(2, 2)
    w.op("smelt::ValidateNonsingular", a)
    w.op("Relu", a)
    made = w.program(w.op("Neg", a))
    assert ops(optimize(made, pipeline="exec")) == ["smelt::ValidateNonsingular", "Neg"]


def test_symbolic_sizes_are_multiplied() -> None:
    import onnx_ir as ir

    n = ir.SymbolicDim("N")
    w = Written()
    made = w.program(w.dot(w.input(n, 3, 4), w.input(4, 5), DotDims((2,), (0,))))
    first, dot, _ = optimize(made, pipeline="exec").instructions
    assert str(made.slots[first.outputs[0]].shape[0]).replace(" ", "") in ("3*N", "N*3")
    assert dot.op == "DotGeneral"


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(4)), st.permutations(range(4)), st.data())
def test_numbers_stay_and_a_second_run_prints_the_same(
    left: list[int], right: list[int], data: st.DataObject
) -> None:
    contracting = data.draw(st.integers(0, 3))
    batch = data.draw(st.integers(0, 3 - contracting))
    w = Written()
    sizes = [2, 3, 2, 3]
    shape_left, shape_right = [0] * 4, [0] * 4
    for size, i, j in zip(sizes, left, right, strict=True):
        shape_left[i] = shape_right[j] = size
    stop = contracting + batch
    dims = DotDims(
        tuple(left[:contracting]),
        tuple(right[:contracting]),
        tuple(left[contracting:stop]),
        tuple(right[contracting:stop]),
    )
    made = w.program(w.dot(w.input(*shape_left), w.input(*shape_right), dims))
    arrays = counting(made)
    (expected,) = evaluate(made, *arrays)
    optimize(made, pipeline="exec")
    np.testing.assert_array_equal(evaluate(made, *arrays)[0], expected)
    before = printed(made)
    assert printed(optimize(made, pipeline="exec")) == before


def test_another_pipeline_is_refused() -> None:
    w = Written()
    with pytest.raises(UsageError, match="E602"):
        optimize(w.program(w.input(2)), pipeline="exce")
