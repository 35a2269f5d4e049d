"""Graphs that other compilers are known to get wrong, or to crash on: one table, two checks.

Each graph resembles the pattern of a pass but must not be rewritten; its results stay equal after
that pass alone and after the default pipeline.
"""

import pytest
from convolutions import conv_graph, tensor
from rewrites import check_same_numbers

from smelt.compiler import optimize_model
from smelt.ir import text
from smelt.passes.base import joint_exactness

SQUARE = tensor("w", (4, 4))
ROW = tensor("b", (4,))


def graph(inputs: str, outputs: str, constants: str, body: str) -> str:
    """Return one graph with the nodes in ``body``."""
    return f"g ({inputs}) => ({outputs}) <{constants}> {{ {body} }}"


def conv(body: str, constants: str, outputs: str = "") -> str:
    return conv_graph("Conv(x, w)", (4, 2, 3), 4, body, constants=constants, outputs=outputs)


WRONG = {
    "a constant divided by a conv": ("fuse_conv_scale", conv("y = Div(s, c)", tensor("s", (4, 1)))),
    "a constant less a product": ("fuse_matmul_weight_bias", graph(
        "float[N,4] x", "float[N,4] y", f"{SQUARE}, {ROW}", "p = MatMul(x, w) y = Sub(b, p)")),
    "a square weight on the left": ("fuse_matmul_weight_bias", graph(
        "float[4,4] x", "float[4,4] y", f"{SQUARE}, {ROW}", "p = MatMul(w, x) y = Add(p, b)")),
    "a bias that raises the rank of a product": ("fuse_matmul_weight_bias", graph(
        "float[N,4] x", "float[1,N,4] y", f"{SQUARE}, {tensor('b', (1, 1, 4))}",
        "p = MatMul(x, w) y = Add(p, b)")),
    "a bias that raises the rank of a linear layer": ("fuse_linear_bias", graph(
        "float[N,4] x", "float[1,N,4] y", f"{SQUARE}, {ROW}, {tensor('k', (1, 1, 4))}",
        "p = Gemm(x, w, b) y = Add(p, k)")),
    "a bias with another reader": ("fuse_conv_bias", conv(
        "y = Sub(c, s) z = Mul(s, s)", tensor("s", (4, 1)), ", float[4,1] z")),
    "a scale and a shift that widen": ("fuse_elementwise_to_batchnorm", graph(
        "float[1,1,5,4] x", "float[1,3,5,4] y", f"{tensor('s', (3, 1, 1))}, {tensor('b', (3, 1, 1))}",
        "p = Mul(x, s) y = Add(p, b)")),
    "means over two different axes": ("fuse_layernorm_or_instancenorm", graph(
        "float[4,4] x", "float[4,4] y",
        "int64[1] last = {1}, int64[1] first = {0}, float e = {1e-5}, float two = {2.0}",
        "m = ReduceMean(x, last) d = Sub(x, m) q = Pow(d, two) v = ReduceMean(q, first) "
        "a = Add(v, e) s = Sqrt(a) y = Div(d, s)")),
    "one-hot along the first axis": ("fuse_onehot_matmul_to_gather", graph(
        "int64[4] i", "float[4,4] y", f"{SQUARE}, int64 depth = {{4}}, float[2] values = {{0.0, 1.0}}",
        "r = Mod(i, depth) h = OneHot<axis=0>(r, depth, values) y = MatMul(h, w)")),
    "a loop that returns an outer value": ("loop_invariant_elimination", graph(
        "float[4] x, float[4] c, int64 n", "float[4] y", "bool go = {1}",
        "y = Loop(n, go, x) <body = b (int64 i, bool k, float[4] s) => (bool k2, float[4] s2) "
        "{ k2 = Identity(k) s2 = Identity(c) }>")),
    "an integer through a narrow float": ("cast_optimization", graph(
        "int32[N] x", "int32[N] y", "int32 big = {16777216}",
        "a = Add(x, big) p = Cast<to=1>(a) y = Cast<to=6>(p)")),
    "a short integer through a half": ("cast_optimization", graph(
        "int16[N] x", "float[N] y", "", "p = Cast<to=10>(x) y = Cast<to=1>(p)")),
    "a gelu with another constant": ("fuse_gelu_exact", graph(
        "float[N,4] x", "float[N,4] y", "float r = {1.4150}, float one = {1.0}, float half = {0.5}",
        "d = Div(x, r) e = Erf(d) a = Add(e, one) m = Mul(x, a) y = Mul(m, half)")),
    "a tanh gelu with another constant": ("fuse_gelu_tanh_approximation", graph(
        "float[N,4] x", "float[N,4] y",
        "float k = {0.0455}, float three = {3.0}, float r = {0.7978846}, float one = {1.0}, float half = {0.5}",
        "p = Pow(x, three) q = Mul(p, k) s = Add(x, q) t = Mul(s, r) h = Tanh(t) a = Add(h, one) "
        "m = Mul(x, a) y = Mul(m, half)")),
    "a sum divided by nearly its size": ("fuse_reduce_mean", graph(
        "float[N,4] x", "float[N,1] y", "int64[1] axes = {1}, float n = {4.009}",
        "s = ReduceSum(x, axes) y = Div(s, n)")),
    "quantized again at another scale": ("int_op_canonicalization", graph(
        "int8[4,4] x", "int8[16] y",
        "float s = {0.1}, float t = {0.4}, int8 z = {0}, int64[1] shape = {16}",
        "d = DequantizeLinear(x, s, z) r = Reshape(d, shape) y = QuantizeLinear(r, t, z)")),
    "the root of a square": ("clip_of_min_max", graph(
        "float[N] x", "float[N] y", "float two = {2.0}", "p = Pow(x, two) y = Sqrt(p)")),
}  # fmt: skip

