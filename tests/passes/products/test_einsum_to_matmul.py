"""An Einsum that is a product of stacked matrices becomes MatMul, so that attention can be
matched."""

from __future__ import annotations

import pytest
from rewrites import check_same_numbers, check_unchanged, run_pass

from smelt import optimize
from smelt.ir import text
from smelt.passes.products.einsum_to_matmul import einsum_to_matmul


def graph(equation: str, x: str, y: str, result: str, dtype: str = "float") -> str:
    return (
        f"g ({dtype}[{x}] x, {dtype}[{y}] y) => ({dtype}[{result}] z) "
        f'{{ z = Einsum<equation="{equation}">(x, y) }}'
    )


PRODUCTS = {
    "matrices": (graph("ij,jk->ik", "2,3", "3,4", "2,4"), "MatMul"),
    "without an arrow": (graph("ij,jk", "2,3", "3,4", "2,4"), "MatMul"),
    "the other way round": (graph("jk,ij->ik", "3,4", "2,3", "2,4"), "MatMul"),
    "rows and weights": (graph("bsd,df->bsf", "N,5,3", "3,4", "N,5,4"), "MatMul"),
    "rows of any rank": (graph("...d,df->...f", "N,5,2,3", "3,4", "N,5,2,4"), "MatMul"),
    "weights turned": (graph("bsd,fd->bsf", "N,5,3", "4,3", "N,5,4"), "Transpose MatMul"),
    "scores": (graph("bhqd,bhkd->bhqk", "N,2,5,8", "N,2,7,8", "N,2,5,7"), "Transpose MatMul"),
    "weights of values": (graph("bhqk,bhkd->bhqd", "N,2,5,7", "N,2,7,8", "N,2,5,8"), "MatMul"),
    "stacks of any rank": (graph("...ij,...jk->...ik", "N,2,3,5,8", "N,2,3,8,4", "N,2,3,5,4"),
        "MatMul"),
    "a result turned": (graph("bqd,bkd->bkq", "N,5,8", "N,7,8", "N,7,5"), "Transpose MatMul"),
    "blanks": (graph("b i d, b d j -> b i j", "N,5,8", "N,8,7", "N,5,7"), "MatMul"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "kinds"), PRODUCTS.values(), ids=PRODUCTS)
def test_becomes_a_product(before: str, kinds: str) -> None:
    source = text.parse(before, 18)
    model = optimize(source, pipeline="einsum-to-matmul")
    assert [node.op_type for node in model.graph] == kinds.split()
    check_same_numbers(source, model, einsum_to_matmul.exactness)


KEPT = {
    "two that move": graph("bqhd,bkhd->bhqk", "N,5,2,8", "N,7,2,8", "N,2,5,7"),
    "a diagonal": graph("iij,jk->ik", "3,3,2", "2,4", "3,4"),
    "an outer product": graph("i,j->ij", "3", "4", "3,4"),
    "a vector": graph("ij,j->i", "3,4", "4", "3"),
    "two labels summed": graph("ijk,jkl->il", "2,3,4", "3,4,5", "2,5"),
    "a label of one operand summed": graph("ijk,kl->il", "2,3,4", "4,5", "2,5"),
    "rows of stacks": graph("bijk,bkl->bijl", "N,2,3,4", "N,4,5", "N,2,3,5"),
    "sizes that may differ": graph("bij,bjk->bik", "N,2,3", "M,3,4", "B,2,4"),
    "a size of 1 that broadcasts": graph("bij,bjk->bik", "1,2,3", "5,3,4", "5,2,4"),
    "integers": graph("ij,jk->ik", "2,3", "3,4", "2,4", "int32"),
}


@pytest.mark.parametrize("before", KEPT.values(), ids=KEPT)
def test_keeps(before: str) -> None:
    check_unchanged(einsum_to_matmul, before)


def test_bfloat16_stays_since_onnx_runtime_has_no_product_of_it() -> None:
    before = text.parse(graph("ij,jk->ik", "2,3", "3,4", "2,4", "bfloat16"), 28)
    stats = run_pass(einsum_to_matmul, before)
    assert stats.rewrites == 0


def test_three_operands_stay() -> None:
    check_unchanged(
        einsum_to_matmul,
        "g (float[2,3] x, float[3,4] y, float[4,5] w) => (float[2,5] z) "
        '{ z = Einsum<equation="ij,jk,kl->il">(x, y, w) }',
    )


@pytest.mark.parametrize("last", ["bhqd", "bqhd"])
def test_attention_is_seen(last: str) -> None:
    sizes = {"bhqd": "N,2,5,6", "bqhd": "N,5,2,6"}[last]
    source = text.parse(
        f"g (float[N,5,2,8] q, float[N,7,2,8] k, float[N,7,2,6] v, bool[N,1,5,7] shown) => "
        f"(float[{sizes}] y) <float c = {{0.35}}, float low = {{-3e38}}> {{ "
        's = Einsum<equation="bqhd,bkhd->bhqk">(q, k) a = Mul(s, c) w = Where(shown, a, low) '
        f'p = Softmax<axis=-1>(w) y = Einsum<equation="bhqk,bkhd->{last}">(p, v) }}',
        23,
    )
    model = optimize(source)
    kinds = [node.op_type for node in model.graph if node.op_type not in ("Transpose", "Reshape")]
    assert kinds == ["Where", "Attention"]
    check_same_numbers(source, model, einsum_to_matmul.exactness, modes=("normal",))


MOVED = {
    "ijbn->bnij": "Transpose",
    "ijbn->ijbn": "Identity",
    "ijbn->ijb": "Einsum",
    "ijin->ijn": "Einsum",
    "...jb->...bj": "Transpose",
}


@pytest.mark.parametrize("equation", MOVED)
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_one_operand_of_which_each_axis_stays_is_transposed(equation: str, dtype: str) -> None:
    source = text.parse(
        f'g ({dtype}[3,B,3,4] x) => ({dtype}[P,Q] z) {{ y = Einsum<equation="{equation}">(x) '
        "z = Flatten(y) }",
        18,
    )
    model = optimize(source, pipeline="einsum-to-matmul")
    kinds = [node.op_type for node in model.graph]
    assert kinds == ([] if MOVED[equation] == "Identity" else [MOVED[equation]]) + ["Flatten"]
    check_same_numbers(source, model, einsum_to_matmul.exactness, modes=("normal",))
