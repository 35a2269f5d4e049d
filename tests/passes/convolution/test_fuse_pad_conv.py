"""Zero padding is folded into convolutions and average pools."""

import pytest
from convolutions import conv_graph
from rewrites import check_operators, check_unchanged

from smelt.passes.convolution.fuse_pad_conv import fuse_pad_conv


def padded(end: str, pads: str, weight: tuple[int, ...] = (4, 2, 3), more: str = "") -> str:
    """Return a graph with a Pad ``p`` of the input, read by ``end``."""
    listed = ", ".join(filter(None, [f"int64[{len(pads.split(','))}] pads = {{{pads}}}", more]))
    shape = ",".join(["N", "?", *"?" * (len(weight) - 2)])
    text = conv_graph("Pad(x, pads)", weight, 4, end, constants=listed, shape=shape)
    return text.replace("{ c = ", "{ p = ")


CONV = "y = Conv(p, w)"
FUSED = {
    "1-d": (padded(CONV, "0,0,1,0,0,2"), ["Conv"]),
    "with its own pads": (padded("y = Conv<pads=[2,0]>(p, w)", "0,0,1,0,0,2"), ["Conv"]),
    "strides": (padded("y = Conv<strides=[2]>(p, w)", "0,0,1,0,0,0"), ["Conv"]),
    "2-d": (padded(CONV, "0,0,1,0,0,0,2,3", (4, 2, 2, 2)), ["Conv"]),
    "valid": (padded('y = Conv<auto_pad="VALID">(p, w)', "0,0,1,0,0,2"), ["Conv"]),
    "explicit zero": (
        padded(CONV, "0,0,1,0,0,2", more="float zero = {0}").replace("pads)", "pads, zero)"),
        ["Conv"],
    ),
    "negative axes": (
        padded(CONV, "1,2", more="int64[1] axes = {-1}").replace("pads)", "pads, , axes)"),
        ["Conv"],
    ),
    "behind a Transpose": (
        padded(
            "q = Transpose<perm=[0,2,1]>(p) y = Conv(q, v)",
            "0,1,0,0,2,0",
            (4, 2, 3),
            "float[1,6,2] v = {1,2,3,4,5,6,7,8,9,8,7,6}",
        ),
        ["Transpose", "Conv"],
    ),
    "two convolutions": (
        padded("a = Conv(p, w) b = Conv<pads=[1,1]>(p, v) y = Add(a, b)", "0,0,1,0,0,2",
               more="float[1,2,5] v = {1,2,3,4,5,6,7,8,9,8}"),
        ["Conv", "Conv", "Add"],
    ),
    "a pool that counts": (
        padded("y = AveragePool<kernel_shape=[3], pads=[1,0], count_include_pad=1>(p)", "0,0,1,0,0,2"),
        ["AveragePool"],
    ),
    "a pool without padding": (
        padded("y = AveragePool<kernel_shape=[3]>(p)", "0,0,1,0,0,2"),
        ["AveragePool"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("graph", "operators"), FUSED.values(), ids=FUSED.keys())
def test_fuses(graph: str, operators: list[str]) -> None:
    check_operators(fuse_pad_conv, graph, operators, modes=("normal",))


def test_a_pad_that_others_read_stays_for_them() -> None:
    graph = padded(CONV + " z = Neg(p)", "0,0,1,0,0,2").replace("] y)", "] y, float[N,2,9] z)")
    check_operators(fuse_pad_conv, graph, ["Pad", "Conv", "Neg"], modes=("normal",))


KEPT = {
    "another value": padded(CONV, "0,0,1,0,0,2", more="float one = {1}").replace(
        "pads)", "pads, one)"
    ),
    "reflected": padded(CONV, "0,0,1,0,0,2").replace("Pad(", 'Pad<mode="reflect">('),
    "cropped": padded(CONV, "0,0,-1,0,0,2"),
    "channels": padded("y = Conv(p, v)", "0,1,1,0,0,2", more="float[1,3,1] v = {1,2,3}"),
    "batch": padded(CONV, "1,0,1,0,0,2"),
    "automatic": padded('y = Conv<auto_pad="SAME_UPPER">(p, w)', "0,0,1,0,0,2"),
    "maximum": padded("y = MaxPool<kernel_shape=[3]>(p)", "0,0,1,0,0,2"),
    "a maximum that would be left alone with the Pad": padded(
        "a = AveragePool<kernel_shape=[3]>(p) b = MaxPool<kernel_shape=[3]>(p) y = Sub(a, b)",
        "0,0,1,0,0,2",
    ),
    "such a maximum behind a Transpose": padded(
        "a = AveragePool<kernel_shape=[3]>(p) t = Transpose<perm=[0,2,1]>(p) "
        "b = MaxPool<kernel_shape=[1]>(t) c = Transpose<perm=[0,2,1]>(b) d = ReduceMax(c) y = Sub(a, d)",
        "0,0,1,0,0,2",
    ),
    "maximum behind -inf": padded(
        "y = MaxPool<kernel_shape=[3]>(p)", "0,0,1,0,0,2", more="float low = {-inf}"
    ).replace("pads)", "pads, low)"),
    "a pool that does not count": padded(
        "y = AveragePool<kernel_shape=[3], pads=[1,0]>(p)", "0,0,1,0,0,2"
    ),
    "a pool that rounds up": padded(
        "y = AveragePool<kernel_shape=[3], ceil_mode=1>(p)", "0,0,1,0,0,2"
    ),
    "a pool of a small kernel": padded("y = AveragePool<kernel_shape=[2]>(p)", "0,0,1,0,0,2"),
    "empty without the pads": "g (float[1,2,L] x0) => (float[1,4,?] y) "
    "<float[4,2,1] w = {1,2,3,4,5,6,7,8}, int64[6] pads = {0,0,1,0,0,1}, int64[1] one = {1}, "
    "int64[1] end = {9999}, int64[1] two = {2}> "
    "{ x = Slice(x0, one, end, two) p = Pad(x, pads) y = Conv(p, w) }",
    "pads are an input": "g (float[1,2,6] x, int64[6] pads) => (float[1,4,?] y) "
    "<float[4,2,1] w = {1,2,3,4,5,6,7,8}> { p = Pad(x, pads) y = Conv(p, w) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(fuse_pad_conv, graph)
