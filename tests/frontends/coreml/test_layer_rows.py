"""MIL layers, recurrences, images and quantization: read and run, they agree with NumPy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from frontends.coreml.rows import F, I, Row, Rows, f, i

ROWS = Rows()
row = ROWS.add


def windows(x: np.ndarray, kernel: Any, strides: Any, dilations: Any, pads: Any, fill: float = 0):
    """The windows of an image (N, C, *D): an array (N, C, *places, *kernel)."""
    x = np.pad(x, [(0, 0), (0, 0), *pads], constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(
        x, [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)], range(2, x.ndim)
    )
    places = tuple(slice(None, None, s) for s in strides)
    inner = tuple(slice(None, None, d) for d in dilations)
    return view[(slice(None), slice(None), *places, *inner)]


def conv(
    x: np.ndarray, w: np.ndarray, b: Any, strides: Any, dilations: Any, pads: Any, groups: int
):
    """A convolution, group by group."""
    count = x.ndim - 2
    results = []
    for images, weights in zip(np.split(x, groups, 1), np.split(w, groups), strict=True):
        seen = windows(images, w.shape[2:], strides, dilations, pads)
        axes = ([1, *range(2 + count, 2 + 2 * count)], [1, *range(2, 2 + count)])
        results.append(np.moveaxis(np.tensordot(seen, weights, axes), -1, 1))
    return np.concatenate(results, 1) + np.reshape(b, (-1, *[1] * count))


B4 = f(4)
for x, w, strides, dilations, pads, groups in [
    (f(2, 3, 7), f(4, 3, 3), [1], [1], [(1, 2)], 1),
    (f(1, 4, 6, 7), f(4, 2, 3, 2), [2, 1], [1, 2], [(1, 0), (0, 2)], 2),
    (f(1, 2, 4, 5, 4), f(4, 2, 2, 3, 2), [1, 2, 1], [1, 1, 2], [(0, 1), (1, 1), (0, 0)], 1),
]:
    row(
        "conv",
        {"x": x},
        lambda x, a=(w, B4, strides, dilations, pads, groups): conv(x, *a),
        weight=w,
        bias=B4,
        strides=strides,
        dilations=dilations,
        pad_type="custom",
        pad=[n for pair in pads for n in pair],
        groups=groups,
    )
W3 = f(4, 3, 2, 3)
for kind, pair in (("same", ((0, 1), (0, 1))), ("same_lower", ((1, 0), (1, 0)))):
    row(  # 5 x 6 with strides 2: totals of 1 in both dims
        "conv",
        {"x": f(1, 3, 5, 6)},
        lambda x, p=pair: conv(x, W3, np.zeros(4), [2, 2], [1, 1], p, 1),
        weight=W3,
        strides=[2, 2],
        pad_type=kind,
    )
row(
    "conv",
    {"x": f(1, 3, 5, 6), "weight": W3},
    lambda x, w: conv(x, w, np.zeros(4), [1, 1], [1, 1], ((0, 0), (0, 0)), 1),
    pad_type="valid",
)


def conv_transpose(x: np.ndarray, w: np.ndarray, stride: int, dilation: int, groups: int):
    """A transposed convolution of one spatial dim, whole."""
    n, c, size = x.shape
    reach = (w.shape[2] - 1) * dilation + 1
    each = w.shape[1]
    result = np.zeros((n, each * groups, (size - 1) * stride + reach), F)
    for b, channel, at, out, k in product(
        range(n), range(c), range(size), range(each), range(w.shape[2])
    ):
        group = channel // (c // groups)
        result[b, group * each + out, at * stride + k * dilation] += (
            x[b, channel, at] * w[channel, out, k]
        )
    return result


WT = f(4, 2, 3)
T = {"weight": WT, "strides": [2], "groups": 2}
row(
    "conv_transpose",
    {"x": f(2, 4, 5)},
    lambda x: conv_transpose(x, WT, 2, 1, 2),
    **T,
    pad_type="valid",
)
row(
    "conv_transpose",
    {"x": f(2, 4, 5)},
    lambda x: conv_transpose(x, WT, 2, 2, 2)[:, :, 1:-2],
    **T,
    dilations=[2],
    pad_type="custom",
    pad=[1, 2],
)
row(
    "conv_transpose",
    {"x": f(2, 4, 5)},
    lambda x: conv_transpose(x, WT, 2, 1, 2)[:, :, :-1],
    **T,
    pad_type="same",
)
row(
    "conv_transpose",
    {"x": f(2, 4, 5)},
    lambda x: np.pad(conv_transpose(x, WT, 2, 1, 2)[:, :, 1:], ((0, 0), (0, 0), (0, 0))),
    **T,
    pad_type="custom",
    pad=[1, 1],
    output_shape=[2, 4, 10],
)

SMALL = {"kernel_sizes": [2, 3], "strides": [1, 2], "pad_type": "custom", "pad": [1, 0, 1, 1]}
PADS = ((1, 0), (1, 1))


def pooled(x: np.ndarray, reduce: Any, fill: float) -> np.ndarray:
    """A pool of 2 x 3 windows with strides 1 and 2."""
    return reduce(windows(x, (2, 3), (1, 2), (1, 1), PADS, fill), axis=(-1, -2))


IMAGE = f(1, 2, 5, 7)
row("max_pool", {"x": IMAGE}, lambda x: pooled(x, np.max, -np.inf), **SMALL)
row("avg_pool", {"x": IMAGE}, lambda x: pooled(x, np.mean, 0), **SMALL)
row(
    "avg_pool",
    {"x": IMAGE},
    lambda x: pooled(x, np.nanmean, np.nan),
    **SMALL,
    exclude_padding_from_average=True,
)
row("l2_pool", {"x": IMAGE}, lambda x: np.sqrt(pooled(x * x, np.sum, 0)), **SMALL)
row(
    "max_pool",
    {"x": f(1, 1, 6)},
    lambda x: np.array([[[x[0, 0, a : a + 3].max() for a in (0, 2, 4)]]]),
    kernel_sizes=[3],
    strides=[2],
    pad_type="valid",
    ceil_mode=True,
)
row(
    "avg_pool",
    {"x": f(1, 1, 5)},
    lambda x: np.array([[[np.mean(x[0, 0, 0:2]), np.mean(x[0, 0, 1:4]), np.mean(x[0, 0, 3:5])]]]),
    kernel_sizes=[3],
    strides=[2],
    pad_type="same",
    exclude_padding_from_average=True,
)

# Normalizations.
C3 = f(3, low=0.5)
ROWS3 = f(2, 3, 4, 5)


def standard(x: np.ndarray, axes: tuple[int, ...], epsilon: float = 1e-5) -> np.ndarray:
    """Mean 0 and variance 1 over axes."""
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def column(v: np.ndarray) -> np.ndarray:
    """One number a channel."""
    return v[:, None, None]


row(
    "batch_norm",
    {"x": ROWS3},
    lambda x: column(C3) * (x - column(C3 + 1)) / np.sqrt(column(C3) + 0.1) + column(2 * C3),
    mean=C3 + 1,
    variance=C3,
    gamma=C3,
    beta=2 * C3,
    epsilon=0.1,
)
row("batch_norm", {"x": ROWS3}, lambda x: x / np.sqrt(column(C3) + 1e-5), mean=0 * C3, variance=C3)
row("instance_norm", {"x": ROWS3}, lambda x: standard(x, (2, 3)))
row(
    "instance_norm",
    {"x": f(2, 3, 6)},
    lambda x: C3[:, None] * standard(x, (2,), 0.01) + C3[:, None],
    gamma=C3,
    beta=C3,
    epsilon=0.01,
)
G, H = f(4, 5), f(4, 5)
row("layer_norm", {"x": ROWS3}, lambda x: standard(x, (0, 1, 2, 3)))
row(
    "layer_norm", {"x": ROWS3}, lambda x: standard(x, (2, 3)) * G + H, axes=[2, -1], gamma=G, beta=H
)
row(
    "layer_norm",
    {"x": ROWS3},
    lambda x: standard(x, (1,), 0.1) * column(C3) + column(C3),
    axes=[1],
    gamma=C3,
    beta=C3,
    epsilon=0.1,
)
row(
    "l2_norm",
    {"x": ROWS3},
    lambda x: x / np.sqrt((x * x).sum((1, 2, 3), keepdims=True) + 0.1),
    epsilon=0.1,
)
for x in (ROWS3, f(2, 3, 4)):
    row(
        "local_response_norm",
        {"x": x},
        lambda x: (
            x
            / (
                2
                + 0.3
                / 3
                * np.stack([(x[:, max(c - 1, 0) : c + 2] ** 2).sum(1) for c in range(3)], 1)
            )
            ** 0.6
        ),
        size=3,
        alpha=0.3,
        beta=0.6,
        k=2.0,
    )


# Images.
def grid(old: int, new: int, mode: str) -> np.ndarray:
    """The points of a sampling mode, as MIL's documentation computes them."""
    steps = np.arange(new)
    if mode.endswith("ALIGN_CORNERS") and mode != "UNALIGN_CORNERS":
        points = steps * (old - 1) / max(new - 1, 1)
        points = np.array([(old - 1) / 2]) if mode == "ALIGN_CORNERS" and new == 1 else points
    elif mode == "DEFAULT":
        points = steps * ((old - old / new) / max(new - 1, 1))
    elif mode == "OFFSET_CORNERS":
        delta = max(1, old - 1) / new
        points = 0.5 * delta + steps * delta
    else:
        points = steps * (old / new) + 0.5 * old / new - 0.5
    return np.clip(points, 0, old - 1)


