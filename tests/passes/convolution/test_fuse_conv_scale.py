"""Constants that multiply or divide a convolution are folded into its weight."""

import pytest
from convolutions import CASES, conv_graph, tensor
from rewrites import check_operators, check_unchanged

from smelt.compiler import optimize_model
from smelt.ir import text
from smelt.passes.convolution.fuse_conv_scale import fuse_conv_scale


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("end", ["y = Mul(c, s)", "y = Mul(s, c)", "y = Div(c, s)"])
@pytest.mark.parametrize(("conv", "weight", "channels"), CASES.values(), ids=CASES.keys())
def test_fuses(conv: str, weight: tuple[int, ...], channels: int, end: str, bias: bool) -> None:
    scale = tensor("s", (channels, *[1] * (len(weight) - 2)), positive=True)
    if bias:
        conv, scale = conv.replace("w)", "w, b)"), f"{scale}, {tensor('b', (channels,))}"
    kind = conv.split("<")[0].split("(")[0]
    graph = conv_graph(conv, weight, channels, end, constants=scale)
    check_operators(fuse_conv_scale, graph, [kind], modes=("normal",))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1), (4, 1), (1, 4, 1)])
def test_fuses_scales_of_every_shape(shape: tuple[int, ...]) -> None:
    scale = tensor("s", shape, positive=True)
    graph = conv_graph("Conv(x, w)", (4, 2, 3), 4, "y = Mul(c, s)", constants=scale)
    check_operators(fuse_conv_scale, graph, ["Conv"], modes=("normal",))


def test_fuses_behind_a_transpose() -> None:
    body = "q = Transpose<perm=[0,2,1]>(c) y = Mul(q, s)"
    constants = tensor("s", (4,))
    graph = conv_graph("Conv(x, w)", (4, 2, 3), 4, body, constants=constants, shape="N,?,4")
    check_operators(fuse_conv_scale, graph, ["Conv", "Transpose"], modes=("normal",))


def test_a_shared_weight_stays_for_its_other_reader() -> None:
    graph = conv_graph(
        "Conv(x, w)",
        (4, 2, 3),
        4,
        "y = Mul(c, s) z = Conv(x, w)",
        constants=tensor("s", (4, 1)),
        outputs=", float[N,4,4] z",
    )
    check_operators(fuse_conv_scale, graph, ["Conv", "Conv"], modes=("normal",))


def kept(body: str, scale: str | None = None, **more: str) -> str:
    constants = scale or tensor("s", (4, 1))
    return conv_graph("Conv(x, w)", (4, 2, 3), 4, body, constants=constants, **more)


KEPT = {
    "the constant is divided": kept("y = Div(s, c)"),
    "division by zero": kept("y = Div(c, s)", "float s = {0.0}"),
    "varies along the row": kept("y = Mul(c, s)", tensor("s", (4,))),
    "widens the batch": kept("y = Mul(c, s)", tensor("s", (2, 4, 1)), shape="2,4,4"),
    "raises the rank": kept("y = Mul(c, s)", tensor("s", (1, 1, 1, 1)), shape="1,N,4,4"),
    "overflows": kept("y = Mul(c, s)", "float s = {3e38}"),
    "underflows": kept("y = Mul(c, s)", "float s = {1e-44}"),
    "an output": kept("y = Mul(c, s)", outputs=", float[N,4,4] c"),
    "read elsewhere": kept("y = Mul(c, s) z = Neg(c)", outputs=", float[N,4,4] z"),
    "the weight is an input": conv_graph(
        "Conv(x, v)", (4, 2, 3), 4, "y = Mul(c, s)", constants=tensor("s", (4, 1)),
        inputs=", float[4,2,3] v",
    ),
}  # fmt: skip


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(fuse_conv_scale, graph)


def before(
    body: str,
    shape: tuple[int, ...] = (4, 1),
    weight: tuple[int, ...] = (6, 4, 3),
    *,
    x: str = "N,4,8",
    scale: str | None = None,
    outputs: str = "",
) -> str:
    """Return a scaled value followed by a convolution of 4 channels."""
    constants = ", ".join([tensor("w", weight), scale or tensor("s", shape, positive=True)])
    return f"g (float[{x}] x) => (float[N,?,?] y{outputs}) <{constants}> {{ {body} }}"


