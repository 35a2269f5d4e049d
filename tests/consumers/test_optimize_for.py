"""``consumers=`` of optimize and compile: operators, opset and file format that they take."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import smelt
from smelt.consumers.find import find_consumers
from smelt.consumers.obstacle import unsupported_nodes
from smelt.errors import UsageError
from smelt.ir import text
from smelt.runtime.runner import run

ATTENTION = "g (float[1,2,4,8] q) => (float[1,2,4,8] y) { a = Attention(q, q, q) y = Gelu(a) }"
BERT = Path(__file__).parents[1] / "models" / "torchscript_bert.onnx"
TAIL = "g (float[1,3,4] x) => (float[1,4] y) <int64 i = {-1}> { y = Gather<axis=1>(x, i) }"


def optimized(graph: str, consumers: str, opset: int = 23) -> ir.Model:
    return smelt.optimize(text.parse(graph, opset), consumers=consumers, verify="final")


@pytest.mark.parametrize(
    "name", ["openvino", "quantize", "coreml-ep", "nnapi", "coreml-ep,nnapi", "ncnn"]
)
def test_the_result_has_only_operators_that_the_consumers_take(name) -> None:
    model = optimized(ATTENTION, name)
    chosen = find_consumers(name)
    assert {node.op_type for node in model.graph} <= chosen.kernels
    assert model.opset_imports[""] <= chosen.highest_opset


GUARDED = """g (float[2,4,2,8] q, float[2,4,2,8] k, float[2,4,2,8] v, int64[2,4] mask) => (float[2,4,16] y)
<float zero = {0}, float low = {-inf}, int64[2] axes = {1, 2}, int64[3] merged = {0, 0, -1}> {
    a = Transpose<perm=[0, 2, 1, 3]>(q) b = Transpose<perm=[0, 2, 3, 1]>(k) s = MatMul(a, b)
    c = Cast<to=9>(mask) d = Unsqueeze(c, axes) w = Where(d, zero, low) t = Add(s, w)
    p = Softmax<axis=-1>(t) n = IsNaN(p) x = Where(n, zero, p)
    e = Transpose<perm=[0, 2, 1, 3]>(v) o = MatMul(x, e) h = Transpose<perm=[0, 2, 1, 3]>(o)
    y = Reshape(h, merged)
}"""


def test_masked_attention_is_one_partition_without_operators_of_bools() -> None:
    """Rows whose keys are all hidden stay zeros."""
    model = optimized(GUARDED, "nnapi", 17)
    assert not unsupported_nodes(model, find_consumers("nnapi").consumers[0])
    arrays = [np.random.default_rng(n).normal(size=(2, 4, 2, 8)).astype("f") for n in range(3)]
    hidden = np.array([[1, 0, 7, 1], [0, 0, 0, 0]])
    expected, got = (run(each, [*arrays, hidden])[0] for each in (text.parse(GUARDED, 17), model))
    assert not expected[1].any()
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


EMBEDDED = """g (int64[1,3] i) => (float[1,4] y)
<float[3,4] t = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, float[4] s = {1, 2, 1, 2}, int64[1] a = {1}> {
    w = Gather<axis=0>(t, i) u = Gelu(w) n = LayerNormalization<axis=-1>(u, s)
    c, d = Split<axis=2, num_outputs=2>(n) x = Concat<axis=2>(d, c) y = ReduceSum<keepdims=0>(x, a)
}"""


def test_ncnn_gets_the_one_form_that_it_reads_of_each_operator() -> None:
    model = optimized(EMBEDDED, "ncnn", 20)
    assert not unsupported_nodes(model, find_consumers("ncnn").consumers[0])
    assert model.opset_imports[""] == 17
    kinds = {node.op_type for node in model.graph}
    assert {"Gather", "LayerNormalization", "ReduceMean"} <= kinds
    assert not kinds & {"Gelu", "ReduceSum"}


def test_ncnn_is_told_of_a_constant_of_several_samples() -> None:
    graph = """g (float[2,1,4,4] x) => (float[2,1,5,4] y) <float[2,1,1,4] k = {1,2,3,4,5,6,7,8}>
        { y = Concat<axis=2>(k, x) }"""
    model = optimized(graph, "ncnn", 17)
    [told] = unsupported_nodes(model, find_consumers("ncnn").consumers[0])
    assert "2 samples" in told.why
    assert "one sample" in told.remedy


def test_a_consumer_with_attention_keeps_it() -> None:
    assert "Attention" in {node.op_type for node in optimized(ATTENTION, "openvino").graph}


def test_one_index_becomes_a_slice_for_a_consumer_without_gather() -> None:
    kinds = [node.op_type for node in optimized(TAIL, "coreml-ep", 17).graph]
    assert kinds == ["Slice", "Squeeze"]


@pytest.mark.parametrize(("consumers", "rank"), [("coreml-ep", 4), ("openvino", 6)])
def test_windows_of_an_image_have_no_more_dims_than_the_consumer_takes(consumers, rank) -> None:
    """Swin parts an image into windows by a Reshape to 6 dims and a Transpose."""
    model = optimized(
        """g (float[2,8,8,3] x) => (float[8,4,4,3] y)
        <int64[6] parted = {2, 2, 4, 2, 4, 3}, int64[4] windows = {8, 4, 4, 3}>
        { a = Reshape(x, parted) b = Transpose<perm=[0, 1, 3, 2, 4, 5]>(a) y = Reshape(b, windows) }""",
        consumers,
    )
    assert max(len(node.outputs[0].shape) for node in model.graph) == rank


@pytest.mark.parametrize(
    ("consumers", "expected"),
    [("", True), ("onnxruntime", True), ("onnxruntime,openvino", False), ("coreml-ep", False)],
)
def test_a_form_for_a_slow_fusion_of_one_runtime_is_for_that_runtime_alone(
    consumers, expected
) -> None:
    """``sum-residuals`` works round a fusion of ONNX Runtime's CPU provider."""
    model = smelt.optimize(BERT, consumers=consumers)
    assert ("Sum" in {node.op_type for node in model.graph}) == expected


def test_what_onnx_runtime_computes_wrong_is_replaced_for_onnx_runtime_only() -> None:
    wide = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (int64[2] x, int64[2] z) => (int64[2] y) '
        "{ y = Max(x, z) }"
    )
    kinds = {
        name: [node.op_type for node in smelt.optimize(wide, consumers=name).graph.node]
        for name in ("", "openvino", "onnxruntime>=1.24", "onnxruntime-web,openvino")
    }
    assert kinds == {
        "": ["Max"],
        "openvino": ["Max"],
        "onnxruntime>=1.24": ["Greater", "Where"],
        "onnxruntime-web,openvino": ["Greater", "Where"],
    }


def test_an_older_release_gets_an_older_opset_and_file_format() -> None:
    model = optimized(ATTENTION, "onnxruntime>=1.17")
    assert model.opset_imports[""] == 20
    assert model.ir_version <= 9


def test_the_opset_asked_for_is_kept() -> None:
    model = smelt.optimize(text.parse(TAIL, 17), consumers="openvino", opset=19)
    assert model.opset_imports[""] == 19


@pytest.mark.parametrize(("target", "why"), [("c", "no ONNX file"), ("ort", "of its own")])
def test_targets_that_write_no_plain_onnx_refuse_consumers(target, why) -> None:
    with pytest.raises(UsageError, match="takes no consumers") as caught:
        smelt.compile(text.parse(TAIL, 17), target=target, consumers="openvino")
    assert why in caught.value.why
