"""Shapes computed from input dims become constants, with the pitfalls of 0, -1 and empty
tensors."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
from rewrites import check_refused, check_rewrite, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.simplify.remove_symbolic_reshape import remove_symbolic_reshape
from smelt.runtime.runner import open_runner

DIM_0 = "d = Shape<start=0,end=1>(x)"
DIM_1 = "e = Shape<start=1,end=2>(x)"
DIM_2 = "f = Shape<start=2,end=3>(x)"

CONSTANT = {
    "a dim that stays at its place": (
        f"g (float[B,12] x) => (float[B,3,4] y) <int64[2] c = {{3,4}}> "
        f"{{ {DIM_0} s = Concat<axis=0>(d, c) y = Reshape(x, s) }}",
        "g (float[B,12] x) => (float[B,3,4] y) <int64[3] k = {0,3,4}> { y = Reshape(x, k) }",
    ),
    "two dims that stay": (
        f"g (float[B,S,12] x) => (float[B,S,3,4] y) <int64[2] c = {{3,4}}> "
        f"{{ {DIM_0} {DIM_1} s = Concat<axis=0>(d, e, c) y = Reshape(x, s) }}",
        "g (float[B,S,12] x) => (float[B,S,3,4] y) <int64[4] k = {0,0,3,4}> { y = Reshape(x, k) }",
    ),
    "a product of dims": (
        f"g (float[B,S,4] x) => (float[N,4] y) <int64[1] c = {{4}}> "
        f"{{ {DIM_0} {DIM_1} p = Mul(d, e) s = Concat<axis=0>(p, c) y = Reshape(x, s) }}",
        "g (float[B,S,4] x) => (float[N,4] y) <int64[2] k = {-1,4}> { y = Reshape(x, k) }",
    ),
    "a -1 of its own": (
        f"g (float[B,H,W] x) => (float[B,N] y) <int64[1] c = {{-1}}> "
        f"{{ {DIM_0} s = Concat<axis=0>(d, c) y = Reshape(x, s) }}",
        "g (float[B,H,W] x) => (float[B,N] y) <int64[2] k = {0,-1}> { y = Reshape(x, k) }",
    ),
    "a dim that is cut to a table, where no element is left out": (
        f"g (float[B,S,3,4] x) => (float[B,S,12] y) <int64[1] c = {{12}}, int64[1] most = {{64}}> "
        f"{{ {DIM_0} {DIM_1} f = Min(e, most) s = Concat<axis=0>(d, f, c) y = Reshape(x, s) }}",
        "g (float[B,S,3,4] x) => (float[B,S,12] y) <int64[3] k = {0,0,12}> { y = Reshape(x, k) }",
    ),
    "a -1 for a number, beside a product of dims": (
        f"g (float[B,12,8] x) => (float[N,4,6] y) <int64[1] c = {{4}}, int64[2] r = {{-1,6}}> "
        f"{{ {DIM_0} p = Mul(d, c) s = Concat<axis=0>(p, r) y = Reshape(x, s) }}",
        "g (float[B,12,8] x) => (float[N,4,6] y) <int64[3] k = {-1,4,6}> { y = Reshape(x, k) }",
    ),
    "a dim of 1 between unknown ones": (
        f"g (float[B,H,W] x) => (float[B,1,H,W] y) <int64[1] one = {{1}}> "
        f"{{ {DIM_0} {DIM_1} {DIM_2} s = Concat<axis=0>(d, one, e, f) y = Reshape(x, s) }}",
        "g (float[B,H,W] x) => (float[B,1,H,W] y) <int64[1] k = {1}> { y = Unsqueeze(x, k) }",
    ),
    "dims of 1 around unknown ones": (
        f"g (float[B,1,W] x) => (float[1,B,1,1,W,1] y) <int64[1] one = {{1}}> "
        f"{{ {DIM_0} {DIM_2} s = Concat<axis=0>(one, d, one, one, f, one) y = Reshape(x, s) }}",
        "g (float[B,1,W] x) => (float[1,B,1,1,W,1] y) <int64[3] k = {0,3,5}> { y = Unsqueeze(x, k) }",
    ),
    "a dim of 1 that goes": (
        f"g (float[B,1,W,H] x) => (float[B,W,H] y) "
        f"{{ {DIM_0} {DIM_2} h = Shape<start=3,end=4>(x) s = Concat<axis=0>(d, f, h) y = Reshape<allowzero=1>(x, s) }}",
        "g (float[B,1,W,H] x) => (float[B,W,H] y) <int64[1] k = {1}> { y = Squeeze(x, k) }",
    ),
    "an Expand of other dims": (
        f"g (float[B,1,4] x) => (float[B,3,4] y) <int64[2] c = {{3,4}}> "
        f"{{ {DIM_0} s = Concat<axis=0>(d, c) y = Expand(x, s) }}",
        "g (float[B,1,4] x) => (float[B,3,4] y) <int64[3] k = {1,3,4}> { y = Expand(x, k) }",
    ),
}


@pytest.mark.parametrize(("before", "after"), CONSTANT.values(), ids=CONSTANT.keys())
def test_says_it_by_a_constant(before: str, after: str) -> None:
    check_rewrite(remove_symbolic_reshape, before, after)


KEPT = {
    "-1 beside another unknown dim": (
        f"g (float[B,S,3,4] x) => (float[B,N,4] y) <int64[1] three = {{3}}, int64[1] c = {{4}}> "
        f"{{ {DIM_0} {DIM_1} p = Mul(e, three) s = Concat<axis=0>(d, p, c) y = Reshape(x, s) }}"
    ),
    "two dims at other places": (
        f"g (float[B,S,4] x) => (float[S,B,4] y) <int64[1] c = {{4}}> "
        f"{{ {DIM_0} {DIM_1} s = Concat<axis=0>(e, d, c) y = Reshape(x, s) }}"
    ),
    "dims that change their places around a 1": (
        f"g (float[B,S,4] x) => (float[S,1,B,4] y) <int64[1] one = {{1}}, int64[1] four = {{4}}> "
        f"{{ {DIM_0} {DIM_1} s = Concat<axis=0>(e, one, d, four) y = Reshape(x, s) }}"
    ),
    "a dim of 1 beside a product": (
        f"g (float[B,S,H,4] x) => (float[N,1,H,4] y) <int64[1] one = {{1}}, int64[1] c = {{4}}> "
        f"{{ {DIM_0} {DIM_1} {DIM_2} p = Mul(d, e) s = Concat<axis=0>(p, one, f, c) y = Reshape(x, s) }}"
    ),
    "a 0 that means 0": (
        f"g (float[B,0] x) => (float[B,0,4] y) <int64[2] c = {{0,4}}> "
        f"{{ {DIM_0} s = Concat<axis=0>(d, c) y = Reshape<allowzero=1>(x, s) }}"
    ),
    "a shape from outside": "g (float[B,4] x, int64[2] s) => (float[M,N] y) { y = Reshape(x, s) }",
    "an Expand of a new dim": (
        f"g (float[B,4] x, float[1,4] w) => (float[B,4] y) <int64[1] c = {{4}}> "
        f"{{ {DIM_0} s = Concat<axis=0>(d, c) y = Expand(w, s) }}"
    ),
    "dims of another input": (
        "g (float[B,12] x, float[C,1] w) => (float[C,B,N] y) <int64[1] c = {3}> "
        "{ d = Shape<start=0,end=1>(w) e = Shape<start=0,end=1>(x) s = Concat<axis=0>(d, e, c) y = Reshape(x, s) }"
    ),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(remove_symbolic_reshape, graph)


def test_an_empty_batch_still_runs() -> None:
    before, _ = CONSTANT["two dims that stay"]
    model = text.parse(before, 23)
    assert run_pass(remove_symbolic_reshape, model).rewrites == 1
    (y,) = open_runner(model)(np.zeros((0, 5, 12), np.float32))
    assert y.shape == (0, 5, 3, 4)


BATCH = f"{DIM_0} s = Concat<axis=0>(d, c)"
KEPT_MODE = 'mode="linear", coordinate_transformation_mode="{}"'


@pytest.mark.parametrize("mode", ["half_pixel", "align_corners", "asymmetric"])
def test_a_resize_is_given_scales(mode: str) -> None:
    given = KEPT_MODE.format(mode)
    check_rewrite(
        remove_symbolic_reshape,
        "g (float[B,3,8,8] x) => (float[B,3,16,20] y) <int64[3] c = {3,16,20}> "
        f"{{ {BATCH} y = Resize<{given}>(x, , , s) }}",
        "g (float[B,3,8,8] x) => (float[B,3,16,20] y) <float[4] k = {1,1,2,2.5}> "
        f"{{ y = Resize<{given}>(x, , k) }}",
        opset=15,
    )


@pytest.mark.parametrize(("width", "form"), [("8", "<>(x, , k)"), ("W", "<axes=[3]>(x, , , k)")])
def test_a_resize_along_named_axes_names_fewer_or_none(width: str, form: str) -> None:
    constant = "int64[1] k = {20}" if "axes" in form else "float[4] k = {1,1,1,2.5}"
    check_rewrite(
        remove_symbolic_reshape,
        f"g (float[B,3,8,{width}] x) => (float[B,3,8,20] y) <int64[1] c = {{20}}> "
        f"{{ {DIM_0} s = Concat<axis=0>(d, c) y = Resize<axes=[0,-1]>(x, , , s) }}",
        f"g (float[B,3,8,{width}] x) => (float[B,3,8,20] y) <{constant}> "
        f"{{ y = Resize{form.replace('<>', '')} }}",
        opset=18,
    )


def test_a_resize_after_a_transpose_opens_in_onnx_runtime() -> None:
    """It permutes the sizes of some axes like sizes of all, when it moves the Transpose."""
    before = (
        "g (float[B,8,8,3] x) => (float[B,16,20,3] y) <int64[3] c = {3,16,20}> "
        f'{{ t = Transpose<perm=[0,3,1,2]>(x) {BATCH} r = Resize<mode="linear">(t, , , s) '
        "y = Transpose<perm=[0,2,3,1]>(r) }"
    )
    model = text.parse(before, 19)
    assert run_pass(remove_symbolic_reshape, model).rewrites == 1
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString())
    [y] = session.run(None, {"x": np.zeros((2, 8, 8, 3), np.float32)})
    assert y.shape == (2, 16, 20, 3)


KEPT_RESIZE = {
    "a scale that is rounded down": ("half_pixel", "B", "3,16,9", 18),
    "a crop": ("tf_crop_and_resize", "B", "3,16,20", 18),
    "the sizes of another value": ("half_pixel", "N", "3,16,20", 18),
}


@pytest.mark.parametrize("case", KEPT_RESIZE)
def test_a_resize_keeps_its_sizes(case: str) -> None:
    mode, batch, sizes, opset = KEPT_RESIZE[case]
    roi = "r" if "crop" in mode else ""
    check_unchanged(
        remove_symbolic_reshape,
        f"g (float[B,3,8,7] x, float[{batch},1] z) => (float[M,3,16,N] y) "
        f"<int64[3] c = {{{sizes}}}, float[8] r = {{0,0,0,0,1,1,1,1}}> "
        "{ d = Shape<start=0,end=1>(z) s = Concat<axis=0>(d, c) "
        f"y = Resize<{KEPT_MODE.format(mode)}>(x, {roi}, , s) }}",
        opset=opset,
    )


RESIZED = "g (float[B,3,8,8] x{}) => (float[M,3,N,20] y) <int64[3] c = {{3,16,20}}> {{ {} }}"
TOLD_RESIZE = {
    "keep_aspect_ratio_policy of the Resize is not stretch": RESIZED.format(
        "",
        "d = Shape<start=0,end=1>(x) s = Concat<axis=0>(d, c) "
        'y = Resize<mode="linear", keep_aspect_ratio_policy="not_larger">(x, , , s)',
    ),
    "inference does not know the elements of the sizes": RESIZED.format(
        ", int64[4] s", 'y = Resize<mode="linear">(x, , , s)'
    ),
}


@pytest.mark.parametrize("why", TOLD_RESIZE)
def test_why_a_resize_keeps_its_sizes_is_told(why: str) -> None:
    check_refused(remove_symbolic_reshape, TOLD_RESIZE[why], why)
