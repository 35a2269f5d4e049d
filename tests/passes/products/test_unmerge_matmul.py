"""Products whose batches and heads ``torch.bmm`` merges and a view splits again."""

from __future__ import annotations

import pytest
from convolutions import tensor
from rewrites import check_operators, check_refused, check_same_numbers, check_unchanged

from smelt import optimize
from smelt.ir import text
from smelt.passes.attention.fuse_attention import fuse_attention
from smelt.passes.products.unmerge_matmul import unmerge_matmul

Q = "q3 = Reshape(q, rows) k3 = Reshape(k, rows) t = Transpose<perm=[0,2,1]>(k3) "
SHAPES = "int64[3] rows = {-1,5,8}, int64[4] apart = {-1,3,5,5}, float c = {0.35}"


def graph(body: str, *constants: str, inputs: str = "") -> str:
    listed = ", ".join((SHAPES, *constants))
    return (
        f"g (float[N,3,5,8] q, float[N,3,5,8] k{inputs}) => (float[N,3,5,5] y) "
        f"<{listed}> {{ {body} }}"
    )


FACTOR = "a = Mul(s, c) y = Reshape(a, apart)"
UNMERGED = {
    "a product": (graph(Q + "s = MatMul(q3, t) y = Reshape(s, apart)"), "Transpose MatMul"),
    "a factor": (graph(Q + "s = MatMul(q3, t) " + FACTOR), "Transpose MatMul Mul"),
    "a divisor of one element": (graph(
        Q + "s = MatMul(q3, t) a = Div(s, d) y = Reshape(a, apart)", "float[1,1] d = {3}"),
        "Transpose MatMul Div"),
    "a factor of the keys": (graph(
        Q + "f = Mul(t, c) s = MatMul(q3, f) y = Reshape(s, apart)"), "Transpose Mul MatMul"),
    "a factor of the queries": (graph(
        Q + "f = Mul(q3, c) s = MatMul(f, t) y = Reshape(s, apart)"), "Mul Transpose MatMul"),
    "a bias for all": (graph(
        Q + "s = MatMul(q3, t) a = Add(s, m) y = Reshape(a, apart)", tensor("m", (1, 5, 5))),
        "Transpose MatMul Unsqueeze Add"),
    "a bias for each": (graph(
        Q + "s = MatMul(q3, t) m = Reshape(m4, square) a = Add(s, m) "
        "y = Reshape(a, apart)", "int64[3] square = {-1,5,5}", inputs=", float[N,3,5,5] m4"
        ), "Transpose MatMul Add"),
    "weights": (graph(
        Q + "s = MatMul(q3, t) p = Softmax<axis=-1>(s) y = Reshape(p, apart)"),
        "Transpose MatMul Softmax"),
    "two products": (graph(
        Q + "s = MatMul(q3, t) p = Softmax<axis=2>(s) o = MatMul(p, q3) u = Transpose<perm=[0,2,1]>(o)"
        " r = MatMul(q3, u) y = Reshape(r, apart)"),
        "Transpose MatMul Softmax MatMul Transpose MatMul"),
}  # fmt: skip


ONES = {
    "of the result": (
        graph(Q + "s = MatMul(q3, t) y = Reshape(s, apart)").replace("{-1,3,5,5}", "{-1,3,5,1,5}")
        .replace("int64[4] apart", "int64[5] apart").replace("(float[N,3,5,5] y)", "(float[N,3,5,1,5] y)"),
        "Transpose MatMul Unsqueeze"),
    "of an operand": (
        graph(Q + "s = MatMul(q3, t) y = Reshape(s, apart)").replace(
            "float[N,3,5,8] q", "float[N,3,1,5,8] q"), "Squeeze Transpose MatMul"),
    "of both, at other places": (
        graph(Q + "s = MatMul(q3, t) y = Reshape(s, apart)").replace("float[N,3,5,8] q", "float[N,1,3,5,8] q")
        .replace("float[N,3,5,8] k", "float[N,3,5,8,1] k"), "Squeeze Squeeze Transpose MatMul"),
    "the heads are one": (
        graph(Q + "s = MatMul(q3, t) y = Reshape(s, apart)").replace("N,3,", "N,1,").replace("{-1,3,5,5}", "{-1,1,5,5}"),
        "Transpose MatMul"),
}  # fmt: skip
"""TensorFlow's exporter writes einsums of heads with dims of 1."""
UNMERGED |= {f"a dim of 1 {case}": graphs for case, graphs in ONES.items()}


@pytest.mark.parametrize(("before", "after"), UNMERGED.values(), ids=UNMERGED.keys())
def test_unmerges(before: str, after: str) -> None:
    check_operators(unmerge_matmul, before, after.split())


