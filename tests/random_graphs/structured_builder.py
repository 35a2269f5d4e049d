"""Writes the nodes of a structured model; every choice comes from one seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Choice = TypeVar("Choice")

OPSETS = (13, 15, 17, 18, 20, 21)


class Builder:
    """A graph of ONNX nodes in the order in which they were asked for."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.opset = self.rng.choice(OPSETS)
        self.type = TensorProto.FLOAT16 if self.rng.random() < 0.15 else TensorProto.FLOAT
        self.graphs: list[list[onnx.NodeProto]] = [[]]
        self.weights: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[str] = []
        self.count = 0
        self.sizes = {
            "N": self._sizes((1, 2, 3)),
            "M": self._sizes((1, 1, 2, 3, 5)),
            "P": self._sizes((0, 1, 2, 4)),
        }
        self.sizes["T"] = (
            self.sizes["M"][0] + self.sizes["P"][0],
            self.sizes["M"][1] + self.sizes["P"][1],
        )

    def _sizes(self, values: Sequence[int]) -> tuple[int, int]:
        return self.rng.choice(values), self.rng.choice(values)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float16 if self.type == TensorProto.FLOAT16 else np.float32)

    def chance(self, part: float) -> bool:
        return self.rng.random() < part

    def pick(self, *choices: Choice) -> Choice:
        return self.rng.choice(choices)

    def name(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        """One node with one result; the name of the result."""
        return self.op_n(kind, 1, *inputs, **attributes)[0]

    def op_n(self, kind: str, count: int, *inputs: str, **attributes: object) -> list[str]:
        """One node with ``count`` results."""
        names = [self.name() for _ in range(count)]
        self.graphs[-1].append(helper.make_node(kind, list(inputs), names, **attributes))
        return names

    def const(self, array: np.ndarray) -> str:
        """A constant: an initializer, or the result of a Constant node."""
        name = self.name("c")
        tensor = numpy_helper.from_array(np.asarray(array), name)
        if self.chance(0.7):
            self.weights.append(tensor)
        else:
            self.graphs[-1].append(helper.make_node("Constant", [], [name], value=tensor))
        return name

    def ints(self, *values: int) -> str:
        return self.const(np.array(values, np.int64))

    def int(self, value: int) -> str:
        return self.const(np.array(value, np.int64))

    def number(self, value: float) -> str:
        """A scalar of the model's float type, of rank 0 or 1."""
        return self.const(np.full(self.pick((), (1,)), value, self.dtype))

    def weight(self, *shape: int, scale: float = 1.0) -> str:
        return self.const((self.numbers.normal(size=shape) * scale).astype(self.dtype))

    def input(self, name: str, shape: Sequence[str | int], type_: int | None = None) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, type_ or self.type, shape))
        return name

    def dim(self, of: str, axis: int) -> str:
        """A vector of one: the size of an axis, asked in one of several ways."""
        if self.opset >= 15 and self.chance(0.3):
            end = {"end": axis + 1} if axis != -1 else {}
            return self.op("Shape", of, start=axis, **end)
        shape = self.op("Shape", of)
        if self.chance(0.3):
            ends = self.ints(axis + 1 if axis != -1 else 2**31 - 1)
            return self.op("Slice", shape, self.ints(axis), ends, self.ints(0))
        if self.chance(0.5):
            return self.op("Gather", shape, self.ints(axis), axis=0)
        return self.op("Unsqueeze", self.op("Gather", shape, self.int(axis), axis=0), self.ints(0))

    def scalar(self, vector: str) -> str:
        return self.op("Squeeze", vector, self.ints(0))

    def shape(self, *parts: str | int) -> str:
        """A shape computed by Concat of sizes and constants."""
        each = [part if isinstance(part, str) else self.ints(part) for part in parts]
        return self.op("Concat", *each, axis=0)

    def mean(self, x: str, axes: Sequence[int], kind: str = "ReduceMean") -> str:
        if self.opset < 18:
            return self.op(kind, x, axes=list(axes))
        return self.op(kind, x, self.ints(*axes))

    def sum(self, x: str, axes: Sequence[int]) -> str:
        return self.op("ReduceSum", x, self.ints(*axes))

    def inner(self, write: Callable[[], Sequence[str]], inputs: Sequence = ()) -> onnx.GraphProto:
        """The graph of the nodes that ``write`` asks for; its results are the outputs."""
        self.graphs.append([])
        results = [self.op("Identity", each) for each in write()]
        infos = [onnx.ValueInfoProto(name=each) for each in results]
        nodes = self.graphs.pop()
        return helper.make_graph(nodes, self.name("g"), list(inputs), infos)

    def model(self) -> onnx.ModelProto:
        """The checked model, whose outputs have inferred types."""
        infos = [onnx.ValueInfoProto(name=each) for each in self.outputs]
        graph = helper.make_graph(self.graphs[0], "g", self.inputs, infos, self.weights)
        opsets = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        inferred = onnx.shape_inference.infer_shapes(model)
        del model.graph.output[:]
        model.graph.output.extend(inferred.graph.output)
        return model
