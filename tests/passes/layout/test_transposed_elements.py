"""Transposes move across operators that select, repeat, count or quantize elements."""

from __future__ import annotations

import pytest
from rewrites import MODES, check_same_numbers, check_unchanged, run_pass

from smelt.ir import text, verify
from smelt.passes.base import rounding
from smelt.passes.layout.reduce_transposes import reduce_transposes
from smelt.runtime.inputs import Mode

TO, BACK = "Transpose<perm=[0,3,1,2]>", "Transpose<perm=[0,2,3,1]>"
HALF = 'coordinate_transformation_mode="half_pixel"'
CONSTANTS = (
    "<int64[1] two = {2}, int64 axis = {1}, int32[1] last = {-1}, int64[2,2] many = {0,2,-1,1},"
    "int64 one = {1}, int64[4] times = {1,2,3,1}, int64[4] wide = {2,3,4,5}, int64[2] short = {4,1},"
    "float[4] scales = {1,1,2,3}, int64[4] sizes = {2,3,8,10}, int64[2] inner = {8,10},"
    "float[2] halves = {0.5,2}, float[8] roi = {0,0,0.1,0.2,1,1,0.8,0.9}, float[0] none = {},"
    "float s = {0.1}, float[1] s1 = {0.1}, uint8 z = {100}, uint8[1] z1 = {100},"
    "float[3] s3 = {0.1,0.2,0.3}, int8[3] z3 = {1,-2,0}, float eps = {0}>"
)

# what reads t, [2,3,4,5], and gives r; the opset of the oldest form; what brings the layout back
CHANGED = {
    "TopK": ("v, i = TopK<axis=1>(t, two) c = Cast<to=1>(i) r = Sub(v, c)", 13, BACK),
    "TopK of the last axis": ("v, i = TopK(t, two) r = Neg(v)", 13, BACK),
    "TopK of the smallest": ("v, i = TopK<largest=0, axis=-2>(t, two) r = Neg(v)", 13, BACK),
    "CumSum": ("r = CumSum(t, axis)", 14, BACK),
    "CumSum by a vector": ("r = CumSum<reverse=1, exclusive=1>(t, last)", 14, BACK),
    "Gather of one": ("r = Gather<axis=1>(t, one)", 13, "Neg"),
    "Gather of one batch": ("r = Gather(t, one)", 13, "Transpose<perm=[1,2,0]>"),
    "Gather of some": ("r = Gather<axis=-2>(t, two)", 13, BACK),
    "Gather of a matrix": ("r = Gather<axis=1>(t, many)", 13, "Transpose<perm=[0,3,4,1,2]>"),
    "Tile": ("r = Tile(t, times)", 13, BACK),
    "Expand": ("e = Unsqueeze(t, two) f = Squeeze(e, two) r = Expand(f, wide)", 13, BACK),
    "Expand by fewer": ("g = ReduceMax<keepdims=1>(t, last64) r = Expand(g, short)", 18, BACK),
    "Resize by scales": ('r = Resize<mode="nearest">(t, "", scales)', 13, BACK),
    "Resize by scales, no region": ('r = Resize<mode="nearest">(t, none, scales)', 13, BACK),
    "Resize by sizes": ('r = Resize<mode="nearest">(t, "", "", sizes)', 13, BACK),
    "Resize of axes": ('r = Resize<mode="nearest", axes=[2,3]>(t, "", halves)', 18, BACK),
    "Resize of axes by sizes": (
        'r = Resize<mode="nearest", axes=[-2,3]>(t, "", "", inner)',
        18,
        BACK,
    ),
    "Resize of a region": (
        'r = Resize<mode="nearest", coordinate_transformation_mode="tf_crop_and_resize">'
        '(t, roi, "", sizes)',
        13,
        BACK,
    ),
    "linear Resize": (f'r = Resize<mode="linear", {HALF}>(t, "", scales)', 13, BACK),
    "linear Resize by sizes": (f'r = Resize<mode="linear", {HALF}>(t, "", "", sizes)', 13, BACK),
    "QuantizeLinear": ("q = QuantizeLinear(t, s, z) r = Cast<to=1>(q)", 13, BACK),
    "without zero point": ("q = QuantizeLinear(t, s1) r = Cast<to=1>(q)", 13, BACK),
    "a pair": ("q = QuantizeLinear(t, s1, z1) r = DequantizeLinear(q, s1, z1)", 13, BACK),
    "a pair by channel": (
        "q = QuantizeLinear(t, s3, z3) r = DequantizeLinear(q, s3, z3)",
        13,
        BACK,
    ),
    "by a negative axis": (
        "q = QuantizeLinear<axis=-3>(t, s3, z3) r = DequantizeLinear<axis=-3>(q, s3, z3)",
        13,
        BACK,
    ),
}
OPSETS = (13, 15, 17, 18, 19, 21, 23)


