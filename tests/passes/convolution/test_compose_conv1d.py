"""Convolutions over images of one row become one-dimensional."""

import pytest
from convolutions import tensor
from rewrites import check_operators, check_unchanged

from smelt.passes.convolution.compose_conv1d import compose_conv1d


def detour(
    conv: str = "Conv(u, w)",
    weight: tuple[int, ...] = (4, 2, 1, 3),
    axis: str = "2",
    back: str = "2",
    *,
    body: str = "u = Unsqueeze(x, a) c = {conv} y = Squeeze(c, b)",
    x: str = "float[N,2,6]",
    more: str = "",
    bias: bool = False,
) -> str:
    constants = f"int64[1] a = {{{axis}}}, int64[1] b = {{{back}}}, {tensor('w', weight)}"
    if bias:
        constants += ", " + tensor("k", (4,))
    return f"g ({x} x{more}) => (float[N,?,?] y) <{constants}> {{ {body.format(conv=conv)} }}"


LAST = (
    "u = Unsqueeze(x, a) i = Transpose<perm=[0,3,1,2]>(u) c = {conv} "
    "j = Transpose<perm=[0,2,3,1]>(c) y = Squeeze(j, b)"
)
FUSED = {
    "height": detour(),
    "negative axes": detour(axis="-2", back="-2"),
    "bias": detour("Conv(u, w, k)", bias=True),
    "width": detour(weight=(4, 2, 3, 1), axis="3", back="3"),
    "attributes": detour(
        "Conv<kernel_shape=[1,3], pads=[0,1,0,2], strides=[3,2], dilations=[4,2]>(u, w)"
    ),
    "automatic pads": detour('Conv<auto_pad="SAME_UPPER", strides=[1,2]>(u, w)'),
    "groups": detour("Conv<group=2>(u, w)", (4, 1, 1, 3)),
    "the middle row": detour("Conv<pads=[1,0,1,0]>(u, w)", (4, 2, 3, 3)),
    "the last row": detour("Conv<pads=[2,1,0,1]>(u, w)", (4, 2, 3, 3)),
    "Reshapes": detour(
        body="s = Constant<value_ints=[0,2,1,6]>() u = Reshape(x, s) c = {conv} "
        "r = Constant<value_ints=[-1,4,4]>() y = Reshape(c, r)"
    ),
    "Squeeze of all": detour(
        body="u = Unsqueeze(x, a) c = {conv} y = Squeeze(c)", x="float[3,2,6]"
    ).replace("[N,?,?] y", "[3,4,4] y"),
    "a result of one column, by Reshape": detour(
        weight=(4, 2, 1, 6),
        body="u = Unsqueeze(x, a) c = {conv} r = Constant<value_ints=[0,4,1]>() y = Reshape(c, r)",
    ),
    "dilated rows": detour("Conv<pads=[2,0,2,0], dilations=[2,1]>(u, w)", (4, 2, 3, 3)),
}


@pytest.mark.parametrize("graph", FUSED.values(), ids=FUSED.keys())
def test_composes(graph: str) -> None:
    check_operators(compose_conv1d, graph, ["Conv"], modes=("normal",))


def test_composes_between_transposes() -> None:
    graph = detour("Conv(i, w)", axis="1", back="1", body=LAST, x="float[N,6,2]")
    check_operators(compose_conv1d, graph, ["Transpose", "Conv", "Transpose"], modes=("normal",))


def test_composes_with_a_weight_that_callers_give() -> None:
    graph = detour("Conv(u, v)", more=", float[4,2,1,3] v")
    check_operators(compose_conv1d, graph, ["Squeeze", "Conv"], modes=("normal",))


KEPT = {
    "a high kernel that callers give": detour(
        "Conv<pads=[1,0,1,0]>(u, v)", more=", float[4,2,3,3] v"
    ),
    "another dim is squeezed": detour(
        "Conv<pads=[1,0,1,0]>(u, w)", (4, 2, 1, 6), back="3", x="float[1,2,6]"
    ).replace("[N,?,?] y", "[1,4,3] y"),
    "the row meets padding only": detour(
        "Conv<pads=[1,0,3,0], dilations=[2,1]>(u, w)", (4, 2, 3, 3)
    ),
    "three rows": detour("Conv<pads=[1,0,1,0]>(u, w)", (4, 2, 1, 6), back="3").replace(
        "[N,?,?] y", "[N,4,3] y"
    ),
    "Squeeze of more": detour(
        body="u = Unsqueeze(x, a) c = {conv} y = Squeeze(c)", x="float[1,2,6]"
    ).replace("[N,?,?] y", "[4,4] y"),
    "Squeeze of dims that are not known": detour(
        body="u = Unsqueeze(x, a) c = {conv} y = Squeeze(c)"
    ).replace("[N,?,?] y", "[A,B,C] y"),
    "a Reshape to other dims": detour(
        body="u = Unsqueeze(x, a) c = {conv} r = Constant<value_ints=[0,2,8]>() y = Reshape(c, r)"
    ),
    "rows by Reshape": detour(
        "Conv<pads=[1,0,1,0]>(u, w)",
        body="s = Constant<value_ints=[0,2,2,3]>() u = Reshape(x, s) c = {conv} "
        "r = Constant<value_ints=[0,4,4]>() y = Reshape(c, r)",
    ),
    "read elsewhere": detour(
        body="u = Unsqueeze(x, a) c = {conv} y = Squeeze(c, b) z = Neg(c)"
    ).replace("] y)", "] y, float[N,4,1,4] z)"),
    "an image": "g (float[N,2,1,6] x) => (float[N,4,4] y) "
    f"<int64[1] b = {{2}}, {tensor('w', (4, 2, 1, 3))}> {{ c = Conv(x, w) y = Squeeze(c, b) }}",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(compose_conv1d, graph)
