"""Networks with real topologies and made-up weights, as ONNX, that benches and tests share.

Convolutions come with their normalization folded in, as deployed models do. ``LIGHT`` are the
models that the onnx package brings with their weights left out; ``filled`` gives them some.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

LIGHT = (
    *("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50"),
    *("shufflenet", "squeezenet", "vgg19", "zfnet512"),
)


@dataclass
class Network:
    """A graph in the making; every method returns the name of the value that it made."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def op(self, op_type: str, *inputs: str, **attributes: object) -> str:
        """A node with one output."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], **attributes))
        return name

    def weight(self, *shape: int, scale: float | None = None) -> str:
        """Normal numbers, by default as large as keeps the variance of what they multiply."""
        spread = scale if scale is not None else (2 / max(int(np.prod(shape[1:])), 1)) ** 0.5
        return self.constant(self.rng.normal(0, spread, shape).astype(np.float32))

    def constant(self, array: np.ndarray) -> str:
        """An initializer."""
        name = f"w{len(self.weights)}"
        self.weights[name] = array
        return name

    def conv(
        self,
        x: str,
        channels: int,
        filters: int,
        kernel: int | tuple[int, int] = 1,
        *,
        stride: int = 1,
        group: int = 1,
        activation: str = "",
    ) -> str:
        """A convolution padded to keep the size, with bias; then Relu, or Relu6 as Clip."""
        sizes = (kernel, kernel) if isinstance(kernel, int) else kernel
        pads = [size // 2 for size in sizes]
        w = self.weight(filters, channels // group, *sizes)
        b = self.weight(filters, scale=0.1)
        window = {"kernel_shape": sizes, "strides": [stride] * 2, "pads": pads + pads}
        return self.activation(self.op("Conv", x, w, b, group=group, **window), activation)

    def activation(self, x: str, name: str) -> str:
        """``x`` through Relu, Relu6 or nothing."""
        if name == "Relu6":
            low, high = (self.constant(np.float32(bound)) for bound in (0, 6))
            return self.op("Clip", x, low, high)
        return self.op(name, x) if name else x

    def dense(self, x: str, inputs: int, outputs: int, activation: str = "") -> str:
        """A Gemm with its weights transposed, as PyTorch exports it."""
        w, b = self.weight(outputs, inputs), self.weight(outputs, scale=0.1)
        return self.activation(self.op("Gemm", x, w, b, transB=1), activation)

    def pool_to_vector(self, x: str) -> str:
        """The mean of each channel as a row."""
        return self.op("Flatten", self.op("GlobalAveragePool", x))

    def model(self, shape: Sequence[int], output: str, sizes: Sequence[int]) -> onnx.ModelProto:
        """The model from ``x`` of ``shape`` to ``output``."""
        number = onnx.TensorProto.FLOAT
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info("x", number, shape)],
            [helper.make_tensor_value_info(output, number, sizes)],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )
        opsets = [helper.make_opsetid("", 18)]
        return onnx.shape_inference.infer_shapes(
            helper.make_model(graph, opset_imports=opsets, ir_version=9)
        )


def tiny_mlp() -> onnx.ModelProto:
    """784-64-32-10, for one digit."""
    n = Network()
    h = n.dense(n.dense("x", 784, 64, "Relu"), 64, 32, "Relu")
    return n.model([1, 784], n.op("Softmax", n.dense(h, 32, 10)), [1, 10])


def mnist_cnn() -> onnx.ModelProto:
    """Two convolutions of 5x5 with pooling, as ONNX's model zoo has it."""
    n = Network()
    h = n.op(
        "MaxPool", n.conv("x", 1, 8, 5, activation="Relu"), kernel_shape=[2, 2], strides=[2, 2]
    )
    h = n.conv(h, 8, 16, 5, activation="Relu")
    h = n.op("MaxPool", h, kernel_shape=[3, 3], strides=[3, 3])
    return n.model([1, 1, 28, 28], n.dense(n.op("Flatten", h), 256, 10), [1, 10])


