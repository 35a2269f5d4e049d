"""A constant row is added before the rows of a product are split into heads."""

import pytest
from convolutions import tensor
from rewrites import check_operators, check_rewrite, check_unchanged

from smelt.passes.simplify.hoist_bias import hoist_bias


def graph(
    bias: tuple[int, ...], add: str = "Add(r, c)", shape: str = "0,0,2,3", **more: str
) -> str:
    constants = f"{tensor('w', (4, 6))}, {tensor('c', bias)}, int64[4] s = {{{shape}}}"
    outputs = more.get("outputs", "")
    return (
        f"g (float[N,5,4] x) => (float[N,5,2,3] y{outputs}) <{constants}> "
        f"{{ p = MatMul(x, w) r = Reshape(p, s) y = {add} {more.get('body', '')} }}"
    )


def test_moves_a_row_of_heads() -> None:
    row = tensor("c", (2, 3)).split("= ")[1]
    after = (
        f"g (float[N,5,4] x) => (float[N,5,2,3] y) <{tensor('w', (4, 6))}, float[6] c = {row}, "
        "int64[4] s = {0,0,2,3}> { p = MatMul(x, w) a = Add(p, c) y = Reshape(a, s) }"
    )
    check_rewrite(hoist_bias, graph((2, 3)), after)


@pytest.mark.parametrize("bias", [(1, 1, 2, 3), (3,), (2, 1), (1,), ()])
@pytest.mark.parametrize("add", ["Add(r, c)", "Add(c, r)"])
def test_moves_every_shape_that_is_a_row(bias: tuple[int, ...], add: str) -> None:
    check_operators(hoist_bias, graph(bias, add), ["MatMul", "Add", "Reshape"])


def test_moves_a_row_to_one_part_of_a_product() -> None:
    head = "g (float[N,5,4] x) => (float[N,5,2,3] y, float[N,5,2] z)"
    cut = "a, b = Split<axis=2>(p, n) z = Neg(b)"
    numbers = f"{tensor('w', (4, 8))}, int64[4] s = {{0,0,2,3}}, int64[2] n = {{6,2}}"
    row = tensor("c", (2, 3)).split("= ")[1]
    check_rewrite(
        hoist_bias,
        f"{head} <{numbers}, {tensor('c', (2, 3))}> "
        f"{{ p = MatMul(x, w) {cut} r = Reshape(a, s) y = Add(r, c) }}",
        f"{head} <{numbers}, float[6] c = {row}> "
        f"{{ p = MatMul(x, w) {cut} r = Add(a, c) y = Reshape(r, s) }}",
    )


KEPT = {
    "a part that is read elsewhere": (
        f"g (float[N,5,4] x) => (float[N,5,2,3] y, float[N,5,6] z) <{tensor('w', (4, 8))}, "
        f"{tensor('c', (2, 3))}, int64[4] s = {{0,0,2,3}}, int64[2] n = {{6,2}}> {{ "
        "p = MatMul(x, w) a, b = Split<axis=2>(p, n) z = Neg(a) r = Reshape(a, s) y = Add(r, c) }"
    ),
    "it varies along the rows": graph((5, 2, 3)),
    "the product is an output": graph((2, 3), outputs=", float[N,5,6] p"),
    "the product is read elsewhere": graph(
        (2, 3), outputs=", float[N,5,6] z", body="z = Neg(p)"
    ),
    "the rows are split elsewhere": (
        f"g (float[N,6,4] x) => (float[N,2,3,6] y) <{tensor('w', (4, 6))}, {tensor('c', (3, 6))}, "
        "int64[4] s = {0,2,3,6}> { p = MatMul(x, w) r = Reshape(p, s) y = Add(r, c) }"
    ),
    "no product": (
        f"g (float[N,5,6] x) => (float[N,5,2,3] y) <{tensor('c', (2, 3))}, "
        "int64[4] s = {0,0,2,3}> { p = Neg(x) r = Reshape(p, s) y = Add(r, c) }"
    ),
}  # fmt: skip


@pytest.mark.parametrize("before", KEPT.values(), ids=KEPT.keys())
def test_keeps(before: str) -> None:
    check_unchanged(hoist_bias, before)


def test_a_product_on_integers_stays_apart_from_a_float() -> None:
    check_unchanged(
        hoist_bias,
        "g (uint8[2,4] x, int8[4,4] w) => (float[2,2,2] y)"
        "<float s = {0.5}, float[2,2] c = {1,2,3,4}, int64[3] shape = {2,2,2}>"
        "{ a = DequantizeLinear(x, s)  b = DequantizeLinear(w, s)  p = MatMul(a, b)"
        " r = Reshape(p, shape)  y = Add(r, c) }",
    )
