"""Serialize a model to the protobuf that a runtime loads; large weights are shared, not copied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.defaults import FIRST_WITH_OVERRIDABLE
from smelt.ir.names import name_values
from smelt.ir.tensors.missing_weights import refuse_missing_weights

if TYPE_CHECKING:
    import onnx

ONNX_DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview.training")
SHARED_BYTES = 4096
"""Initializers of at least this many bytes are passed as arrays instead of serialized."""


@dataclass(frozen=True)
class Serialized:
    """A model ``proto`` whose external data are the arrays in ``weights``."""

    proto: onnx.ModelProto
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)


def serialize(
    model: ir.Model,
    *,
    share_weights: bool = False,
    consume: bool = False,
    fill_gaps: bool = False,
) -> Serialized:
    """Serialize ``model`` unchanged, with function bodies for extension operators.

    With ``fill_gaps``, ONNX operators that ONNX Runtime lacks get bodies, too
    (``operators/onnxruntime/runtime_gaps.py``). With ``share_weights``, large initializers of the
    main graph stay outside of the protobuf: its limit of 2 GB does not apply to them, and they are
    not copied. With ``consume``, ``model`` itself is changed instead of a copy, and loses its large
    weights.
    """
    from smelt.frontends.onnx.map_types import proto_of

    refuse_missing_weights(model, "run")
    copy = model if consume else model.clone()
    if fill_gaps or any(node.domain not in ONNX_DOMAINS for node in scope.nodes(copy)):
        from smelt.frontends.onnx.bodies import attach_bodies

        attach_bodies(copy, fill_gaps=fill_gaps)
    name_values(copy)
    # Before IR version 4, ONNX Runtime treats every initializer as a constant, even an input.
    copy.ir_version = max(copy.ir_version, FIRST_WITH_OVERRIDABLE)
    weights: dict[str, np.ndarray] = {}
    for graph in scope.graphs(copy):
        shared = share_weights and graph is copy.graph
        for name, value in graph.initializers.items():
            tensor = value.const_value
            if tensor is None:
                continue
            if shared and _shareable(tensor) and _is_read(value):
                weights[name] = np.require(tensor.numpy(), requirements=("C", "A"))
                value.const_value = _placeholder(name, tensor)
            elif isinstance(tensor, ir.ExternalTensor):
                value.const_value = ir.Tensor(tensor.numpy(), dtype=tensor.dtype, name=name)
    return Serialized(proto_of(copy), weights)


def _is_read(value: ir.Value) -> bool:
    """True if a node reads ``value``: ONNX Runtime drops unread initializers and rejects their
    data.
    """
    return not value.is_graph_input() and not scope.is_dead(value)


def _shareable(tensor: ir.TensorProtocol) -> bool:
    """True for a large tensor whose elements NumPy and ONNX Runtime store alike."""
    if tensor.dtype == ir.DataType.STRING or tensor.dtype.bitwidth < 8:
        return False
    return tensor.nbytes >= SHARED_BYTES and tensor.dtype.numpy().isbuiltin == 1


def _placeholder(name: str, tensor: ir.TensorProtocol) -> ir.ExternalTensor:
    """Return an external tensor that stands for ``tensor`` in the protobuf."""
    return ir.ExternalTensor(
        "in-memory", 0, tensor.nbytes, tensor.dtype, shape=ir.Shape(tensor.shape.numpy()), name=name
    )
