"""Axes, diagonals, depths, sizes and scales that come with the data of a run, on C and on the host."""

from __future__ import annotations

import numpy as np
import pytest
from both_targets import BothTargets, by_reference, by_runtime, on_host
from c_library import compile_text

from smelt.errors import ErrorList, UsageError
from smelt.ir import text

X = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)
IMAGE = np.random.default_rng(1).standard_normal((1, 2, 6, 5)).astype(np.float32)
SUM = "g (float[3,4,5] x, int64 a) => (float[3,4,5] y) {{ y = CumSum<{}>(x, a) }}"
RESIZED = "g (float[1,2,6,5] x, {} n) => (float[1,2,{}] y) {{ y = Resize<{}>(x, {}n) }}"


def _scaled(sizes: str, told: str) -> str:
    return RESIZED.format("float[4]", sizes, told, ", ")


def _sized(sizes: str, told: str) -> str:
    return RESIZED.format("int64[2]", sizes, told + ", axes=[2,3]", ", , ")


CASES = {
    "running sum": (SUM.format("exclusive=0"), [X, np.int64(1)]),
    "from the back, without itself": (SUM.format("exclusive=1, reverse=1"), [X, np.int64(-3)]),
    "running product of bytes": (
        "g (int8[3,4] x, int64 a) => (int8[3,4] y) { y = CumProd(x, a) }",
        [np.arange(12, dtype=np.int8).reshape(3, 4), np.int64(-1)],
    ),
    "upper": (
        "g (float[3,4,5] x, int64 k) => (float[3,4,5] y) { y = Trilu(x, k) }",
        [X, np.int64(2)],
    ),
    "lower": (
        "g (bool[4,5] x, int64 k) => (bool[4,5] y) { y = Trilu<upper=0>(x, k) }",
        [X[0] > 0, np.int64(-2)],
    ),
    "one hot": (
        "g (int64[2,3] i, int64 d, float[2] v) => (float[2,4,3] y) { y = OneHot<axis=1>(i, d, v) }",
        [np.array([[0, 3, -1], [-4, 4, -5]]), np.int64(4), np.float32([-1, 2])],
    ),
    "one hot by floats": (
        "g (float[3] i, float d, int32[2] v) => (int32[3,4] y) { y = OneHot(i, d, v) }",
        [np.float32([0, 2, -1]), np.float32(4), np.int32([5, 7])],
    ),
    "split": (
        "g (float[3,4,5] x, int64[3] n) => (float[3,1,5] a, float[3,0,5] b, float[3,3,5] c)"
        " { a, b, c = Split<axis=1>(x, n) }",
        [X, np.array([1, 0, 3])],
    ),
    "nearest by scales": (
        _scaled("9,2", 'nearest_mode="ceil"'),
        [IMAGE, np.float32([1, 1, 1.6, 0.5])],
    ),
    "linear by sizes": (_sized("9,3", 'mode="linear"'), [IMAGE, np.array([9, 3])]),
    "cubic, whole": (
        _scaled(
            "9,7", 'mode="cubic", exclude_outside=1, coordinate_transformation_mode="asymmetric"'
        ),
        [IMAGE, np.float32([1, 1, 1.5, 1.4])],
    ),
    "corners": (
        _sized("1,8", 'mode="linear", coordinate_transformation_mode="align_corners"'),
        [IMAGE, np.array([1, 8])],
    ),
    "corners by fractions": (
        _scaled("3,8", 'mode="linear", coordinate_transformation_mode="align_corners"'),
        [IMAGE, np.float32([1, 1, 0.6, 1.7])],
    ),
    "antialias": (
        _scaled("2,4", 'mode="linear", antialias=1'),
        [IMAGE, np.float32([1, 1, 0.4, 0.8])],
    ),
    "no larger": (
        _sized("5,4", 'keep_aspect_ratio_policy="not_larger"'),
        [IMAGE, np.array([9, 4])],
    ),
    "a region": (
        "g (float[1,2,6,5] x, float[4] r, int64[2] n) => (float[1,2,4,3] y) { y = Resize<axes=[2,3],"
        ' mode="linear", coordinate_transformation_mode="tf_crop_and_resize",'
        " extrapolation_value=9.0>(x, r, , n) }",
        [IMAGE, np.float32([-0.2, 0.1, 0.7, 1.3]), np.array([4, 3])],
    ),
    "cropped and padded": (
        "g (float[3,4,5] x, int64[2] n) => (float[6,4,2] y) { y = CenterCropPad<axes=[0,-1]>(x, n) }",
        [X, np.array([6, 2])],
    ),
    "as many along the last axis": (
        "g (float[2,3,1] x, int64[1] n) => (float[2,3,4] y) { y = Expand(x, n) }",
        [X.reshape(-1)[:6].reshape(2, 3, 1), np.array([4])],
    ),
    "a grid": (
        "g (float[2,2,3] t, int64[4] n) => (float[2,3,1,2] y) { y = AffineGrid(t, n) }",
        [X.reshape(-1)[:12].reshape(2, 2, 3), np.array([2, 5, 3, 1])],
    ),
    "a grid to the corners": (
        "g (float[1,3,4] t, int64[5] n) => (float[1,2,3,4,3] y)"
        " { y = AffineGrid<align_corners=1>(t, n) }",
        [X.reshape(-1)[:12].reshape(1, 3, 4), np.array([1, 5, 2, 3, 4])],
    ),
    "integers": (
        "g (uint8[6] x, int64[1] n) => (uint8[9] y)"
        ' { y = Resize<mode="linear", coordinate_transformation_mode="asymmetric">(x, , , n) }',
        [np.uint8([0, 255, 0, 9, 255, 255]), np.array([9])],
    ),
}
BY_REFERENCE = (
    "running product of bytes",
    "lower",
    "no larger",
    "integers",
    "one hot by floats",
    "cropped and padded",
    "a grid",
    "a grid to the corners",
)
"""The runtime has no kernel for these types, or rounds the aspect ratio otherwise."""