def test_a_bias_with_the_first_dim_of_the_product_is_split() -> None:
    before = graph(
        Q + "s = MatMul(q3, t) n = Tile(m, n3) a = Add(s, n) y = Reshape(a, apart)",
        tensor("m", (1, 5, 5)), "int64[3] n3 = {6,1,1}",
    ).replace("[N,", "[2,")  # fmt: skip
    check_operators(unmerge_matmul, before, ["Tile", "Transpose", "MatMul", "Reshape", "Add"])


KEPT = {
    "other heads": graph(Q + "s = MatMul(q3, t) y = Reshape(s, apart)").replace(
        "{-1,3,5,5}", "{3,-1,5,5}").replace("(float[N,3,5,5] y)", "(float[3,N,5,5] y)"),
    "matrices split otherwise": graph(Q + "s = MatMul(q3, t) y = Reshape(s, apart)").replace(
        "{-1,3,5,5}", "{-1,3,25,1}").replace("float[N,3,5,5] y", "float[N,3,25,1] y"),
    "rows that are merged, too": graph(Q + "s = MatMul(q3, t) y = Reshape(s, apart)").replace(
        "q3 = Reshape(q, rows)", "q0 = Transpose<perm=[0,2,1,3]>(q) q3 = Reshape(q0, rows)"),
    "a softmax over the rows": graph(
        Q + "s = MatMul(q3, t) p = Softmax<axis=1>(s) y = Reshape(p, apart)"),
    "a softmax over what is merged": graph(
        Q + "s = MatMul(q3, t) p = Softmax<axis=0>(s) y = Reshape(p, apart)"),
    "a transpose of batches": graph(
        Q + "s = MatMul(q3, t) p = Transpose<perm=[1,0,2]>(s) y = Reshape(p, apart)").replace(
        "[N,", "[5,").replace("{-1,3,5,5}", "{5,3,5,5}"),
    "no product": graph("q3 = Reshape(q, rows) a = Softmax(q3) y = Reshape(a, apart)").replace(
        "y)", "y)").replace("{-1,3,5,5}", "{-1,3,5,8}").replace("float[N,3,5,5] y", "float[N,3,5,8] y"),
    "merged scores that something else reads": graph(
        Q + "s = MatMul(q3, t) y = Reshape(s, apart) z = Neg(s)").replace(
        " y) <", " y, float[M,5,5] z) <"),
    "merged scores that are an output": graph(
        Q + "s = MatMul(q3, t) y = Reshape(s, apart)").replace(" y) <", " y, float[M,5,5] s) <"),
}  # fmt: skip


@pytest.mark.parametrize("before", KEPT.values(), ids=KEPT.keys())
def test_keeps(before: str) -> None:
    check_unchanged(unmerge_matmul, before)


def test_a_bias_whose_size_no_input_tells_stays() -> None:
    """Before opset 15 a Shape gives all dims of an input, not some."""
    check_refused(
        unmerge_matmul,
        "g (float[N,H,5,8] q, float[N,H,8,8] k) => (float[N,H,5,8] y) <int64[3] rows = {-1,5,8}, "
        "int64[3] square = {-1,8,8}> { q3 = Reshape(q, rows) k3 = Reshape(k, square) "
        "s = MatMul(q3, k3) m = Exp(q3) a = Add(s, m) n = Shape(q) y = Reshape(a, n) }",
        "no input determines a size of the unmerged result",
        opset=14,
    )


def test_an_attention_by_bmm_is_one_node() -> None:
    """BLOOM and Diffusers write it with ``torch.baddbmm`` and an addend of zeros."""
    source = text.parse(
        "g (float[N,5,24] x) => (float[N,5,24] y) <int64[4] d = {0,0,3,8}, int64[3] rows = {-1,5,8}, "
        "int64[4] apart = {-1,3,5,8}, int64[3] r = {0,0,24}, float c = {0.35}, "
        "float[1,5,5] z = {" + ",".join(["0"] * 25) + "}> "
        "{ h = Reshape(x, d) q = Transpose<perm=[0,2,1,3]>(h) q3 = Reshape(q, rows) "
        "t = Transpose<perm=[0,2,1]>(q3) s = MatMul(q3, t) a = Mul(s, c) w = Add(a, z) "
        "p = Softmax<axis=-1>(w) o = MatMul(p, q3) u = Reshape(o, apart) "
        "v = Transpose<perm=[0,2,1,3]>(u) y = Reshape(v, r) }",
        23,
    )
    assert [node.op_type for node in optimize(source).graph] == ["Attention"]


ROWS = (
    "g (float[{s},B,12] q, float[{t},B,12] k, float[{t},B,{e}] v{inputs}) => (float[{n},{s},4] y) "
    "<int64[3] d = {{0,-1,4}}, float c = {{0.35}}{constants}> {{ q1 = Reshape(q, d) "
    "q3 = Transpose<perm=[1,0,2]>(q1) k1 = Reshape(k, d) k3 = Transpose<perm=[1,2,0]>(k1) "
    "v1 = Reshape(v, d) v3 = Transpose<perm=[1,0,2]>(v1) f = Mul(q3, c) s0 = MatMul(f, k3) "
    "{body} p = Softmax<axis=-1>(s) y = MatMul(p, v3) }}"
)
"""``nn.MultiheadAttention`` merges batches and heads of rows S,B,H*D."""
SIZES = {"s": "5", "t": "7", "e": "12", "n": "3*B", "inputs": "", "constants": "", "body": ""}
MOVES = "Reshape Transpose"


