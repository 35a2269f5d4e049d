"""Operators of ONNX Runtime: its kernels, our references, our bodies and our shapes say the same."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

import smelt
from smelt import operators
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.onnxruntime.microsoft import OPERATORS
from smelt.operators.onnxruntime.microsoft.declared import DOMAIN
from smelt.runtime.inputs import random_inputs
from smelt.runtime.onnxruntime import OnnxRuntime

M = DOMAIN
ATTEND = f"{M}.MultiHeadAttention<num_heads=2"
CASES = {
    "Gelu": f"(float[2,3,8] x) => (float[2,3,8] y) {{ y = {M}.Gelu(x) }}",
    "BiasGelu": f"(float[2,3,8] x, float[8] b) => (float[2,3,8] y) {{ y = {M}.BiasGelu(x, b) }}",
    "FastGelu": f"(float[2,3,8] x) => (float[2,3,8] y) {{ y = {M}.FastGelu(x) }}",
    "FastGelu with a bias": f"(float[3,8] x, float[8] b) => (float[3,8] y) {{ y = {M}.FastGelu(x, b) }}",
    "QuickGelu": f"(float[2,8] x) => (float[2,8] y) {{ y = {M}.QuickGelu(x) }}",
    "QuickGelu alpha": f"(float[2,8] x) => (float[2,8] y) {{ y = {M}.QuickGelu<alpha=1.0>(x) }}",
    "FusedMatMul": f"(float[4,2,3] a, float[4,3,5] b) => (float[4,2,5] y) {{ y = {M}.FusedMatMul(a, b) }}",
    "FusedMatMul alpha": f"(float[2,3] a, float[3,5] b) => (float[2,5] y) {{ y = {M}.FusedMatMul<alpha=0.5>(a, b) }}",
    "FusedMatMul transA": f"(float[4,3,2] a, float[3,5] b) => (float[4,2,5] y) {{ y = {M}.FusedMatMul<transA=1>(a, b) }}",
    "FusedMatMul transB": f"(float[4,1,2,3] a, float[6,5,3] b) => (float[4,6,2,5] y) {{ y = {M}.FusedMatMul<transB=1>(a, b) }}",
    "FusedMatMul batches": f"(float[2,4,6,3] a, float[4,6,3,5] b) => (float[4,6,2,5] y) {{ y = {M}.FusedMatMul<transBatchA=1>(a, b) }}",
    "FusedMatMul of a vector": f"(float[3] a, float[4,3,5] b) => (float[4,5] y) {{ y = {M}.FusedMatMul(a, b) }}",
    "FusedMatMul by a vector": f"(float[4,2,3] a, float[3] b) => (float[4,2] y) {{ y = {M}.FusedMatMul(a, b) }}",
    "FusedMatMul of vectors": f"(float[3] a, float[3] b) => (float y) {{ y = {M}.FusedMatMul<alpha=2.0>(a, b) }}",
    "FusedMatMul of no rows": f"(float[4,0,3] a, float[4,3,5] b) => (float[4,0,5] y) {{ y = {M}.FusedMatMul(a, b) }}",
    "SkipLayerNormalization": f"(float[2,3,8] x, float[2,3,8] s, float[8] g, float[8] b) => (float[2,3,8] y) {{ y = {M}.SkipLayerNormalization<epsilon=1e-5>(x, s, g, b) }}",
    "SkipLayerNormalization with all": f"(float[2,3,8] x, float[2,3,8] s, float[8] g, float[8] b, float[8] c) => (float[2,3,8] y, float[2,3,8] t) {{ y, m, v, t = {M}.SkipLayerNormalization(x, s, g, b, c) }}",
    "SkipSimplifiedLayerNormalization": f"(float[2,3,8] x, float[2,3,8] s, float[8] g) => (float[2,3,8] y, float[2,3,8] t) {{ y, m, v, t = {M}.SkipSimplifiedLayerNormalization(x, s, g) }}",
    "RotaryEmbedding": f"(float[2,4,3,8] x, int64[2,3] p, float[9,4] c, float[9,4] s) => (float[2,4,3,8] y) {{ y = {M}.RotaryEmbedding(x, p, c, s) }}",
    "RotaryEmbedding from one position": f"(float[2,4,3,8] x, int64[1] f, float[9,4] c, float[9,4] s) => (float[2,4,3,8] y) {{ y = {M}.RotaryEmbedding(x, f, c, s) }}",
    "RotaryEmbedding of heads that the table tells": f"(float[2,3,16] x, int64[2,3] p, float[9,4] c, float[9,4] s) => (float[2,3,16] y) {{ y = {M}.RotaryEmbedding(x, p, c, s) }}",
    "RotaryEmbedding pairs": f"(float[2,3,16] x, int64[2,3] p, float[9,4] c, float[9,4] s) => (float[2,3,16] y) {{ y = {M}.RotaryEmbedding<interleaved=1, num_heads=2>(x, p, c, s) }}",
    "MultiHeadAttention": f"(float[2,3,8] q, float[2,5,8] k, float[2,5,8] v) => (float[2,3,8] y) {{ y = {ATTEND}>(q, k, v) }}",
    "MultiHeadAttention scaled": f"(float[2,3,8] q, float[2,5,8] k, float[2,5,12] v, float[2,1,3,5] b) => (float[2,3,12] y) {{ y = {ATTEND}, scale=0.1>(q, k, v, , , b) }}",
    "MultiHeadAttention masked": f"(float[2,3,8] q, float[2,5,8] k, float[2,5,8] v, int32[2,5] m) => (float[2,3,8] y) {{ y = {ATTEND}>(q, k, v, , m) }}",
    "MultiHeadAttention biased": f"(float[2,3,8] q, float[2,5,8] k, float[2,5,8] v, float[24] b) => (float[2,3,8] y) {{ y = {ATTEND}>(q, k, v, b) }}",
    "MultiHeadAttention causal": f"(float[2,5,8] q, float[2,5,8] k, float[2,5,8] v) => (float[2,5,8] y) {{ y = {ATTEND}, unidirectional=1>(q, k, v) }}",
    "MultiHeadAttention with a past": f"(float[2,1,8] q, float[2,1,8] k, float[2,1,8] v, float[2,2,4,4] p, float[2,2,4,4] r) => (float[2,1,8] y, float[2,2,5,4] n, float[2,2,5,4] w) {{ y, n, w = {ATTEND}>(q, k, v, , , , p, r) }}",
    "MatMulNBits": f"(float[3,32] a, uint8[5,2,8] w, float[10] s) => (float[3,5] y) {{ y = {M}.MatMulNBits<K=32, N=5, bits=4, block_size=16>(a, w, s) }}",
    "MatMulNBits with zeros": f"(float[2,3,40] a, uint8[5,3,8] w, float[15] s, uint8[5,2] z) => (float[2,3,5] y) {{ y = {M}.MatMulNBits<K=40, N=5, bits=4, block_size=16>(a, w, s, z) }}",
    "MatMulNBits of bytes": f"(float[3,32] a, uint8[5,2,16] w, float[10] s, uint8[10] z) => (float[3,5] y) {{ y = {M}.MatMulNBits<K=32, N=5, bits=8, block_size=16>(a, w, s, z) }}",
    "GatherBlockQuantized": f"(uint8[5,16] w, int64[2,2] i, float[5,2] s) => (float[2,2,32] y) {{ y = {M}.GatherBlockQuantized<bits=4, block_size=16, quantize_axis=1>(w, i, s) }}",
    "GatherBlockQuantized with zeros": f"(uint8[5,16] w, int64[2,2] i, float[5,2] s, uint8[5,1] z) => (float[2,2,32] y) {{ y = {M}.GatherBlockQuantized<bits=4, block_size=16, quantize_axis=1>(w, i, s, z) }}",
    "GatherBlockQuantized of one row": f"(uint8[5,16] w, int64 i, float[5,2] s, uint8[5,1] z) => (float[32] y) {{ y = {M}.GatherBlockQuantized<bits=4, block_size=16, quantize_axis=1>(w, i, s, z) }}",
    "GatherBlockQuantized of bytes": f"(uint8[5,32] w, int64[2,2] i, float[5,2] s, uint8[5,2] z) => (float[2,2,32] y) {{ y = {M}.GatherBlockQuantized<bits=8, block_size=16, quantize_axis=1>(w, i, s, z) }}",
    "GatherBlockQuantized of a block in part": f"(uint8[5,20] w, int64[2,2] i, float[5,3] s, uint8[5,2] z) => (float[2,2,40] y) {{ y = {M}.GatherBlockQuantized<bits=4, block_size=16, quantize_axis=1>(w, i, s, z) }}",
    "FusedConv": f'(float[2,4,9,7] x, float[6,2,3,3] w, float[6] b, float[2,6,5,4] z) => (float[2,6,5,4] y) {{ y = {M}.FusedConv<activation="Relu", group=2, kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]>(x, w, b, z) }}',
    "FusedConv of no sum": f'(float[1,3,8] x, float[4,3,2] w) => (float[1,4,6] y) {{ y = {M}.FusedConv<activation="LeakyRelu", activation_params=[0.3], dilations=[2]>(x, w) }}',
    "FusedConv between bounds": f'(float[1,3,8,8] x, float[4,3,3,3] w) => (float[1,4,8,8] y) {{ y = {M}.FusedConv<activation="Clip", activation_params=[-0.5, 0.75], auto_pad="SAME_UPPER">(x, w) }}',
    "FusedGemm": f'(float[3,4] a, float[5,4] b, float[5] c) => (float[3,5] y) {{ y = {M}.FusedGemm<activation="LeakyRelu", activation_alpha=0.2, alpha=0.5, beta=2.0, transB=1>(a, b, c) }}',
    "FusedGemm without a bias": f'(float[4,3] a, float[4,5] b) => (float[3,5] y) {{ y = {M}.FusedGemm<activation="Tanh", transA=1>(a, b) }}',
    "Attention": f"(float[2,3,8] x, float[8,24] w, float[24] b) => (float[2,3,8] y) {{ y = {M}.Attention<num_heads=2>(x, w, b) }}",
    "Attention of lengths": f"(float[2,3,8] x, float[8,24] w, float[24] b, int32[2] lengths) => (float[2,3,8] y) {{ y = {M}.Attention<num_heads=2>(x, w, b, lengths) }}",
    "Attention masked": f"(float[2,3,8] x, float[8,24] w, float[24] b, int32[2,3] m) => (float[2,3,8] y) {{ y = {M}.Attention<num_heads=2, scale=0.2>(x, w, b, m) }}",
    "Attention masked by rows": f"(float[2,3,8] x, float[8,24] w, float[24] b, int32[2,3,3] m) => (float[2,3,8] y) {{ y = {M}.Attention<num_heads=4>(x, w, b, m) }}",
    "Attention with a past": f"(float[2,3,8] x, float[8,24] w, float[24] b, int32[2,7] m, float[2,2,2,4,4] l) => (float[2,3,8] y, float[2,2,2,7,4] n) {{ y, n = {M}.Attention<num_heads=2, unidirectional=1>(x, w, b, m, l) }}",
    "Attention of sizes": f"(float[2,3,8] x, float[8,20] w, float[20] b, float[2,2,3,3] c) => (float[2,3,12] y) {{ y = {M}.Attention<num_heads=2, qkv_hidden_sizes=[4, 4, 12]>(x, w, b, , , c) }}",
    "EmbedLayerNormalization": f"(int32[2,3] i, int32[2,3] k, float[7,8] w, float[5,8] q, float[2,8] s, float[8] g, float[8] b, int32[2,3] m) => (float[2,3,8] y, int32[2] n, float[2,3,8] t) {{ y, n, t = {M}.EmbedLayerNormalization(i, k, w, q, s, g, b, m) }}",
    "EmbedLayerNormalization of words": f"(int32[2,3] i, float[7,8] w, float[5,8] q, float[8] g, float[8] b, int32[2,3] j) => (float[2,3,8] y, int32[2] n) {{ y, n = {M}.EmbedLayerNormalization<epsilon=1e-5>(i, , w, q, , g, b, , j) }}",
    "QEmbedLayerNormalization": f"(int32[2,3] i, int32[2,3] k, uint8[7,8] w, uint8[5,8] q, uint8[2,8] s, uint8[8] g, uint8[8] b, float e, uint8 z) => (float[2,3,8] y, int32[2] n) {{ y, n = {M}.QEmbedLayerNormalization(i, k, w, q, s, g, b, , e, e, e, e, e, z, z, z, z, z) }}",
    "MatMulBnb4": f"(float[2,3,32] a, uint8[80] w, float[10] s) => (float[2,3,5] y) {{ y = {M}.MatMulBnb4<K=32, N=5, block_size=16, quant_type=1>(a, w, s) }}",
    "MatMulBnb4 of FP4": f"(float[3,33] a, uint8[83] w, float[11] s) => (float[3,5] y) {{ y = {M}.MatMulBnb4<K=33, N=5, block_size=16, quant_type=0>(a, w, s) }}",
}
WITHOUT_BODY = {
    *("MultiHeadAttention biased", "MultiHeadAttention masked"),
    *("RotaryEmbedding from one position", "RotaryEmbedding of heads that the table tells"),
    "GatherBlockQuantized of a block in part",
}
"""Forms that are run and inferred, and not spelled by ONNX operators."""


def _model(case: str) -> ir.Model:
    """Return the model with shapes that are inferred, not those that the case declares."""
    model = text.parse(f'<ir_version: 10, opset_import: ["" : 23, "{M}" : 1]> g {case}')
    for value in model.graph.outputs:
        value.shape = None
    ShapeInference(model).infer_model()
    return model


def _inputs(model: ir.Model) -> list[np.ndarray]:
    arrays = [np.asarray(value) for value in random_inputs(model, {})]
    for place, value in enumerate(model.graph.inputs):
        if value.dtype == ir.DataType.UINT8:
            shape = arrays[place].shape
            arrays[place] = np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)
        elif arrays[place].dtype.kind != "f":
            limit = 9 if value.name == "p" else 2
            arrays[place] = (np.arange(arrays[place].size) % limit).reshape(arrays[place].shape)
            arrays[place] = arrays[place].astype(value.dtype.numpy()) + (value.name == "lengths")
    return arrays


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_reference_and_the_body_are_what_the_kernel_computes(
    case: str, request: pytest.FixtureRequest
) -> None:
    model = _model(case)
    given = _inputs(model)
    kernel = OnnxRuntime(model)(*given)
    (node,) = model.graph
    operator = operators.find(M, node.op_type)
    assert operator is not None
    by_value = dict(zip(model.graph.inputs, given, strict=True))
    arrays = [None if value is None else by_value[value] for value in node.inputs]
    results = operator.reference(arrays, operator.attributes_of(node))
    told = dict(zip(node.outputs, results, strict=False))
    for value, expected in zip(model.graph.outputs, kernel, strict=True):
        np.testing.assert_allclose(told[value], expected, rtol=2e-4, atol=2e-5)
        assert told[value].dtype == expected.dtype
        assert value.shape == ir.Shape(expected.shape)
    if request.node.callspec.id in WITHOUT_BODY:
        assert operators.expand(model) == 0
        return
    assert operators.expand(model) == 1
    assert not any(node.domain for node in model.graph)
    for value, expected in zip(OnnxRuntime(model)(*given), kernel, strict=True):
        np.testing.assert_allclose(value, expected, rtol=2e-4, atol=2e-5)


def test_the_runtime_has_each_attribute_and_input_that_is_declared() -> None:
    schemas = {s.name: s for s in runtime.get_all_operator_schema() if s.domain == M}
    for operator in OPERATORS:
        schema = schemas[operator.name]
        assert {a.name for a in operator.attributes} == set(schema.attributes)
        assert [name.rstrip("?") for name in operator.inputs] == [p.name for p in schema.inputs]
        assert [name.rstrip("?") for name in operator.outputs] == [p.name for p in schema.outputs]


def test_written_models_hold_the_operator_and_no_function() -> None:
    model = _model(CASES["QuickGelu"])
    assert operators.attach_functions(model) == ()
    assert not model.functions
    assert [node.op_type for node in model.graph] == ["QuickGelu"]


def test_an_attribute_of_a_later_runtime_leaves_the_node_alone() -> None:
    model = text.parse(
        f'<ir_version: 10, opset_import: ["" : 23, "{M}" : 1]>'
        f"g (float[2,8] x) => (float[2,8] y) {{ y = {M}.QuickGelu<later=1>(x) }}"
    )
    ShapeInference(model).infer_model()
    assert [node.op_type for node in model.graph] == ["QuickGelu"]


QUICK = ["MultiHeadAttention with a past"]
IN_C = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
    for name in sorted(CASES.keys() - WITHOUT_BODY)
]


@pytest.mark.parametrize("name", IN_C)
def test_targets_without_such_a_kernel_compute_the_body(name: str) -> None:
    model = _model(CASES[name])
    given = _inputs(model)
    for result, expected in zip(
        smelt.compile(model, target="c")(*given), OnnxRuntime(model)(*given), strict=True
    ):
        np.testing.assert_allclose(result, expected, rtol=2e-4, atol=2e-5)
