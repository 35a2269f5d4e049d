"""Operators that lowerings write as formulas of arrays, on C and on the host."""

from __future__ import annotations

import pytest
from both_targets import BothTargets, by_reference, by_runtime
from c_library import compile_text, random_inputs

from smelt.errors import SmeltError

GRIDS = {
    f"{mode} {padding} {align}": (
        "g (float[2,3,5,4] x, float[2,3,7,2] grid) => (float[2,3,3,7] y)"
        f' {{ y = GridSample<mode="{mode}", padding_mode="{padding}", align_corners={align}>(x, grid) }}'
    )
    for mode in ("nearest", "linear", "cubic")
    for padding in ("zeros", "border", "reflection")
    for align in (0, 1)
}
QUICK = ("nearest border 0", "linear zeros 1", "linear reflection 0", "cubic zeros 0")
BY_RUNTIME = {
    **{name: GRIDS[name] for name in QUICK},
    "volume": "g (float[1,2,3,4,5] x, float[1,2,2,3,3] grid) => (float[1,2,2,2,3] y)"
    ' { y = GridSample<mode="linear", padding_mode="reflection">(x, grid) }',
    "columns": "g (float[2,12,16] x) => (float[2,2,5,3] y)"
    " <int64[2] image = {5, 3}, int64[2] block = {2, 3}>"
    " { y = Col2Im<pads=[1,2,2,1], strides=[2,1], dilations=[1,1]>(x, image, block) }",
    "reversed by batch": "g (float[3,4,2] x) => (float[3,4,2] y) <int64[3] n = {4, 1, 2}>"
    " { y = ReverseSequence<batch_axis=0, time_axis=1>(x, n) }",
    "reversed by time": "g (float[3,4,2] x) => (float[3,4,2] y) <int64[4] n = {3, 1, 2, 0}>"
    " { y = ReverseSequence(x, n) }",
    "norm 1": "g (float[3,4] x) => (float[3,4] y) { y = LpNormalization<axis=0, p=1>(x) }",
    "norm 2": "g (float[3,4] x) => (float[3,4] y) { y = LpNormalization(x) }",
    "eye": "g (float[3,5] x) => (double[3,5] y) { y = EyeLike<k=-1, dtype=11>(x) }",
}
BY_REFERENCE = {
    "boxes": "g (float[2,3,8,6] x, float[3,4] boxes) => (float[3,3,4,2] y)"
    " <int64[3] at = {1, 0, 1}>"
    " { y = RoiAlign<output_height=4, output_width=2, sampling_ratio=3, spatial_scale=2.0>"
    "(x, boxes, at) }",
    "boxes by maximum": "g (float[2,3,8,6] x, float[2,4] boxes) => (float[2,3,1,2] y)"
    ' <int64[2] at = {1, 0}> { y = RoiAlign<mode="max", output_width=2, sampling_ratio=1,'
    ' coordinate_transformation_mode="output_half_pixel">(x, boxes, at) }',
    "even": "g (float[2,6,3,1] x) => (float[2,6,3,2] y) <int64 axis = {1}> { y = DFT(x, , axis) }",
    "complex": "g (double[2,7,2] x) => (double[2,7,2] y) { y = DFT(x) }",
    "taken apart": "g (float[2,360,2] x) => (float[2,360,2] y) { y = DFT(x) }",
    "back": "g (float[150,2] x) => (float[150,2] y) { y = DFT<inverse=1>(x) }",
    "one side": "g (float[2,9,1] x) => (float[2,5,2] y) { y = DFT<onesided=1>(x) }",
    "cut": "g (float[2,9,1] x) => (float[2,4,2] y) <int64 n = {4}> { y = DFT(x, n) }",
    "filled": "g (float[2,5,2] x) => (float[2,8,2] y) <int64 n = {8}> { y = DFT(x, n) }",
    "back from one side": "g (float[2,5,2] x) => (float[2,8,1] y)"
    " { y = DFT<inverse=1, onesided=1>(x) }",
    "odd from one side": "g (float[2,5,2] x) => (float[2,9,1] y) <int64 n = {9}>"
    " { y = DFT<inverse=1, onesided=1>(x, n) }",
    "frames": "g (float[2,50,1] x, float[16] w) => (float[2,5,9,2] y)"
    " <int64 step = {8}> { y = STFT(x, step, w) }",
    "product": "g (float[3,4] x) => (float[3,4] y) <int64 a = {0}>"
    " { y = CumProd<reverse=1, exclusive=1>(x, a) }",
    "product of bytes": "g (int8[3,4] x) => (int8[3,4] y) <int64 a = {-1}> { y = CumProd(x, a) }",
    "cache": "g (float[2,6,3] x, float[2,4,3] u) => (float[2,6,3] y) <int64[2] at = {5, 1}>"
    ' { y = TensorScatter<mode="circular">(x, u, at) }',
    "training": "g (float[3,2,4] x, float[2] s, float[2] b, float[2] m, float[2] v)"
    " => (float[3,2,4] y, float[2] rm, float[2] rv)"
    " { y, rm, rv = BatchNormalization<training_mode=1, momentum=0.8>(x, s, b, m, v) }",
    "deformed": "g (float[2,4,5,4] x, float[6,2,2,3] w, float[2,24,6,2] o, float[6] b,"
    " float[2,12,6,2] k) => (float[2,6,6,2] y)"
    " { y = DeformConv<group=2, offset_group=2, pads=[1,0,1,0]>(x, w, o, b, k) }",
}
"""The runtime has no kernel for these, or computes something else."""


@pytest.fixture(scope="module")
def library() -> BothTargets:
    return BothTargets({**BY_RUNTIME, **BY_REFERENCE}, opset=25)


@pytest.fixture(scope="module")
def grids() -> BothTargets:
    return BothTargets(GRIDS, opset=25)


@pytest.mark.slow
@pytest.mark.parametrize("name", GRIDS)
def test_every_grid_as_onnx_runtime(grids: BothTargets, name: str) -> None:
    _check_by_runtime(grids, name)


@pytest.mark.parametrize("name", BY_RUNTIME)
def test_as_onnx_runtime(library: BothTargets, name: str) -> None:
    _check_by_runtime(library, name)


def _check_by_runtime(library: BothTargets, name: str) -> None:
    inputs = random_inputs(library.models[name].source)
    # The runtime moves no cubic sample to the border.
    expect = by_reference if name.startswith("cubic border") else by_runtime
    library.check_both(name, inputs, expect, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", BY_REFERENCE)
def test_as_the_reference(library: BothTargets, name: str) -> None:
    inputs = random_inputs(library.models[name].source)
    library.check_both(name, inputs, by_reference, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("graph", "why"),
    [
        (
            "g (float[1,1,4,4] x, float[1,4] b, int64[1] i) => (float[1,1,1,1] y)"
            " { y = RoiAlign(x, b, i) }",
            "sampling_ratio=0",
        ),
        (
            "g (int32[1,1,4,4] x, float[1,2,2,2] g) => (int32[1,1,2,2] y) { y = GridSample(x, g) }",
            "interpolation needs floating-point elements",
        ),
        ("g (float[3,0] x) => (float[3,0] y) { y = DFT<axis=0>(x) }", "DFT"),
    ],
)
def test_unsupported_forms_are_refused(graph: str, why: str) -> None:
    with pytest.raises(SmeltError, match=why):
        compile_text(graph, 25)
