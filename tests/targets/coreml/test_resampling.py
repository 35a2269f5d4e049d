"""Resize: native for images, else sums of gathers, in which an infinite element stays in its place."""

from __future__ import annotations

import numpy as np
import pytest
from targets.coreml.packages import computed, types, written

from smelt.errors import SmeltError
from smelt.ir import text
from smelt.runtime.runner import open_runner

F = np.float32


def resize(attributes: str, before: str, after: str) -> str:
    sizes = after.split(",")
    return (
        f"g (float[{before}] x) => (float[{after}] y) <int64[{len(sizes)}] s = {{{after}}}>"
        f" {{ y = Resize <{attributes}> (x,,, s) }}"
    )


POINTS = ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "align_corners", "asymmetric")


@pytest.mark.parametrize("points", POINTS)
@pytest.mark.parametrize(("before", "after"), [("1,2,3,4", "1,2,7,6"), ("2,5,4", "2,3,4")])
def test_images_are_resized_by_one_operation(points, before, after):
    model = resize(f'mode = "linear", coordinate_transformation_mode = "{points}"', before, after)
    artifact = written(model)
    assert types(artifact) == ["resize_bilinear"]
    sizes = [int(each) for each in before.split(",")]
    x = np.random.default_rng(1).normal(size=sizes).astype(F)
    expected = open_runner(text.parse(model))(x)[0]
    np.testing.assert_allclose(computed(artifact, x)[0], expected, rtol=1e-5, atol=1e-6)


OTHERS = {
    "cubic": ('mode = "cubic"', "1,1,3,4", "1,1,6,4"),
    "antialias": ('mode = "linear", antialias = 1', "1,1,8,4", "1,1,3,4"),
    "another axis": ('mode = "linear"', "4,2,2", "7,2,2"),
    "a matrix": ('mode = "linear"', "4,3", "6,5"),
    "five dims": ('mode = "linear"', "1,1,2,3,4", "1,1,4,3,8"),
    "one row": (
        'mode = "linear", coordinate_transformation_mode = "align_corners"',
        "1,1,4,4",
        "1,1,1,4",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_forms_are_sums_of_gathers(name):
    model = resize(*OTHERS[name])
    artifact = written(model)
    assert "resize_bilinear" not in types(artifact)
    assert "matmul" not in types(artifact)
    sizes = [int(each) for each in OTHERS[name][1].split(",")]
    x = np.random.default_rng(2).normal(size=sizes).astype(F)
    expected = open_runner(text.parse(model))(x)[0]
    np.testing.assert_allclose(computed(artifact, x)[0], expected, rtol=1e-5, atol=1e-6)


def test_an_infinite_element_changes_only_what_reads_it():
    x = np.ones((1, 1, 8, 1), F)
    x[0, 0, 0, 0] = np.inf
    (found,) = computed(written(resize('mode = "cubic"', "1,1,8,1", "1,1,16,1")), x)
    assert np.isfinite(found[0, 0, 8:]).all()


def scaled(scale: float, size: int, count: int) -> str:
    return (
        f"g (float[1,1,{size},4] x) => (float[1,1,{count},4] y)"
        f" <float[4] s = {{1.0, 1.0, {scale}, 1.0}}>"
        ' { y = Resize <mode = "linear", coordinate_transformation_mode = "align_corners"> (x,, s) }'
    )


def test_aligned_corners_of_a_fraction_of_a_row_are_refused():
    with pytest.raises(SmeltError) as caught:
        written(scaled(0.6, 4, 2))
    (error,) = caught.value.errors
    assert error.code == "E201"
    assert "2.4 rows of 4" in error.why
    assert "sizes" in error.fix
    assert types(written(scaled(0.5, 4, 2))) == ["resize_bilinear"]


def test_integers_are_not_interpolated():
    model = resize('mode = "linear"', "1,1,2,2", "1,1,4,4").replace("float", "int32")
    with pytest.raises(SmeltError) as caught:
        written(model)
    assert caught.value.errors[0].code == "E201"
