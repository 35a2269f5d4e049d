"""Normalizations in the forms that exporters write, and similar graphs that stay."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from rewrites import (
    check_operators,
    check_rewrite,
    check_same_numbers,
    check_unchanged,
    run_pass,
)

from smelt import optimize
from smelt.ir import text
from smelt.passes.norms.fuse_layernorm_or_instancenorm import fuse_layernorm_or_instancenorm
from smelt.runtime.runner import open_runner

CONSTANTS = (
    "<int64[1] last = {-1}, float eps = {1e-5}, float two = {2}, float one = {1}, float n = {4}, "
    "float zero = {0}, float half = {-0.5}, float quarter = {0.25}, float[4] w = {1,2,3,4}, "
    "float[1,1,4] w3 = {1,2,3,4}, float[4] b = {4,3,2,1}, int64[3] keep = {-1,2,1}>"
)
G = "g (float[B,2,4] x) => (float[B,2,4] y)"
FUSED = "y = LayerNormalization<axis=2, epsilon=1e-5>(x, w, b)"
MEAN = "m = ReduceMean(x, last) d = Sub(x, m)"
SPELLINGS = {
    "PyTorch": f"{MEAN} q = Pow(d, two) v = ReduceMean(q, last) e = Add(v, eps) s = Sqrt(e) z = Div(d, s)",
    "a product for the square": f"{MEAN} q = Mul(d, d) v = ReduceMean(q, last) e = Add(eps, v) s = Sqrt(e) z = Div(d, s)",
    "Reciprocal": f"{MEAN} q = Mul(d, d) v = ReduceMean(q, last) e = Add(v, eps) s = Sqrt(e) r = Reciprocal(s) z = Mul(d, r)",
    "one over": f"{MEAN} q = Mul(d, d) v = ReduceMean(q, last) e = Add(v, eps) s = Sqrt(e) r = Div(one, s) z = Mul(r, d)",
    "Pow to minus a half": f"{MEAN} q = Mul(d, d) v = ReduceMean(q, last) e = Add(v, eps) r = Pow(e, half) z = Mul(d, r)",
    "a second difference": f"{MEAN} d2 = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, last) e = Add(v, eps) s = Sqrt(e) z = Div(d2, s)",
    "sums over n": (
        "t = ReduceSum(x, last) m = Div(t, n) d = Sub(x, m) q = Mul(d, d) u = ReduceSum(q, last) "
        "v = Mul(u, quarter) e = Add(v, eps) s = Sqrt(e) z = Div(d, s)"
    ),
    "flax": (
        "t = ReduceSum<keepdims=0>(x, last) m = Div(t, n) r1 = Reshape(m, keep) d = Sub(x, r1) q = Mul(x, x) "
        "u = ReduceSum<keepdims=0>(q, last) f = Div(u, n) g = Mul(m, m) h = Sub(f, g) v = Max(zero, h) "
        "r2 = Unsqueeze(v, last) e = Add(r2, eps) s = Sqrt(e) r = Reciprocal(s) z = Mul(d, r)"
    ),
}


@pytest.mark.parametrize("body", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_every_spelling_with_scale_and_bias(body: str) -> None:
    check_rewrite(
        fuse_layernorm_or_instancenorm,
        f"{G} {CONSTANTS} {{ {body} k = Mul(z, w) y = Add(k, b) }}",
        f"{G} {CONSTANTS} {{ {FUSED} }}",
        modes=("normal",),
    )


def test_a_scale_inside_the_product() -> None:
    body = SPELLINGS["Reciprocal"].replace("z = Mul(d, r)", "k = Mul(r, w3) z = Mul(d, k)")
    check_rewrite(
        fuse_layernorm_or_instancenorm,
        f"{G} {CONSTANTS} {{ {body} y = Add(z, b) }}",
        f"{G} {CONSTANTS} {{ {FUSED} }}",
        modes=("normal",),
    )


def test_without_scale_the_scale_is_ones() -> None:
    check_rewrite(
        fuse_layernorm_or_instancenorm,
        f"{G} {CONSTANTS} {{ {SPELLINGS['PyTorch']} y = Neg(z) }}",
        f"{G} <float[4] o = {{1,1,1,1}}> {{ z = LayerNormalization<axis=2, epsilon=1e-5>(x, o) y = Neg(z) }}",
        modes=("normal",),
    )


def test_rms_norm_from_opset_23() -> None:
    body = "q = Mul(x, x) v = ReduceMean(q, last) e = Add(v, eps) s = Sqrt(e) z = Div(x, s) y = Mul(z, w)"
    check_rewrite(
        fuse_layernorm_or_instancenorm,
        f"{G} {CONSTANTS} {{ {body} }}",
        f"{G} {CONSTANTS} {{ y = RMSNormalization<axis=2, epsilon=1e-5>(x, w) }}",
    )
    check_unchanged(fuse_layernorm_or_instancenorm, f"{G} {CONSTANTS} {{ {body} }}", opset=22)


def test_a_tiny_epsilon_survives() -> None:
    tiny = CONSTANTS.replace("1e-5", "1e-12")
    model = text.parse(f"{G} {tiny} {{ {SPELLINGS['PyTorch']} y = Neg(z) }}")
    run_pass(fuse_layernorm_or_instancenorm, model)
    [norm] = [node for node in model.graph if node.op_type == "LayerNormalization"]
    assert 0.9e-12 < norm.attributes["epsilon"].as_float() < 1.1e-12


KEPT = {
    "a mean over another axis": SPELLINGS["PyTorch"].replace("(x, last)", "(x, keep1)"),
    "a variance over another axis": SPELLINGS["PyTorch"].replace("(q, last)", "(q, keep1)"),
    "an epsilon for each element": SPELLINGS["PyTorch"].replace("Add(v, eps)", "Add(v, w)"),
    "an epsilon computed": SPELLINGS["PyTorch"].replace("s = Sqrt(e)", "s = Sqrt(v)"),
    "epsilon outside of the root": SPELLINGS["PyTorch"].replace(
        "e = Add(v, eps) s = Sqrt(e)", "e = Sqrt(v) s = Add(e, eps)"
    ),
    "the mean of another value": SPELLINGS["PyTorch"].replace(
        "m = ReduceMean(x", "o = Neg(x) m = ReduceMean(o"
    ),
    "mean minus x": SPELLINGS["PyTorch"].replace("z = Div(d, s)", "i = Sub(m, x) z = Div(i, s)"),
    "deviation over x": SPELLINGS["PyTorch"].replace("Div(d, s)", "Div(s, d)"),
    "an unbiased variance": SPELLINGS["sums over n"].replace("Mul(u, quarter)", "Div(u, two)"),
    "the variance of something else": SPELLINGS["PyTorch"].replace("Pow(d, two)", "Pow(x, two)"),
    "a cube": SPELLINGS["PyTorch"].replace("Pow(d, two)", "Pow(d, n)"),
    "a sum over another n": SPELLINGS["sums over n"].replace("Mul(u, quarter)", "Mul(u, two)"),
    "no root": SPELLINGS["PyTorch"].replace("Sqrt", "Exp"),
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_keeps(body: str) -> None:
    constants = CONSTANTS.replace(">", ", int64[1] keep1 = {1}>")
    # At opset 23, x - m over its own quadratic mean is an RMSNormalization of x - m.
    graph = f"{G} {constants} {{ {body} y = Neg(z) }}"
    check_unchanged(fuse_layernorm_or_instancenorm, graph, opset=22)


def test_keeps_a_deviation_that_is_an_output() -> None:
    check_unchanged(
        fuse_layernorm_or_instancenorm,
        f"g (float[B,2,4] x) => (float[B,2,4] y, float[B,2,1] s) {CONSTANTS} {{ {SPELLINGS['PyTorch']} y = Neg(z) }}",
    )


def test_keeps_below_opset_17() -> None:
    body = SPELLINGS["PyTorch"].replace("ReduceMean(x, last)", "ReduceMean<axes=[-1]>(x)")
    body = body.replace("ReduceMean(q, last)", "ReduceMean<axes=[-1]>(q)")
    check_unchanged(
        fuse_layernorm_or_instancenorm, f"{G} {CONSTANTS} {{ {body} y = Neg(z) }}", opset=16
    )


def test_keeps_a_deviation_that_stands_at_other_elements() -> None:
    # Without kept dims, row i is divided by the deviation of row j.
    body = SPELLINGS["PyTorch"].replace("v = ReduceMean(q", "v = ReduceMean<keepdims=0>(q")
    check_unchanged(
        fuse_layernorm_or_instancenorm,
        f"g (float[4,4] x) => (float[4,4] y) {CONSTANTS} {{ {body} y = Neg(z) }}",
    )


def test_keeps_means_that_an_expand_moved() -> None:
    body = (
        "m0 = ReduceMean<keepdims=0>(x, last) m1 = Expand(m0, four) m = Reshape(m1, full) d = Sub(x, m) "
        "q = Mul(d, d) v = ReduceMean(q, last) e = Add(v, eps) s = Sqrt(e) z = Div(d, s) y = Neg(z)"
    )
    more = CONSTANTS.replace(">", ", int64[3] four = {4,2,2}, int64[3] full = {2,2,4}>")
    check_unchanged(
        fuse_layernorm_or_instancenorm,
        f"g (float[2,2,4] x) => (float[2,2,4] y) {more} {{ {body} }}",
        opset=22,
    )


def test_keeps_an_epsilon_that_callers_may_override() -> None:
    constants = CONSTANTS.replace(", float eps = {1e-5}", "")
    check_unchanged(
        fuse_layernorm_or_instancenorm,
        f"g (float[B,2,4] x, float eps = {{1e-5}}) => (float[B,2,4] y) {constants} "
        f"{{ {SPELLINGS['PyTorch']} y = Neg(z) }}",
    )


def test_keeps_a_double_epsilon_that_float32_cannot_hold() -> None:
    body = SPELLINGS["a product for the square"]
    for number, count in (("1e-5", 8), ("0.0009765625", 2)):
        constants = f"<int64[1] last = {{-1}}, double eps = {{{number}}}>"
        model = text.parse(
            f"g (double[2,4] x) => (double[2,4] y) {constants} {{ {body} y = Neg(z) }}"
        )
        run_pass(fuse_layernorm_or_instancenorm, model)
        assert len(list(model.graph)) == count


VARIANCE = "q = Mul(d, d) v = ReduceMean(q, axes) e = Add(v, eps) s = Sqrt(e) r = Reciprocal(s)"
MULTIPLIED_OUT = {
    "TensorFlow": "i = Mul(r, w) a = Mul(x, i) c = Mul(m, i) k = Sub(b, c) y = Add(a, k)",
    "Keras": "i = Mul(w, r) a = Mul(x, i) o = Neg(m) c = Mul(o, i) k = Add(c, b) y = Add(a, k)",
    "swapped": "i = Mul(r, w) a = Mul(i, x) c = Mul(i, m) k = Sub(b, c) y = Add(k, a)",
    "negated product": "i = Mul(r, w) a = Mul(x, i) c = Mul(m, i) o = Neg(c) k = Add(b, o) y = Add(a, k)",
}


@pytest.mark.parametrize("end", MULTIPLIED_OUT.values(), ids=MULTIPLIED_OUT.keys())
def test_multiplied_out(end: str) -> None:
    check_rewrite(
        fuse_layernorm_or_instancenorm,
        f"{G} {CONSTANTS} {{ {MEAN} {VARIANCE.replace('axes', 'last')} {end} }}",
        f"{G} {CONSTANTS} {{ {FUSED} }}",
        modes=("normal",),
    )


@pytest.mark.parametrize(
    "end",
    [
        "i = Mul(r, w) a = Mul(x, i) c = Mul(x, i) k = Sub(b, c) y = Add(a, k)",
        "i = Mul(r, w) a = Mul(x, i) c = Mul(m, i) k = Sub(c, b) y = Add(a, k)",
        "i = Mul(r, w) a = Mul(x, i) c = Mul(m, i) k = Add(b, c) y = Add(a, k)",
        "i = Mul(r, w) a = Mul(x, i) c = Mul(m, r) k = Sub(b, c) y = Add(a, k)",
        "i = Mul(r, w) a = Mul(x, i) c = Mul(m, i) o = Neg(c) k = Sub(b, o) y = Add(a, k)",
    ],
)
def test_keeps_what_only_looks_multiplied_out(end: str) -> None:
    check_unchanged(
        fuse_layernorm_or_instancenorm,
        f"{G} {CONSTANTS} {{ {MEAN} {VARIANCE.replace('axes', 'last')} {end} }}",
    )


IMAGE = (
    "<float eps = {1e-5}, int64[2] axes = {2,3}, int64[2] hw = {1,2}, int64[1] channel = {1}, "
    "float[3,1,1] k = {1,2,3}, float[1,3,1,1] c = {3,2,1}, float[3] f = {1,2,3}, float[3] e3 = {3,2,1}>"
)
INSTANCE = f"m = ReduceMean(x, axes) d = Sub(x, m) {VARIANCE} z = Mul(d, r)"
SHAPE, LAST = "float[B,3,4,5]", "float[B,4,5,3]"
LAYOUTS = {
    "channels first": (SHAPE, f"{INSTANCE} a = Mul(z, k) y = Add(a, c)", ["InstanceNormalization"]),
    "without scale": (SHAPE, f"{INSTANCE} y = Neg(z)", ["InstanceNormalization", "Neg"]),
    "channels last": (
        LAST,
        f"{INSTANCE.replace('axes', 'hw')} a = Mul(z, f) y = Add(e3, a)",
        ["Transpose", "InstanceNormalization", "Transpose"],
    ),
    "scale of the image": (
        "float[B,2,3,1]",
        f"{INSTANCE} y = Mul(z, k) ".replace("k", "k3"),
        ["LayerNormalization"],
    ),
}


@pytest.mark.parametrize(("shape", "body", "operators"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_images(shape: str, body: str, operators: list[str]) -> None:
    constants = IMAGE.replace(">", ", float[3,1] k3 = {1,2,3}>")
    check_operators(
        fuse_layernorm_or_instancenorm,
        f"g ({shape} x) => ({shape} y) {constants} {{ {body} }}",
        operators,
        modes=("normal",),
    )


@pytest.mark.parametrize("channels", [63, 64])
def test_over_channels_unless_they_are_few(channels: int) -> None:
    """For few channels, two Transposes cost ONNX Runtime more than one operator saves."""
    shape = f"float[B,{channels},2,3]"
    numbers = ",".join(str(1 + place % 3) for place in range(channels))
    constants = (
        f"float[{channels},1,1] k = {{{numbers}}}, float[1,{channels},1,1] c = {{{numbers}}}>"
    )
    body = f"{INSTANCE.replace('axes', 'channel')} a = Mul(k, z) y = Add(a, c)"
    source = f"g ({shape} x) => ({shape} y) {IMAGE[: IMAGE.index(', float[3,1,1]')]}, {constants} {{ {body} }}"
    if channels == 64:
        made = ["Transpose", "LayerNormalization", "Transpose"]
        check_operators(fuse_layernorm_or_instancenorm, source, made, modes=("normal",))
    else:
        check_unchanged(fuse_layernorm_or_instancenorm, source)


def test_a_sequence_with_a_scale_per_channel_is_an_instance_norm() -> None:
    constants = (
        "<float eps = {1e-5}, int64[1] axes = {2}, float[2,1] k = {1,2}, float[2,1] c = {2,1}>"
    )
    check_operators(
        fuse_layernorm_or_instancenorm,
        f"g (float[B,2,4] x) => (float[B,2,4] y) {constants} {{ {INSTANCE} a = Mul(z, k) y = Add(a, c) }}",
        ["InstanceNormalization"],
        modes=("normal",),
    )


def test_a_sequence_of_open_channels_is_no_instance_norm() -> None:
    check_operators(
        fuse_layernorm_or_instancenorm,
        "g (float[B,C,4] x, float[C,1] k) => (float[B,C,4] y) "
        f"<float eps = {{1e-5}}, int64[1] axes = {{2}}> {{ {INSTANCE} y = Mul(z, k) }}",
        ["LayerNormalization", "Mul"],
        modes=("normal",),
    )


def test_groups_of_flax() -> None:
    constants = (
        "<float eps = {1e-5}, float zero = {0}, int64[5] split = {-1,3,3,2,2}, int64[3] axes = {1,2,4}, "
        "int64[1] two = {2}, int64[3] wide = {1,1,2}, int64[4] meet = {0,1,1,4}, float n = {18}, "
        "float[4] k = {1,2,3,4}, float[4] c = {4,3,2,1}>"
    )
    body = """
        g = Reshape(x, split) t = ReduceSum<keepdims=0>(g, axes) m = Div(t, n)
        m1 = Unsqueeze(m, two) m2 = Expand(m1, wide) m3 = Reshape(m2, meet) d = Sub(x, m3)
        q = Mul(g, g) u = ReduceSum<keepdims=0>(q, axes) h = Div(u, n) p = Mul(m, m) j = Sub(h, p)
        v = Relu(j) v1 = Unsqueeze(v, two) v2 = Expand(v1, wide) v3 = Reshape(v2, meet)
        e = Add(v3, eps) s = Sqrt(e) r = Reciprocal(s) i = Mul(r, k) z = Mul(d, i) y = Add(z, c)
    """
    for right in (True, False):
        # Taken the other way round, the means are tiled instead of repeated.
        wrong = body.replace("m1 = Unsqueeze(m, two)", "m1 = Unsqueeze(m, one)").replace(
            "m2 = Expand(m1, wide)", "m2 = Expand(m1, tall)"
        )
        more = constants.replace(">", ", int64[1] one = {1}, int64[3] tall = {1,2,1}>")
        graph = (
            f"g (float[B,3,3,4] x) => (float[B,3,3,4] y) {more} {{ {body if right else wrong} }}"
        )
        if right:
            check_operators(
                fuse_layernorm_or_instancenorm,
                graph,
                [
                    "Transpose",
                    "Reshape",
                    "InstanceNormalization",
                    "Reshape",
                    *("Transpose", "Mul", "Add"),
                ],
                modes=("normal",),
            )
        else:
            check_unchanged(fuse_layernorm_or_instancenorm, graph)


HALF = (
    "<int64[1] last = {-1}, float eps = {1e-5}, float[4] w = {1,2,3,4}> "
    "{ x = Cast<to=1>(h) m = ReduceMean(x, last) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, last) "
    "e = Add(v, eps) s = Sqrt(e) z = Div(d, s) "
)


@pytest.mark.parametrize(
    ("end", "operators"),
    [
        (
            "c = Cast<to=10>(z) w16 = Cast<to=10>(w) y = Mul(c, w16) }",
            ["Cast", "LayerNormalization"],
        ),
        ("k = Mul(z, w) y = Cast<to=10>(k) }", ["Cast", "LayerNormalization", "Cast"]),
    ],
    ids=["scale in float16", "scale in float32"],
)
def test_float16_between_casts(end: str, operators: list[str]) -> None:
    check_operators(
        fuse_layernorm_or_instancenorm,
        f"g (float16[B,4] h) => (float16[B,4] y) {HALF} {end}",
        operators,
        modes=("normal",),
    )


def test_a_dynamic_scale_and_bias() -> None:
    check_rewrite(
        fuse_layernorm_or_instancenorm,
        f"g (float[B,2,4] x, float[4] w, float[1,1,4] b) => (float[B,2,4] y) "
        f"{CONSTANTS.replace('float[4] w = {1,2,3,4}, ', '').replace('float[4] b = {4,3,2,1}, ', '')} "
        f"{{ {SPELLINGS['PyTorch']} k = Mul(z, w) y = Add(k, b) }}",
        "g (float[B,2,4] x, float[4] w, float[1,1,4] b) => (float[B,2,4] y) "
        "<int64[1] flat = {-1}> { c = Reshape(b, flat) y = LayerNormalization<axis=2, epsilon=1e-5>(x, w, c) }",
        modes=("normal",),
    )


def test_a_residual_is_no_bias() -> None:
    check_operators(
        fuse_layernorm_or_instancenorm,
        f"{G} {CONSTANTS} {{ {SPELLINGS['PyTorch']} k = Mul(z, w) y = Add(k, x) }}",
        ["LayerNormalization", "Add"],
        modes=("normal",),
    )


def test_in_a_branch() -> None:
    graph = f"""g (bool c, float[2,4] x) => (float[2,4] o) {CONSTANTS} {{
        o = If (c) <then_branch = t () => (float[2,4] y) {{ {SPELLINGS["PyTorch"]} y = Mul(z, w) }},
                    else_branch = f () => (float[2,4] f) {{ f = Neg(x) }}> }}"""
    model = check_operators(fuse_layernorm_or_instancenorm, graph, ["If"], modes=("normal",))
    branch = next(iter(model.graph)).attributes["then_branch"].as_graph()
    assert [node.op_type for node in branch] == ["LayerNormalization"]


def moved_norm(perm: str) -> ir.Model:
    """Return a norm over the channels of u whose mean is of u and whose other parts are of u
    transposed."""
    body = (
        "m = ReduceMean<keepdims=0>(u, one) k = Unsqueeze(m, at) "
        f"x = Transpose<perm=[{perm}]>(u) d = Sub(x, k) q = Mul(d, d) "
        "v = ReduceMean<keepdims=1>(q, at) w = Add(v, e) s = Sqrt(w) y = Div(d, s)"
    )
    constants = "<int64[1] one = {1}, int64[1] at = {3}, float e = {0.00001}>"
    return text.parse(f"g (float[B,4,6,6] u) => (float[B,6,6,4] y) {constants} {{ {body} }}", 23)


@pytest.mark.parametrize(
    ("perm", "operators"),
    [
        ("0,2,3,1", ["Transpose", "LayerNormalization"]),
        # Over rows and columns in the other order, the mean of one place meets another place.
        ("0,3,2,1", ["ReduceMean", "Unsqueeze", "Transpose", "Sub", "RMSNormalization"]),
    ],
)
def test_the_mean_may_be_taken_before_a_transpose(perm: str, operators: list[str]) -> None:
    model = moved_norm(perm)
    run_pass(fuse_layernorm_or_instancenorm, model)
    assert [node.op_type for node in model.graph] == operators
    check_same_numbers(
        moved_norm(perm), model, fuse_layernorm_or_instancenorm.exactness, None, ("normal",)
    )


def test_a_deviation_from_means_over_other_axes_may_be_read_elsewhere() -> None:
    """It is an RMS normalization; the centring over other axes stays outside."""
    body = (
        "m = ReduceMean(x, rows) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, last) "
        "e = Add(v, eps) s = Sqrt(e) y = Div(d, s) z = Neg(d)"
    )
    model = check_operators(
        fuse_layernorm_or_instancenorm,
        "g (float[B,2,4] x) => (float[B,2,4] y, float[B,2,4] z) <int64[1] last = {-1}, "
        f"int64[1] rows = {{1}}, float eps = {{1e-5}}> {{ {body} }}",
        ["ReduceMean", "Sub", "RMSNormalization", "Neg"],
        modes=("normal",),
    )
    norm = next(node for node in model.graph if node.op_type == "RMSNormalization")
    assert norm.inputs[0] is not None
    assert norm.inputs[0].name == "d"


def test_a_factor_that_only_looks_like_an_inverse_may_be_read_elsewhere() -> None:
    body = f"{SPELLINGS['PyTorch']} c = Add(a, eps) t = Sqrt(c) r = Reciprocal(t) k = Mul(i, r) y = Mul(d, k)"
    body = body.replace("z = Div(d, s)", "i = Reciprocal(s)")
    check_operators(
        fuse_layernorm_or_instancenorm,
        f"g (float[B,2,4] x, float[4] a) => (float[B,2,4] y, float[4] r) {CONSTANTS} {{ {body} }}",
        ["Add", "Sqrt", "Reciprocal", "LayerNormalization"],
        modes=("normal",),
    )


DOUBLE = (
    "g (float16[B,4] x) => ({} y) <int64[1] last = {{-1}}, double two = {{2}}, double eps = {{1e-5}}> "
    "{{ m = ReduceMean(x, last) d = Sub(x, m) w = Cast<to=11>(d) q = Pow(w, two) "
    "v = ReduceMean(q, last) e = Add(v, eps) s = Sqrt(e) z = Div(w, s) y = Cast<to={}>(z) }}"
)


def test_half_floats_whose_variance_is_in_doubles() -> None:
    """TorchScript writes a LayerNorm of float16 below opset 17 in this way."""
    source = DOUBLE.format("float16[B,4]", 10)
    model = optimize(text.parse(source, 18))
    assert [node.op_type for node in model.graph] == ["LayerNormalization"]
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float16)
    x[1], x[2, 0], x[3] = 3, np.nan, 60000
    found, expected = (open_runner(m)(x)[0] for m in (model, text.parse(source, 18)))
    np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=0, atol=4e-3)


def test_keeps_doubles_that_are_read_as_such() -> None:
    check_unchanged(fuse_layernorm_or_instancenorm, DOUBLE.format("float[B,4]", 1), opset=18)
