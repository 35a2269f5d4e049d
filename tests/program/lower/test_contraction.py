"""Products of every kind become DotGeneral."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from lowered import lowered
from written import dims_of, ops, shape_of

import smelt
from smelt.errors import ErrorList
from smelt.program.dot_dims import DotDims

MATMULS = {
    "matrices": ("float[2,3] x, float[3,4] y", ["DotGeneral"], DotDims((1,), (0,))),
    "batched": ("float[B,2,3] x, float[B,3,4] y", ["DotGeneral"], DotDims((2,), (1,), (0,), (0,))),
    "vectors": ("float[3] x, float[3] y", ["DotGeneral"], DotDims((0,), (0,))),
    "vector and matrix": ("float[3] x, float[3,4] y", ["DotGeneral"], DotDims((0,), (0,))),
    "stack times matrix": ("float[B,2,3] x, float[3,4] y", ["DotGeneral"], DotDims((2,), (0,))),
    "matrix times stack": (
        "float[2,3] x, float[B,3,4] y",
        ["DotGeneral", "Transpose"],
        DotDims((1,), (1,)),
    ),
    "a batch of size 1 is dropped": (
        "float[1,2,3] x, float[5,3,4] y",
        ["Reshape", "DotGeneral", "Transpose"],
        DotDims((1,), (1,)),
    ),
    "batch and broadcast": (
        "float[B,1,2,3] x, float[B,7,3,4] y",
        ["Reshape", "DotGeneral", "Transpose"],
        DotDims((2,), (2,), (0,), (0,)),
    ),
}


@pytest.mark.parametrize(("inputs", "expected", "dims"), MATMULS.values(), ids=MATMULS.keys())
def test_matmul(inputs: str, expected: list[str], dims: DotDims) -> None:
    program = lowered(f"g ({inputs}) => (z) {{ z = MatMul(x, y) }}")
    assert ops(program) == expected
    assert dims_of(program) == dims


def test_batch_sizes_that_may_differ_are_expanded_to_the_result() -> None:
    program = lowered("g (float[B,2,3] x, float[C,3,4] y) => (z) { z = MatMul(x, y) }")
    assert ops(program) == ["Expand", "Expand", "DotGeneral"]
    batch = {str(program.slots[step.outputs[0]].shape[0]) for step in program.instructions}
    assert len(batch) == 1
    assert not batch & {"B", "C"}


GEMMS = {
    "plain": ("Gemm(x, y)", ["DotGeneral"], DotDims((1,), (0,))),
    "transposed": ("Gemm<transA=1, transB=1>(x, y)", ["DotGeneral"], DotDims((0,), (1,))),
    "bias": ("Gemm(x, y, c)", ["DotGeneral", "Add"], DotDims((1,), (0,))),
    "factors": (
        "Gemm<alpha=0.5, beta=2.0>(x, y, c)",
        ["DotGeneral", "Mul", "Mul", "Add"],
        DotDims((1,), (0,)),
    ),
    "no bias after all": ("Gemm<beta=0.0>(x, y, c)", ["DotGeneral"], DotDims((1,), (0,))),
    "a factor alone": ("Gemm<alpha=0.5>(x, y)", ["DotGeneral", "Mul"], DotDims((1,), (0,))),
}


@pytest.mark.parametrize(("node", "expected", "dims"), GEMMS.values(), ids=GEMMS.keys())
def test_gemm(node: str, expected: list[str], dims: DotDims) -> None:
    program = lowered(f"g (float[3,3] x, float[3,3] y, float[3] c) => (z) {{ z = {node} }}")
    assert ops(program) == expected
    assert dims_of(program) == dims


def test_integers_are_not_scaled_by_fractions() -> None:
    with pytest.raises(ErrorList, match="floating-point"):
        lowered("g (int32[2,2] x) => (z) { z = Gemm<alpha=0.5>(x, x) }")


EINSUMS = {
    "ij,jk->ik": (["DotGeneral"], DotDims((1,), (0,))),
    "ij,jk->ki": (["DotGeneral"], DotDims((0,), (1,))),
    "bij,bjk->ikb": (["DotGeneral", "Transpose"], DotDims((2,), (1,), (0,), (0,))),
    "bij,bkj->bik": (["DotGeneral"], DotDims((2,), (2,), (0,), (0,))),
    "ij,jk": (["DotGeneral"], DotDims((1,), (0,))),
    "...ij,...jk->...ik": (["DotGeneral"], DotDims((2,), (1,), (0,), (0,))),
    "ij,ij->": (["DotGeneral"], DotDims((0, 1), (0, 1))),
}


@pytest.mark.parametrize(("equation", "expected"), EINSUMS.items(), ids=EINSUMS.keys())
def test_einsum(equation: str, expected: tuple[list[str], DotDims]) -> None:
    terms = equation.split("->", maxsplit=1)[0].split(",")
    ranks = [len(term.replace("...", "b")) for term in terms]
    x, y = (f"float[{','.join(['3'] * rank)}]" for rank in ranks)
    program = lowered(f'g ({x} x, {y} y) => (z) {{ z = Einsum<equation="{equation}">(x, y) }}')
    assert (ops(program), dims_of(program)) == expected


EINSUMS_REFUSED = {
    "a diagonal made": ('Einsum<equation="ij->iij">(x)', "repeats a label"),
    "sizes": ('Einsum<equation="ij,jk->ik">(x, y)', "not known to be equal"),
}


@pytest.mark.parametrize(("node", "why"), EINSUMS_REFUSED.values(), ids=EINSUMS_REFUSED.keys())
def test_einsum_refused(node: str, why: str) -> None:
    with pytest.raises(ErrorList, match=why):
        lowered(f"g (float[3,3] x, float[2,3] y) => (z) {{ z = {node} }}")


def test_dot_general_keeps_its_numbers_semiring_and_type() -> None:
    program = lowered(
        "g (float16[B,M,K] x, float16[B,K,N] y) => (z) { z = smelt.DotGeneral<lhs_contracting=[2],"
        ' rhs_contracting=[1], lhs_batch=[0], rhs_batch=[0], dtype=1, semiring="max_plus">(x, y) }'
    )
    (dot,) = program.instructions
    assert dot.attributes["semiring"] == "max_plus"
    assert dims_of(program) == DotDims((2,), (1,), (0,), (0,))
    assert program.slots[dot.outputs[0]].dtype == ir.DataType.FLOAT
    assert [str(dim) for dim in shape_of(program, dot.outputs[0])] == ["B", "M", "N"]


def test_an_einsum_that_sums_nothing_multiplies_by_broadcasting() -> None:
    program = lowered(
        'g (float[3,5] x, float[4,5] y) => (z) { z = Einsum<equation="ax,bx->abx">(x, y) }'
    )
    assert ops(program) == ["Reshape", "Reshape", "Mul"]


OF_PAIRS = {
    "an outer product": ("i,j->ij", (3,), (4,)),
    "an outer product in another order": ("i,j->ji", (3,), (4,)),
    "elements times rows": ("ab,b->ab", (2, 3), (3,)),
    "a product in a batch": ("nab,nbc->nac", (2, 3, 4), (2, 4, 5)),
    "a diagonal": ("ii,i->i", (3, 3), (3,)),
    "a sum": ("ab,c->c", (2, 3), (4,)),
}


@pytest.mark.parametrize(("equation", "left", "right"), OF_PAIRS.values(), ids=OF_PAIRS)
def test_complex_operands(equation: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    arrays = [
        (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64)
        for shape in (left, right)
    ]
    artifact = smelt.compile_einsum(equation, [left, right], "complex64", engine="numpy")
    (found,) = artifact(*arrays)
    np.testing.assert_allclose(found, np.einsum(equation, *arrays), rtol=1e-5, atol=1e-5)
