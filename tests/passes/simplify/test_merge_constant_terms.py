"""Constants that are added to a value one after the other are merged."""

from __future__ import annotations

import pytest
from literals import literal
from rewrites import check_refused, check_rewrite, check_unchanged

from smelt.passes.simplify.merge_constant_terms import merge_constant_terms

C, D = "float[2] c = {1, 2}", "float[2] d = {10, 30}"
G = "g (float[N,3,2] x) => (float[N,3,2] y)"
SUMS = {
    "plus, plus": ("s = Add(x, c) y = Add(s, d)", "11, 32"),
    "plus, plus, swapped": ("s = Add(c, x) y = Add(d, s)", "11, 32"),
    "plus, minus": ("s = Add(x, c) y = Sub(s, d)", "-9, -28"),
    "minus, plus": ("s = Sub(x, c) y = Add(s, d)", "9, 28"),
    "minus, minus": ("s = Sub(x, c) y = Sub(s, d)", "-11, -32"),
}


@pytest.mark.parametrize(("body", "total"), SUMS.values(), ids=SUMS.keys())
@pytest.mark.parametrize("opset", [13, 25])
def test_one_sum(body: str, total: str, opset: int) -> None:
    check_rewrite(
        merge_constant_terms,
        f"{G} <{C}, {D}> {{ {body} }}",
        f"{G} <float[2] t = {{{total}}}> {{ y = Add(x, t) }}",
        opset=opset,
    )


def test_behind_a_product_of_three_dims() -> None:
    check_rewrite(
        merge_constant_terms,
        f"{G} <{C}, {D}, float[2,2] w = {{1,2,3,4}}> "
        "{ p = MatMul(x, w) s = Add(p, c) y = Add(s, d) }",
        f"{G} <float[2] t = {{11,32}}, float[2,2] w = {{1,2,3,4}}> "
        "{ p = MatMul(x, w) y = Add(p, t) }",
    )


def test_a_number_and_a_vector() -> None:
    check_rewrite(
        merge_constant_terms,
        f"{G} <{C}, float d = {{1}}> {{ s = Add(x, c) y = Add(s, d) }}",
        f"{G} <float[2] t = {{2,3}}> {{ y = Add(x, t) }}",
    )


@pytest.mark.parametrize("dtype", ["float16", "double", "bfloat16"])
def test_other_floats(dtype: str) -> None:
    g = f"g ({dtype}[N] x) => ({dtype}[N] y)"
    one, two, three = (literal(dtype, n) for n in (1, 2, 3))
    check_rewrite(
        merge_constant_terms,
        f"{g} <{dtype} c = {one}, {dtype} d = {two}> {{ s = Add(x, c) y = Add(s, d) }}",
        f"{g} <{dtype} t = {three}> {{ y = Add(x, t) }}",
        modes=("normal",),
    )


def test_integers_wrap_around() -> None:
    g = "g (int8[N] x) => (int8[N] y)"
    check_rewrite(
        merge_constant_terms,
        f"{g} <int8 c = {{100}}, int8 d = {{100}}> {{ s = Sub(x, c) y = Sub(s, d) }}",
        f"{g} <int8 t = {{56}}> {{ y = Add(x, t) }}",
    )


KEPT = {
    "a constant less the value": f"{G} <{C}, {D}> {{ s = Sub(c, x) y = Add(s, d) }}",
    "less the first sum": f"{G} <{C}, {D}> {{ s = Add(x, c) y = Sub(d, s) }}",
    "the first sum is an output": f"{G[:-1]}, float[N,3,2] s) <{C}, {D}> "
    "{ s = Add(x, c) y = Add(s, d) }",
    "a sum larger than both": f"{G} <{C}, float[3,1] d = {{1,2,3}}> {{ s = Add(x, c) y = Add(s, d) }}",
    "an overflow": f"{G} <float c = {{3e38}}, float d = {{3e38}}> {{ s = Add(x, c) y = Add(s, d) }}",
    "infinity": f"{G} <float c = {{inf}}, {D}> {{ s = Add(x, c) y = Add(s, d) }}",
    "a term of the caller": "g (float[N] x, float d) => (float[N] y) <float c = {1}> "
    "{ s = Add(x, c) y = Add(s, d) }",
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT.keys())
def test_keeps(source: str) -> None:
    check_unchanged(merge_constant_terms, source)


@pytest.mark.parametrize("second", ["y = Sub(s, c)", "y = Add(s, d)"])
def test_a_sum_that_rounds_stays(second: str) -> None:
    """x + 2**23 - 2**23 rounds x to an integer, on purpose."""
    check_unchanged(
        merge_constant_terms,
        "g (float[N] x) => (float[N] y) <float c = {8388608}, float d = {-8388608}> "
        f"{{ s = Add(x, c) {second} }}",
    )


@pytest.mark.parametrize("softmax", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("between", ["", "t = Reshape(s, r) ", "t = Where(b, s, c) "])
@pytest.mark.parametrize("large", ["-1000000", "101", "-1e29"])
def test_keeps_a_shift_that_rounds_scores(softmax: str, between: str, large: str) -> None:
    last = "t" if between else "s"
    check_refused(
        merge_constant_terms,
        f"g (float[N,2] x, bool[N,2] b) => (float[N,2] y) <{C}, float d = {{{large}}}, "
        f"int64[2] r = {{-1,2}}> "
        f"{{ f = Add(x, c) s = Add(f, d) {between}y = {softmax}({last}) }}",
        "a Softmax shows with so large a constant how sums are rounded",
    )


@pytest.mark.parametrize("constant", ["100", "-3e38", "-1e30"])
def test_merges_what_rounds_no_scores(constant: str) -> None:
    total = "{101, 102}" if constant == "100" else f"{{{constant}, {constant}}}"
    g = "g (float[N,2] x) => (float[N,2] y)"
    check_rewrite(
        merge_constant_terms,
        f"{g} <{C}, float d = {{{constant}}}> {{ f = Add(x, c) s = Add(f, d) y = Softmax(s) }}",
        f"{g} <float[2] t = {total}> {{ s = Add(x, t) y = Softmax(s) }}",
    )


def test_merges_a_large_number_whose_sum_no_softmax_reads() -> None:
    g = "g (float[N,2] x) => (float[N,2] y, float[N,2] z)"
    check_rewrite(
        merge_constant_terms,
        f"{g} <{C}, float d = {{1000}}> {{ f = Add(x, c) s = Add(f, d) y = Relu(s) z = Softmax(y) }}",
        f"{g} <float[2] t = {{1001, 1002}}> {{ s = Add(x, t) y = Relu(s) z = Softmax(y) }}",
    )
