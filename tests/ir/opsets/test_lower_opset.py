"""Models of a later opset compute the same at an earlier one, or are refused with every reason."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from backend_cases import Case, differences, node_cases, reference
from onnx.reference import ReferenceEvaluator
from sampling import is_tried

import smelt
from smelt.compiler import optimize_model
from smelt.errors import ErrorList, InvalidModel, Unsupported
from smelt.frontends.onnx import load
from smelt.ir import opset, text
from smelt.ir.opsets.lower_opset import lower_opset, misfit, way_down
from smelt.runtime.runner import open_runner

X = "g (float[2,3,4] x) => (float[A,B,C] y)"
AXES = "<int64[1] a = {1}, int64[2] p = {0,1}, int64[2] q = {1,2}, float[1] s = {2.0}>"
OF_HALVES = "g (float16[2,3] x) => (float16[A,B] y)"
OF_BYTES = "g (int8[6] x) => (int8[N] y)"

CASES = {
    "axes": (18, 17, f"{X} {AXES} {{ y = ReduceMean(x, a) }}"),
    "no axes": (18, 17, f"{X} {{ y = ReduceMax(x) }}"),
    "axes of a body": (18, 17, f"{X} {AXES} {{ y = ReduceL2(x, a) }}"),
    "parts of unlike sizes": (
        18,
        17,
        "g (float[7,N] x) => (float[A,B] y, float[C,B] z, float[D,B] u) "
        "{ y, z, u = Split<num_outputs=3>(x) }",
    ),
    "parts of an open axis": (
        18,
        13,
        "g (float[2,N] x) => (float[A,B] y, float[A,C] z) { y, z = Split<axis=1,num_outputs=2>(x) }",
    ),
    "parts of like sizes": (
        18,
        17,
        "g (float[6] x) => (float[A] y, float[B] z) { y, z = Split<num_outputs=2>(x) }",
    ),
    "pads of an axis": (18, 17, f"{X} {AXES} {{ y = Pad(x, p, , a) }}"),
    "pads of an axis from the end": (
        23,
        13,
        f'{X} <int64[1] a = {{-1}}, int64[2] p = {{2,1}}> {{ y = Pad<mode="edge">(x, p, , a) }}',
    ),
    "scales of an axis": (18, 17, f"{X} {AXES} {{ y = Resize<axes=[-2]>(x, , s) }}"),
    "a region of axes": (
        18,
        13,
        f"{X} <float[4] r = {{0.1,0.2,0.7,0.9}}, int64[2] q = {{4,2}}> {{ y = Resize<axes=[1,2],"
        'coordinate_transformation_mode="tf_crop_and_resize">(x, r, , q) }',
    ),
    "sizes of axes": (19, 13, f"{X} {AXES} {{ y = Resize<axes=[1,2]>(x, , , q) }}"),
    "a part of a shape": (
        15,
        13,
        "g (float[N,3,4] x) => (int64[2] y) { y = Shape<start=-3,end=2>(x) }",
    ),
    "a triangle": (14, 13, f"{X} {{ y = Trilu(x) }}"),
    "a triangle of integers": (
        20,
        13,
        "g (int64[3,N] x, int64 k) => (int64[A,B] y) { y = Trilu<upper=0>(x, k) }",
    ),
    "small integers that wrap": (14, 13, f"{OF_BYTES} {{ s = Mul(x, x) y = Sub(s, x) }}"),
    "positive integers": (14, 13, f"{OF_BYTES} {{ y = Relu(x) }}"),
    "half sums": (14, 13, f"{OF_HALVES} <int64 a = {{1}}> {{ y = CumSum(x, a) }}"),
    "truths": (
        20,
        18,
        "g (float[2,3] x) => (bool[A,B] y) <int64[1] a = {1}> "
        "{ t = Less(x, x) u = Not(t) y = ReduceMin(u, a) }",
    ),
    "norms": (
        23,
        16,
        f"{X} <float[4] s = {{1,2,3,4}}> "
        "{ n = RMSNormalization(x, s) y = LayerNormalization(n, s, s) }",
    ),
    "groups": (
        21,
        17,
        "g (float[2,4,5] x, float[4] s) => (float[A,B,C] y) "
        "{ y = GroupNormalization<num_groups=2>(x, s, s) }",
    ),
    "activations": (22, 13, f"{X} {{ a = Gelu(x) b = Mish(a) c = HardSwish(b) y = Elu(c) }}"),
    "a type": (19, 14, f"{OF_HALVES} {{ f = Cast<to=1>(x) g = Exp(f) y = CastLike(g, x) }}"),
    "attention": (
        24,
        17,
        "g (float[1,2,3,4] q, float[1,2,5,4] k, float[3,5] m) => (float[A,B,C,D] y) "
        "{ y = Attention(q, k, k, m) }",
    ),
    "attention with shared heads": (
        23,
        18,
        "g (float[1,3,8] q, float[1,3,4] k) => (float[A,B,C] y) "
        "{ y = Attention<q_num_heads=4,kv_num_heads=2,is_causal=1>(q, k, k) }",
    ),
    "angles": (
        23,
        17,
        "g (float[1,2,3,4] x, float[5,2] c) => (float[A,B,C,D] y) <int64[1,3] p = {0,3,4}> "
        "{ y = RotaryEmbedding(x, c, c, p) }",
    ),
    "a transform": (20, 17, "g (float[2,6,1] x) => (float[A,B,C] y) { y = DFT(x) }"),
    "places in an image": (
        20,
        16,
        "g (float[1,1,3,3] x, float[1,2,2,2] p) => (float[A,B,C,D] y) "
        '{ y = GridSample<mode="cubic">(x, p) }',
    ),
    "a batch in front": (
        14,
        13,
        "g (float[2,5,3] x, float[1,4,3] w, float[1,4,4] r) => (float[A,B,C,D] y, float[A,C,D] h) "
        "{ y, h = RNN<hidden_size=4,layout=1>(x, w, r) }",
    ),
    "weights of 4 bits in blocks": (
        21,
        17,
        "g (float[N,4] x) => (float[N,2] y) "
        "<int4[4,2] w = {225,195,165,135}, float[2,2] s = {1,2,3,0.5}> "
        "{ d = DequantizeLinear<axis=0,block_size=2>(w, s) y = MatMul(x, d) }",
    ),
    "16 bits": (
        21,
        13,
        f"{X} <float s = {{0.01}}, uint16 z = {{300}}> "
        "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }",
    ),
    "8 bits of an axis": (
        21,
        13,
        f"{X} <float[3] s = {{0.1,0.2,0.3}}> "
        "{ q = QuantizeLinear<axis=1,output_dtype=3>(x, s) y = DequantizeLinear<axis=1>(q, s) }",
    ),
    "sizes that copy": (
        15,
        13,
        "g (float[N,6] x) => (float[N,2,3] y) <int64[2] k = {2,3}> { n = Shape<start=0,end=1>(x) "
        "s = Concat<axis=0>(n, k) y = Reshape<allowzero=1>(x, s) }",
    ),
    "a graph of a node": (
        18,
        17,
        f"{X} {AXES} {{ t = Constant<value_int=1>() c = Cast<to=9>(t) y = If(c) <"
        "then_branch = a () => (u) { u = ReduceSumSquare(x, a) }, "
        "else_branch = b () => (v) { v = ReduceProd(x, a) }> }",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_the_same_at_the_earlier_opset(name: str) -> None:
    start, to, graph = CASES[name]
    source = ir.to_proto(text.parse(graph, start))
    model = load(source, keep_opset=True)
    optimize_model(model, pipeline="", opset=to, for_runtime=False)
    low = smelt.to_proto(model)
    onnx.checker.check_model(low, full_check=True)
    assert [each.version for each in low.opset_import if not each.domain] == [to]
    assert low.ir_version == onnx.helper.OP_SET_ID_VERSION_MAP["ai.onnx", to]
    given = _arrays(source)
    if name == "a batch in front":  # ONNX Runtime has no kernel for it
        names = [value.name for value in source.graph.input]
        expected = tuple(ReferenceEvaluator(source).run(None, dict(zip(names, given, strict=True))))
    else:
        expected = open_runner(source, "onnxruntime")(*given)
    assert not differences(expected, open_runner(low, "onnxruntime")(*given), 1e-4)


def _arrays(source: onnx.ModelProto) -> list[np.ndarray]:
    """Inputs of ``source``, with 4 for each open size."""
    rng, found = np.random.default_rng(0), []
    for value in source.graph.input:
        kind = value.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        shape = [d.dim_value or 4 for d in kind.shape.dim]
        number = rng.integers(-9, 9, shape) if dtype.kind == "i" else rng.normal(size=shape)
        found.append(np.asarray(number).astype(dtype))
    return found


REFUSED = {
    "axes that are computed": (
        18,
        17,
        "g (float[2,3] x, int64[1] a) => (float[A,B] y) { y = ReduceMean(x, a) }",
        ["its axes are not constant"],
    ),
    "a mode": (
        19,
        18,
        f'{X} <int64[6] p = {{0,0,0,0,1,1}}> {{ y = Pad<mode="wrap">(x, p) }}',
        ["mode=wrap begins with a later opset"],
    ),
    "an attribute": (
        19,
        18,
        "g (float[1,1,9] x) => (float[A,B,C] y) "
        "{ y = AveragePool<kernel_shape=[2],dilations=[2]>(x) }",
        ["the attribute 'dilations' begins with opset 19"],
    ),
    "all of them together": (
        20,
        17,
        "g (string[2] x, int64[2] n) => (bool[A] y, string[A] z, int64[A] m) "
        "{ y = Equal(x, x) z = StringConcat(x, x) m = BitwiseAnd(n, n) }",
        [
            "Equal does not accept tensor(string) at this opset",
            "StringConcat begins with opset 20",
            "BitwiseAnd begins with opset 18",
        ],
    ),
    "an operator of a body": (
        23,
        18,
        "g (float[4] x, float8e4m3fn[1] t) => (float8e4m3fn[A] y) { y = CastLike(x, t) }",
        ["its function body has operators without a form: Cast does not accept"],
    ),
    "blocks before two open sizes": (
        21,
        17,
        "g (int8[4,N,M] x, float[2,N,M] s) => (float[A,B,C] y) "
        "{ y = DequantizeLinear<axis=0,block_size=2>(x, s) }",
        ["its axis, its rank or the sizes of its blocks are not known"],
    ),
    "a size of 0": (
        14,
        13,
        "g (float[N] x, int64[2] s) => (float y) "
        "{ r = Reshape<allowzero=1>(x, s) y = ReduceSum<keepdims=0>(r) }",
        ["allowzero with sizes that may be 0"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_says_why_and_leaves_the_model_unchanged(name: str) -> None:
    start, to, graph, reasons = REFUSED[name]
    model = text.parse(graph, start)
    before = ir.to_proto(model).SerializeToString()
    with pytest.raises(ErrorList) as caught:
        lower_opset(model, to)
    whys = sorted(error.why for error in caught.value.errors)
    assert all(why.startswith(reason) for why, reason in zip(whys, sorted(reasons), strict=True))
    assert {error.code for error in caught.value.errors} == {"E231"}
    assert ir.to_proto(model).SerializeToString() == before


def test_opset_12_is_not_reached() -> None:
    with pytest.raises(Unsupported, match="lowest opset that passes read is 13"):
        lower_opset(text.parse(f"{X} {{ y = Neg(x) }}", 17), 12)


def test_functions_are_lowered_on_loading() -> None:
    source = ir.from_onnx_text("""
        <ir_version: 10, opset_import: ["" : 18, "own" : 1]>
        g (float[2,3] x) => (float[A,B] y) { y = own.mean(x) }
        <domain: "own", opset_import: ["" : 18]>
        mean (a) => (b) { n = Constant<value_ints=[1]>() b = ReduceMean(a, n) }
    """)
    for inline in (True, False):
        model = load(ir.to_proto(source), opset=17, inline=inline)
        assert model.opset_imports[""] == 17
        assert all(f.opset_imports[""] == 17 for f in model.functions.values())
        onnx.checker.check_model(ir.to_proto(model), full_check=True)


NO_FORM = {
    *("BitCast", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Col2Im", "CumProd"),
    *("DFT", "DeformConv", "GridSample", "ImageDecoder", "MelWeightMatrix", "Optional"),
    *("OptionalGetElement", "OptionalHasElement", "RegexFullMatch", "STFT", "StringConcat"),
    *("StringSplit", "TensorScatter"),
}
"""Operators that nodes of an opset before their first cannot express, so far."""


def test_each_operator_that_changed_has_a_way_or_is_listed() -> None:
    changes = [(name, v) for name in opset.operators() for v in opset.versions(name) if v > 13]
    refused = {
        name
        for name, version in changes
        if not opset.is_deprecated(name, version) and way_down(name, version) == "refused"
    }
    assert refused == NO_FORM
    first = {(name, opset.versions(name)[0]) for name in NO_FORM}
    assert all(way_down(name, v) != "refused" for name, v in changes if (name, v) not in first)


def test_a_default_of_a_later_opset_is_dropped_and_a_changed_one_is_written() -> None:
    graph = "g (float[1,1,4,4] x, float[1,4] r, int64[1] i) => (y) "
    pool = '{ y = RoiAlign<coordinate_transformation_mode="output_half_pixel">(x, r, i) }'
    [node] = text.parse(graph + pool, 16).graph
    assert "begins with opset 16" in misfit(node, 16)
    [node] = text.parse(f"{X} {{ y = Cast<to=1,saturate=1>(x) }}", 19).graph
    assert not misfit(node, 19)
    assert "saturate" not in node.attributes
    [node] = text.parse(
        "g (float[1,1,4,4] x, float[1,2,2,2] w) => (y) { y = GridSample(x, w) }", 20
    ).graph
    assert not misfit(node, 20)
    assert node.attributes["mode"].as_string() == "linear"


def test_a_split_that_cannot_run_may_stand_in_a_branch_that_never_runs() -> None:
    graph = """g (int64[5] n, bool c) => (int64[1] y) {
        y = If<then_branch = t () => (int64[1] p) { p, q, r, u = Split<num_outputs=4>(n) },
        else_branch = e () => (int64[1] k) <int64[1] i = {1}> { k = Gather(n, i) }>(c) }"""
    model = text.parse(graph, 18)
    optimize_model(model, pipeline="", opset=17)
    inputs = np.arange(5), np.array(False)
    assert open_runner(model, "onnxruntime")(*inputs)[0].tolist() == [1]
    with pytest.raises(InvalidModel):
        open_runner(model, "onnxruntime")(np.arange(5), np.array(True))


TRIED = [
    pytest.param(case, to, id=f"{case.name}-{to}")
    for case in node_cases()
    for to in (17, 13)
    if case.model.opset_import[0].version > to and is_tried(f"{case.name}-{to}", 40)
]
"""The node cases of ONNX at two earlier opsets; CI tries some, a run with slow tests all."""


@pytest.mark.parametrize(("case", "to"), TRIED)
def test_node_cases_of_onnx_are_the_same_or_refused(case: Case, to: int) -> None:
    model = load(case.model, keep_opset=True)
    with suppress(ErrorList):
        optimize_model(model, pipeline="", opset=to)
    if model.opset_imports[""] > to:
        return
    low = smelt.to_proto(model)
    onnx.checker.check_model(low)
    expected = reference(case)
    if expected is not None and case.name not in OTHER_FLOORS:
        assert not differences(expected, case.run(low), 1e-3)


OTHER_FLOORS = {
    f"test_attention_4d_with_past_and_present_qk_matmul_bias_{rank}_mask_causal"
    for rank in ("3d", "4d")
}
"""Cases that return masked scores: ONNX gives -inf, as the body does, ONNX Runtime the lowest
number."""
