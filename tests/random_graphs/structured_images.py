"""Convolution blocks."""

from __future__ import annotations

import numpy as np
from random_graphs.structured_builder import Builder
from random_graphs.structured_control import around
from random_graphs.structured_transformer import activation


def conv(b: Builder, x: str, channels: int, outer: int, **given: object) -> str:
    groups = b.pick(1, 1, *(g for g in (2, channels) if channels % g == 0 and outer % g == 0))
    kernel = b.pick((1, 1), (3, 3), (3, 1), (2, 3))
    attributes = {
        "strides": list(b.pick((1, 1), (2, 2), (1, 2))),
        "dilations": list(b.pick((1, 1), (2, 1))),
    }
    attributes |= given
    if "pads" not in given:
        pads = [b.pick(0, 1, 2) for _ in range(4)]
        ahead = [(k - 1) * d for k, d in zip(kernel, attributes["dilations"], strict=True)]
        pads = [max(p, 1, -(-reach // 2)) for p, reach in zip(pads, ahead * 2, strict=True)]
        attributes |= b.pick(
            {"pads": pads}, {"auto_pad": b.pick("SAME_UPPER", "SAME_LOWER")}, {"pads": pads}
        )
        if "auto_pad" in attributes:
            attributes["dilations"] = [1, 1]
    else:
        kernel = (3, 3)
    w = b.weight(outer, channels // groups, *kernel, scale=0.4)
    if "pads" not in given and b.chance(0.2):
        x = b.op("Pad", x, b.ints(0, 0, 1, 0, 0, 0, 0, 1), b.number(0.0) if b.chance(0.7) else "")
    bias = [b.weight(outer, scale=0.3)] if b.chance(0.6) else []
    return b.op("Conv", x, w, *bias, group=groups, kernel_shape=list(kernel), **attributes)


def batch_norm(b: Builder, x: str, channels: int) -> str:
    if b.chance(0.6):
        variance = b.const((np.abs(b.numbers.normal(size=channels)) + 0.5).astype(b.dtype))
        parts = [b.weight(channels) for _ in range(3)]
        return b.op("BatchNormalization", x, *parts, variance)
    shape = b.pick((channels, 1, 1), (1, channels, 1, 1))
    x = b.op("Mul", x, b.weight(*shape))
    return b.op("Add", x, b.weight(*shape)) if b.chance(0.7) else x


def squeeze_excite(b: Builder, x: str, channels: int) -> str:
    y = b.op("GlobalAveragePool", x) if b.chance(0.5) else b.mean(x, [2, 3])
    y = b.op("Relu", b.op("Conv", y, b.weight(2, channels, 1, 1), b.weight(2)))
    y = b.op("Conv", y, b.weight(channels, 2, 1, 1))
    gate = b.op("Sigmoid", y) if b.chance(0.6) else b.op("HardSigmoid", y, alpha=1 / 6, beta=0.5)
    return b.op("Mul", *b.rng.sample([x, gate], 2))


def pool(b: Builder, x: str) -> str:
    form = b.rng.randrange(3)
    common = {
        "kernel_shape": list(b.pick((2, 2), (3, 3), (3, 2))),
        "strides": list(b.pick((1, 1), (2, 2), (2, 1))),
        "pads": list(b.pick((0, 0, 0, 0), (1, 1, 1, 1), (0, 0, 1, 1))),
        "ceil_mode": b.pick(0, 1),
    }
    if form == 0:
        return b.op("MaxPool", x, **common)
    if form == 1:
        return b.op("AveragePool", x, count_include_pad=b.pick(0, 1), **common)
    return b.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER")


def resize(b: Builder, x: str) -> str:
    mode, turn = b.pick(
        ("nearest", "asymmetric"),
        ("linear", "half_pixel"),
        ("linear", "align_corners"),
        ("nearest", "half_pixel"),
    )
    rounds = {"nearest_mode": b.pick("floor", "round_prefer_floor")} if mode == "nearest" else {}
    common = {"mode": mode, "coordinate_transformation_mode": turn, **rounds}
    if b.chance(0.5):
        return b.op("Resize", x, "", b.const(np.array([1, 1, 2, 2], np.float32)), **common)
    sizes = b.op(
        "Concat",
        b.op("Slice", b.op("Shape", x), b.ints(0), b.ints(2), b.ints(0)),
        b.op("Mul", b.op("Slice", b.op("Shape", x), b.ints(2), b.ints(4)), b.ints(2)),
        axis=0,
    )
    return b.op("Resize", x, "", "", sizes, **common)


def pixel_shuffle(b: Builder, x: str, channels: int) -> str:
    """Four times as many channels by a convolution, moved into rows and columns."""
    x = b.op("Conv", x, b.weight(4 * channels, channels, 1, 1))
    if b.chance(0.4):
        return b.op("DepthToSpace", x, blocksize=2, mode=b.pick("CRD", "DCR"))
    n, h, w = (b.dim(x, axis) for axis in (0, 2, 3))
    crd = b.chance(0.5)
    x = b.op("Reshape", x, b.shape(n, *((channels, 2, 2) if crd else (2, 2, channels)), h, w))
    x = b.op("Transpose", x, perm=[0, 1, 4, 2, 5, 3] if crd else [0, 3, 4, 1, 5, 2])
    two = b.ints(2)
    return b.op("Reshape", x, b.shape(n, channels, b.op("Mul", h, two), b.op("Mul", two, w)))


def residual(b: Builder, x: str, channels: int) -> str:
    y = conv(b, x, channels, channels, strides=[1, 1], dilations=[1, 1], pads=[1, 1, 1, 1])  # type: ignore[arg-type]
    y = batch_norm(b, y, channels)
    if b.chance(0.4):
        y = squeeze_excite(b, y, channels)
    return activation(b, b.op("Add", *b.rng.sample([x, y], 2)))


def images(b: Builder) -> None:
    """Three to five parts of a convolutional network."""
    channels = b.pick(2, 3, 4, 6)
    b.sizes |= {"H": b._sizes((5, 6, 8)), "W": b._sizes((5, 7, 8))}
    x = b.input("x", ["N", channels, *b.pick(("H", "W"), (6, 7), ("H", 7))])
    for dim, fixed in (("H", 6), ("W", 7)):
        if dim not in str(b.inputs[0]):
            b.sizes[dim] = (fixed, fixed)
    for _ in range(b.pick(3, 4, 5)):
        form = b.rng.randrange(8)
        if form <= 1:
            outer = b.pick(2, 4, 6)
            x = conv(b, x, channels, outer)
            channels = outer
            x = batch_norm(b, x, channels) if b.chance(0.6) else x
            x = activation(b, x) if b.chance(0.7) else x
        elif form == 2:
            x = residual(b, x, channels)
        elif form == 3:
            x = squeeze_excite(b, x, channels)
        elif form == 4:
            x = pool(b, x)
        elif form == 5:
            x = resize(b, x) if b.chance(0.5) else pixel_shuffle(b, x, channels)
        elif form == 6:
            w = b.weight(channels, 3, *b.pick((2, 2), (3, 3)), scale=0.4)
            extra = b.pick(
                {},
                {"strides": [2, 2]},
                {"strides": [2, 2], "output_padding": [1, 1]},
                {"pads": [1, 0, 0, 1]},
                {"dilations": [2, 1]},
            )
            x, channels = b.op("ConvTranspose", x, w, **extra), 3
            x = batch_norm(b, x, channels) if b.chance(0.5) else x
        else:
            x = around(b, x, lambda y, c=channels: residual(b, y, c))
    if b.chance(0.3):
        x = b.op("Flatten", b.op("GlobalAveragePool", x))
        x = b.op("Gemm", x, b.weight(5, channels), b.weight(5), transB=1)
    b.outputs.append(x)
