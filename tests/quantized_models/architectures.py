"""Architectures as exporters write them, small enough to be quantized in a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx
from quantized_models.drafting import Draft

WIDTH, LENGTH, HEADS = 32, 8, 4


def transformer(opset: int, parts: bool = False, masked: bool = False) -> onnx.ModelProto:
    """Two blocks of attention and a Gelu of an Erf; ``parts`` spells LayerNormalization out."""
    d = Draft(opset)
    x = "x"
    for _ in range(2):
        x = d.op("Add", x, _attention(d, _layer_norm(d, x, parts), masked))
        hidden = _linear(d, _layer_norm(d, x, parts), WIDTH, 4 * WIDTH)
        erf = d.op("Erf", d.op("Div", hidden, d.scalar(2**0.5)))
        gelu = d.op("Mul", d.op("Mul", hidden, d.op("Add", erf, d.scalar(1))), d.scalar(0.5))
        x = d.op("Add", x, _linear(d, gelu, 4 * WIDTH, WIDTH))
    return d.model((1, LENGTH, WIDTH), x)


def _linear(d: Draft, x: str, inputs: int, outputs: int) -> str:
    return d.op("Add", d.op("MatMul", x, d.weight(inputs, outputs)), d.weight(outputs))


def _layer_norm(d: Draft, x: str, parts: bool) -> str:
    if not parts:
        return d.op("LayerNormalization", x, d.weight(WIDTH), d.weight(WIDTH), axis=-1)
    centred = d.op("Sub", x, d.mean(x, -1))
    variance = d.mean(d.op("Mul", centred, centred), -1)
    deviation = d.op("Sqrt", d.op("Add", variance, d.scalar(1e-5)))
    normal = d.op("Mul", d.op("Div", centred, deviation), d.weight(WIDTH))
    return d.op("Add", normal, d.weight(WIDTH))


def _attention(d: Draft, x: str, masked: bool) -> str:
    def heads(perm: tuple[int, ...]) -> str:
        split = d.op("Reshape", _linear(d, x, WIDTH, WIDTH), d.ints(0, 0, HEADS, WIDTH // HEADS))
        return d.op("Transpose", split, perm=perm)

    query, key, value = heads((0, 2, 1, 3)), heads((0, 2, 3, 1)), heads((0, 2, 1, 3))
    scores = d.op("Div", d.op("MatMul", query, key), d.scalar((WIDTH // HEADS) ** 0.5))
    if masked:
        mask = d.constant(np.tril(np.ones((1, 1, LENGTH, LENGTH), bool)))
        scores = d.op("Where", mask, scores, d.scalar(-10))
    mixed = d.op("MatMul", d.op("Softmax", scores, axis=-1), value)
    joined = d.op("Reshape", d.op("Transpose", mixed, perm=(0, 2, 1, 3)), d.ints(0, 0, WIDTH))
    return _linear(d, joined, WIDTH, WIDTH)


def mlp(opset: int) -> onnx.ModelProto:
    d = Draft(opset)
    x = "x"
    for layer in range(3):
        x = d.op("Relu", d.op("Gemm", x, d.weight(16, 16), d.weight(16), transB=layer % 2))
    return d.model((4, 16), _linear(d, x, 16, 8))


def flattened_mlp(opset: int) -> onnx.ModelProto:
    """Linear layers with transposed weights, one of them over flattened rows."""
    d = Draft(opset)
    x = "x"
    for _ in range(2):
        weight = d.op("Transpose", d.weight(16, 16), perm=(1, 0))
        x = d.op("Relu", d.op("Add", d.op("MatMul", x, weight), d.weight(16)))
    flat = d.op("Gemm", d.op("Reshape", x, d.ints(-1, 16)), d.weight(16, 16), d.weight(16))
    return d.model((1, 4, 16), d.op("Add", x, d.op("Reshape", flat, d.ints(1, 4, 16))))


def resnet(opset: int) -> onnx.ModelProto:
    d = Draft(opset)
    x = d.op("MaxPool", _conv_norm(d, "x", 3, 8, 7, 2), kernel_shape=(3, 3), strides=(2, 2))
    for _ in range(2):
        branch = _conv_norm(d, _conv_norm(d, x, 8, 8, 3), 8, 8, 3, relu=False)
        x = d.op("Relu", d.op("Add", x, branch))
    x = d.op("Add", _conv(d, x, 8, 16, 3, 2), _conv_norm(d, x, 8, 16, 1, 2, relu=False))
    pooled = d.op("Flatten", d.op("GlobalAveragePool", x))
    return d.model((1, 3, 32, 32), d.op("Softmax", _gemm(d, pooled, 16, 10), axis=-1))


def _conv(d: Draft, x: str, inputs: int, outputs: int, size: int, stride: int = 1) -> str:
    weight, bias = d.weight(outputs, inputs, size, size), d.weight(outputs)
    return d.op("Conv", x, weight, bias, pads=(size // 2,) * 4, strides=(stride,) * 2)


def _conv_norm(
    d: Draft, x: str, inputs: int, outputs: int, size: int, stride: int = 1, relu: bool = True
) -> str:
    weight = d.weight(outputs, inputs, size, size)
    x = d.op("Conv", x, weight, pads=(size // 2,) * 4, strides=(stride,) * 2)
    statistics = [d.weight(outputs) for _ in range(3)]
    x = d.op("BatchNormalization", x, *statistics, d.positive(outputs))
    return d.op("Relu", x) if relu else x


def _gemm(d: Draft, x: str, inputs: int, outputs: int) -> str:
    return d.op("Gemm", x, d.weight(inputs, outputs), d.weight(outputs))


def mobilenet(opset: int) -> onnx.ModelProto:
    """Inverted residuals, with squeeze and excitation and three kinds of activations."""
    d = Draft(opset)
    x = _relu6(d, _conv(d, "x", 3, 8, 3, 2))
    for hard in (False, True):
        y = _relu6(d, _conv(d, x, 8, 16, 1))
        y = d.op("Conv", y, d.weight(16, 1, 3, 3), d.weight(16), group=16, pads=(1,) * 4)
        y = d.op("HardSwish", y) if hard else d.op("Mul", y, d.op("HardSigmoid", y, alpha=1 / 6))
        squeezed = d.op("Relu", _conv(d, d.op("GlobalAveragePool", y), 16, 4, 1))
        y = d.op("Mul", y, d.op("Sigmoid", _conv(d, squeezed, 4, 16, 1)))
        x = d.op("Add", x, _conv(d, y, 16, 8, 1))
    x = d.op("AveragePool", d.op("LeakyRelu", x, alpha=0.1), kernel_shape=(2, 2), strides=(2, 2))
    return d.model((1, 3, 16, 16), _gemm(d, d.op("Reshape", x, d.ints(1, -1)), 128, 10))


def _relu6(d: Draft, x: str) -> str:
    return d.op("Clip", x, d.scalar(0), d.scalar(6))


def moves(opset: int) -> onnx.ModelProto:
    """Whatever moves elements between products."""
    d = Draft(opset)
    halves = d.ops("Split", _conv(d, "x", 4, 8, 3), d.ints(4, 4), outputs=2, axis=1)
    scales = d.constant(np.asarray([1, 1, 2, 2], np.float32))
    grown = [d.op("Resize", half, "", scales, mode="nearest") for half in halves]
    x = d.op("Sigmoid", d.op("Concat", *grown, axis=1))
    x = d.op("Slice", x, d.ints(1, 1), d.ints(9, 9), d.ints(2, 3))
    x = d.op("Pad", x, d.ints(0, 0, 1, 1, 0, 0, 1, 1), d.scalar(0))
    x = d.op("Conv", x, d.weight(4, 8, 3, 3), d.weight(4))
    x = d.op("Where", d.constant(np.eye(8) > 0), x, d.weight(1))
    x = d.op("MatMul", d.op("Transpose", x, perm=(0, 2, 3, 1)), d.weight(4, 6))
    x = d.op("Transpose", x, perm=(0, 3, 1, 2))
    return d.model(
        (1, 4, 8, 8), d.op("ConvTranspose", x, d.weight(6, 4, 2, 2), d.weight(4), strides=(2, 2))
    )


def channels_last(opset: int) -> onnx.ModelProto:
    """A network for images whose channels are last, as converters from TensorFlow write it."""
    d = Draft(opset)
    x = d.op("Relu", _conv_last(d, "x", 3, 8))
    x = d.op("Add", x, d.op("Relu", _conv_last(d, x, 8, 8)))
    grown = d.op("Resize", x, "", d.constant(np.asarray([1, 2, 2, 1], np.float32)), mode="nearest")
    wide = d.op("Concat", grown, d.op("Sigmoid", _conv_last(d, grown, 8, 8)), axis=-1)
    x = d.op("Mul", _conv_last(d, wide, 16, 8), d.weight(8))
    return d.model((1, 8, 8, 3), _gemm(d, d.op("Flatten", d.mean(x, 1, 2)), 8, 4))


def _conv_last(d: Draft, x: str, inputs: int, outputs: int) -> str:
    moved = d.op("Transpose", x, perm=(0, 3, 1, 2))
    result = d.op("Conv", moved, d.weight(outputs, inputs, 3, 3), pads=(1,) * 4)
    return d.op("Add", d.op("Transpose", result, perm=(0, 2, 3, 1)), d.weight(outputs))


ARCHITECTURES: Mapping[str, Callable[[int], onnx.ModelProto]] = {
    "transformer": transformer,
    "transformer in parts": lambda opset: transformer(opset, parts=True),
    "masked transformer": lambda opset: transformer(opset, masked=True),
    "mlp": mlp,
    "flattened mlp": flattened_mlp,
    "resnet": resnet,
    "mobilenet": mobilenet,
    "moves": moves,
    "channels last": channels_last,
}
