"""Constants added to parts of a layer, or to a moved layer, are folded into its bias."""

from __future__ import annotations

import pytest
from convolutions import tensor
from rewrites import check_operators, check_unchanged

from smelt.passes.products.offset_to_bias import offset_to_bias

W, B = tensor("w", (3, 4)), "float[4] b = {0.1, -0.2, 0.3, 0.4}"
ONE = "float one = {1.0}"
HALVES = "float[N,2] p, float[N,2] q"


def split(body: str, constants: str = f"{W}, {B}, {ONE}", outputs: str = HALVES) -> str:
    sizes = "int64[2] sizes = {2, 2}"
    return f"g (float[N,3] x) => ({outputs}) <{constants}, {sizes}> {{ {body} }}"


PARTS = "u, v = Split<axis=-1>(g, sizes) p = Neg(u) q = Add(v, one)"

SPLIT = {
    "a part": split(f"g = Gemm(x, w, b) {PARTS}"),
    "the number first": split(f"g = Gemm(x, w, b) {PARTS}".replace("v, one", "one, v")),
    "both parts": split(
        "g = Gemm(x, w, b) u, v = Split<axis=1>(g, sizes) p = Add(u, one) q = Add(v, one)"
    ),
    "no bias": split(f"g = Gemm(x, w) {PARTS}"),
    "a bias of one number": split(f"g = Gemm(x, w, b) {PARTS}", f"{W}, float b = {{0.3}}, {ONE}"),
    "an Add behind a product": split(f"m = MatMul(x, w) g = Add(m, b) {PARTS}"),
    "the bias first": split(f"m = MatMul(x, w) g = Add(b, m) {PARTS}"),
    "a number of one dim": split(f"g = Gemm(x, w, b) {PARTS}", f"{W}, {B}, float[1] one = {{1.0}}"),
    "equal parts by their number": split(
        "g = Gemm(x, w, b) u, v = Split<axis=-1, num_outputs=2>(g) p = Neg(u) q = Add(v, one)"
    ),
    "behind an Unsqueeze": split(
        f"g0 = Gemm(x, w, b) i = Constant<value_ints=[1]>() g = Unsqueeze(g0, i) {PARTS}",
        outputs="float[N,1,2] p, float[N,1,2] q",
    ),
}


@pytest.mark.parametrize("graph", SPLIT.values(), ids=SPLIT.keys())
def test_a_number_behind_a_split_goes_into_the_bias(graph: str) -> None:
    layer = ["Gemm"] if "Gemm" in graph else ["MatMul", "Add"]
    moved = ["Unsqueeze"] if "Unsqueeze" in graph else []
    parts = ["Neg"] if "Neg" in graph else []
    kinds = [*layer, *moved, "Split", *parts]
    check_operators(offset_to_bias, graph, kinds, modes=("normal",))


ROWS = f"{W}, float[2] r = {{0.5, -1.5}}, float[1,2] s = {{2, 3}}"
BOTH = "u, v = Split<axis=-1>(g, sizes) p = Add(u, r) q = Add(s, v)"


def test_rows_behind_a_product_without_a_bias_become_one() -> None:
    graph = split(f"g = MatMul(x, w) {BOTH}", ROWS)
    check_operators(offset_to_bias, graph, ["MatMul", "Add", "Split"], modes=("normal",))


def test_rows_go_into_a_bias() -> None:
    graph = split(f"g = Gemm(x, w, b) {BOTH}", f"{ROWS}, {B}")
    check_operators(offset_to_bias, graph, ["Gemm", "Split"], modes=("normal",))


APART = {
    "one column, split along its rows": (
        f"g (float[N,4,3] x) => (float[N,2,1] p, float[N,2,1] q) <{tensor('w', (3, 1))}, {ONE}, "
        "int64[2] sizes = {2, 2}> { g = MatMul(x, w) u, v = Split<axis=1>(g, sizes) "
        "p = Add(u, one) q = Add(v, one) }"
    ),
    "a row that repeats a part": (
        f"g (float[N,3] x) => (float[N,2] p, float[N,3] q) <{tensor('w', (3, 4))}, float[2] r = "
        "{0.5, 2}, float[3] s = {1, 2, 3}, int64[2] sizes = {1, 3}> { g = MatMul(x, w) "
        "u, v = Split<axis=1>(g, sizes) p = Add(u, r) q = Add(v, s) }"
    ),
    "a part without a row": split(f"g = MatMul(x, w) {BOTH}".replace("Add(s, v)", "Neg(v)"), ROWS),
    "a matrix": split(f"g = MatMul(x, w) {BOTH}", f"{W}, float[2] r = {{1, 2}}, float[3,2] s = "
                      "{1, 2, 3, 4, 5, 6}").replace("float[N,3] x", "float[3,3] x")
                      .replace("float[N,2]", "float[3,2]"),
    "no constant matrix": split(f"g = MatMul(x, x) {BOTH}", ROWS.partition(", ")[2]).replace(
        "float[N,3] x", "float[4,4] x").replace("float[N,2]", "float[4,2]"),
    "a product that is read": split(f"g = MatMul(x, w) {BOTH} z = Neg(g)", ROWS,
                                    f"{HALVES}, float[N,4] z"),
}  # fmt: skip


