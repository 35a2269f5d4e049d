"""Any operator loads after add-fp16-cast where it loaded before: each type variable keeps one
type."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import onnxruntime as ort
import pytest
from backend_cases import Case, node_cases

import smelt
from smelt.ir import opset, text

SEVERAL = {
    "attention": (
        23,
        "g (float[1,2,4,8] q, float[1,2,6,8] k, float[4,6] m) => (float[1,2,4,8] y) "
        "{ y = Attention(q, k, k, m) }",
    ),
    "attention with a cache": (
        23,
        "g (float[1,2,4,8] q, float[1,2,3,8] p) => (float[1,2,4,8] y, float[1,2,7,8] c, "
        "float[1,2,7,8] d) { y, c, d = Attention(q, q, q, , p, p) }",
    ),
    "a norm by its root mean square": (
        23,
        "g (float[2,8] x, float[8] w) => (float[2,8] y) { y = RMSNormalization(x, w) }",
    ),
    "a norm with statistics": (
        17,
        "g (float[2,8] x, float[8] w) => (float[2,8] y, float[2,1] m) "
        "{ y, m = LayerNormalization(x, w) }",
    ),
    "a batch norm": (
        15,
        "g (float[1,2,3] x, float[2] s) => (float[1,2,3] y) { y = BatchNormalization(x,s,s,s,s) }",
    ),
    "places in an image": (
        16,
        "g (float[1,1,3,3] x, float[1,2,2,2] p) => (float[1,1,2,2] y) { y = GridSample(x, p) }",
    ),
    "a power": (15, "g (float[3] x, float[3] p) => (float[3] y) { y = Pow(x, p) }"),
}


@pytest.mark.parametrize("fuse", ["add-fp16-cast", "default,add-fp16-cast"])
@pytest.mark.parametrize("name", SEVERAL)
def test_operators_of_several_type_variables(name: str, fuse: str) -> None:
    version, graph = SEVERAL[name]
    half = smelt.optimize(smelt.to_proto(text.parse(graph, version)), pipeline=fuse)
    assert "Cast" in {node.op_type for node in half.graph.node}
    assert problem(half) == ""


def test_sums_of_scattered_numbers_stay() -> None:
    """ONNX Runtime loads float16 scatters with a reduction, and refuses to run them."""
    graph = "g (float[4] x, int64[2] i, float[2] u) => (float[4] y) { y = %s(x, i, u) }"
    model = smelt.to_proto(text.parse(graph % 'ScatterElements<reduction="add">', 18))
    half = smelt.optimize(model, pipeline="add-fp16-cast")
    assert [node.op_type for node in half.graph.node] == ["ScatterElements"]


SEQUENCES = {
    "inserted": "s = SequenceEmpty() t = SequenceInsert(s, a) y = SequenceAt(t, i)",
    "constructed": "t = SequenceConstruct(a, x) y = SequenceAt(t, i)",
    "split": "t = SplitToSequence<axis=0>(a) y = SequenceAt(t, i)",
}


@pytest.mark.parametrize("body", SEQUENCES.values(), ids=SEQUENCES)
def test_tensors_of_a_sequence_keep_its_element_type(body: str) -> None:
    graph = f"g (float[2,2] x, int64 i) => (float[M,N] y) {{ a = Sin(x) {body} }}"
    source = smelt.to_proto(text.parse(graph, 16))
    assert problem(source) == ""
    half = smelt.optimize(source, pipeline="add-fp16-cast")
    assert "Cast" in {node.op_type for node in half.graph.node}
    assert problem(half) == ""


def test_results_of_unknown_type_stay() -> None:
    """Before opset 7, ONNX infers no type for a product that broadcasts to both sides."""
    graph = "g (float[2,1] x, float[1,3] z) => (float[2,3] y) { a = Mul(x, z) y = Neg(a) }"
    half = smelt.optimize(smelt.to_proto(text.parse(graph, 6)), pipeline="add-fp16-cast", opset=6)
    assert half.graph.output[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    makers = {name: node.op_type for node in half.graph.node for name in node.output}
    assert makers["y"] in ("Neg", "Cast")
    assert makers["y"] == "Cast" or "Cast" not in makers.values()


def problem(model: onnx.ModelProto) -> str:
    """Return why ``model`` is invalid or does not load; an empty text if it loads."""
    try:
        onnx.checker.check_model(model, full_check=True)
        ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - of many types, all of which are shown
        return str(error)
    return ""


def at_each_version(case: Case) -> Iterator[onnx.ModelProto]:
    """Return the model of ``case`` at each opset where one of its operators was added or
    changed."""
    nodes = case.model.graph.node
    newest = next((item.version for item in case.model.opset_import if not item.domain), 0)
    versions = {v for node in nodes for v in opset.versions(node.op_type) if 6 <= v <= newest}
    for version in sorted(versions):
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        for item in model.opset_import:
            item.version = item.version if item.domain else version
        yield model


def added_problem(half: onnx.ModelProto, source: onnx.ModelProto) -> str:
    """Return what the checker says of ``half``; empty if it refuses ``source`` at that opset, too.

    ONNX's checker refuses MeanVarianceNormalization of opset 13, to which smelt raises opset 9.
    Such a model must still load.
    """
    found = problem(half)
    if found:
        raised = onnx.ModelProto()
        raised.CopyFrom(source)
        raised.opset_import[0].version = half.opset_import[0].version
        if problem(raised):
            ort.InferenceSession(half.SerializeToString(), providers=["CPUExecutionProvider"])
            return ""
    return found


KNOWN = ("test_mvn", "test_affine_grid_3d_expanded")
"""Cases whose optimized model the checker refused."""


@pytest.mark.parametrize("name", KNOWN)
def test_operators_that_the_checker_refused(name: str) -> None:
    (case,) = (case for case in node_cases() if case.name == name)
    models = [model for model in at_each_version(case) if not problem(model)]
    assert models
    for model in models:
        half = smelt.optimize(model, pipeline="add-fp16-cast")
        assert added_problem(half, model) == ""


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(8))
@pytest.mark.parametrize(
    "pipeline", ["add-fp16-cast", "default,add-fp16-cast", "add-fp16-cast,default"]
)
def test_every_operator_at_every_opset(pipeline: str, shard: int) -> None:
    tried = 0
    for case in node_cases()[shard::8]:
        for model in at_each_version(case):
            if problem(model):
                continue
            try:
                half = smelt.optimize(model, pipeline=pipeline)
            except smelt.SmeltError:
                continue  # an old form that the checks of operands refuse
            assert added_problem(half, model) == "", f"{case.name} at {model.opset_import}"
            tried += 1
    assert tried > 100
