"""A check of factors: it changes nothing, ends a run of singular matrices, and stays unread."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.errors import InvalidModel, SmeltError
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.program.lower import lower

UNREAD = """<ir_version: 10, opset_import: ["" : 20, "smelt" : 1]>
g (float[2,3,3] a, float[2,3] b) => (float[2,3] y) {
    lu, pivots, permutation = smelt.LU(a)
    checked = smelt.ValidateNonsingular(lu)
    y = Neg(b)
}"""
READ = """<ir_version: 10, opset_import: ["" : 20, "smelt" : 1]>
g (double[3,2] u) => (double[3,2] y) {
    twice = Add(u, u)
    checked = smelt.ValidateNonsingular(twice)
    y = Neg(checked)
}"""
REGULAR = np.array([[[0, 2, 0], [1, 0, 0], [0, 0, 3]], np.eye(3)], np.float32)
SINGULAR = np.array([np.eye(3), [[1, 2, 3], [2, 4, 6], [0, 1, 1]]], np.float32)
ENGINES = [
    {"target": "host", "engine": "numpy"},
    pytest.param({"target": "host", "engine": "native"}, marks=pytest.mark.slow),
    {"target": "c"},
]


@pytest.mark.parametrize("options", ENGINES, ids=str)
def test_a_check_that_nobody_reads_ends_the_run_of_a_singular_matrix(
    options: dict[str, str],
) -> None:
    check = smelt.compile(text.parse(UNREAD), **options)  # type: ignore[arg-type]
    b = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(check(REGULAR, b)[0], -b)
    with pytest.raises(InvalidModel) as caught:
        check(SINGULAR, b)
    assert caught.value.code == "E331"
    np.testing.assert_array_equal(check(REGULAR, b)[0], -b)


@pytest.mark.slow
@pytest.mark.parametrize("options", ENGINES, ids=str)
@pytest.mark.parametrize("pivot", [0.0, -0.0, np.nan, np.inf])
def test_pivots_are_those_of_any_shape(options: dict[str, str], pivot: float) -> None:
    check = smelt.compile(text.parse(READ), **options)  # type: ignore[arg-type]
    u = np.array([[1, 0], [np.nan, 2], [0, 0]])
    np.testing.assert_array_equal(check(u)[0], -2 * u)
    u[1, 1] = pivot
    with pytest.raises(InvalidModel) as caught:
        check(u)
    assert caught.value.code == "E331"


def test_the_eager_run_names_matrix_and_pivot() -> None:
    model = text.parse(UNREAD)
    ShapeInference(model).infer_model()
    with pytest.raises(InvalidModel, match=r"pivot 2 of its factor is 0.0\n +at +matrix \[1\]"):
        smelt.run_program(lower(model), SINGULAR, np.ones((2, 3), np.float32))


def test_onnx_cannot_say_it() -> None:
    with pytest.raises(SmeltError) as caught:
        smelt.compile(text.parse(UNREAD), target="onnx")
    assert "ValidateNonsingular" in str(caught.value)
