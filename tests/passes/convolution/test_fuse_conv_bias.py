"""Constants added to a convolution are folded into its bias."""

import pytest
from convolutions import CASES, conv_graph, tensor
from rewrites import check_operators, check_unchanged

from smelt.passes.convolution.fuse_conv_bias import fuse_conv_bias

TERMS = {
    "scalar": lambda m, r: (),
    "one element": lambda m, r: (1,) * r,
    "per channel": lambda m, r: (m, *[1] * r),
    "full rank": lambda m, r: (1, m, *[1] * r),
}


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize(
    "end", ["y = Add(c, t)", "y = Add(t, c)", "y = Sub(c, t)", "y = Sub(t, c)"]
)
@pytest.mark.parametrize(("conv", "weight", "channels"), CASES.values(), ids=CASES.keys())
def test_fuses(conv: str, weight: tuple[int, ...], channels: int, end: str, bias: bool) -> None:
    term = tensor("t", (channels, *[1] * (len(weight) - 2)))
    if bias:
        conv, term = conv.replace("w)", "w, b)"), f"{term}, {tensor('b', (channels,))}"
    kind = conv.split("<")[0].split("(")[0]
    graph = conv_graph(conv, weight, channels, end, constants=term)
    check_operators(fuse_conv_bias, graph, [kind], modes=("normal",))


@pytest.mark.parametrize("kind", TERMS)
@pytest.mark.parametrize("case", ["2-d", "transposed groups", "one channel"])
def test_fuses_terms_of_every_shape(kind: str, case: str) -> None:
    conv, weight, channels = CASES[case]
    term = tensor("t", TERMS[kind](channels, len(weight) - 2))
    graph = conv_graph(conv, weight, channels, "y = Add(c, t)", constants=term)
    op_type = conv.split("<")[0].split("(")[0]
    check_operators(fuse_conv_bias, graph, [op_type], modes=("normal",))


@pytest.mark.parametrize("end", ["y = Add(q, t)", "y = Sub(t, q)"])
def test_fuses_behind_a_transpose(end: str) -> None:
    graph = conv_graph(
        "Conv(x, w)",
        (4, 2, 3),
        4,
        f"q = Transpose<perm=[0,2,1]>(c) {end}",
        constants=tensor("t", (4,)),
        shape="N,?,4",
    )
    check_operators(fuse_conv_bias, graph, ["Conv", "Transpose"], modes=("normal",))


def test_fuses_with_a_weight_that_callers_give() -> None:
    graph = conv_graph(
        "Conv(x, v)", (4, 2, 3), 4, "y = Add(c, t)", constants=tensor("t", (4, 1)),
        inputs=", float[4,2,3] v",
    )  # fmt: skip
    check_operators(fuse_conv_bias, graph, ["Conv"], modes=("normal",))


def test_the_constant_stays_for_others() -> None:
    graph = conv_graph(
        "Conv(x, w)",
        (4, 2, 3),
        4,
        "y = Sub(c, t) z = Neg(t)",
        constants=tensor("t", (4, 1)),
        outputs=", float[4,1] z",
    )
    check_operators(fuse_conv_bias, graph, ["Conv", "Neg"], modes=("normal",))


def kept(body: str, term: tuple[int, ...], weight: tuple[int, ...] = (4, 2, 3), **more: str) -> str:
    return conv_graph("Conv(x, w)", weight, weight[0], body, constants=tensor("t", term), **more)


KEPT = {
    "varies along the row": kept("y = Add(c, t)", (4,)),
    "varies along both": kept("y = Add(c, t)", (4, 4)),
    "widens the batch": kept("y = Add(c, t)", (2, 4, 1), shape="2,4,4"),
    "raises the rank": kept("y = Add(c, t)", (1, 1, 4, 1), shape="1,N,4,4"),
    "widens one channel": kept("y = Add(c, t)", (5, 1), (1, 2, 3), shape="N,5,4"),
    "read elsewhere": kept("y = Add(c, t) z = Neg(c)", (4, 1), outputs=", float[N,4,4] z"),
    "an output": kept("y = Add(c, t)", (4, 1), outputs=", float[N,4,4] c"),
    "behind a Transpose, of the row": kept(
        "q = Transpose<perm=[0,2,1]>(c) y = Add(q, t)", (4, 1), shape="N,4,4"
    ),
    "the term is an input": kept("y = Add(c, v)", (4, 1), inputs=", float[4,1] v"),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(fuse_conv_bias, graph)


def test_keeps_a_bias_that_overflows_float16() -> None:
    graph = conv_graph(
        "Conv(x, h)",
        (1, 1, 1),
        1,
        "f = Cast<to=10>(big) y = Add(c, f)",
        constants="float[1] big = {60000.0}",
        dtype="float16",
        inputs=", float16[1,1,1] h",
    )
    body = graph.replace("w = {", "unused = {").replace(
        "{ c = Conv(x, h)", "{ b = Cast<to=10>(big) c = Conv(x, h, b)"
    )
    body = body.replace("float16[1,1,1] unused", "float[1,1,1] unused")
    check_unchanged(fuse_conv_bias, body)