def dscnn_kws() -> onnx.ModelProto:
    """DS-CNN for keyword spotting, as in MLPerf Tiny: 49x10 MFCC, four separable blocks of 64."""
    n = Network()
    w, b = n.weight(64, 1, 10, 4), n.weight(64, scale=0.1)
    h = n.op("Relu", n.op("Conv", "x", w, b, strides=[2, 2], pads=[5, 1, 4, 1]))
    for _ in range(4):
        h = n.conv(h, 64, 64, 3, group=64, activation="Relu")
        h = n.conv(h, 64, 64, activation="Relu")
    logits = n.dense(n.pool_to_vector(h), 64, 12)
    return n.model([1, 1, 49, 10], n.op("Softmax", logits), [1, 12])


def resnet8() -> onnx.ModelProto:
    """ResNet-8 for CIFAR-10, as in MLPerf Tiny."""
    n = Network()
    h, channels = n.conv("x", 3, 16, 3, activation="Relu"), 16
    for filters in (16, 32, 64):
        stride = filters // channels
        inner = n.conv(h, channels, filters, 3, stride=stride, activation="Relu")
        inner = n.conv(inner, filters, filters, 3)
        kept = n.conv(h, channels, filters, stride=stride) if stride > 1 else h
        h, channels = n.op("Relu", n.op("Add", inner, kept)), filters
    logits = n.dense(n.pool_to_vector(h), 64, 10)
    return n.model([1, 3, 32, 32], n.op("Softmax", logits), [1, 10])


MOBILENET_V2 = (
    *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
    *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
)
"""Expansion, channels, blocks, first stride (Sandler et al., 2018, table 2)."""


