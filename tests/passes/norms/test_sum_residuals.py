"""Sums before a LayerNormalization whose shapes the model hides from the runtime."""

from __future__ import annotations

import onnx
import pytest
from rewrites import check_rewrite, check_unchanged

import smelt
from smelt.ir import text
from smelt.passes.norms.sum_residuals import sum_residuals

HEAD = "g (float[N,8] x, float[N,8] s, float[8] w) => (float[N,8] y)"
COMPUTED = "k = Shape(x) h = Reshape(x, k)"
"""A shape that a runtime does not follow; N is told at its first run only."""
NORM = "y = LayerNormalization(r, w)"


def test_a_sum_of_hidden_shape_stays_apart_from_its_norm() -> None:
    check_rewrite(
        sum_residuals,
        f"{HEAD} {{ {COMPUTED} r = Add(h, s) {NORM} }}",
        f"{HEAD} {{ {COMPUTED} r = Sum(h, s) {NORM} }}",
    )


def test_values_computed_from_a_hidden_shape_have_hidden_shapes() -> None:
    body = f"{COMPUTED} t = Tanh(h) u = Mul(t, s) r = Add(u, s)"
    check_rewrite(
        sum_residuals,
        f"{HEAD} {{ {body} {NORM} }}",
        f"{HEAD} {{ {body.replace('Add', 'Sum')} {NORM} }}",
    )


KEPT = {
    "the sizes are the inputs'": f"{HEAD} {{ h = Tanh(x) r = Add(h, s) {NORM} }}",
    "a Shape of sizes that are known": (
        f"{HEAD.replace('N', '3')} {{ {COMPUTED} r = Add(h, s) {NORM} }}"
    ),
    "the sum is read": f"{HEAD} {{ {COMPUTED} r = Add(h, s) n = LayerNormalization(r, w) "
    "y = Mul(n, r) }",
    "the sum is an output": "g (float[N,8] x, float[N,8] s, float[8] w) => (float[N,8] y, "
    f"float[N,8] r) {{ {COMPUTED} r = Add(h, s) {NORM} }}",
    "one side broadcasts": f"{HEAD} {{ {COMPUTED} r = Add(h, w) {NORM} }}",
    "another type": f"{HEAD} {{ {COMPUTED} r = Add(h, s) {NORM} }}".replace("float[", "double["),
    "the Reshape has constant sizes": "g (float[N,8] x, float[2,4] s, float[4] w) => "
    "(float[2,4] y) <int64[2] k = {2, 4}> { h = Reshape(x, k) r = Add(h, s) "
    "y = LayerNormalization(r, w) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_adds_of_known_shapes_or_without_fusion_stay(graph: str) -> None:
    check_unchanged(sum_residuals, graph)


def test_a_stated_shape_is_not_hidden() -> None:
    check_unchanged(
        sum_residuals,
        f"{HEAD} <float[N,8] h, float[N,8] r> {{ {COMPUTED} r = Add(h, s) {NORM} }}",
    )


@pytest.mark.parametrize(("target", "kept"), [("onnx", "Sum"), ("host", "Add")])
def test_targets_with_kernels_of_their_own_keep_the_add(target: str, kept: str) -> None:
    source = text.parse(f"{HEAD} {{ {COMPUTED} t = Mul(h, s) r = Add(t, s) {NORM} }}")
    names = [node.op_type for node in smelt.compile(source, target=target).model.graph]
    assert {"Add", "Sum"} & set(names) == {kept}


def test_a_second_run_finds_what_the_first_wrote() -> None:
    source = text.parse(f"{HEAD} {{ {COMPUTED} t = Mul(h, s) r = Add(t, s) {NORM} }}")
    first = smelt.optimize(smelt.to_proto(source))
    assert [node.op_type for node in first.graph.node] == ["Mul", "Sum", "LayerNormalization"]
    again = smelt.optimize(onnx.ModelProto.FromString(first.SerializeToString()))
    assert again.SerializeToString() == first.SerializeToString()


def test_a_size_without_a_name_is_hidden_in_what_is_written() -> None:
    """An image size that the source called ``(samples - 5)//4`` has lost its name."""
    graph = "g (float[?,8] x, float[8] w) => (float[?,8] y)"
    body = f"t = Tanh(x) r = Add(t, x) {NORM}"
    first = smelt.optimize(smelt.to_proto(text.parse(f"{graph} {{ {body} }}")))
    assert [node.op_type for node in first.graph.node] == ["Tanh", "Sum", "LayerNormalization"]
    again = smelt.optimize(onnx.ModelProto.FromString(first.SerializeToString()))
    assert again.SerializeToString() == first.SerializeToString()
