"""Resize in every mode, on C and the host, against ONNX Runtime, or the reference where they differ."""

from __future__ import annotations

import numpy as np
import pytest
from both_targets import BothTargets, by_reference, by_runtime
from c_library import compile_text, random_inputs
from onnx import parser

import smelt
from smelt.errors import SmeltError

UP, DOWN, AXES = "float[4] s = {1,1,2,1.7}", "float[4] s = {1,1,0.6,0.5}", "float[2] s = {1.3,2.6}"
FRACTIONS = "float[4] s = {1,1,0.7,1.7}"
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
CROP_MODE = "tf_crop_and_resize"
BY_SCALE = (*COORDINATES, "half_pixel_symmetric", "tf_half_pixel_for_nn", CROP_MODE)
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def by_scales(attributes: str, scales: str = UP, dtype: str = "float") -> str:
    region = f", float[8] r = {{{ROI}}}" if CROP_MODE in attributes else ""
    return (
        f"g ({dtype}[2,1,5,4] x) => ({dtype}[A,B,C,D] y) <{scales}{region}> "
        f"{{ y = Resize<{attributes}>(x, {'r' if region else ''}, s) }}"
    )


def by_sizes(attributes: str, sizes: str = "4] s = {2,1,7,9}", roi: str = "") -> str:
    given = f", float[8] r = {{{roi}}}" if roi else ""
    read = "r" if roi else ""
    return (
        f"g (float[2,1,5,4] x) => (float[A,B,C,D] y) <int64[{sizes}{given}> "
        f"{{ y = Resize<{attributes}>(x, {read}, , s) }}"
    )


def mode(name: str, coordinates: str = "half_pixel", more: str = "") -> str:
    return f'mode = "{name}", coordinate_transformation_mode = "{coordinates}"{more}'


CROP = mode("linear", "tf_crop_and_resize", ", extrapolation_value = 7.0")
ROI = "0,0,0.2,-0.4,1,1,0.9,1.3"
RUNTIME = {
    **{f"nearest {c} {r}": by_sizes(mode("nearest", c, f', nearest_mode = "{r}"'))
       for c in COORDINATES for r in ROUNDINGS},
    "linear half_pixel": by_sizes(mode("linear")),
    **{f"{m} {c} by fractions": by_scales(mode(m, c), FRACTIONS)
       for m in ("nearest", "linear", "cubic") for c in BY_SCALE},
    "linear by scales": by_scales(mode("linear")),
    "linear smaller": by_scales(mode("linear"), DOWN),
    "cubic outside": by_scales(mode("cubic", more=", exclude_outside = 1"), DOWN),
    "cubic other curve": by_scales(mode("cubic", more=", cubic_coeff_a = -0.5")),
    "symmetric": by_scales(mode("linear", "half_pixel_symmetric"), DOWN),
    "crop": by_sizes(CROP, roi=ROI),
    "crop to one": by_sizes(CROP, "4] s = {2,1,1,3}", ROI),
    "two axes": by_scales(mode("cubic", more=", axes = [3,2]"), AXES),
    "not larger": by_sizes(
        mode("linear", more=', axes = [2,3], keep_aspect_ratio_policy = "not_larger"'),
        "2] s = {8,5}",
    ),
    "not smaller": by_sizes(
        mode("linear", more=', axes = [2,3], keep_aspect_ratio_policy = "not_smaller"'),
        "2] s = {3,1}",
    ),
    "nearest of int32": by_scales(mode("nearest"), dtype="int32"),
    "linear of int32": by_scales(mode("linear"), "float[4] s = {1,1,2,2}", "int32"),
    "nothing changes": by_scales(mode("linear"), "float[4] s = {1,1,1,1}"),
    "products in float32": (
        "g (float[1,1,10] x) => (float[A,B,C] y) <float[3] s = {1,1,0.7}> { y = Resize(x, , s) }"
    ),
}  # fmt: skip
REFERENCE = {
    **{f"{m} against aliases {o}": by_scales(
        mode(m, more=f", antialias = 1, exclude_outside = {o}"), DOWN)
       for m in ("linear", "cubic") for o in (0, 1)},
    "integers that ONNX Runtime lacks": by_scales(mode("linear"), DOWN, dtype="int64"),
    "integers against aliases": by_scales(
        mode("linear", more=", antialias = 1"), DOWN, dtype="int32"
    ),
    "doubles": by_scales(mode("linear"), dtype="double"),
}  # fmt: skip


@pytest.fixture(scope="module")
def library() -> BothTargets:
    return BothTargets(RUNTIME | REFERENCE)


@pytest.mark.parametrize("name", [*RUNTIME, *REFERENCE])
def test_agrees(library: BothTargets, name: str) -> None:
    expect = by_runtime if name in RUNTIME else by_reference
    library.check_both(name, random_inputs(library.models[name].source), expect)