WRONG = {
    "running sum": [X, np.int64(3)],
    "one hot": [np.zeros((2, 3), np.int64), np.int64(5), np.float32([0, 1])],
    "split": [X, np.array([1, 0, 2])],
    "nearest by scales": [IMAGE, np.float32([1, 1, 1.7, 0.5])],
    "linear by sizes": [IMAGE, np.array([9, 4])],
    "antialias": [IMAGE, np.float32([1, 1, np.nan, 0.8])],
    "cropped and padded": [X, np.array([6, 3])],
}


@pytest.fixture(scope="module")
def library() -> BothTargets:
    return BothTargets({name: graph for name, (graph, _) in CASES.items()}, opset=26)


@pytest.mark.parametrize("name", CASES)
def test_as_onnx_says(library: BothTargets, name: str) -> None:
    inputs = [np.asarray(array) for array in CASES[name][1]]
    library.check_both(name, inputs, by_reference if name in BY_REFERENCE else by_runtime)


@pytest.mark.parametrize("name", WRONG)
def test_operands_that_lead_to_other_sizes_end_the_run(library: BothTargets, name: str) -> None:
    inputs = [np.asarray(array) for array in WRONG[name]]
    with pytest.raises(AssertionError, match="status 3"):
        library.run(name, inputs)
    with pytest.raises(UsageError, match="E670"):
        on_host(text.parse(library.graphs[name], library.opset), inputs)


def test_an_infinite_row_without_weight_is_not_read(library: BothTargets) -> None:
    x = IMAGE.copy()
    x[0, 0, 1] = np.inf
    (y,) = library.run("corners", [x, np.array([1, 8])])
    assert np.isfinite(y).all()


@pytest.mark.parametrize(
    ("x", "n", "why"),
    [("3,0", 2, "the tensor has no element"), ("3,2", 1, "the sizes do not fit the axes")],
)
def test_nothing_is_cut_from_no_element_or_by_too_few_sizes(x: str, n: int, why: str) -> None:
    graph = f"g (float[{x}] x, int64[{n}] n) => (float[2,2] y) {{ y = CenterCropPad(x, n) }}"
    with pytest.raises(ErrorList, match=why):
        compile_text(graph, opset=18)
