"""Products of one operand become one product and a Split."""

import numpy as np
import pytest
from convolutions import tensor
from rewrites import check_operators, check_same_numbers, check_unchanged

from smelt.compiler import optimize_model
from smelt.ir import text
from smelt.ir.tensors.lazy_concat import LazyConcat
from smelt.passes.products.dot_merger import dot_merger

WEIGHTS = ", ".join(tensor(name, (4, width)) for name, width in (("u", 3), ("v", 5), ("w", 2)))
ROWS = ", ".join(tensor(name, (width,)) for name, width in (("a", 3), ("b", 5), ("c", 2)))
OUTPUTS = "float[N,6,3] p, float[N,6,5] q, float[N,6,2] r"


def graph(body: str, outputs: str = OUTPUTS, constants: str = "", inputs: str = "") -> str:
    listed = ", ".join(filter(None, [WEIGHTS, ROWS, constants]))
    return f"g (float[N,6,4] x{inputs}) => ({outputs}) <{listed}> {{ {body} }}"


PLAIN = "i = MatMul(x, u) j = MatMul(x, v) k = MatMul(x, w) "
ROWED = PLAIN + "l = Add(i, a) m = Add(b, j) n = Add(k, c) "


def test_three_products() -> None:
    body = PLAIN + "p = Neg(i) q = Neg(j) r = Neg(k)"
    check_operators(dot_merger, graph(body), ["MatMul", "Split", "Neg", "Neg", "Neg"])


def test_rows_are_merged_too() -> None:
    body = ROWED + "p = Neg(l) q = Neg(m) r = Neg(n)"
    check_operators(dot_merger, graph(body), ["MatMul", "Add", "Split", "Neg", "Neg", "Neg"])


def test_doubles() -> None:
    body = PLAIN + "p = Neg(i) q = Neg(j) r = Neg(k)"
    text = graph(body).replace("float[", "double[")
    check_operators(dot_merger, text, ["MatMul", "Split", "Neg", "Neg", "Neg"])


def test_a_product_in_between_that_reads_another_is_no_obstacle() -> None:
    body = "i = MatMul(x, u) e = Exp(i) j = MatMul(x, v) p = Neg(e) q = Neg(j)"
    text = graph(body, "float[N,6,3] p, float[N,6,5] q")
    check_operators(dot_merger, text, ["MatMul", "Split", "Exp", "Neg", "Neg"])


def test_products_with_rows_and_without_are_two_groups() -> None:
    body = "i = MatMul(x, u) l = Add(i, a) p = Neg(l) j = MatMul(x, v) q = Neg(j)"
    check_unchanged(dot_merger, graph(body, "float[N,6,3] p, float[N,6,5] q"))


@pytest.mark.parametrize(
    ("rows", "columns", "splits"),
    [
        (2**19, 4, 0),  # 4 MiB of results
        (2**19 - 1, 4, 1),
        (2**19, 512, 0),
        (2**19, 513, 1),  # the product itself takes long
        ("N", 4, 1),
    ],
)
def test_products_of_many_rows_and_few_columns_stay(
    rows: int | str, columns: int, splits: int
) -> None:
    weights = ", ".join(tensor(name, (columns, 1)) for name in "uv")
    model = text.parse(
        f"g (float[{rows},{columns}] x) => (float[{rows},1] p, float[{rows},1] q) <{weights}> "
        "{ i = MatMul(x, u) j = MatMul(x, v) p = Neg(i) q = Neg(j) }"
    )
    optimize_model(model, pipeline="dot-merger")
    assert [node.op_type for node in model.graph].count("Split") == splits


