"""Kernel taps that only meet padding are dropped from the weights."""

from __future__ import annotations

import pytest
from convolutions import tensor
from rewrites import check_operators, check_unchanged

from smelt.passes.convolution.drop_taps_in_padding import drop_taps_in_padding

HELD = "pads=[18,18,18,18], dilations=[18,18]"
CASES = {
    "a pyramid over a small image": (HELD, "2,16,16", "4,16,16", (4, 2, 3, 3), (1, 1)),
    "many weights": (HELD, "32,16,16", "64,16,16", (64, 32, 3, 3), (1, 1)),
    "one axis alone": (HELD, "2,16,20", "4,16,20", (4, 2, 3, 3), (1, 3)),
    "beside an axis of open size": (HELD, "2,16,W", "4,16,W", (4, 2, 3, 3), (1, 3)),
    "one side": ("pads=[0,6,0,0], dilations=[1,3]", "2,4,5", "4,3,5", (4, 2, 2, 3), (2, 2)),
    "strides": ("pads=[8,8], dilations=[4], strides=[3]", "2,5", "3,2", (3, 2, 5), (2,)),
    "groups": ("group=2, pads=[5,5], dilations=[5]", "4,5", "4,5", (4, 2, 3), (1,)),
    "three axes": (
        "pads=[3,1,0,3,1,0], dilations=[3,1,1]",
        "1,3,3,2",
        "2,3,3,1",
        (2, 1, 3, 3, 2),
        (1, 3, 2),
    ),
}


def graph(attributes: str, image: str, result: str, weight: tuple[int, ...], more: str = "") -> str:
    return (
        f"g (float[N,{image}] x) => (float[N,{result}] y) <{tensor('w', weight)}{more}> "
        f"{{ y = Conv<{attributes}>(x, w) }}"
    )


@pytest.mark.parametrize(
    ("attributes", "image", "result", "weight", "left"), CASES.values(), ids=CASES.keys()
)
def test_drops(
    attributes: str, image: str, result: str, weight: tuple[int, ...], left: tuple[int, ...]
) -> None:
    source = graph(attributes, image, result, weight)
    model = check_operators(drop_taps_in_padding, source, ["Conv"], modes=("normal",))
    [node] = model.graph
    kernel = node.inputs[1]
    assert kernel is not None
    assert kernel.shape is not None
    assert tuple(kernel.shape.numpy()[2:]) == left
    assert tuple(node.attributes.get_ints("kernel_shape", ())) == left


KEPT = {
    "a tap that meets one element": graph("pads=[3,3], dilations=[3]", "2,4", "4,4", (4, 2, 3)),
    "no padding": graph("dilations=[2]", "2,5", "4,1", (4, 2, 3)),
    "an open size": graph("pads=[5,5], dilations=[5]", "2,L", "4,L", (4, 2, 3)),
    "a rank that is not known": "g (float[N,1,2] x, int64[r] s) => (float y) <float[1,1,3] w = "
    "{1, 2, 3}> { u = Reshape(x, s) y = Conv<pads=[2,2], dilations=[2]>(u, w) }",
    "automatic pads": graph('auto_pad="SAME_UPPER", dilations=[5]', "2,5", "4,5", (4, 2, 3)),
    "pads beside automatic ones": graph(
        'auto_pad="SAME_UPPER", pads=[5,5], dilations=[5]', "2,5", "4,5", (4, 2, 3)
    ),
    "nothing but padding": graph("pads=[4,0], strides=[9]", "2,3", "4,1", (4, 2, 2)),
    "a weight that is not finite": "g (float[1,1,2] x) => (float[1,1,2] y) "
    "<float[1,1,3] w = {inf, 1, 2}> { y = Conv<pads=[2,2], dilations=[2]>(x, w) }",
    "weights that callers give": "g (float[1,1,2] x, float[1,1,3] w) => (float[1,1,2] y) "
    "{ y = Conv<pads=[2,2], dilations=[2]>(x, w) }",
    "a result that begins inside": "g (float[1,1,9] x) => (float[1,1,1] y) "
    "<float[1,1,2] w = {1, 2}> { y = Conv<pads=[5,0], dilations=[9]>(x, w) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(drop_taps_in_padding, graph)


def test_weights_that_others_read_stay_for_them() -> None:
    source = graph(HELD, "2,16,16", "4,16,16", (4, 2, 3, 3)).replace("] y)", "] y, float[] z)")
    source = source.replace("(x, w) }", "(x, w) z = ReduceSum<keepdims=0>(w) }")
    check_operators(drop_taps_in_padding, source, ["Conv", "ReduceSum"], modes=("normal",))