CONVOLVED = {
    "times": before("a = Mul(x, s) y = Conv(a, w)"),
    "times, the constant first": before("a = Mul(s, x) y = Conv(a, w)"),
    "through": before("a = Div(x, s) y = Conv(a, w)"),
    "padded by zeros, which a factor leaves": before("a = Mul(x, s) y = Conv<pads=[1,1]>(a, w)"),
    "all axes": before("a = Mul(x, s) y = Conv(a, w)", (1, 4, 1)),
    "groups": before("a = Mul(x, s) y = Conv<group=2>(a, w)", weight=(6, 2, 3)),
    "depthwise": before("a = Mul(x, s) y = Conv<group=4>(a, w)", weight=(8, 1, 3)),
    "transposed": before("a = Mul(x, s) y = ConvTranspose(a, w)", weight=(4, 6, 3)),
    "transposed, of groups": before("a = Mul(x, s) y = ConvTranspose<group=2>(a, w)",
        weight=(4, 3, 3)),
    "a factor of 0": before("a = Mul(x, s) y = Conv(a, w)",
        scale="float[4,1] s = {1.0, 0.0, -2.0, 0.5}"),
}  # fmt: skip


@pytest.mark.parametrize("graph", CONVOLVED.values(), ids=CONVOLVED.keys())
def test_fuses_what_is_scaled_before(graph: str) -> None:
    kind = "ConvTranspose" if "ConvTranspose" in graph else "Conv"
    check_operators(fuse_conv_scale, graph, [kind], modes=("normal",))


SWISH = "g = Sigmoid(x) m = Mul(x, g)"


@pytest.mark.parametrize("shape", [(), (1, 1, 1)], ids=str)
def test_fuses_one_number_behind_a_whole_swish(shape: tuple[int, ...]) -> None:
    """NF-nets have such a gain."""
    graph = before(f"{SWISH} a = Mul(m, s) y = Conv<pads=[1,1]>(a, w)", shape)
    check_operators(fuse_conv_scale, graph, ["Sigmoid", "Mul", "Conv"], modes=("normal",))


KEPT_BEFORE = {
    "one number behind a gate of something else": before(
        "n = Neg(x) g = Sigmoid(n) m = Mul(x, g) a = Mul(m, s) y = Conv(a, w)", ()),
    "one number behind a Swish, read elsewhere": before(
        f"{SWISH} a = Mul(m, s) y = Conv(a, w) z = Neg(a)", (), outputs=", float[N,4,8] z"),
    "one number that raises the rank": before(
        f"{SWISH} a = Mul(m, s) y = Conv(a, w)", (1, 1, 1, 1), weight=(6, 4, 3, 3)),
    "a constant through x": before("a = Div(s, x) y = Conv(a, w)"),
    "division by zero": before("a = Div(x, s) y = Conv(a, w)",
        scale="float[4,1] s = {1.0, 0.0, 2.0, 3.0}"),
    "varies along the row": before("a = Mul(x, s) y = Conv(a, w)", (8,)),
    "one number": before("a = Mul(x, s) y = Conv(a, w)", ()),
    "one number as a tensor": before("a = Mul(x, s) y = Conv(a, w)", (1, 1, 1)),
    "widens the batch": before("a = Mul(x, s) y = Conv(a, w)", (2, 4, 1), x="1,4,8"),
    "widens the channels": before("a = Mul(x, s) y = Conv(a, w)", x="N,1,8"),
    "raises the rank": before("a = Mul(x, s) y = Conv(a, w)", (1, 4, 1), x="4,8"),
    "overflows": before("a = Mul(x, s) y = Conv(a, w)",
        scale="float[4,1] s = {1.0, 3e38, 2.0, 3.0}"),
    "read elsewhere": before("a = Mul(x, s) y = Conv(a, w) z = Neg(a)",
        outputs=", float[N,4,8] z"),
    "an output": before("a = Mul(x, s) y = Conv(a, w)", outputs=", float[N,4,8] a"),
    "it is the weight that is scaled": before("a = Mul(w, s) y = Conv(x, a)"),
    "the scale is no constant": "g (float[N,4,8] x, float[4,1] t) => (float[N,6,6] y) "
        f"<{tensor('w', (6, 4, 3))}> {{ a = Mul(x, t) y = Conv(a, w) }}",
}  # fmt: skip


@pytest.mark.parametrize("graph", KEPT_BEFORE.values(), ids=KEPT_BEFORE.keys())
def test_keeps_what_is_scaled_before(graph: str) -> None:
    check_unchanged(fuse_conv_scale, graph)


@pytest.mark.parametrize("half", ["y = Conv(h, w)", "y = Conv<pads=[1,1]>(h, w)"])
def test_a_gelu_before_a_convolution_stays_whole(half: str) -> None:
    body = f"d = Div(x, r) e = Erf(d) o = Add(e, one) m = Mul(x, o) h = Mul(m, half) {half}"
    numbers = "float r = {1.4142135}, float one = {1.0}, float half = {0.5}"
    model = text.parse(
        f"g (float[N,4,8] x) => (float[N,6,?] y) <{tensor('w', (6, 4, 3))}, {numbers}> {{ {body} }}",
        opset=17,
    )
    optimize_model(model)
    assert [node.op_type for node in model.graph] == ["Gelu", "Conv"]
