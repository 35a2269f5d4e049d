"""MIL convolutions, pools and normalizations: read and run, they agree with NumPy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from frontends.coreml.rows import F, Row, Rows, f

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


@pytest.mark.parametrize("row_", ROWS, ids=ROWS.ids())
def test_it_computes_what_numpy_computes(row_: Row) -> None:
    row_.check()
