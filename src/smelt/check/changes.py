"""Which nodes differ between two models, as text."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from smelt.ir import scope


def node_changes(before: ir.Model, after: ir.Model) -> tuple[list[str], list[str]]:
    """Nodes only in ``before``, and nodes only in ``after``, in graph order."""
    old, new = list(_texts(before)), list(_texts(after))
    return _without(old, new), _without(new, old)


def _without(texts: list[str], others: list[str]) -> list[str]:
    left = Counter(others)
    found = []
    for text in texts:
        if left[text]:
            left[text] -= 1
        else:
            found.append(text)
    return found


def _texts(model: ir.Model) -> Iterator[str]:
    return (node_text(node) for node in scope.nodes(model))


def node_text(node: ir.Node) -> str:
    """``y = Op<axis=1>(a, b)`` with the names of values; subgraphs by their number of nodes."""
    inputs = ", ".join(value.name or "?" if value is not None else "" for value in node.inputs)
    outputs = ", ".join(value.name or "?" for value in node.outputs)
    domain = f"{node.domain}." if node.domain else ""
    given = [f"{name}={_attribute(node.attributes[name])}" for name in sorted(node.attributes)]
    attributes = f"<{', '.join(given)}>" if given else ""
    return f"{outputs} = {domain}{node.op_type}{attributes}({inputs})"


def _attribute(attr: ir.Attr) -> str:
    if attr.is_ref():
        return f"@{attr.ref_attr_name}"
    if attr.type == ir.AttributeType.GRAPH:
        return f"graph of {len(attr.as_graph())} nodes"
    if attr.type == ir.AttributeType.TENSOR:
        return _tensor(attr.as_tensor())
    return str(attr.value)


def _tensor(tensor: ir.TensorProtocol) -> str:
    shape = ",".join(str(dim) for dim in tensor.shape)
    if tensor.size <= 8:
        values = np.asarray(tensor.numpy()).reshape(-1).tolist()
        return f"{tensor.dtype.name.lower()}[{shape}]{values}"
    digest = hashlib.sha256(tensor.tobytes()).hexdigest()[:8]
    return f"{tensor.dtype.name.lower()}[{shape}]#{digest}"
