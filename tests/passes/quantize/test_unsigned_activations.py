"""int8 activations become uint8; results stay equal bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_rewrite, check_same_numbers, check_unchanged

import smelt
from smelt.compiler import optimize_model
from smelt.ir import text
from smelt.passes.quantize.unsigned_activations import unsigned_activations as the_pass
from smelt.targets.ort.integer_products import are_exact

GIVEN = "<float s = {0.25}, int8 z = {3}"
UNSIGNED = "<float s = {0.25}, uint8 u = {131}>"


def test_readers_of_one_quantization_read_uint8() -> None:
    check_rewrite(
        the_pass,
        before=f"g (float[N,4] x) => (float[N,4] y, float[N,4] w) {GIVEN}> {{"
        " q = QuantizeLinear(x, s, z) a = DequantizeLinear(q, s, z) b = DequantizeLinear(q, s, z)"
        " y = Relu(a) w = Neg(b) }",
        after=f"g (float[N,4] x) => (float[N,4] y, float[N,4] w) {UNSIGNED} {{"
        " q = QuantizeLinear(x, s, u) a = DequantizeLinear(q, s, u) b = DequantizeLinear(q, s, u)"
        " y = Relu(a) w = Neg(b) }",
    )


@pytest.mark.parametrize(
    ("move", "shape"), [("Transpose<perm=[1,0]>(q)", "4,2"), ("Tile(q, n)", "2,8")]
)
def test_operators_that_only_move_are_followed(move: str, shape: str) -> None:
    head = f"g (float[2,4] x) => (float[{shape}] y)"

    def graph(constants: str, zero: str) -> str:
        steps = f"q = QuantizeLinear(x, s, {zero}) t = {move} y = DequantizeLinear(t, s, {zero})"
        return f"{head} {constants.removesuffix('>')}, int64[2] n = {{1,2}}> {{ {steps} }}"

    check_rewrite(
        the_pass,
        before=graph(GIVEN, "z"),
        after=graph(UNSIGNED, "u"),
    )


@pytest.mark.parametrize(
    "pair",
    [
        "q = QuantizeLinear<output_dtype=3>(x, s) y = DequantizeLinear(q, s)",
        "q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s)",
        "q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, o)",
    ],
)
def test_zero_points_that_are_absent_or_differ(pair: str) -> None:
    graph = (
        "g (float[9] x) => (float[9] y)"
        f" <float s = {{0.25}}, int8 z = {{-128}}, int8 o = {{127}}> {{ {pair} }}"
    )
    model = text.parse(graph, 21)
    (report,) = optimize_model(model, pipeline="unsigned-activations")
    assert report.stats.fired == {"uint8 for int8": 1}
    extremes = [-1e4, -32.0, -0.125, -0.0, 0.125, 0.375, 31.75, 32.0, 1e4]
    feeds = {"x": np.array(extremes, np.float32)}
    check_same_numbers(text.parse(graph, 21), model, feeds=feeds)


HEAD = "g (float[4] x, int8[1] p) => "
KEPT = {
    "the integers are an output": f"{HEAD}(float[4] y, int8[4] q) {GIVEN}> {{"
    " q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }",
    "integers are computed with": f"{HEAD}(float[4] y, bool[4] b) {GIVEN}> {{"
    " q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) b = Greater(q, z) }",
    "the integers are indices": f"{HEAD}(int64[4] y) {GIVEN}> {{"
    " q = QuantizeLinear(x, s, z) y = Cast<to=7>(q) }",
    "a zero point from the caller": f"{HEAD}(float[4] y) <float[1] s = {{0.25}}> {{"
    " q = QuantizeLinear(x, s, p) y = DequantizeLinear(q, s, p) }",
    "a scale for each element": f"{HEAD}(float[4] y) <float[4] s = {{1, 2, 3, 4}},"
    " int8[4] z = {1, 2, 3, 4}> {"
    " q = QuantizeLinear<axis=0>(x, s, z) y = DequantizeLinear<axis=0>(q, s, z) }",
    "uint8 already": f"{HEAD}(float[4] y) {UNSIGNED} {{"
    " q = QuantizeLinear(x, s, u) y = DequantizeLinear(q, s, u) }",
    "after a Softmax": f"{HEAD}(float[4] y) {GIVEN}> {{"
    " m = Softmax(x) q = QuantizeLinear(m, s, z) y = DequantizeLinear(q, s, z) }",
    "a constant": f"{HEAD}(float[1] y) <float s = {{0.25}}, int8[1] c = {{3}}> {{"
    " y = DequantizeLinear(c, s) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_other_quantized_values_stay(graph: str) -> None:
    check_unchanged(the_pass, graph)


def test_the_target_for_onnx_runtime_has_it_where_products_of_uint8_are_exact() -> None:
    pair = "q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z)"
    model = text.parse(f"g (float[4] x) => (float[4] y) {GIVEN}> {{ {pair} }}")
    made = smelt.compile(model, target="ort").model
    integer = "UINT8" if are_exact() else "INT8"
    assert {str(value.dtype) for node in made.graph for value in node.outputs} == {integer, "FLOAT"}
