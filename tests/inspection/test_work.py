"""FLOPs and bytes: of networks that everybody knows, and of operators counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from known_networks import alexnet, resnet50, vgg16

import smelt
from smelt.errors import UsageError
from smelt.inspection.formulas import MOVED, OTHERS, PRODUCTS, VIEWS
from smelt.inspection.polynomial import Polynomial
from smelt.ir import text

PAGE = Path(__file__).parents[2] / "docs" / "inspect.md"


@pytest.mark.parametrize(
    ("network", "macs"),
    [(resnet50, 4_089_184_256), (vgg16, 15_470_264_320), (alexnet, 714_188_480)],
)
def test_known_networks_take_the_multiply_adds_that_are_published(network, macs):
    facts = smelt.inspect(network())
    assert facts.total.macs.value == macs
    assert 2 * macs <= facts.total.flops.value < 2.02 * macs


def test_a_symbolic_batch_gives_a_formula_and_a_size_a_number():
    assert str(smelt.inspect(resnet50("N")).total.macs) == "4089184256*N"
    assert smelt.inspect(resnet50("N"), {"N": 8}).total.macs.value == 8 * 4_089_184_256
    with pytest.raises(UsageError, match="called 'M'"):
        smelt.inspect(resnet50("N"), {"M": 8})


def work(graph, **dims):
    facts = smelt.inspect(text.parse(graph), dims)
    return [(item.macs, item.flops, item.bytes) for item in facts.work]


ONE = {
    "MatMul": (
        "g (float[5,2,3] a, float[3,4] b) => (float[5,2,4] y) { y = MatMul(a, b) }",
        120,
        240,
    ),
    "Gemm": (
        "g (float[3,2] a, float[4,3] b, float[4] c) => (float[2,4] y) { y = Gemm<transA=1, transB=1>(a, b, c) }",
        24,
        48 + 8,
    ),
    "Conv in groups": (
        "g (float[1,4,5,5] x, float[6,2,3,3] w, float[6] b) => (float[1,6,3,3] y) { y = Conv<group=2>(x, w, b) }",
        54 * 2 * 9,
        2 * 54 * 2 * 9 + 54,
    ),
    "ConvTranspose": (
        "g (float[1,4,5,5] x, float[4,3,2,2] w) => (float[1,6,10,10] y) { y = ConvTranspose<group=2, strides=[2,2]>(x, w) }",
        100 * 3 * 4,
        2 * 100 * 3 * 4,
    ),
    "Einsum": (
        'g (float[2,3,4] a, float[2,4,5] b) => (float[2,3,5] y) { y = Einsum<equation="bij,bjk->bik">(a, b) }',
        120,
        240,
    ),
    "LSTM": (
        "g (float[7,2,3] x, float[1,20,3] w, float[1,20,5] r) => (float[7,1,2,5] y) { y = LSTM<hidden_size=5>(x, w, r) }",
        14 * 160,
        28 * 160,
    ),
    "Attention with a past": (
        "g (float[2,3,4,8] q, float[2,3,5,8] k, float[2,3,5,6] v, float[2,3,7,8] pk, float[2,3,7,6] pv)"
        " => (float[2,3,4,6] y, float[2,3,12,8] nk, float[2,3,12,6] nv)"
        " { y, nk, nv = Attention(q, k, v, , pk, pv) }",
        2 * 3 * 4 * 12 * (8 + 6),
        2 * 2 * 3 * 4 * 12 * (8 + 6) + 5 * 2 * 3 * 4 * 12,
    ),
    "Attention of rank 3": (
        "g (float[2,4,24] q, float[2,5,24] k, float[2,5,18] v) => (float[2,4,18] y)"
        " { y = Attention<q_num_heads=3, kv_num_heads=3>(q, k, v) }",
        2 * 3 * 4 * 5 * (8 + 6),
        2 * 2 * 3 * 4 * 5 * (8 + 6) + 5 * 2 * 3 * 4 * 5,
    ),
    "MaxPool": (
        "g (float[1,2,4,4] x) => (float[1,2,2,2] y) { y = MaxPool<kernel_shape=[3,3]>(x) }",
        0,
        72,
    ),
    "ReduceMean": (
        "g (float[3,4] x, int64[1] a) => (float[3,1] y) { y = ReduceMean(x, a) }",
        0,
        12,
    ),
    "Softmax": ("g (float[3,4] x) => (float[3,4] y) { y = Softmax(x) }", 0, 60),
    "Sum of three": (
        "g (float[4] a, float[4] b, float[4] c) => (float[4] y) { y = Sum(a, b, c) }",
        0,
        8,
    ),
    "broadcast": ("g (float[3,1] a, float[4] b) => (float[3,4] y) { y = Add(a, b) }", 0, 12),
    "moved": ("g (float[3,4] x) => (float[4,3] y) { y = Transpose(x) }", 0, 0),
    "nothing": ("g (float[0,4] x) => (float[0,4] y) { y = Relu(x) }", 0, 0),
}


@pytest.mark.parametrize("name", ONE)
def test_one_operator(name):
    graph, macs, flops = ONE[name]
    [(found_macs, found_flops, _)] = work(graph)
    assert (found_macs.value, found_flops.value) == (macs, flops)


@pytest.mark.parametrize(
    ("graph", "size"),
    [
        ("g (float[3,4] x) => (float[3,4] y) { y = Relu(x) }", 96),
        ("g (float[3] x) => (float[3] y) { y = Add(x, x) }", 24),
        (
            "g (float[3,4] x, float16[4,2] w) => (float16[3,2] y) { h = Cast<to=10>(x) y = MatMul(h, w) }",
            72,
        ),
        ("g (float[900,4] t, int64[2] i) => (float[2,4] y) { y = Gather(t, i) }", 16 + 2 * 32),
        ("g (int4[6] x, float s) => (float[6] y) { y = DequantizeLinear(x, s) }", 3 + 4 + 24),
    ],
)
def test_bytes_are_those_read_and_written(graph, size):
    assert work(graph)[0][2].value == size


def test_a_reshape_moves_nothing():
    assert (
        work("g (float[3,4] x, int64[1] s) => (float[12] y) { y = Reshape(x, s) }")[0][2].value == 0
    )


def test_operators_of_unknown_work_are_reported_but_not_counted():
    unknown = "g (float[3,4] x, int64[1] k) => (float[3,n] y, int64[3,n] i) { y, i = TopK(x, k) }"
    facts = smelt.inspect(text.parse(unknown))
    assert facts.work_by_operator["TopK"].unknown == 1
    assert facts.total.flops.value == 0
    rankless = "g (float x) => (float y) { a = mine.Thing(x) y = MatMul(a, a) }"
    assert smelt.inspect(text.parse(rankless, mine=1)).total.unknown == 2


LOOP = """g (float[4] x, int64 n) => (float[4] y) <int64 five = {5}, bool go = {1}> {
  y = Loop (COUNT, go, x) <body = b (int64 i, bool c, float[4] a) => (bool d, float[4] z)
    { d = Identity(c) t = Exp(a) z = Add(t, a) }>
}"""


def test_a_loop_counts_as_often_as_it_runs():
    assert smelt.inspect(text.parse(LOOP.replace("COUNT", "five"))).total.flops.value == 40
    assert "trips(" in str(smelt.inspect(text.parse(LOOP.replace("COUNT", "n"))).total.flops)


def test_functions_count_where_they_are_called():
    model = text.parse("""<ir_version: 8, opset_import: ["": 20, "f": 1]>
    g (float[B,4] x) => (float[B,4] y) { a = f.twice(x) y = f.twice(a) }
    <domain: "f", opset_import: ["": 20]> twice (x) => (y) { h = Exp(x) y = Add(h, x) }""")
    facts = smelt.inspect(model)
    assert str(facts.total.flops) == "16*B"
    [function] = facts.functions
    assert (function.name, function.nodes, function.calls) == ("f.twice", 2, 2)
    assert facts.operators == {"f.twice": 2, "Add": 1, "Exp": 1}


def test_formulas_are_sums_of_products():
    import onnx_ir as ir

    b, twice, odd = ir.SymbolicDim("B"), ir.SymbolicDim("2*B"), ir.SymbolicDim("B + 1")
    assert str(Polynomial.of([b, twice, 3])) == "6*B^2"
    assert str(Polynomial.of([odd, 2])) == "2*(B + 1)"
    assert (Polynomial.of([odd, 2]) + Polynomial.of([b])).texts() == ["2*(B + 1)", "B"]
    assert str(Polynomial.of([b]) * Polynomial.of([b]) + Polynomial.number(4)) == "B^2 + 4"
    assert Polynomial.of([b, 0]).value == 0
    assert Polynomial.of([ir.SymbolicDim(None)]).value is None


def test_the_page_names_every_operator():
    page = PAGE.read_text()
    assert [name for name in {*PRODUCTS, *OTHERS, *MOVED, *VIEWS} if f"`{name}`" not in page] == []