CRASHED = {
    "a padding that is an output": ("merge_consecutive_paddings", graph(
        "float[N,4] x", "float[N,6] p, float[N,8] y", "int64[4] a = {0, 1, 0, 1}",
        "p = Pad(x, a) y = Pad(p, a)")),
    "a stack that is an output": ("replace_stack_reshape", graph(
        "float[2,4] x, float[2,4] y", "float[2,2,4] s, float[4,4] z",
        "int64[1] axis = {1}, int64[2] shape = {4, 4}",
        "a = Unsqueeze(x, axis) b = Unsqueeze(y, axis) s = Concat<axis=1>(a, b) z = Reshape(s, shape)")),
    "an inner concat that is read elsewhere": ("concat_to_pixel_shuffle", graph(
        "float[1,2,3,3] a, float[1,2,3,3] b, float[1,2,3,3] c, float[1,2,3,3] d",
        "float[1,2,6,6] y, float[1,2,6,3] z",
        "int64[1] four = {4}, int64[1] three = {3}, int64[4] tall = {1,2,6,3}, int64[4] wide = {1,2,6,6}",
        "ua = Unsqueeze(a, three) ub = Unsqueeze(b, three) ab = Concat<axis=3>(ua, ub) rab = Reshape(ab, tall) "
        "uc = Unsqueeze(c, three) ud = Unsqueeze(d, three) cd = Concat<axis=3>(uc, ud) rcd = Reshape(cd, tall) "
        "ul = Unsqueeze(rab, four) ur = Unsqueeze(rcd, four) all = Concat<axis=4>(ul, ur) "
        "y = Reshape(all, wide) z = Neg(rab)")),
    "a reflected slice that is read elsewhere": ("use_reflection_padding", graph(
        "float[1,1,3,5] x", "float[1,1,3,7] y, float[1,1,3,1] z",
        "int64[1] one = {1}, int64[1] two = {2}, int64[1] end = {4}, int64[1] before = {3}, int64[1] axis = {3}",
        "l = Slice(x, one, two, axis) r = Slice(x, before, end, axis) y = Concat<axis=3>(l, x, r) z = Neg(l)")),
    "a row convolution three rows high": ("compose_conv1d", graph(
        "float[N,2,9] x", "float[N,4,7] y", f"int64[1] axis = {{2}}, {tensor('w', (4, 2, 3, 3))}",
        "u = Unsqueeze(x, axis) c = Conv<pads=[1,0,1,0]>(u, w) y = Squeeze(c, axis)")),
    "a grouped transposed conv and a scalar": ("fuse_conv_bias", conv_graph(
        "ConvTranspose<group=2>(x, w)", (2, 2, 3), 4, "y = Add(c, s)", constants="float s = {0.5}",
        shape="N,4,8")),
    "one channel and a wide bias": ("fuse_conv_bias", conv_graph(
        "Conv(x, w)", (1, 2, 3, 1), 1, "y = Add(c, s)", constants=tensor("s", (5, 1, 1)),
        shape="N,5,?,?")),
    "a scale behind a transposed 3-d conv": ("fuse_conv_scale", graph(
        "float[N,2,3,3,3] x", "float[N,4,5,5,5] y", f"{tensor('w', (2, 4, 3, 3, 3))}, float s = {{1.5}}",
        "c = ConvTranspose(x, w) y = Mul(c, s)")),
    "a shape that copies a dim": ("merge_consecutive_reshapes", graph(
        "float[N,4,6] x", "float[N,12,2] y", "int64[3] a = {0, 12, -1}, int64[3] b = {0, 0, 2}",
        "p = Reshape(x, a) y = Reshape(p, b)")),
}  # fmt: skip

CASES = {**WRONG, **CRASHED}


@pytest.mark.parametrize(("name", "before"), CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("alone", [True, False], ids=["alone", "default"])
def test_computes_the_same(name: str, before: str, alone: bool) -> None:
    source = text.parse(before, 23)
    model = source.clone()
    reports = optimize_model(model, pipeline=name if alone else "default")
    declared = joint_exactness(report.exactness for report in reports if report.changed)
    check_same_numbers(source, model, declared, modes=("normal",))
