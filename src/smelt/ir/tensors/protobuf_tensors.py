"""Tensors over protobuf messages of the caller, which a compile reads and never writes.

onnx_ir renames a constant with its value, and the underlying message with both. So a pass that
renames an initializer would rename it in the caller's model, whose nodes keep the old name.
"""

from __future__ import annotations

import onnx
import onnx_ir as ir
from onnx_ir.serde import TensorProtoTensor

from smelt.ir import scope


def leave_messages_alone(model: ir.Model) -> None:
    """Replace tensors over protobuf messages by ``ReadTensor``, so that renames leave the messages
    alone.
    """
    for graph in scope.graphs(model):
        for value in graph.initializers.values():
            tensor = value.const_value
            if type(tensor) is TensorProtoTensor:
                value.const_value = ReadTensor(tensor.raw)
        for node in graph:
            for name, attribute in list(node.attributes.data.items()):
                if type(attribute.value) is TensorProtoTensor:
                    node.attributes[name] = ir.AttrTensor(
                        name, ReadTensor(attribute.value.raw), doc_string=attribute.doc_string
                    )


class ReadTensor(TensorProtoTensor):
    """A tensor over a protobuf message, with a separate name."""

    __slots__ = ("_own_name",)

    def __init__(self, message: onnx.TensorProto) -> None:
        super().__init__(message)
        self._own_name: str | None = message.name

    @property
    def name(self) -> str:
        """Return the name of the tensor; empty if it has none."""
        return self._own_name or ""

    @name.setter
    def name(self, value: str | None) -> None:
        self._own_name = value

    @property
    def raw(self) -> onnx.TensorProto:
        """Return the message, or a renamed copy if the name differs."""
        if self._proto.name == self.name:
            return self._proto
        renamed = onnx.TensorProto()
        renamed.CopyFrom(self._proto)
        renamed.name = self.name
        return renamed
