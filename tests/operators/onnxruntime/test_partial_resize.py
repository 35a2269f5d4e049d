"""A Resize of some axes opens in ONNX Runtime between Transposes, and computes the same."""

from __future__ import annotations

import itertools

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest
from onnx.reference import ReferenceEvaluator

import smelt
from smelt.ir import text
from smelt.runtime.onnxruntime import OnnxRuntime

X = np.random.default_rng(3).normal(size=(1, 3, 4, 5)).astype(np.float32)
DIMS = {"known": "1,3,4,5", "open": "N,3,H,W", "one open": "N,3,4,5"}
OPERANDS = {
    "sizes": ("", "(t,,,s)", "int64[2] s = {6,7}", ""),
    "scales": ("", "(t,,s)", "float[2] s = {2,1.5}", ""),
    "given sizes": (", int64[2] s", "(t,,,s)", "", ""),
    "given scales": (", float[2] s", "(t,,s)", "", ""),
    "a region": (
        "",
        "(t,r,,s)",
        "int64[2] s = {6,7}, float[4] r = {0.1,0.2,0.8,0.9}",
        'coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=0.5, ',
    ),
}
GIVEN = {
    "given sizes": np.asarray([6, 7], np.int64),
    "given scales": np.asarray([2, 1.5], np.float32),
}


def between_transposes(operands: str, dims: str, axes: str, mode: str) -> str:
    """Return a model whose Transposes do not cancel each other."""
    inputs, call, constants, attributes = OPERANDS[operands]
    return (
        f"g (float[{DIMS[dims]}] x{inputs}) => (float[A,B,C,D] y) "
        f"{f'<{constants}>' if constants else ''} {{ t = Transpose<perm=[0,2,3,1]>(x) "
        f'z = Resize<{attributes}axes=[{axes}], mode="{mode}">{call} '
        "y = Transpose<perm=[0,2,3,1]>(z) }"
    )


@pytest.mark.parametrize("operands", OPERANDS)
@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize(
    ("axes", "mode"), [*itertools.product(["1,2", "1,-2"], ["nearest", "linear"])]
)
def test_it_is_written_as_one_of_all_axes(operands: str, dims: str, axes: str, mode: str) -> None:
    source, positive = (
        text.parse(between_transposes(operands, dims, each, mode), 18) for each in (axes, "1,2")
    )
    inputs = {"x": X} | ({"s": GIVEN[operands]} if operands in GIVEN else {})
    (expected,) = ReferenceEvaluator(ir.to_proto(positive)).run(None, inputs)
    optimized = smelt.to_proto(smelt.optimize(source.clone()))
    session = ort.InferenceSession(
        optimized.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for found in (session.run(None, inputs)[0], OnnxRuntime(source)(*inputs.values())[0]):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def nodes_of(graph: str) -> list[str]:
    """Return the operators of ``graph`` as it is optimized."""
    return [node.op_type for node in smelt.optimize(text.parse(graph, 19)).graph]


def test_a_constant_stays_one() -> None:
    kinds = nodes_of(between_transposes("scales", "open", "1,2", "nearest"))
    assert sorted(kinds) == ["Resize", "Transpose"]


def test_axes_in_any_order() -> None:
    graph = between_transposes("scales", "open", "1,2", "nearest")
    swapped = graph.replace("[1,2]", "[-2,1]").replace("{2,1.5}", "{1.5,2}")
    results = [OnnxRuntime(text.parse(each, 18))(X)[0] for each in (graph, swapped)]
    np.testing.assert_array_equal(*results)


def test_computed_sizes_stay_where_nothing_is_transposed() -> None:
    head = "g (float[N,3,H,W] x, int64[2] s) => (float[N,3,A,B] y)"
    assert nodes_of(f"{head} {{ y = Resize<axes=[2,3]>(x,,,s) }}") == ["Resize"]


@pytest.mark.parametrize("operands", ["sizes", "given sizes"])
@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_a_policy_reads_the_given_sizes_only(policy: str, dims: str, operands: str) -> None:
    graph = between_transposes(operands, dims, "1,2", "nearest").replace(
        "axes=", f'keep_aspect_ratio_policy="{policy}", axes='
    )
    source = text.parse(graph, 19)
    inputs = {"x": X} | ({"s": GIVEN[operands]} if operands in GIVEN else {})
    unoptimized = ort.SessionOptions()
    unoptimized.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    written = ir.to_proto(source).SerializeToString()
    (expected,) = ort.InferenceSession(written, unoptimized).run(None, inputs)
    optimized = smelt.to_proto(smelt.optimize(source.clone())).SerializeToString()
    (found,) = ort.InferenceSession(optimized).run(None, inputs)
    np.testing.assert_array_equal(found, expected)
    assert found.shape == ((1, 7, 3, 6) if policy == "not_larger" else (1, 8, 3, 6))


def test_a_policy_stays_alone_where_nothing_is_transposed() -> None:
    graph = "g (float[N,3,H,W] x, int64[2] s) => (float[N,3,A,B] y)"
    policy = 'keep_aspect_ratio_policy="not_larger"'
    assert nodes_of(f"{graph} {{ y = Resize<{policy}, axes=[2,3]>(x,,,s) }}") == ["Resize"]
