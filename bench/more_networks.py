"""Networks whose blocks those of ``bench.networks`` lack, small enough to be built in seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx

from bench.networks import Network


def _silu(n: Network, x: str) -> str:
    return n.op("Mul", x, n.op("Sigmoid", x))


def _conv(n: Network, x: str, channels: int, filters: int, kernel: int = 1, stride: int = 1) -> str:
    return _silu(n, n.conv(x, channels, filters, kernel, stride=stride))


def _upsampled(n: Network, x: str) -> str:
    scales = n.constant(np.array([1, 1, 2, 2], np.float32))
    return n.op(
        "Resize", x, "", scales, mode="nearest", coordinate_transformation_mode="asymmetric"
    )


def yolo_spp() -> onnx.ModelProto:
    """A backbone, pools of 5, 9 and 13, one step up, and boxes by pixel, 256 x 256."""
    n = Network()
    h = _conv(n, "x", 3, 16, 3, 2)
    for channels in (16, 32, 64):
        h = _conv(n, _conv(n, h, channels, 2 * channels, 3, 2), 2 * channels, 2 * channels)
    shallow, h = h, _conv(n, h, 128, 128, 3, 2)
    pools = [n.op("MaxPool", h, kernel_shape=[k, k], pads=[k // 2] * 4) for k in (5, 9, 13)]
    h = _conv(n, n.op("Concat", h, *pools, axis=1), 512, 128)
    h = n.op("Concat", _upsampled(n, h), shallow, axis=1)
    boxes = n.conv(_conv(n, h, 256, 64, 3), 64, 85)
    y = n.op("Sigmoid", n.op("Transpose", boxes, perm=[0, 2, 3, 1]))
    return n.model([1, 3, 256, 256], y, [1, 16, 16, 85])


def unet() -> onnx.ModelProto:
    """Two levels down and up by transposed convolutions, 128 x 128, a class for each pixel."""
    n = Network()

    def twice(x: str, channels: int, filters: int) -> str:
        h = n.conv(x, channels, filters, 3, activation="Relu")
        return n.conv(h, filters, filters, 3, activation="Relu")

    a = twice("x", 3, 16)
    b = twice(n.op("MaxPool", a, kernel_shape=[2, 2], strides=[2, 2]), 16, 32)
    h = twice(n.op("MaxPool", b, kernel_shape=[2, 2], strides=[2, 2]), 32, 64)
    for beside, filters in ((b, 32), (a, 16)):
        w, bias = n.weight(2 * filters, filters, 2, 2), n.weight(filters, scale=0.1)
        h = n.op("ConvTranspose", h, w, bias, strides=[2, 2])
        h = twice(n.op("Concat", h, beside, axis=1), 2 * filters, filters)
    y = n.op("ArgMax", n.op("Softmax", n.conv(h, 16, 5), axis=1), axis=1)
    return n.model([1, 3, 128, 128], n.op("Cast", y, to=1), [1, 1, 128, 128])


def efficientnet_like() -> onnx.ModelProto:
    """Inverted residuals of 3x3 and 5x5 with SiLU and squeeze-and-excite, 128 x 128."""
    n = Network()
    h, channels = _conv(n, "x", 3, 16, 3, 2), 16
    for filters, kernel, stride in ((24, 3, 2), (24, 3, 1), (40, 5, 2), (40, 5, 1), (80, 3, 2)):
        wide = 6 * channels
        d = _conv(n, h, channels, wide)
        d = _silu(n, n.conv(d, wide, wide, kernel, stride=stride, group=wide))
        s = _conv(n, n.op("GlobalAveragePool", d), wide, channels // 4)
        d = n.op("Mul", d, n.op("Sigmoid", n.conv(s, channels // 4, wide)))
        d = n.conv(d, wide, filters)
        h = n.op("Add", h, d) if stride == 1 and filters == channels else d
        channels = filters
    return n.model([1, 3, 128, 128], n.dense(n.pool_to_vector(h), 80, 100), [1, 100])


def convnext_block() -> onnx.ModelProto:
    """Four blocks of a ConvNeXt: depthwise 7x7, channels last, LayerNorm, Gelu, 28 x 28 x 192."""
    n = Network()
    h, width = n.conv("x", 3, 96, 3), 96
    for _ in range(4):
        d = n.op("Transpose", n.conv(h, width, width, 7, group=width), perm=[0, 2, 3, 1])
        scale, bias = n.constant(np.ones(width, np.float32)), n.weight(width, scale=0.1)
        d = n.op("LayerNormalization", d, scale, bias, epsilon=1e-6)
        d = n.op(
            "Add", n.op("MatMul", d, n.weight(width, 4 * width)), n.weight(4 * width, scale=0.1)
        )
        root, one, half = (n.constant(np.float32(v)) for v in (2**0.5, 1, 0.5))
        gate = n.op("Add", n.op("Erf", n.op("Div", d, root)), one)
        d = n.op("Mul", n.op("Mul", d, gate), half)
        d = n.op("Add", n.op("MatMul", d, n.weight(4 * width, width)), n.weight(width, scale=0.1))
        h = n.op("Add", h, n.op("Transpose", d, perm=[0, 3, 1, 2]))
    return n.model([1, 3, 28, 28], n.dense(n.pool_to_vector(h), 96, 100), [1, 100])


def inception() -> onnx.ModelProto:
    """Two modules of an Inception: 1x1, 3x3, 5x5 and pooled branches, then 1x7 and 7x1."""
    n = Network()
    h, channels = n.conv("x", 3, 64, 3, stride=2, activation="Relu"), 64
    for _ in range(2):
        pool = n.op("MaxPool", h, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        mean = n.op("AveragePool", h, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        h = n.op(
            "Concat",
            n.conv(h, channels, 64, activation="Relu"),
            n.conv(n.conv(h, channels, 48, activation="Relu"), 48, 64, 3, activation="Relu"),
            n.conv(n.conv(h, channels, 16, activation="Relu"), 16, 32, 5, activation="Relu"),
            n.conv(pool, channels, 32, activation="Relu"),
            n.conv(mean, channels, 32, activation="Relu"),
            axis=1,
        )
        channels = 224
    h = n.conv(n.conv(h, channels, 64, (1, 7), activation="Relu"), 64, 64, (7, 1))
    return n.model([1, 3, 64, 64], n.dense(n.pool_to_vector(h), 64, 10), [1, 10])


def keyword_lstm() -> onnx.ModelProto:
    """Two LSTMs of 128 over 98 frames of 40 features, and a softmax of the last one."""
    n = Network()
    h, inputs = "x", 40
    for _ in range(2):
        w, r = n.weight(1, 512, inputs), n.weight(1, 512, 128, scale=0.05)
        y = n.op("LSTM", h, w, r, n.weight(1, 1024, scale=0.1), hidden_size=128)
        h, inputs = n.op("Squeeze", y, n.constant(np.array([1], np.int64))), 128
    last = n.op("Gather", h, n.constant(np.array(-1, np.int64)), axis=0)
    return n.model([98, 1, 40], n.op("Softmax", n.dense(last, 128, 12)), [1, 12])


def tcn() -> onnx.ModelProto:
    """Six residual blocks of causal convolutions of 3, dilated by 1 to 32, over 500 steps."""
    n = Network()
    w, b = n.weight(64, 32, 1), n.weight(64, scale=0.1)
    h = n.op("Conv", "x", w, b)
    for dilation in (1, 2, 4, 8, 16, 32):
        d = h
        for _ in range(2):
            w, b = n.weight(64, 64, 3), n.weight(64, scale=0.1)
            d = n.op("Conv", d, w, b, dilations=[dilation], pads=[2 * dilation, 0])
            d = n.op("Relu", d)
        h = n.op("Add", h, d)
    return n.model([1, 32, 500], n.op("Conv", h, n.weight(10, 64, 1)), [1, 10, 500])


MORE: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "yolo_spp": yolo_spp,
    "unet": unet,
    "efficientnet_like": efficientnet_like,
    "convnext_block": convnext_block,
    "inception": inception,
    "keyword_lstm": keyword_lstm,
    "tcn": tcn,
}