def linear(x: np.ndarray, axis: int, points: np.ndarray) -> np.ndarray:
    """Linear interpolation along an axis."""
    low = np.floor(points).astype(int)
    high = np.minimum(low + 1, x.shape[axis] - 1)
    part = (points - low).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    return x.take(low, axis) * (1 - part) + x.take(high, axis) * part


def bilinear(x: np.ndarray, size: tuple[int, int], mode: str) -> np.ndarray:
    """Linear interpolation of the last two dims."""
    for axis, new in zip((-2, -1), size, strict=True):
        x = linear(x, x.ndim + axis, grid(x.shape[axis], new, mode))
    return x


def nearest(x: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Element floor(i * old / new) of the last two dims."""
    h, w = (
        [n * old // new for n in range(new)] for old, new in zip(x.shape[-2:], size, strict=True)
    )
    return x[..., h, :][..., w]


PICTURE = f(1, 2, 4, 5)
for mode, size in product(
    ("STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "DEFAULT", "OFFSET_CORNERS", "UNALIGN_CORNERS"),
    ((7, 3), (1, 8)),
):
    row(
        "resize_bilinear",
        {"x": PICTURE},
        lambda x, a=(size, mode): bilinear(x, *a),
        target_size_height=size[0],
        target_size_width=size[1],
        sampling_mode=mode,
    )
row(
    "resize_nearest_neighbor",
    {"x": PICTURE},
    lambda x: nearest(x, (7, 3)),
    target_size_height=7,
    target_size_width=3,
)
row(
    "resize",
    {"x": PICTURE},
    lambda x: bilinear(x, (6, 5), "DEFAULT"),
    shape=[1, 6, 0],
    resized_dims=2,
)
row(
    "resize",
    {"x": PICTURE, "shape": np.array([9, 8, 3], I)},
    lambda x, s: nearest(x, (8, 3)),
    resized_dims=2,
    interpolation_mode="NEAREST_NEIGHBOR",
)
SCALES = {"scale_factor_height": 2, "scale_factor_width": 1.5}
row("upsample_nearest_neighbor", {"x": PICTURE}, lambda x: nearest(x, (8, 7)), **SCALES)
for aligned, centred, mode in (
    (True, False, "STRICT_ALIGN_CORNERS"),
    (False, True, "UNALIGN_CORNERS"),
    (False, False, "DEFAULT"),
):
    row(
        "upsample_bilinear",
        {"x": PICTURE},
        lambda x, m=mode: bilinear(x, (8, 7), m),
        **SCALES,
        align_corners=aligned,
        half_pixel_centers=centred,
    )


def sampled(x: np.ndarray, points: np.ndarray, fill: float) -> np.ndarray:
    """The images at points (B, H, W, 2) as (x, y) in elements, outside of them ``fill``."""
    n, c, h, w = x.shape
    result = np.zeros((n, c, *points.shape[1:3]), F)
    for b, r, s in np.ndindex(points.shape[:3]):
        px, py = points[b, r, s]
        for y, v in product((int(np.floor(py)), int(np.floor(py)) + 1), (0, 1)):
            u = int(np.floor(px)) + v
            weight = (1 - abs(px - u)) * (1 - abs(py - y))
            inside = 0 <= u < w and 0 <= y < h
            result[b, :, r, s] += weight * (x[b, :, y, u] if inside else fill)
    return result


POINTS = f(1, 3, 2, 2, low=-0.5, high=4.5)
SAMPLING = {"sampling_mode": "bilinear", "padding_mode": "constant", "align_corners": True}
row(
    "resample",
    {"x": PICTURE, "coordinates": POINTS},
    lambda x, p: sampled(x, p, 0.75),
    **SAMPLING,
    padding_value=0.75,
    coordinates_mode="unnormalized",
)
row(
    "resample",
    {"x": PICTURE, "coordinates": POINTS / 4},
    lambda x, p: sampled(x, p * np.array([4, 3], F), 0),
    **SAMPLING,
    padding_value=0.0,
    coordinates_mode="normalized_zero_to_one",
)
MATRIX = np.array([[0.5, 0.1, 0.2, -0.3, 0.9, 0.1]], F)


def affine(x: np.ndarray, m: np.ndarray) -> np.ndarray:
    """The image at the points of an affine map of [-1, 1]."""
    ys, xs = np.meshgrid(np.linspace(-1, 1, 3), np.linspace(-1, 1, 6), indexing="ij")
    a = m.reshape(2, 3)
    mapped = np.stack([a[k, 0] * xs + a[k, 1] * ys + a[k, 2] for k in (0, 1)], -1)
    return sampled(x, ((mapped + 1) / 2 * np.array([4, 3]))[None], 0)


row(
    "affine",
    {"x": PICTURE, "transform_matrix": MATRIX},
    affine,
    **SAMPLING,
    output_height=3,
    output_width=6,
    padding_value=0.0,
    coordinates_mode="normalized_minus_one_to_one",
)


# Recurrences.
def sigmoid(x: np.ndarray) -> np.ndarray:
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


def lstm(x, h, c, wi, wh, b, p=None):
    """The hidden states of all steps, and the last memory; gates are input, forget, output, cell."""
    states = []
    p = np.zeros(3 * h.shape[1]) if p is None else p
    pi, pf, po = np.split(p, 3)
    for step in x:
        gi, gf, go, gz = np.split(step @ wi.T + h @ wh.T + b, 4, -1)
        gi, gf = sigmoid(gi + pi * c), sigmoid(gf + pf * c)
        c = gf * c + gi * np.tanh(gz)
        h = sigmoid(go + po * c) * np.tanh(c)
        states.append(h)
    return np.stack(states), c


STEPS, HIDDEN, MEMORY = f(5, 2, 3), f(2, 4), f(2, 4)
GATES = {"weight_ih": f(16, 3), "weight_hh": f(16, 4), "bias": f(16)}
STATE = {"x": STEPS, "initial_h": HIDDEN, "initial_c": MEMORY}
EVERY, LAST = lstm(STEPS, HIDDEN, MEMORY, *GATES.values())
row("lstm", STATE, EVERY, EVERY[-1], LAST, **GATES, output_sequence=True)
row("lstm", STATE, EVERY[-1:], EVERY[-1], LAST, **GATES)
PEEPHOLE = f(12)
SEEN, KEPT = lstm(STEPS, HIDDEN, MEMORY, *GATES.values(), PEEPHOLE)
row("lstm", STATE, SEEN, SEEN[-1], KEPT, **GATES, peephole=PEEPHOLE, output_sequence=True)
BACK = {"weight_ih_back": f(16, 3), "weight_hh_back": f(16, 4), "bias_back": f(16)}
H2, M2 = f(2, 8), f(2, 8)
FIRST = lstm(STEPS, H2[:, :4], M2[:, :4], *GATES.values())
SECOND = lstm(STEPS[::-1], H2[:, 4:], M2[:, 4:], *BACK.values())
row(
    "lstm",
    {"x": STEPS, "initial_h": H2, "initial_c": M2},
    np.concatenate([FIRST[0], SECOND[0][::-1]], -1),
    np.concatenate([FIRST[0][-1], SECOND[0][-1]], -1),
    np.concatenate([FIRST[1], SECOND[1]], -1),
    **GATES,
    **BACK,
    direction="bidirectional",
    output_sequence=True,
)


def gru(x, h, wi, wh, b):
    """The hidden states of all steps; gates are reset, new, update."""
    states = []
    for step in x:
        ir, io, iz = np.split(step @ wi.T + b, 3, -1)
        hr, ho, hz = np.split(h @ wh.T, 3, -1)
        r, z = sigmoid(ir + hr), sigmoid(iz + hz)
        h = (1 - z) * np.tanh(io + r * ho) + z * h
        states.append(h)
    return np.stack(states)


G3 = {"weight_ih": f(12, 3), "weight_hh": f(12, 4), "bias": f(12)}
SEQ = {"x": STEPS, "initial_h": HIDDEN}
STATES = gru(STEPS, HIDDEN, *G3.values())
row("gru", SEQ, STATES, STATES[-1], **G3, output_sequence=True)
TURNED = gru(STEPS[::-1], HIDDEN, *G3.values())[::-1]
row("gru", SEQ, TURNED, TURNED[0], **G3, direction="reverse", output_sequence=True)


def rnn(x, h, wi, wh, b):
    """The hidden states of all steps."""
    states = []
    for step in x:
        h = np.maximum(step @ wi.T + h @ wh.T + b, 0)
        states.append(h)
    return np.stack(states)


R1 = {"weight_ih": f(4, 3), "weight_hh": f(4, 4), "bias": f(4)}
OUT = rnn(STEPS, HIDDEN, *R1.values())
row("rnn", SEQ, OUT[-1:], OUT[-1], **R1, activation="relu")

# Quantization.
POINT = np.array([3, -2], np.int8)
FACTOR = np.array([0.5, 0.25], F)
HALVES = np.array([[-0.75, 0.25, 100], [0.125, 0.375, -100]], F)
row(
    "quantize",
    {"input": HALVES},
    lambda x: np.clip(np.round(x / FACTOR[:, None]) + POINT[:, None], -128, 127).astype(np.int8),
    scale=FACTOR,
    zero_point=POINT,
    axis=0,
    output_dtype="int8",
)
row(
    "quantize",
    {"input": HALVES},
    lambda x: np.clip(np.round(x / F(0.5)), 0, 255).astype(np.uint8),
    scale=F(0.5),
    output_dtype="uint8",
)
WHOLE = i(2, 3).astype(np.int8)
row(
    "dequantize",
    {"input": WHOLE},
    lambda x: FACTOR[:, None] * (x.astype(F) - POINT[:, None]),
    scale=FACTOR,
    zero_point=POINT,
    axis=0,
)
row("dequantize", {"input": WHOLE}, lambda x: F(0.5) * x.astype(F), scale=F(0.5))


@pytest.mark.parametrize("row_", ROWS, ids=ROWS.ids())
def test_it_computes_what_numpy_computes(row_: Row) -> None:
    row_.check()
