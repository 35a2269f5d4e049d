"""A broken model is written as ONNX text and one change to its protobuf."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Broken: TypeAlias = Callable[[], onnx.ModelProto]
Cases: TypeAlias = dict[str, Broken]

RELU = "y = Relu(x)"


def graph(
    body: str = RELU, *, inputs: str = "float[4] x", outputs: str = "float[4] y", **header: int
) -> Broken:
    """A model of one graph; ``header`` has ``ir`` and ``opset``."""
    return text(f"g ({inputs}) => ({outputs}) {{ {body} }}", **header)


def text(rest: str, *, ir: int = 10, opset: int = 20, also: str = "") -> Broken:
    """A model from ONNX text after its header; ``also`` are more imports, each after a comma."""
    return lambda: onnx.parser.parse_model(
        f'<ir_version: {ir}, opset_import: ["" : {opset}{also}]> {rest}'
    )


def changed(model: Broken, *changes: Callable[[onnx.ModelProto], object]) -> Broken:
    """``model`` after ``changes`` to its protobuf."""

    def build() -> onnx.ModelProto:
        proto = model()
        for change in changes:
            change(proto)
        return proto

    return build


def node(**fields: str) -> Callable[[onnx.ModelProto], object]:
    """Set fields of the first node."""

    def change(model: onnx.ModelProto) -> None:
        for name, value in fields.items():
            setattr(model.graph.node[0], name, value)

    return change


def weight(*changes: Callable[[TensorProto], object], sparse: bool = False) -> Broken:
    """A model with one weight of four ones, after ``changes`` to it."""

    def change(model: onnx.ModelProto) -> None:
        tensor = model.graph.initializer.add()
        tensor.CopyFrom(numpy_helper.from_array(np.ones(4, np.float32), "w"))
        for alter in changes:
            alter(tensor)

    return changed(graph("y = Add(x, w)"), change)


def attribute(*changes: Callable[[onnx.AttributeProto], object]) -> Broken:
    """A model whose one node has an attribute, after ``changes`` to it."""

    def change(model: onnx.ModelProto) -> None:
        for alter in changes:
            alter(model.graph.node[0].attribute[0])

    return changed(graph("y = Softmax<axis = 0>(x)"), change)


def tensor_info(name: str, dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    """The declaration of a value of four elements."""
    return helper.make_tensor_value_info(name, dtype, [4])
