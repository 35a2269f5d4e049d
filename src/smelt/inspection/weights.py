"""The constants of a model, sorted by size."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.text import size_in_bytes


@dataclass(frozen=True)
class Weight:
    """An initializer or the value of a Constant node. ``bytes`` is its size in packed form."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    elements: int
    bytes: int

    def share_of(self, whole: int) -> float:
        """Return the weight's share of ``whole`` bytes, from 0 to 1."""
        return self.bytes / whole if whole else 0.0

    @property
    def type(self) -> str:
        """The type as text, such as ``float[16,64]``."""
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


def weights_of(model: ir.Model) -> list[Weight]:
    """Return all constants, largest first, equal ones by name; no data is read."""
    weights = [
        _weight(value.name or "", value.const_value)
        for graph in scope.graphs(model)
        for value in graph.initializers.values()
        if value.const_value is not None
    ]
    for node in scope.nodes(model):
        if node.op_type == "Constant" and not node.domain and "value" in node.attributes:
            attribute = node.attributes["value"]
            if attribute.type == ir.AttributeType.TENSOR and not attribute.is_ref():
                weights.append(_weight(node.outputs[0].name or "", attribute.as_tensor()))
    return sorted(weights, key=lambda weight: (-weight.bytes, weight.name))


def _weight(name: str, tensor: ir.TensorProtocol) -> Weight:
    """Return name, type, shape and size of ``tensor``."""
    shape = tuple(int(dim) for dim in tensor.shape.numpy())
    return Weight(name, tensor.dtype.name.lower(), shape, int(tensor.size), size_in_bytes(tensor))