def mobilenet_v2(width: float, size: int, classes: int) -> onnx.ModelProto:
    """MobileNetV2 with Relu6 as Clip."""

    def wide(channels: int) -> int:
        near = max(8, int(channels * width + 4) // 8 * 8)
        return near + 8 if near < 0.9 * channels * width else near

    n = Network()
    channels = wide(32)
    h = n.conv("x", 3, channels, 3, stride=2, activation="Relu6")
    for expansion, filters, blocks, first in MOBILENET_V2:
        for block in range(blocks):
            out, stride, inner = wide(filters), first if block == 0 else 1, channels * expansion
            g = n.conv(h, channels, inner, activation="Relu6") if expansion > 1 else h
            g = n.conv(g, inner, inner, 3, stride=stride, group=inner, activation="Relu6")
            g = n.conv(g, inner, out)
            h = n.op("Add", h, g) if stride == 1 and channels == out else g
            channels = out
    last = max(1280, wide(1280))
    h = n.conv(h, channels, last, activation="Relu6")
    logits = n.dense(n.pool_to_vector(h), last, classes)
    return n.model([1, 3, size, size], logits, [1, classes])


def transformer(
    tokens: int, width: int, heads: int, layers: int, patch: int = 0, classes: int = 0
) -> onnx.ModelProto:
    """Pre-norm encoder with exact GELU as an Erf; a ViT if ``patch`` and ``classes`` are given."""
    n = Network()
    h, shape = "x", [1, tokens, width]
    if patch:
        side = int(tokens**0.5) * patch
        w, b = n.weight(width, 3, patch, patch), n.weight(width, scale=0.1)
        h = n.op("Conv", "x", w, b, strides=[patch, patch])
        h = n.op("Reshape", h, n.constant(np.array([1, width, -1], np.int64)))
        h = n.op("Transpose", h, perm=[0, 2, 1])
        h = n.op("Concat", n.weight(1, 1, width), h, axis=1)
        shape, tokens = [1, 3, side, side], tokens + 1
        h = n.op("Add", h, n.weight(1, tokens, width, scale=0.02))
    for _ in range(layers):
        h = n.op("Add", h, _attention(n, _norm(n, h, width), tokens, width, heads))
        h = n.op("Add", h, _feed_forward(n, _norm(n, h, width), width))
    h = _norm(n, h, width)
    if not classes:
        return n.model(shape, h, [1, tokens, width])
    h = n.op("Gather", h, n.constant(np.array(0, np.int64)), axis=1)
    return n.model(shape, n.dense(h, width, classes), [1, classes])


def _norm(n: Network, x: str, width: int) -> str:
    scale = n.constant(np.ones(width, np.float32))
    return n.op("LayerNormalization", x, scale, n.weight(width, scale=0.1), epsilon=1e-6)


def _linear(n: Network, x: str, inputs: int, outputs: int) -> str:
    w = n.constant(n.rng.normal(0, inputs**-0.5, (inputs, outputs)).astype(np.float32))
    return n.op("Add", n.op("MatMul", x, w), n.weight(outputs, scale=0.1))


def _attention(n: Network, x: str, tokens: int, width: int, heads: int) -> str:
    split = n.constant(np.array([1, tokens, heads, width // heads], np.int64))
    perms = {"q": [0, 2, 1, 3], "k": [0, 2, 3, 1], "v": [0, 2, 1, 3]}
    parts = {
        name: n.op("Transpose", n.op("Reshape", _linear(n, x, width, width), split), perm=perm)
        for name, perm in perms.items()
    }
    factor = n.constant(np.float32((width // heads) ** -0.5))
    scores = n.op("Mul", n.op("MatMul", parts["q"], parts["k"]), factor)
    mixed = n.op("MatMul", n.op("Softmax", scores, axis=-1), parts["v"])
    merged = n.op("Transpose", mixed, perm=[0, 2, 1, 3])
    joined = n.op("Reshape", merged, n.constant(np.array([1, tokens, width], np.int64)))
    return _linear(n, joined, width, width)


def _feed_forward(n: Network, x: str, width: int) -> str:
    h = _linear(n, x, width, 4 * width)
    erf = n.op("Erf", n.op("Div", h, n.constant(np.float32(2**0.5))))
    gate = n.op("Mul", h, n.op("Add", erf, n.constant(np.float32(1))))
    return _linear(n, n.op("Mul", gate, n.constant(np.float32(0.5))), 4 * width, width)


def light(name: str) -> onnx.ModelProto:
    """A model of the onnx package whose weights are ``ConstantOfShape``."""
    folder = Path(onnx.__file__).parent / "backend/test/data/light"
    model = onnx.load(folder / f"light_{name}.onnx")
    given = {tensor.name for tensor in model.graph.initializer}
    for value in [value for value in model.graph.input if value.name in given]:
        model.graph.input.remove(value)  # which made the sizes of weights overridable
    return model


def filled(model: onnx.ModelProto) -> onnx.ModelProto:
    """``model`` with random initializers for its ``ConstantOfShape`` nodes.

    What follows an image in a BatchNormalization is near 1, so that variances are positive.
    """
    rng = np.random.default_rng(0)
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    near_one = {
        name
        for node in model.graph.node
        if node.op_type == "BatchNormalization"
        for name in (node.input[1], node.input[4])
    }
    for node in [node for node in model.graph.node if node.op_type == "ConstantOfShape"]:
        shape = [int(size) for size in shapes[node.input[0]]]
        spread = (2 / max(int(np.prod(shape[1:])), 1)) ** 0.5 if len(shape) > 1 else 0.05
        # Logits of thousands of terms would leave a softmax nothing but one 1.
        spread *= 0.05 if len(shape) == 2 else 1
        array = rng.normal(0, spread, shape).astype(np.float32)
        if node.output[0] in near_one:
            array = np.abs(array) + np.float32(1)
        model.graph.initializer.append(numpy_helper.from_array(array, node.output[0]))
        model.graph.node.remove(node)
    read = {name for node in model.graph.node for name in node.input}
    for tensor in [tensor for tensor in model.graph.initializer if tensor.name not in read]:
        model.graph.initializer.remove(tensor)
    return model


NETWORKS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "tiny_mlp": tiny_mlp,
    "mnist_cnn": mnist_cnn,
    "dscnn_kws": dscnn_kws,
    "resnet8": resnet8,
    "tiny_transformer": lambda: transformer(tokens=32, width=64, heads=4, layers=2),
    "mbv2_035_96": lambda: mobilenet_v2(0.35, 96, 2),
    "mbv2_100_224": lambda: mobilenet_v2(1.0, 224, 1000),
    "squeezenet": lambda: filled(light("squeezenet")),
    "shufflenet": lambda: filled(light("shufflenet")),
    "resnet50": lambda: filled(light("resnet50")),
    "vit_tiny": lambda: transformer(196, 192, 3, 12, patch=16, classes=1000),
}
"""What is timed, by name."""