def rows(**changed: str) -> str:
    filled = {**SIZES, "body": "s = Identity(s0)", **changed}
    source = ROWS.format(**filled)
    return source.replace("s0 = MatMul(f, k3) s = Identity(s0)", "s = MatMul(f, k3)").replace(
        "float[3*B,", "float[M,"
    )


HEADS_OF_ROWS = {
    "constant lengths": (rows(), f"{MOVES} Mul {MOVES} MatMul Softmax {MOVES} MatMul Reshape"),
    "open lengths": (rows(s="S", t="T"),
        f"Shape {MOVES} Mul {MOVES} MatMul Softmax {MOVES} MatMul Mul Shape Concat Reshape"),
    "one row, which a Reshape alone moves": (
        rows(s="1").replace("q1 = Reshape(q, d) q3 = Transpose<perm=[1,0,2]>(q1)", "q3 = Reshape(q, o)")
        .replace("<int64[3] d", "<int64[3] o = {-1,1,4}, int64[3] d"),
        f"{MOVES} Mul {MOVES} MatMul Softmax {MOVES} MatMul Reshape"),
    "a bias for each head": (
        rows(s="S", t="T", inputs=", float[B,3,S,T] m4", constants=", int64[1] w = {-1}",
             body="z = Shape<start=2>(m4) r = Concat<axis=0>(w, z) m = Reshape(m4, r) s = Add(s0, m)"),
        f"Shape {MOVES} Mul {MOVES} MatMul Add Softmax {MOVES} MatMul Mul Shape Concat Reshape"),
    "a bias of a size that no input tells": (
        rows(s="L", t="T", body="h = MatMul(q3, k3) m = Exp(h) s = Add(s0, m)").replace(
            "float[L,B,12] q,", "float[L,B,12] q0, bool[L] which,").replace(
            "{ q1 =", "{ q = Compress<axis=0>(q0, which) q1 =").replace("float[M,L,4] y", "float[M,Q,4] y"),
        f"Compress Reshape Transpose Reshape Transpose MatMul Exp Shape {MOVES} Mul {MOVES} MatMul "
        f"Shape Concat Reshape Add Softmax {MOVES} MatMul Mul Shape Concat Reshape"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after"), HEADS_OF_ROWS.values(), ids=HEADS_OF_ROWS.keys())
def test_heads_of_rows_are_unmerged(before: str, after: str) -> None:
    check_operators(unmerge_matmul, before, after.split())


ROWS_KEPT = {
    "values of fewer heads": rows(e="8").replace("v1 = Reshape(v, d)", "v1 = Reshape(v, h)").replace(
        "<int64[3] d", "<int64[3] h = {0,-1,3}, int64[3] d").replace("12] v", "9] v").replace(
        "float[M,5,4] y", "float[M,5,3] y").replace("{0,-1,3}", "{7,-1,3}").replace("8] v", "9] v")
        .replace("12] q", "16] q").replace("12] k", "16] k"),
    "heads before batches": rows().replace(
        "v1 = Reshape(v, d)", "v0 = Reshape(v, four) vt = Transpose<perm=[0,2,1,3]>(v0) v1 = Reshape(vt, d)"
        ).replace("<int64[3] d", "<int64[4] four = {0,0,3,4}, int64[3] d"),
    "scores with another reader": rows(body="s = Neg(s0) z = Abs(s0)").replace(
        "4] y)", "4] y, float[M,5,7] z)"),
    "a softmax over the queries": rows().replace("axis=-1", "axis=1"),
}  # fmt: skip


@pytest.mark.parametrize("before", ROWS_KEPT.values(), ids=ROWS_KEPT.keys())
def test_other_merged_rows_stay(before: str) -> None:
    check_unchanged(unmerge_matmul, before)


def test_an_attention_of_rows_is_one_node() -> None:
    merged = rows(s="S", t="T").replace("float[M,S,4] y)", "float[S,B,12] y)")
    merged = merged.replace("y = MatMul", "o = MatMul").replace(
        "v3) }", "v3) u = Transpose<perm=[1,0,2]>(o) n = Shape(q) y = Reshape(u, n) }"
    )
    source = text.parse(merged, 23)
    model = optimize(source)
    kinds = sorted(node.op_type for node in model.graph)
    assert kinds == ["Attention", *["Transpose"] * 4]
    check_same_numbers(source, model, fuse_attention.exactness, modes=("normal",))
