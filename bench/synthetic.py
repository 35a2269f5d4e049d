"""A synthetic transformer-like graph of any size, with the redundancy that exporters leave.

Each block of 23 nodes has a MatMul with bias, an exact GELU in five nodes, a layer norm in nine,
two Transposes that cancel, neutral arithmetic, an Identity and a residual Add. All blocks share
their weights, as repeated layers share constants after deduplication.

``dense_in_rewrites`` is the hard case for a rewriter: more than half of its nodes go.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

NODES_PER_BLOCK = 26
NODES_PER_DENSE_BLOCK = 11
WIDTH = 16


def transformer_like(nodes: int, seed: int = 0) -> ir.Model:
    """About ``nodes`` nodes on ``float[B, 8, WIDTH]``; the batch is symbolic."""
    writer = _Writer(seed)
    return writer.model(writer.block, max(1, nodes // NODES_PER_BLOCK))


def dense_in_rewrites(nodes: int, seed: int = 0) -> ir.Model:
    """About ``nodes`` nodes, of each 11 a transpose pair, two no-ops, an Identity and a swish."""
    writer = _Writer(seed)
    return writer.model(writer.dense_block, max(1, nodes // NODES_PER_DENSE_BLOCK))


class _Writer:
    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.nodes: list[ir.Node] = []
        self.constants = {
            "weight": rng.normal(size=(WIDTH, WIDTH)).astype(np.float32) / WIDTH,
            "bias": rng.normal(size=WIDTH).astype(np.float32),
            "scale": np.ones(WIDTH, np.float32),
            "root2": np.float32(2**0.5),
            "one": np.float32(1),
            "half": np.float32(0.5),
            "zero": np.float32(0),
            "two": np.float32(2),
            "epsilon": np.float32(1e-5),
            "last": np.asarray([-1], np.int64),
        }
        self.values = {name: _initializer(name, data) for name, data in self.constants.items()}

    def model(self, block: Callable[[ir.Value], ir.Value], blocks: int) -> ir.Model:
        shape = ir.Shape(["B", 8, WIDTH])
        x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=shape)
        y = x
        for _ in range(blocks):
            y = block(y)
        y = self.op("Identity", y)
        y.name, y.type, y.shape = "y", x.type, shape
        graph = ir.Graph(
            [x],
            [y],
            nodes=self.nodes,
            initializers=list(self.values.values()),
            opset_imports={"": 20},
            name="transformer_like",
        )
        return ir.Model(graph, ir_version=10)

    def block(self, x: ir.Value) -> ir.Value:
        c = self.values
        h = self.layer_norm(x)
        h = self.op("Add", self.op("MatMul", h, c["weight"]), c["bias"])
        gate = self.op("Add", self.op("Erf", self.op("Div", h, c["root2"])), c["one"])
        h = self.op("Mul", self.op("Mul", h, gate), c["half"])
        h = self.op("Transpose", self.op("Transpose", h, perm=[0, 2, 1]), perm=[0, 2, 1])
        h = self.op("Add", self.op("Mul", h, c["one"]), c["zero"])
        h = self.op("Neg", self.op("Neg", self.op("Identity", h)))
        h = self.op("Relu", self.op("Relu", h))
        return self.op("Add", x, self.op("Tanh", h))

    def dense_block(self, x: ir.Value) -> ir.Value:
        c = self.values
        h = self.op("Add", self.op("MatMul", x, c["weight"]), c["bias"])
        h = self.op("Transpose", self.op("Transpose", h, perm=[0, 2, 1]), perm=[0, 2, 1])
        h = self.op("Identity", self.op("Add", self.op("Mul", h, c["one"]), c["zero"]))
        h = self.op("Mul", h, self.op("Sigmoid", h))
        return self.op("Tanh", self.op("Add", x, h))

    def layer_norm(self, x: ir.Value) -> ir.Value:
        c = self.values
        centred = self.op("Sub", x, self.op("ReduceMean", x, c["last"]))
        variance = self.op("ReduceMean", self.op("Pow", centred, c["two"]), c["last"])
        deviation = self.op("Sqrt", self.op("Add", variance, c["epsilon"]))
        normal = self.op("Div", centred, deviation)
        return self.op("Add", self.op("Mul", normal, c["scale"]), c["bias"])

    def op(self, op_type: str, *inputs: ir.Value, **attributes: list[int]) -> ir.Value:
        node = ir.node(op_type, inputs, attributes)
        self.nodes.append(node)
        return node.outputs[0]


def _initializer(name: str, data: np.ndarray | np.generic) -> ir.Value:
    tensor = ir.tensor(np.asarray(data), name=name)
    return ir.Value(
        name=name,
        type=ir.TensorType(tensor.dtype),
        shape=ir.Shape(np.shape(data)),
        const_value=tensor,
    )
