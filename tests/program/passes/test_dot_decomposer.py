"""Every DotGeneral becomes [B..., M?, K] x [B..., K, N?] -> [B..., M?, N?]."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written import Written, counting, dims_of, evaluate, one_dot, ops, shape_of

from smelt.program.dot_dims import DotDims
from smelt.program.instruction import Program
from smelt.program.passes import dot_decomposer

CANONICAL = {
    "matrix product": ((2, 3), (3, 4), DotDims((1,), (0,))),
    "batched": ((5, 6, 2, 3), (5, 6, 3, 4), DotDims((3,), (2,), (0, 1), (0, 1))),
    "matrix and vector": ((2, 3), (3,), DotDims((1,), (0,))),
    "two vectors": ((3,), (3,), DotDims((0,), (0,))),
    "batch and no free dims": ((64, 4), (64, 4), DotDims((1,), (1,), (0,), (0,))),
    "size 1 and size 0": ((1, 0), (0, 4), DotDims((1,), (0,))),
}


@pytest.mark.parametrize(("lhs", "rhs", "dims"), CANONICAL.values(), ids=CANONICAL.keys())
def test_leaves_canonical_products_alone(
    lhs: tuple[int, ...], rhs: tuple[int, ...], dims: DotDims
) -> None:
    program = one_dot(lhs, rhs, dims)
    slots = len(program.slots)
    assert not dot_decomposer.run(program)
    assert len(program.slots) == slots


REWRITTEN = {
    "transposed rhs": ((2, 3), (4, 3), DotDims((1,), (1,)), ["Transpose", "DotGeneral"]),
    "two free dims": (
        (2, 3, 4),
        (4, 5),
        DotDims((2,), (0,)),
        ["Reshape", "DotGeneral", "Reshape"],
    ),
    "two contracting dims behind two batch dims": (
        (2, 3, 7, 4, 5),
        (2, 3, 4, 5, 11),
        DotDims((3, 4), (2, 3), (0, 1), (0, 1)),
        ["Reshape", "Reshape", "DotGeneral"],
    ),
    "contracting first": (
        (12, 2, 3),
        (10, 12),
        DotDims((0,), (1,)),
        ["Transpose", "Reshape", "Transpose", "DotGeneral", "Reshape"],
    ),
    "free dims of size 1 survive": (
        (4, 3),
        (4, 3, 2, 1),
        DotDims((1,), (1,), (0,), (0,)),
        ["Reshape", "DotGeneral", "Reshape"],
    ),
    "a free dim of size 0": (
        (4, 3, 2, 0),
        (4, 3),
        DotDims((1,), (1,), (0,), (0,)),
        ["Transpose", "Reshape", "DotGeneral", "Reshape"],
    ),
    "batch dims in another order on the rhs": (
        (6, 4, 3, 2),
        (5, 4, 2, 3),
        DotDims((1,), (1,), (2, 3), (3, 2)),
        ["Transpose", "Transpose", "DotGeneral"],
    ),
    "an empty sum over two dims": (
        (2, 0, 3),
        (0, 3, 4),
        DotDims((1, 2), (0, 1)),
        ["Reshape", "Reshape", "DotGeneral"],
    ),
}


@pytest.mark.parametrize(
    ("lhs", "rhs", "dims", "expected"), REWRITTEN.values(), ids=REWRITTEN.keys()
)
def test_rewrites(
    lhs: tuple[int, ...], rhs: tuple[int, ...], dims: DotDims, expected: list[str]
) -> None:
    program = one_dot(lhs, rhs, dims)
    check(program)
    assert ops(program) == expected
    batch = tuple(range(len(dims.lhs_batch)))
    found = dims_of(program)
    assert (found.lhs_batch, found.rhs_batch, found.rhs_contracting) == (
        batch,
        batch,
        (len(batch),),
    )


def check(program: Program) -> None:
    """Run the pass; numbers, output slot and its type stay, and a second run finds nothing."""
    inputs = counting(program)
    before = evaluate(program, *inputs)
    (output,) = program.outputs
    described = program.slots[output]
    dot_decomposer.run(program)
    assert program.outputs == (output,)
    assert program.slots[output] == described
    (after,) = evaluate(program, *inputs)
    assert after.dtype == before[0].dtype
    np.testing.assert_array_equal(after, before[0])
    assert not dot_decomposer.run(program)


def test_the_final_reshape_needs_no_operand_to_know_its_shape() -> None:
    program = one_dot((2, 3, 4), (4, 5), DotDims((2,), (0,)))
    dot_decomposer.run(program)
    last = program.instructions[-1]
    assert len(last.inputs) == 1
    assert shape_of(program, last.inputs[0]) == (6, 5)
    assert shape_of(program, last.outputs[0]) == (2, 3, 5)


OUTER = {
    "outer product": ((2,), (3,), DotDims((), ())),
    "batched": ((4, 2), (4, 3), DotDims((), (), (0,), (0,))),
    "elementwise": ((4, 2), (2, 4), DotDims((), (), (0, 1), (1, 0))),
    "scalars": ((), (), DotDims((), ())),
    "free dims on both sides": ((3, 4, 2), (5, 4, 6), DotDims((), (), (1,), (1,))),
}


@pytest.mark.parametrize(("lhs", "rhs", "dims"), OUTER.values(), ids=OUTER.keys())
def test_without_contracting_dims_it_multiplies(
    lhs: tuple[int, ...], rhs: tuple[int, ...], dims: DotDims
) -> None:
    program = one_dot(lhs, rhs, dims)
    check(program)
    assert ops(program)[-1] == "Mul"


@pytest.mark.parametrize("semiring", ["max_plus", "min_plus"])
def test_semirings_multiply_by_adding(semiring: str) -> None:
    program = one_dot((2,), (3,), DotDims((), ()), semiring=semiring)
    check(program)
    assert ops(program)[-1] == "Add"
    contracted = one_dot((2, 3, 4), (5, 4), DotDims((2,), (1,)), semiring=semiring)
    check(contracted)


WIDE = {
    "int8 to int32": (ir.DataType.INT8, ir.DataType.INT32),
    "float16 to float32": (ir.DataType.FLOAT16, ir.DataType.FLOAT),
    "double to float": (ir.DataType.DOUBLE, ir.DataType.FLOAT),
}


@pytest.mark.parametrize(("inputs", "output"), WIDE.values(), ids=WIDE.keys())
@pytest.mark.parametrize("dims", [DotDims((1,), (1,)), DotDims((), ())], ids=["dot", "outer"])
def test_the_output_keeps_its_element_type(
    inputs: ir.DataType, output: ir.DataType, dims: DotDims
) -> None:
    w = Written()
    lhs, rhs = w.input(2, 3, 2, dtype=inputs), w.input(2, 3, 2, dtype=inputs)
    program = w.program(w.dot(lhs, rhs, dims, dtype=output))
    check(program)
    dots = [i for i in program.instructions if i.op == "DotGeneral"]
    for dot in dots:
        assert program.slots[dot.outputs[0]].dtype == output
        assert all(program.slots[slot].dtype == inputs for slot in dot.inputs)


def test_a_chain_becomes_two_canonical_products() -> None:
    w = Written()
    a, b, c = w.input(6, 3, 4, 8), w.input(6, 8, 5), w.input(6, 5, 7)
    first = w.dot(a, b, DotDims((3,), (1,), (0,), (0,)))
    program = w.program(w.dot(first, c, DotDims((3,), (1,), (0,), (0,))))
    check(program)
    assert ops(program).count("DotGeneral") == 2


def test_symbolic_free_dims_are_merged_by_name() -> None:
    w = Written()
    batch = ir.SymbolicDim("B")
    program = w.program(w.dot(w.input(batch, 3, 4), w.input(4, 5), DotDims((2,), (0,))))
    assert dot_decomposer.run(program)
    merged = shape_of(program, program.instructions[0].outputs[0])[0]
    assert isinstance(merged, ir.SymbolicDim)
    assert merged.evaluate({"B": 7}) == 21


@settings(max_examples=80, deadline=None)
@given(st.permutations(range(4)), st.permutations(range(4)), st.data())
def test_any_product_keeps_its_numbers(
    left: list[int], right: list[int], data: st.DataObject
) -> None:
    count = data.draw(st.integers(0, 4))
    batch = data.draw(st.integers(0, 4 - count))
    sizes = [data.draw(st.integers(0, 3)) for _ in range(8)]
    shapes = ([0] * 4, [0] * 4)
    for i in range(4):
        shapes[0][left[i]] = sizes[i]
        shapes[1][right[i]] = sizes[i] if i < count + batch else sizes[4 + i]
    dims = DotDims(
        tuple(left[:count]),
        tuple(right[:count]),
        tuple(left[count : count + batch]),
        tuple(right[count : count + batch]),
    )
    check(one_dot(tuple(shapes[0]), tuple(shapes[1]), dims))