IMAGE = np.float32(np.arange(20) * 7 % 11).reshape(1, 1, 4, 5)
TORCH_MODES = {
    "bilinear aligned": mode("linear", "align_corners"),
    "bilinear": mode("linear", "pytorch_half_pixel"),
    "bicubic aligned": mode("cubic", "align_corners"),
    "bicubic": mode("cubic", "pytorch_half_pixel"),
    "nearest": mode("nearest", "asymmetric", ', nearest_mode = "floor"'),
    "nearest-exact": mode("nearest", "half_pixel", ', nearest_mode = "round_prefer_ceil"'),
}
TORCH = {
    "0.6,1.7": (2, 8, {
        "bilinear aligned": "0 4 6.4286 4.1429 5 9 8.2857 6 6 3.7143 3 7 7.8571 5.5714 3.2857 1",
        "bilinear": "0.66667 3.3431 7.4608 5.4314 4.1569 6.1176 6.8922 6.6961"
        " 4 2.4706 0.11765 3.9118 6.4118 4.0588 5.2647 9.3824",
        "bicubic aligned": "0 4.4811 6.9752 3.5962 4.5845 9.4155 9.0554 6"
        " 6 2.9446 2.5845 7.4155 8.8848 5.8907 2.9009 1",
        "bicubic": "-0.22262 3.6352 8.0527 5.7748 3.5978 6.0797 7.2849 6.5758"
        " 4.3895 2.0521 -0.054684 4.0495 6.9651 3.4864 4.6854 9.477",
        "nearest": "0 0 7 7 3 3 10 6 2 2 9 9 5 5 1 8",
        "nearest-exact": "0 0 7 3 3 10 10 6 4 4 0 7 7 3 3 10",
    }),
    "1.3,0.45": (5, 2, {
        "bilinear aligned": "0 6 1.5 7.5 3 9 4.5 7.75 6 1",
        "bilinear": "4.2778 8.8333 5.5855 4.1474 4.2799 2.5128 1.9402 4.0513 3.4786 5.5897",
        "bicubic aligned": "0 6 1.3359 7.3359 3 10.031 4.6641 8.1719 6 1",
        "bicubic": "4.6705 9.8404 6.8216 3.4074 4.3529 0.6899 0.50637 3.7917 2.6739 5.9567",
        "nearest": "0 3 0 3 2 5 4 7 6 9",
        "nearest-exact": "7 10 9 1 9 1 0 3 2 5",
    }),
}  # fmt: skip
"""``torch.nn.functional.interpolate(IMAGE, scale_factor=...)`` of PyTorch 2.13, to five digits."""


@pytest.fixture(scope="module")
def torch_library() -> BothTargets:
    head = "g (float[1,1,4,5] x) => (float[A,B,C,D] y)"
    return BothTargets({
        f"{name} {scales}": f"{head} <float[4] s = {{1,1,{scales}}}> {{ y = Resize<{how}>(x, , s) }}"
        for scales in TORCH
        for name, how in TORCH_MODES.items()
    })  # fmt: skip


@pytest.mark.parametrize("scales", TORCH)
@pytest.mark.parametrize("name", TORCH_MODES)
def test_agrees_with_pytorch(torch_library: BothTargets, name: str, scales: str) -> None:
    *sizes, numbers = TORCH[scales]
    want = np.float32(numbers[name].split()).reshape(1, 1, *sizes)
    torch_library.check_both(f"{name} {scales}", [IMAGE], lambda *_: [want], rtol=1e-4, atol=1e-4)


def test_an_infinite_neighbour_spoils_only_rows_that_read_it(library: BothTargets) -> None:
    x = np.zeros((2, 1, 5, 4), np.float32)
    x[0, 0, 0, 0] = np.inf
    (y,) = library.run("linear half_pixel", [x])
    assert y[0, 0, 0, 0] == np.inf
    assert not np.isnan(y).any()


def test_the_same_before_resize_named_its_coordinates() -> None:
    graphs = {
        "resize": "g (float[1,1,3,4] x) => (float[A,B,C,D] y) <float[4] s = {1,1,2,1.6}> { y = Resize(x, s) }",
        "upsample": 'g (float[1,1,3,4] x) => (float[A,B,C,D] y) <float[4] s = {1,1,2,2}> { y = Upsample<mode = "linear">(x, s) }',
    }
    for name, opset in (("resize", 10), ("upsample", 9)):
        library = BothTargets({name: graphs[name]}, opset)
        library.check_both(name, random_inputs(library.models[name].source))


def test_sizes_that_come_at_run_time_need_a_bound() -> None:
    with pytest.raises(SmeltError, match="E411 the size _d0 of 'y'"):
        compile_text("g (float[3] x, int64[1] s) => (float[A] y) { y = Resize(x, , , s) }")


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_host_resizes_an_axis_to_nothing(mode: str) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 22]> g (float[1,2,3,1] x) => (float[a,b,c,d] y)
        <float[4] s = {{1.0, 1.0, 1.0, 0.7}}>
        {{ y = Resize<mode="{mode}", coordinate_transformation_mode="asymmetric">(x, , s) }}"""
    (y,) = smelt.compile(parser.parse_model(text), target="host")(np.ones((1, 2, 3, 1), np.float32))
    assert np.shape(y) == (1, 2, 3, 0)
