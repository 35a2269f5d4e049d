"""Norms that ONNX Runtime reads in the domain of ONNX, where ONNX describes none, or another."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import smelt
from smelt.errors import InvalidModel
from smelt.runtime.runner import open_runner

LAYER = "y = LayerNormalization<axis=-1>(x, s, b)"
BLOCK = "y = LayerNormalization<axis=1, epsilon=0.001>(x, s)"
RMS = "y = SimplifiedLayerNormalization<epsilon=0.001>(x, s)"
GROUP = "y = GroupNormalization<num_groups=2>(x, s, b)"
TYPES = {"float": np.float32, "float16": np.float16, "double": np.float64}

CASES = {
    "a layer norm of old opsets": (LAYER, 9, "4", 17, "LayerNormalization"),
    "a layer norm before its opset": (LAYER, 16, "4", 17, "LayerNormalization"),
    "over two axes": (BLOCK, 15, "4,4", 17, "LayerNormalization"),
    "a norm without a mean": (RMS, 11, "4", 23, "RMSNormalization"),
    "the same in a young model": (RMS, 23, "4", 23, "RMSNormalization"),
}


def model(line: str, opset: int, parameters: str, kind: str = "float") -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": {opset}]>
        g ({kind}[N,4,4] x, {kind}[{parameters}] s, {kind}[{parameters}] b) => ({kind}[N,4,4] y)
        {{ {line} }}"""
    )


def arrays(parameters: str, kind: str, rows: int = 2) -> list[np.ndarray]:
    rng = np.random.default_rng(rows)
    shape = [int(size) for size in parameters.split(",")]
    drawn = (rng.standard_normal(each) for each in ((rows, 4, 4), shape, shape))
    return [each.astype(TYPES[kind]) for each in drawn]


def assert_near(got: np.ndarray, want: np.ndarray) -> None:
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    tolerance = 1e-2 if want.dtype == np.float16 else 1e-5
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", CASES)
def test_it_is_the_operator_of_a_newer_opset(name: str, kind: str) -> None:
    line, opset, parameters, goal, operator = CASES[name]
    source = model(line, opset, parameters, kind)
    small = smelt.optimize(source)
    assert [node.op_type for node in small.graph.node] == [operator]
    assert small.opset_import[0].version == goal
    given = arrays(parameters, kind)
    assert_near(
        open_runner(small, "onnxruntime")(*given)[0], open_runner(source, "onnxruntime")(*given)[0]
    )


@pytest.mark.parametrize("target", ["host", "c"])
@pytest.mark.parametrize("name", CASES)
def test_targets_compute_it(name: str, target: str) -> None:
    line, opset, parameters, *_ = CASES[name]
    source = model(line, opset, parameters)
    bounds = {"dims": {"N": (1, 3)}} if target == "c" else {}
    run = smelt.compile(source, target=target, **bounds)
    for rows in (1, 3):
        given = arrays(parameters, "float", rows)
        assert_near(run(*given)[0], open_runner(source, "onnxruntime")(*given)[0])


@pytest.mark.parametrize("opset", [18, 20])
@pytest.mark.parametrize("target", ["onnx", "host"])
def test_groups_have_a_scale_each_before_opset_21(target: str, opset: int) -> None:
    source = model(GROUP, opset, "2")
    given = arrays("2", "float")
    assert_near(
        smelt.compile(source, target=target)(*given)[0],
        open_runner(source, "onnxruntime")(*given)[0],
    )


def test_an_opset_that_is_asked_for_stays() -> None:
    """The norm is spelled, since nothing of that opset is one."""
    source = model(LAYER, 15, "4")
    small = smelt.optimize(source, opset=15)
    assert small.opset_import[0].version == 15
    assert Counter(node.op_type for node in small.graph.node)["ReduceMean"] == 2
    given = arrays("4", "float")
    assert_near(
        open_runner(small, "onnxruntime")(*given)[0], open_runner(source, "onnxruntime")(*given)[0]
    )


def test_the_statistics_are_given_too() -> None:
    source = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 15]>
        g (float[N,3,4] x, float[3,4] s) => (float[N,3,4] y, float[a,b,c] m, float[d,e,f] v)
        { y, m, v = LayerNormalization<axis=1>(x, s) }"""
    )
    given = [np.random.default_rng(0).random((2, 3, 4), np.float32), np.ones((3, 4), np.float32)]
    for got, want in zip(
        open_runner(smelt.optimize(source), "onnxruntime")(*given),
        open_runner(source, "onnxruntime")(*given),
        strict=True,
    ):
        assert_near(got, want)


def test_a_model_of_the_ir_is_served_too() -> None:
    source = model(RMS, 15, "4")
    loaded = smelt.optimize(ir.from_proto(source))
    assert [node.op_type for node in loaded.graph] == ["RMSNormalization"]


@pytest.mark.parametrize(
    "line",
    ["y = LayerNormalization(x)", "y, m = SimplifiedLayerNormalization(x, s, b)"],
)
def test_norms_with_wrong_operands_are_refused(line: str) -> None:
    with pytest.raises(InvalidModel, match="E308"):
        smelt.optimize(model(line, 15, "4"))


def test_integers_are_refused_as_by_onnx_runtime() -> None:
    """Their epsilon would be cut to 0."""
    with pytest.raises(InvalidModel, match=r"E308[\s\S]*it takes floats, not int32"):
        smelt.optimize(model(RMS, 15, "4", "int32"))
