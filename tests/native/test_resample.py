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
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def by_scales(attributes: str, scales: str = UP, dtype: str = "float") -> str:
    return (
        f"g ({dtype}[2,1,5,4] x) => ({dtype}[A,B,C,D] y) <{scales}> "
        f"{{ y = Resize<{attributes}>(x, , s) }}"
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
    **{f"{m} {c}": by_sizes(mode(m, c)) for m in ("linear", "cubic") for c in COORDINATES},
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
    "aligned to a part of a row": by_scales(mode("linear", "align_corners"), DOWN),
}  # fmt: skip


@pytest.fixture(scope="module")
def library() -> BothTargets:
    return BothTargets(RUNTIME | REFERENCE)


@pytest.mark.parametrize("name", [*RUNTIME, *REFERENCE])
def test_agrees(library: BothTargets, name: str) -> None:
    expect = by_runtime if name in RUNTIME else by_reference
    library.check_both(name, random_inputs(library.models[name].source), expect)


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