def graph(body: str, back: str) -> str:
    constants = CONSTANTS.replace(">", ", int64[1] last64 = {-1}>")
    return (
        f"g (float[2,4,5,3] x) => (float[a,b,c,d] y) {constants}"
        f"{{ t = {TO}(x) {body} y = {back}(r) }}"
    )


@pytest.mark.parametrize(
    ("body", "opset", "back"),
    [
        pytest.param(body, opset, back, id=f"{name}-{opset}")
        for name, (body, lowest, back) in CHANGED.items()
        for opset in OPSETS
        if opset >= lowest
    ],
)
def test_moves_through(body: str, opset: int, back: str) -> None:
    rank = back.count(",") + 1 if "," in back else 3
    whole = graph(body, back).replace("[a,b,c,d]", f"[{','.join('abcde'[:rank])}]")
    source, model = text.parse(whole, opset), text.parse(whole, opset)
    assert not list(verify.problems_of(source))
    run_pass(reduce_transposes, model)
    assert not [n for n in model.graph if n.op_type == "Transpose"]
    # Whether ONNX Runtime's ReduceMax drops a NaN depends on the place of the axis.
    modes: tuple[Mode, ...] = ("normal",) if "ReduceMax" in body else MODES
    check_same_numbers(source, model, rounding(4), modes=modes)


def test_the_sizes_are_those_before_in_another_order() -> None:
    whole = (
        f"g (float[N,4,M,3] x) => (int64[4] y, int64[2] z, int64 n)"
        f"{{ t = {TO}(x) y = Shape(t) z = Shape<start=1, end=-1>(t) n = Size(t) }}"
    )
    source, model = text.parse(whole, 21), text.parse(whole, 21)
    run_pass(reduce_transposes, model)
    assert not [n for n in model.graph if n.op_type == "Transpose"]
    check_same_numbers(source, model)


KEPT = {
    "TopK in no order": "v, i = TopK<axis=1, sorted=0>(t, two) r = Neg(v)",
    "CumSum along an unknown axis": "r = CumSum(t, k)",
    "Gather by an index of unknown rank": "f = If(b) <then_branch = p () => (int64[m] u) { u = Identity(two) },"
    " else_branch = q () => (int64 w) { w = Identity(one) }> r = Gather<axis=1>(t, f)",
    "Tile by unknown numbers": "j = Concat<axis=0>(h, h, h, h) r = Tile(t, j)",
    "Expand to a higher rank": "h5 = Constant<value_ints=[1,2,3,4,5]>() e = Expand(t, h5)"
    " r = Squeeze(e, zero)",
    "Resize by unknown sizes": 'j = Concat<axis=0>(h, h, h, h) r = Resize<mode="nearest">(t, "", "", j)',
    "cubic Resize": 'r = Resize<mode="cubic">(t, "", scales)',
    "linear Resize of the channels": "c = Constant<value_floats=[1.0,2.0,2.0,1.0]>()"
    ' r = Resize<mode="linear">(t, "", c)',
    "linear Resize against aliasing": 'r = Resize<mode="linear", antialias=1>(t, "", scales)',
    "scales of blocks": "q = DequantizeLinear<axis=1, block_size=3>(i8, blocks) r = Neg(q)",
    "scales along an axis that is not there": "q = QuantizeLinear<axis=7>(t, s3, z3) r = Cast<to=1>(q)",
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_keeps(body: str) -> None:
    constants = CONSTANTS.replace(">", ", int64[1] zero = {0}>")
    read = body.replace("(i8, blocks)", "(i, v)")
    extra = "i = Cast<to=3>(t) v = ReduceMax<keepdims=1>(a, two)" if "blocks" in body else ""
    whole = (
        "g (float[2,4,5,3] x, int64 k, int64[1] h, bool b, float[2,1,4,5] a) => (float[?,?,?,?] y)"
        f"{constants} {{ t = {TO}(x) {extra} {read} y = {BACK}(r) }}"
    )
    model = text.parse(whole.replace("?", "m"), 21)
    before = [n.op_type for n in model.graph].count("Transpose")
    run_pass(reduce_transposes, model)
    assert [n.op_type for n in model.graph].count("Transpose") == before


def test_keeps_a_quantization_that_is_read_in_the_other_layout() -> None:
    check_unchanged(
        reduce_transposes,
        f"g (float[2,4,5,3] x, float[2,3,3,3] w) => (float[a,b,c,d] y) <float s = {{0.5}}>"
        f"{{ t = {TO}(x) q = QuantizeLinear(t, s) d = DequantizeLinear(q, s) y = Conv(d, w) }}",
    )
