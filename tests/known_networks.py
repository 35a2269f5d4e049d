"""Networks whose multiply-adds everybody knows, with weights as inputs, so that they are small."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir import tape


class Network:
    """Builds a graph; ``x`` is the value so far and ``channels`` its channels."""

    def __init__(self, size: int, batch: int | str = 1) -> None:
        self.tape = tape.Tape()
        self.inputs: list[ir.Value] = []
        self.x = self.input("x", [batch, 3, size, size])
        self.channels = 3

    def input(self, name: str, dims: list[int | str]) -> ir.Value:
        shape, kind = ir.Shape(dims), ir.TensorType(ir.DataType.FLOAT)
        value = ir.Value(name=name, shape=shape, type=kind)
        self.inputs.append(value)
        return value

    def op(self, name: str, *inputs: ir.Value, **attributes: object) -> ir.Value:
        self.x = self.tape.op(name, [*(inputs or (self.x,))], attributes)
        return self.x

    def conv(self, channels: int, kernel: int, stride: int = 1, pad: int = 0) -> None:
        weight = self.input(f"w{len(self.inputs)}", [channels, self.channels, kernel, kernel])
        self.op("Conv", self.x, weight, strides=[stride] * 2, pads=[pad] * 4)
        self.channels = channels

    def pool(self, kernel: int, stride: int, pad: int = 0) -> None:
        self.op("MaxPool", kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def dense(self, width: int, given: int) -> None:
        self.op("Gemm", self.x, self.input(f"w{len(self.inputs)}", [width, given]), transB=1)

    def model(self) -> ir.Model:
        self.x.name = "y"
        graph = ir.Graph(
            self.inputs, [self.x], nodes=self.tape.nodes, opset_imports={"": 20}, name="net"
        )
        return ir.Model(graph, ir_version=9)


def resnet50(batch: int | str = 1) -> ir.Model:
    """Version 1.5, whose blocks have the stride in the middle."""
    net = Network(224, batch)
    net.conv(64, 7, 2, 3)
    net.op("Relu")
    net.pool(3, 2, 1)
    for width, blocks, first in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            stride, before, channels = first if block == 0 else 1, net.x, net.channels
            net.conv(width, 1)
            net.conv(width, 3, stride, 1)
            net.conv(4 * width, 1)
            main = net.x
            if block == 0:
                net.x, net.channels = before, channels
                net.conv(4 * width, 1, stride)
                before = net.x
            net.op("Add", main, before)
            net.op("Relu")
    net.op("GlobalAveragePool")
    net.op("Flatten")
    net.dense(1000, 2048)
    return net.model()


def vgg16() -> ir.Model:
    net = Network(224)
    for channels, layers in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(layers):
            net.conv(channels, 3, 1, 1)
        net.pool(2, 2)
    net.op("Flatten")
    for width, given in ((4096, 25088), (4096, 4096), (1000, 4096)):
        net.dense(width, given)
    return net.model()


def alexnet() -> ir.Model:
    net = Network(224)
    net.conv(64, 11, 4, 2)
    net.pool(3, 2)
    net.conv(192, 5, 1, 2)
    net.pool(3, 2)
    for channels in (384, 256, 256):
        net.conv(channels, 3, 1, 1)
    net.pool(3, 2)
    net.op("Flatten")
    for width, given in ((4096, 9216), (4096, 4096), (1000, 4096)):
        net.dense(width, given)
    return net.model()
