"""Images of open sizes: padding whose width is an input size, blocks, and positions."""

from __future__ import annotations

import numpy as np
import pytest
from sized_library import Sized, SizedLibrary, weights

import smelt
from smelt.errors import ErrorList, SmeltError, UsageError
from smelt.runtime.onnxruntime import OnnxRuntime

OPEN = {"H": (4, 9), "W": (4, 9)}
X, Y = "float[1,4,H,W] x", "(float[1,4,P,Q] y)"


def conv(attributes: str, kernel: str = "3,3", group: int = 1) -> Sized:
    shape = (4, 4 // group, *map(int, kernel.split(",")))
    return Sized(
        f"g ({X}, float[{','.join(map(str, shape))}] w, float[4] b) => {Y} "
        f"{{ y = Conv<{attributes}, group={group}>(x, w, b) }}",
        OPEN,
        weights(w=shape, b=(4,)),
    )


def pool(op: str, attributes: str, dtype: str = "float") -> Sized:
    graph = f"g ({X}) => {Y} {{ y = {op}<{attributes}>(x) }}".replace("float", dtype)
    return Sized(graph, OPEN)


UPPER, LOWER = 'auto_pad="SAME_UPPER"', 'auto_pad="SAME_LOWER"'
MODELS = {
    "same": conv(f"{UPPER}, strides=[2,2]"),
    "same, odd first": conv(f"{LOWER}, strides=[2,3]", "3,2"),
    "same by channel": conv(f"{UPPER}, strides=[2,2]", group=4),
    "same of one pixel": conv(f"{UPPER}, strides=[2,2]", "1,1"),
    "largest": pool("MaxPool", f"{UPPER}, kernel_shape=[3,3], strides=[2,2]"),
    "largest at each pixel": pool("MaxPool", f"{UPPER}, kernel_shape=[3,2]"),
    "largest byte": pool("MaxPool", f"{LOWER}, kernel_shape=[3,2], strides=[3,2]", "uint8"),
    "mean with padding": pool(
        "AveragePool", f"{UPPER}, kernel_shape=[3,3], strides=[2,2], count_include_pad=1"
    ),
    **{
        f"read at places, {attributes}": Sized(
            f"g ({X}, float[1,3,4,2] f) => (float[1,4,3,4] y) "
            f"{{ s = Sin(f) y = GridSample<{attributes}>(x, s) }}",
            {"H": (1, 9), "W": (1, 9)},
        )
        for attributes in (
            'mode="bilinear"',
            'mode="nearest", padding_mode="border"',
            'mode="bilinear", padding_mode="reflection", align_corners=1',
        )
    },
    "regions": Sized(
        "g (float[1,4,H,W] x, float[3,4] r, int64[3] i, int64[3] z) => (float[3,4,2,2] y) "
        "{ p = Abs(r) n = Mul(i, z) "
        "y = RoiAlign<output_height=2, output_width=2, sampling_ratio=2>(x, p, n) }",
        OPEN,
        {"z": np.zeros(3, np.int64)},
    ),
    "eye": Sized(
        "g (float[H,W] x) => (float[H,W] y, int64[H,W] z) "
        "{ y = EyeLike<k=1>(x) z = EyeLike<k=-2,dtype=7>(x) }",
        OPEN,
    ),
}


@pytest.fixture(scope="module")
def library() -> SizedLibrary:
    return SizedLibrary(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_an_image_of_any_size(library: SizedLibrary, name: str) -> None:
    model = MODELS[name]
    host = smelt.compile(model.model, target="host", engine="numpy")
    reference = OnnxRuntime(model.model)
    least = model.trials(0)[0]
    for sizes in (least, *({"H": h, "W": w} for h, w in ((5, 8), (6, 7), (9, 9)))):
        # Nothing but negative numbers, so a maximum over padding is not 0.
        inputs = [x - x.dtype.type(3) if x.dtype.kind == "f" else x
                  for x in library.inputs(name, sizes)]  # fmt: skip
        for got in (library.run(name, *inputs), host(*inputs)):
            for mine, theirs in zip(got, reference(*inputs), strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_blocks_have_to_come_out_even() -> None:
    sized = Sized(f"g ({X}) => (float[1,16,P,Q] y) {{ y = SpaceToDepth<blocksize=2>(x) }}", OPEN)
    reference = OnnxRuntime(sized.model)
    for artifact in (sized.compile(), smelt.compile(sized.model, target="host", engine="numpy")):
        x = np.arange(4 * 6 * 8, dtype=np.float32).reshape(1, 4, 6, 8)
        np.testing.assert_array_equal(artifact(x)[0], reference(x)[0])
        with pytest.raises(UsageError, match="E670"):
            artifact(x[:, :, :5].copy())


@pytest.mark.parametrize(
    ("op", "results", "why"),
    [
        ("AveragePool", "y", "excludes padding from a mean"),
        ("MaxPool", "y, i", "indices of maxima in an image"),
    ],
)
def test_padding_that_is_seen_is_refused(op: str, results: str, why: str) -> None:
    more = ", int64[1,4,P,Q] i" if "i" in results else ""
    attributes = f"{UPPER}, kernel_shape=[3,3], strides=[2,2]"
    graph = f"g ({X}) => (float[1,4,P,Q] y{more}) {{ {results} = {op}<{attributes}>(x) }}"
    with pytest.raises((SmeltError, ErrorList), match=why):
        Sized(graph, OPEN).compile()