@pytest.mark.parametrize("case", APART)
def test_rows_that_stay(case: str) -> None:
    check_unchanged(offset_to_bias, APART[case])


TABLE = """
g (float[N,24] x) => (float[N,2,4] p, float[N,4,4] q) <{}, {}, int64[2] sizes = {{2, 4}}> {{
    i = Constant<value_ints=[0, 6, 4]>() r = Reshape(x, i) g = Add(r, t)
    p, v = Split<axis=1>(g, sizes) q = Add(v, one)
}}
""".format(tensor("t", (1, 6, 4)), ONE)


def test_a_table_that_is_added_takes_it_along_any_axis() -> None:
    kinds = ["Reshape", "Add", "Split"]
    check_operators(offset_to_bias, TABLE, kinds, modes=("normal",))


def moved(body: str, constants: str = f"{W}, {B}, {ONE}", shape: str = "N,4,1,1") -> str:
    to = "int64[4] to = {-1, 4, 1, 1}, int64[2] axes = {2, 3}"
    return f"g (float[N,3] x) => (float[{shape}] y) <{constants}, {to}> {{ {body} }}"


MOVED = {
    "Reshape": moved("g = Gemm(x, w, b) r = Reshape(g, to) y = Add(r, one)"),
    "Unsqueeze": moved("g = Gemm(x, w, b) r = Unsqueeze(g, axes) y = Add(one, r)"),
    "Transpose": moved("g = Gemm(x, w, b) r = Transpose(g) y = Add(r, one)", shape="4,N"),
    "several": moved(
        "g = Gemm(x, w) r = Reshape(g, to) t = Transpose<perm=[0,2,3,1]>(r) y = Add(t, one)",
        shape="N,1,1,4",
    ),
}


@pytest.mark.parametrize("graph", MOVED.values(), ids=MOVED.keys())
def test_a_number_behind_moves_goes_into_the_bias(graph: str) -> None:
    kinds = ["Gemm"] + [k for k in ("Reshape", "Transpose", "Unsqueeze") if f"{k}" in graph]
    check_operators(offset_to_bias, graph, kinds, modes=("normal",))


KEPT = {
    "the bias is an input": (
        "g (float[N,3] x, float[4] b) => (float[N,4,1,1] y) "
        f"<{W}, {ONE}, int64[4] to = {{-1, 4, 1, 1}}> "
        "{ g = Gemm(x, w, b) r = Reshape(g, to) y = Add(r, one) }"
    ),
    "the bias is scaled": moved("g = Gemm<beta=0.5>(x, w, b) r = Reshape(g, to) y = Add(r, one)"),
    "the constants cancel": moved(
        "g = Gemm(x, w, b) r = Reshape(g, to) y = Add(r, one)",
        f"{W}, float[4] b = {{1, 2, -1.01, 3}}, {ONE}",
    ),
    "not finite": moved(
        "g = Gemm(x, w, b) r = Reshape(g, to) y = Add(r, one)", f"{W}, {B}, float one = {{inf}}"
    ),
    "more than one number": moved(
        "g = Gemm(x, w, b) r = Reshape(g, to) y = Add(r, one)",
        f"{W}, {B}, {tensor('one', (4, 1, 1))}",
    ),
    "the number widens": moved(
        "g = Gemm(x, w, b) r = Transpose(g) y = Add(r, one)",
        f"{W}, {B}, float[1,1,1] one = {{1.0}}",
        shape="1,4,N",
    ),
    "no layer": moved("r = Transpose(x) y = Add(r, one)", shape="3,N"),
    "the layer is read elsewhere": (
        split(f"g = Gemm(x, w, b) {PARTS} z = Neg(g)", outputs=f"{HALVES}, float[N,4] z")
    ),
    "the layer is an output": split(
        f"g = Gemm(x, w, b) {PARTS}", outputs=f"{HALVES}, float[N,4] g"
    ),
    "the part is read elsewhere": (
        split(f"g = Gemm(x, w, b) {PARTS} z = Neg(v)", outputs=f"{HALVES}, float[N,2] z")
    ),
    "the part is an output": split(f"g = Gemm(x, w, b) {PARTS}", outputs=f"{HALVES}, float[N,2] v"),
    "the bias would grow": (
        "g (float[N,24] x) => (float[N,2,4] p, float[N,4,4] q) "
        f"<{tensor('t', (4,))}, {ONE}, int64[2] sizes = {{2, 4}}> "
        "{ i = Constant<value_ints=[0, 6, 4]>() r = Reshape(x, i) g = Add(r, t) "
        "p, v = Split<axis=1>(g, sizes) q = Add(v, one) }"
    ),
    "integers": (
        "g (int64[N,4] x) => (int64[4,N] y) <int64[4] c = {1, 2, 3, 4}, int64 one = {1}> "
        "{ a = Add(x, c) r = Transpose(a) y = Add(r, one) }"
    ),
    "a bias for each row": (
        "g (float[N,4,6] m) => (float[N,4,3] p, float[N,4,3] q) <float[4,1] b = {1,2,3,4}, "
        f"{ONE}, int64[2] sizes = {{3,3}}> {{ g = Add(m, b) {PARTS} }}"
    ),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(offset_to_bias, graph)
