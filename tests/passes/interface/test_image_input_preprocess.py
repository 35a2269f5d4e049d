"""Image inputs and outputs get channels first."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_rewrite, run_pass

from smelt.errors import UsageError
from smelt.ir import text
from smelt.ir.complex_pairs import mark_pairs
from smelt.passes.interface.image_input_preprocess import image_input_preprocess
from smelt.runtime.runner import open_runner

MODEL = "g (float[N,4,5,3] x, float[3] k) => (float[N,4,5,3] y) { y = Mul(x, k) }"


def test_an_input() -> None:
    check_rewrite(
        image_input_preprocess,
        before=MODEL,
        after="g (float[N,3,4,5] x, float[3] k) => (float[N,4,5,3] y) "
        "{ t = Transpose<perm=[0,2,3,1]>(x) y = Mul(t, k) }",
        inputs=("x",),
    )


def test_an_output_keeps_its_name() -> None:
    check_rewrite(
        image_input_preprocess,
        before=MODEL,
        after="g (float[N,4,5,3] x, float[3] k) => (float[N,3,4,5] y) "
        "{ m = Mul(x, k) y = Transpose<perm=[0,3,1,2]>(m) }",
        outputs=("y",),
    )


def test_the_same_numbers_in_another_order() -> None:
    before, after = text.parse(MODEL), text.parse(MODEL)
    run_pass(image_input_preprocess, after, inputs=("x",), outputs=("y",))
    x = np.random.default_rng(0).normal(size=(2, 4, 5, 3)).astype(np.float32)
    k = np.asarray([1, 2, 3], np.float32)
    [expected] = open_runner(before)(x, k)
    [given] = open_runner(after)(np.ascontiguousarray(x.transpose(0, 3, 1, 2)), k)
    np.testing.assert_array_equal(given, np.asarray(expected).transpose(0, 3, 1, 2))


def test_readers_in_branches_see_channels_last() -> None:
    graph = """g (bool c, float[N,4,5,3] x) => (float[N,4,5,3] y) {
        y = If (c) <then_branch = t () => (float[N,4,5,3] u) { u = Neg(x) },
                    else_branch = f () => (float[N,4,5,3] v) { v = Abs(x) }> }"""
    model = text.parse(graph)
    run_pass(image_input_preprocess, model, inputs=("x",))
    assert [node.op_type for node in model.graph] == ["Transpose", "If"]
    images = np.ones((1, 3, 4, 5), np.float32)
    [result] = open_runner(model)(np.asarray(True), images)
    assert np.asarray(result).shape == (1, 4, 5, 3)


REFUSED = {
    "unknown input": (MODEL, {"inputs": ("z",)}),
    "unknown output": (MODEL, {"outputs": ("x",)}),
    "rank 1": (MODEL, {"inputs": ("k",)}),
    "an input with a default": (
        "g (float[1,1,3] x = {1,2,3}) => (float[1,1,3] y) { y = Neg(x) }",
        {"inputs": ("x",)},
    ),
}


@pytest.mark.parametrize(("graph", "options"), REFUSED.values(), ids=REFUSED.keys())
def test_refuses(graph: str, options: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(UsageError, match="E603"):
        run_pass(image_input_preprocess, text.parse(graph), **options)


def test_the_parts_of_complex_numbers_stay_last() -> None:
    model = text.parse("g (float[N,4,5,2] x) => (float[N,4,5,2] y) { y = Neg(x) }")
    mark_pairs(model.graph.inputs[0], "complex64")
    with pytest.raises(UsageError, match="its last axis holds the parts of complex numbers"):
        run_pass(image_input_preprocess, model, inputs=("x",))
