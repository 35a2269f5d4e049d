"""A Split whose parts are all quantized again splits the integers."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.quantize.int_op_canonicalization import int_op_canonicalization as the_pass

HEAD = "g (uint8[N,4] x) => (uint8[N,1] y, uint8[N,3] z{outputs})"
CONSTANTS = "<float s = {0.1}, float r = {0.2}, uint8 k = {3}, int64[2] sizes = {1,3}{more}>"
SPLIT = "d = DequantizeLinear(x, s, k) a, b = Split<axis=1>(d, sizes)"
PARTS = "y = QuantizeLinear(a, s, k) z = QuantizeLinear(b, s, k)"


def graph(body: str, outputs: str = "", more: str = "") -> str:
    head = HEAD.replace("{outputs}", outputs)
    return f"{head} {CONSTANTS.replace('{more}', more)} {{ {body} }}"


def test_splits_integers() -> None:
    check_rewrite(
        the_pass,
        graph(f"{SPLIT} {PARTS}"),
        "g (uint8[N,4] x) => (uint8[N,1] y, uint8[N,3] z) <int64[2] sizes = {1,3}>"
        "{ y, z = Split<axis=1>(x, sizes) }",
    )


def test_a_dead_part() -> None:
    check_rewrite(
        the_pass,
        "g (uint8[N,4] x) => (uint8[N,1] y) <float s = {0.1}, int64[2] sizes = {1,3}>"
        "{ d = DequantizeLinear(x, s) a, b = Split<axis=1>(d, sizes) y = QuantizeLinear(a, s) }",
        "g (uint8[N,4] x) => (uint8[N,1] y) <int64[2] sizes = {1,3}>"
        "{ y, b = Split<axis=1>(x, sizes) }",
    )


KEPT = {
    "another scale for a part": (f"{SPLIT} {PARTS.replace('(b, s', '(b, r')}", "", ""),
    "a part that is read as floats": (f"{SPLIT} {PARTS} c = Neg(b)", ", float[N,3] c", ""),
    "a part that is returned": (f"{SPLIT} {PARTS}", ", float[N,3] b", ""),
    "a part quantized twice": (
        f"{SPLIT} {PARTS} c = QuantizeLinear(b, r, k)",
        ", uint8[N,3] c",
        "",
    ),
    "scales of an axis": (
        "d = DequantizeLinear(x, v, w) a, b = Split<axis=1>(d, sizes) "
        "y = QuantizeLinear(a, v1) z = QuantizeLinear(b, v3)",
        "",
        ", float[4] v = {1,2,3,4}, uint8[4] w = {0,0,0,0}, float[1] v1 = {1}, float[3] v3 = {2,3,4}",
    ),
}


@pytest.mark.parametrize(("body", "outputs", "more"), KEPT.values(), ids=KEPT.keys())
def test_keeps(body: str, outputs: str, more: str) -> None:
    check_unchanged(the_pass, graph(body, outputs, more))


def test_space_and_depth_wait_for_runtimes_that_take_integers() -> None:
    move = (
        "g (uint8[N,4,2,2] x) => (uint8[N,1,4,4] y) <float s = {0.1}>"
        "{ d = DequantizeLinear(x, s) m = DepthToSpace<blocksize=2>(d) y = QuantizeLinear(m, s) }"
    )
    check_unchanged(the_pass, move, keep_groups=True)
    check_rewrite(
        the_pass,
        move,
        "g (uint8[N,4,2,2] x) => (uint8[N,1,4,4] y) { y = DepthToSpace<blocksize=2>(x) }",
    )


@pytest.mark.parametrize(
    "move",
    [
        'Resize<mode="linear">(d, "", scales)',
        'Resize<coordinate_transformation_mode="tf_crop_and_resize">(d, roi, scales)',
        "Pad(d, pads, c)",
        "ReduceMean(d, one)",
    ],
)
def test_keeps_what_makes_new_numbers(move: str) -> None:
    constants = (
        "<float s = {0.1}, float[2] scales = {1,2}, float[4] roi = {0,0,1,2}, float c = {0.01},"
        "int64[4] pads = {0,1,0,1}, int64[1] one = {1}>"
    )
    model = text.parse(
        f"g (uint8[3,4] x) => (uint8[M,K] y) {constants}"
        f"{{ d = DequantizeLinear(x, s) m = {move} y = QuantizeLinear(m, s) }}",
        21,
    )
    assert run_pass(the_pass, model).rewrites == 0