KEPT = {
    "one product": graph("i = MatMul(x, u) p = Neg(i)", "float[N,6,3] p"),
    "outputs": graph("p = MatMul(x, u) q = MatMul(x, v)", "float[N,6,3] p, float[N,6,5] q"),
    "rows that are outputs": graph(
        "i = MatMul(x, u) p = Add(i, a) j = MatMul(x, v) q = Add(j, b)",
        "float[N,6,3] p, float[N,6,5] q"),
    "a weight that others read": graph(
        "i = MatMul(x, u) p = Neg(i) j = MatMul(x, v) q = Neg(j) s = Neg(v) t = Neg(u)",
        "float[N,6,3] p, float[N,6,5] q, float[4,5] s, float[4,3] t"),
    "computed weights": graph(
        "i = MatMul(x, f) p = Neg(i) j = MatMul(x, h) q = Neg(j)",
        "float[N,6,3] p, float[N,6,5] q", inputs=", float[4,3] f, float[4,5] h"),
    "stacks of weights": graph(
        "i = MatMul(x, f) p = Neg(i) j = MatMul(x, h) q = Neg(j)",
        "float[2,6,3] p, float[2,6,5] q",
        constants=f"{tensor('f', (2, 4, 3))}, {tensor('h', (2, 4, 5))}"),
    "two operands": graph(
        "i = MatMul(x, u) p = Neg(i) j = MatMul(z, v) q = Neg(j)",
        "float[N,6,3] p, float[N,6,5] q", inputs=", float[N,6,4] z"),
}  # fmt: skip


@pytest.mark.parametrize("before", KEPT.values(), ids=KEPT.keys())
def test_keeps(before: str) -> None:
    check_unchanged(dot_merger, before)


def test_in_a_branch_what_it_captures_is_multiplied_there() -> None:
    body = (
        "y = If(flag) <then_branch = t () => (float[N,6,3] o) "
        "{ i = MatMul(x, u) k = MatMul(x, s) e = Neg(i) f = Neg(k) o = Add(e, f) }, "
        "else_branch = f () => (float[N,6,3] o2) { o2 = MatMul(x, z) }>"
    )
    constants = f"{tensor('s', (4, 3))}, {tensor('z', (4, 3))}"
    text = graph(body, "float[N,6,3] y", constants, ", bool flag")
    check_operators(dot_merger, text, ["If"])


def test_weights_are_put_together_when_they_are_read() -> None:
    """Equal layers still share one weight."""
    model = text.parse(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[n, 2] x, float[n, 2] z) =>'
        " (float[n, 2] a, float[n, 2] b, float[n, 2] c, float[n, 2] d)"
        " <float[2, 2] p = {1, 2, 3, 4}, float[2, 2] q = {5, 6, 7, 8},"
        "  float[2, 2] r = {1, 2, 3, 4}, float[2, 2] s = {5, 6, 7, 8}> {"
        " i = MatMul(x, p) j = MatMul(x, q) k = MatMul(z, r) l = MatMul(z, s)"
        " a = Relu(i) b = Relu(j) c = Relu(k) d = Relu(l) }"
    )
    optimize_model(model, pipeline="dot-merger,const-deduplication")
    (joined,) = {node.inputs[1].const_value for node in model.graph if node.op_type == "MatMul"}
    assert isinstance(joined, LazyConcat)
    np.testing.assert_array_equal(joined.numpy(), [[1, 2, 5, 6], [3, 4, 7, 8]])


@pytest.mark.parametrize("rewrites", [0, 1, 2])
def test_stops_within_a_group_when_it_is_told_to(rewrites: int) -> None:
    """Bisection limits edits to find the wrong one."""
    source = text.parse(
        "g (float[N,2] x) => (float[N,2] y, float[N,2] z) <float[2,2] a = {1,2,3,4}, "
        "float[2,2] b = {5,6,7,8}> { p = MatMul(x, a) q = MatMul(x, b) y = Relu(p) z = Neg(q) }",
        17,
    )
    model = source.clone()
    optimize_model(model, pipeline="dot-merger", rewrites=rewrites)
    check_same_numbers(source, model, dot_merger.exactness)
    assert ("Split" in [node.op_type for node in model.graph]) == (rewrites > 0)
