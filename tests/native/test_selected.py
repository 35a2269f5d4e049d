"""Results that have as many elements as the data says, where the model declares how many."""

from __future__ import annotations

import numpy as np
import pytest
from both_targets import BothTargets, by_reference, by_runtime, on_host

from smelt.errors import SmeltError
from smelt.ir import text

F = np.float32
NAN = np.nan
GRAPHS = {
    "nonzero": "g (float[2,3] x) => (int64[2,4] y) { y = NonZero(x) }",
    "compress": "g (float[2,3] x, bool[3] c) => (float[2,2] y) { y = Compress<axis=-1>(x, c) }",
    "compress all": "g (float[2,3] x, bool[4] c) => (float[2] y) { y = Compress(x, c) }",
    "unique": "g (float[7] x) => (float[4] y, int64[4] i, int64[7] v, int64[4] c)"
    " { y, i, v, c = Unique(x) }",
    "unique as met": "g (int64[6] x) => (int64[3] y, int64[3] i, int64[6] v, int64[3] c)"
    " { y, i, v, c = Unique<sorted=0>(x) }",
    "unique columns": "g (int32[2,4] x) => (int32[2,3] y) { y = Unique<axis=1>(x) }",
    "unique and counts": "g (int32[6] x) => (int32[3] y, int64[3] c) { y, , , c = Unique(x) }",
    "unique and places": "g (int32[6] x) => (int32[3] y, int64[3] i) { y, i = Unique(x) }",
    "range": "g (float a, float b, float d) => (float[4] y) { y = Range(a, b, d) }",
    "filled": "g (int64[2] n) => (float[3,2] y) { y = ConstantOfShape(n) }",
    "expanded": "g (float[3,1] x, int64[2] n) => (float[3,2] y) { y = Expand(x, n) }",
    "boxes": "g (float[1,5,4] b, float[1,2,5] s, int64 m, float o, float l) => (int64[4,3] y)"
    " { y = NonMaxSuppression(b, s, m, o, l) }",
}
BOXES = np.array(
    [[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [1, -0.1, 0, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1]]], F
)
SCORES = np.array([[[0.9, 0.75, 0.6, 0.95, 0.5], [0.1, 0.8, 0.8, 0.2, 0.3]]], F)
GIVEN = {
    "nonzero": [np.array([[1, 0, NAN], [-0.0, -2, 3]], F)],
    "compress": [np.arange(6, dtype=F).reshape(2, 3), np.array([True, False, True])],
    "compress all": [np.arange(6, dtype=F).reshape(2, 3), np.array([False, True, False, True])],
    "unique": [np.array([2, -1, 2, 5, 5, 2, 0], F)],
    "unique as met": [np.array([7, -1, 7, 3, 3, -1])],
    "unique columns": [np.array([[1, 0, 1, 0], [2, 5, 2, 4]], np.int32)],
    "unique and counts": [np.array([7, -1, 7, 3, 3, -1], np.int32)],
    "unique and places": [np.array([7, -1, 7, 3, 3, -1], np.int32)],
    "range": [np.array(x, F) for x in (1, 2.1, 0.3)],
    "filled": [np.array([3, 2])],
    "expanded": [np.array([[1], [2], [3]], F), np.array([1, 2])],
    "boxes": [BOXES, SCORES, np.array(3), np.array(0.5, F), np.array(0.15, F)],
}
MISFITS = {
    "nonzero": [np.ones((2, 3), F)],
    "compress": [GIVEN["compress"][0], np.array([True, True, True])],
    "compress all": [GIVEN["compress"][0], np.zeros(4, bool)],
    "unique": [np.arange(7, dtype=F)],
    "unique as met": [np.zeros(6, np.int64)],
    "unique columns": [np.zeros((2, 4), np.int32)],
    "unique and counts": [np.zeros(6, np.int32)],
    "unique and places": [np.zeros(6, np.int32)],
    "range": [np.array(x, F) for x in (1, NAN, 0.3)],
    "filled": [np.array([2, 3])],
    "expanded": [GIVEN["expanded"][0], np.array([3, 3])],
    "boxes": [*GIVEN["boxes"][:2], np.array(1), *GIVEN["boxes"][3:]],
}
LACKING = ("unique columns", "unique and counts", "unique and places")
"""ONNX Runtime has no kernel for them."""


@pytest.fixture(scope="module")
def library() -> BothTargets:
    return BothTargets(GRAPHS)


@pytest.mark.parametrize("name", GRAPHS)
def test_results_of_the_declared_size_are_right(library: BothTargets, name: str) -> None:
    library.check_both(name, GIVEN[name], by_reference if name in LACKING else by_runtime)


@pytest.mark.parametrize("name", GRAPHS)
def test_another_number_ends_the_run(library: BothTargets, name: str) -> None:
    with pytest.raises(AssertionError, match="status 3"):
        library.run(name, MISFITS[name])
    with pytest.raises(SmeltError, match="the model declares"):
        on_host(text.parse(GRAPHS[name], 23), MISFITS[name])


def test_nan_is_one_value_and_the_last(library: BothTargets) -> None:
    x = np.array([NAN, 1, 0.5, NAN, 1, 0.5, -np.inf], F)
    for y, places, number, counts in (library.run("unique", [x]), on_host(_model("unique"), [x])):
        np.testing.assert_array_equal(y, np.array([-np.inf, 0.5, 1, NAN], F))
        assert places.tolist() == [6, 2, 1, 0]
        assert number.tolist() == [3, 2, 1, 3, 2, 1, 0]
        assert counts.tolist() == [1, 2, 2, 2]


def _model(name: str):
    return text.parse(GRAPHS[name], 23)
