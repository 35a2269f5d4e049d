"""Symbolic dims are bound once, before the pipeline, whatever their names and whatever follows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

import smelt
from smelt.errors import ErrorList, SmeltError
from smelt.ir import text

GELU = """g (float[batch, seq] x) => (float[batch, seq] y) {
    two = Constant<value = float {1.4142135}>()  one = Constant<value = float {1}>()
    half = Constant<value = float {0.5}>()
    d = Div(x, two)  e = Erf(d)  a = Add(e, one)  m = Mul(x, a)  y = Mul(m, half)
}"""


@pytest.mark.parametrize("target", ["onnx", "host", "c"])
def test_dims_are_bound_where_the_opset_is_raised(target: str) -> None:
    model = text.parse(GELU, 17)
    artifact = smelt.compile(model, target=target, dims={"batch": 1, "seq": 3})
    assert [node.op_type for node in artifact.model.graph] == ["Gelu"]
    assert artifact.model.opset_imports[""] == 20
    assert list(artifact.model.graph.inputs[0].shape) == [1, 3]
    x = np.array([[-1, 0, 2]], np.float32)
    np.testing.assert_allclose(artifact(x)[0], [[-0.158655, 0, 1.954500]], rtol=1e-5)


def test_a_pipeline_that_binds_dims_by_name_runs_again_without_it() -> None:
    model = smelt.optimize(
        text.parse(GELU, 17), pipeline="materialize-symbolic-dims{dims=batch=1,seq=3},default"
    )
    assert [node.op_type for node in model.graph] == ["Gelu"]
    assert list(model.graph.inputs[0].shape) == [1, 3]


def test_images_are_transposed_once() -> None:
    graph = GELU.replace("batch, seq", "1, 4, 5, 3")
    pipeline = "image-input-preprocess{inputs=x outputs=y},default"
    model = smelt.optimize(text.parse(graph, 17), pipeline=pipeline)
    assert model.opset_imports[""] == 20
    assert list(model.graph.inputs[0].shape) == [1, 3, 4, 5]


@pytest.mark.parametrize("name", ["batch size", "a,b", "{n}", "it's", 'a"b', "n=1", "naïve"])
def test_dims_of_any_name(name: str) -> None:
    model = text.parse("g (float[n, 2] x) => (float[n, 2] y) { y = Relu(x) }")
    for value in (*model.graph.inputs, *model.graph.outputs):
        value.shape = ir.Shape([name, 2])
    artifact = smelt.compile(model, target="c", dims={name: 3})
    assert list(artifact.model.graph.inputs[0].shape) == [3, 2]


@pytest.mark.parametrize("size", [-1, 2.0, "2", True, None])
def test_sizes_that_are_none(size: object) -> None:
    with pytest.raises(SmeltError, match="E633"):
        smelt.compile(text.parse(GELU), dims={"batch": size})


def test_a_dim_that_there_is_not() -> None:
    with pytest.raises(SmeltError, match=r"E633.*'sequence'"):
        smelt.compile(text.parse(GELU), dims={"sequence": 1})


def test_a_pipeline_file_goes_before_the_passes_of_a_target(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.txt"
    path.write_text("const-elimination")
    model = text.parse("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    assert smelt.compile(model, target="c", pipeline=f"@{path}").files


def test_a_target_that_lacks_a_size_says_how_to_bind_it() -> None:
    graph = """g (float[1,1,B,S] x) => (float[1,1,P,Q] y) <int64[2] n = {4, 4}> {
        y = Resize<axes=[2, 3], keep_aspect_ratio_policy="not_larger">(x, , , n)
    }"""
    with pytest.raises(SmeltError) as caught:
        smelt.compile(text.parse(graph, 20), target="c", dims={"B": (1, 4), "S": (1, 4)})
    assert "fix   bind them, for instance: --dim B=1 --dim S=1" in str(caught.value)
    artifact = smelt.compile(text.parse(graph, 20), target="c", dims={"B": 1, "S": 2})
    (y,) = artifact(np.array([[[[0, 1]]]], np.float32))
    assert y.tolist() == [[[[0, 0, 1, 1]] * 2]]


def test_no_binding_is_proposed_where_none_is_missing() -> None:
    graph = "g (float[2,3] x) => (float[2,3] y) { y = RandomNormalLike(x) }"
    with pytest.raises(SmeltError) as caught:
        smelt.compile(text.parse(graph, 20), target="host")
    assert "--dim" not in str(caught.value)


def test_operators_without_kernel_are_reported_with_the_missing_sizes() -> None:
    graph = "g (float[B,3,8,8] x) => (float[B,3,8,8] y) { y = RandomNormalLike(x) }"
    with pytest.raises(ErrorList) as caught:
        smelt.compile(text.parse(graph, 20), target="c")
    assert [error.code for error in caught.value.errors] == ["E401", "E201"]
    assert "operator RandomNormalLike has no kernel" in str(caught.value)


def test_operators_that_known_sizes_may_fold_are_not_reported() -> None:
    graph = """g (float[B,3] x) => (float[B,3] y) <int64[1] z = {0}> {
        n = Shape(x) k = ConstantOfShape<value = float[1] {2}>(n) y = Mul(x, k)
    }"""
    with pytest.raises(SmeltError) as caught:
        smelt.compile(text.parse(graph, 20), target="c", pipeline="")
    assert "E201" not in str(caught.value)
