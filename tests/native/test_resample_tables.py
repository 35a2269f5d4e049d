"""Resize of an image whose sizes each run has of its own, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from sized_library import Sized, SizedLibrary

import smelt
from smelt.errors import ErrorList, SmeltError
from smelt.runtime.onnxruntime import OnnxRuntime

OPEN = {"H": (1, 9), "W": (1, 9)}
X = "g (float[1,2,H,W] x) => (float[1,2,P,Q] y)"


def by(attributes: str, scales: str = "1,1,2,3", head: str = X, roi: str = "") -> Sized:
    given = f", float[8] r = {{{roi}}}" if roi else ""
    return Sized(
        f"{head} <float[4] s = {{{scales}}}{given}> "
        f"{{ y = Resize<{attributes}>(x, {'r' if roi else ''}, s) }}",
        OPEN,
    )


def to(attributes: str, sizes: str = "1,2,7,4", roi: str = "") -> Sized:
    given = f", float[8] r = {{{roi}}}" if roi else ""
    return Sized(
        f"{X} <int64[4] s = {{{sizes}}}{given}> "
        f"{{ y = Resize<{attributes}>(x, {'r' if roi else ''}, , s) }}",
        OPEN,
    )


def mode(name: str, coordinates: str = "half_pixel", more: str = "") -> str:
    return f'mode = "{name}", coordinate_transformation_mode = "{coordinates}"{more}'


CROP = mode("linear", "tf_crop_and_resize", ", extrapolation_value = 7.0")
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
MODELS = {
    **{f"nearest {rounding}": to(mode("nearest", c, f', nearest_mode = "{rounding}"'))
       for c, rounding in zip(
           COORDINATES, ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"), strict=True)},
    **{f"{m} {c}": to(mode(m, c)) for m in ("linear", "cubic") for c in COORDINATES},
    "by scales": by(mode("linear")),
    "nearest by scales": by(mode("nearest", "asymmetric", ', nearest_mode = "floor"')),
    "outside left out": by(mode("cubic", more=", exclude_outside = 1, cubic_coeff_a = -0.5")),
    "crop": to(CROP, roi="0,0,0.2,-0.4,1,1,0.9,1.3"),
    "about the middle by fractions": by(mode("linear", "half_pixel_symmetric"), "1,1,0.6,1.7"),
    "corners by fractions": by(mode("linear", "align_corners"), "1,1,0.6,1.7"),
    "crop by fractions": by(CROP, "1,1,0.6,1.7", roi="0,0,0.2,-0.4,1,1,0.9,1.3"),
    "bytes": by(mode("nearest"), head=X.replace("float", "uint8")),
    "as another": Sized(
        "g (float[1,1,H,W] x, float[1,1,P,Q] z) => (float[1,1,P,Q] y) "
        '{ s = Shape(z) r = Resize<mode="linear">(x, , , s) y = Add(r, z) }',
        OPEN | {"P": (1, 9), "Q": (1, 9)},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def library() -> SizedLibrary:
    return SizedLibrary(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_an_image_of_the_size_of_the_run(library: SizedLibrary, name: str) -> None:
    for sizes in MODELS[name].trials():
        library.check(name, sizes)


def test_infinity_is_kept(library: SizedLibrary) -> None:
    """A row of weight 0 isn't read, nor is a row at the edge read twice."""
    x = np.full((1, 2, 3, 3), np.inf, np.float32)
    for name in ("linear half_pixel", "linear align_corners"):
        (y,) = library.run(name, x)
        assert np.isinf(y).all()
    x[0, 0, 1:] = 1
    (y,), (wanted,) = (
        library.run("linear align_corners", x),
        OnnxRuntime(MODELS["linear align_corners"].model)(x),
    )
    assert not np.isnan(y).any()
    np.testing.assert_array_equal(y[np.isfinite(wanted)], wanted[np.isfinite(wanted)])


def test_an_image_of_nothing_is_made_larger_by_no_run() -> None:
    graph = (
        "g (float[4,3] x) => (float[4,3] y) <float[4] t = {0,0,0,0}, int64[4] s = {1,1,2,3}, "
        "int64[2] o = {0,1}, int64[2] f = {4,3}> { i = NonZero(x) c = Cast<to=1>(i) "
        'u = Unsqueeze(c, o) r = Resize<mode="linear">(u, , , s) q = Squeeze(r, o) '
        "z = ReduceSum(q) y = Add(x, z) }"
    )
    artifact = Sized(graph).compile()
    assert artifact(np.ones((4, 3), np.float32))[0].shape == (4, 3)
    with pytest.raises(SmeltError, match="E670"):
        artifact(np.zeros((4, 3), np.float32))


def test_rows_that_antialias_sums_are_counted_before_a_run() -> None:
    graph = to(mode("linear", more=", antialias = 1"))
    with pytest.raises((SmeltError, ErrorList), match="antialias with a scale that is computed"):
        smelt.compile(graph.model, target="c", dims=dict(OPEN))
