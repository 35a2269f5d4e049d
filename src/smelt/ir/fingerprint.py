"""Digests of graphs: graphs with equal digests compute the same, whatever their names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

Token: TypeAlias = object


def fingerprint(graph: ir.Graph) -> bytes:
    """Return the digest of ``graph``: types of inputs and outputs, nodes in order, constants.

    Names, origins and the inferred types of inner values do not count.
    """
    digest = hashlib.sha256()
    for token in _Walk().graph(graph):
        data = token if isinstance(token, bytes) else repr(token).encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.digest()


class _Walk:
    """Numbers values in order of appearance and yields tokens that describe the graph."""

    def __init__(self) -> None:
        self.numbers: dict[ir.Value, int] = {}

    def graph(self, graph: ir.Graph) -> Iterator[Token]:
        """Yield the tokens of ``graph``: inputs, initializers, nodes, outputs."""
        yield "graph"
        for value in graph.inputs:
            yield self.new(value)
            yield _type(value)
        for value in graph.initializers.values():
            yield self.new(value)
            if value.const_value is not None:
                yield from _tensor(value.const_value)
        for node in graph:
            yield from self.node(node)
        for value in graph.outputs:
            yield self.numbers.get(value)
            yield _type(value)
        yield "end"

    def node(self, node: ir.Node) -> Iterator[Token]:
        """Yield the tokens of ``node``: operator, numbers of its operands, attributes, numbers of
        results."""
        yield node.op_identifier()
        yield [None if value is None else self.numbers.get(value) for value in node.inputs]
        for name in sorted(node.attributes):
            yield name
            yield from self.attribute(node.attributes[name])
        yield [self.new(value) if value.name != "" else None for value in node.outputs]

    def attribute(self, attr: ir.Attr) -> Iterator[Token]:
        """Yield the tokens of ``attr``; graphs and tensors are spelled out."""
        kind = attr.type
        yield kind.name
        if attr.is_ref():
            yield attr.ref_attr_name
        elif kind == ir.AttributeType.GRAPH:
            yield from self.graph(attr.as_graph())
        elif kind == ir.AttributeType.GRAPHS:
            yield from (token for graph in attr.as_graphs() for token in self.graph(graph))
        elif kind == ir.AttributeType.TENSOR:
            # as_tensor checks the value against a protocol, which takes longer than all else here.
            yield from _tensor(attr.value)
        elif kind == ir.AttributeType.TENSORS:
            yield from _tensors(attr.as_tensors())
        elif kind in (ir.AttributeType.FLOAT, ir.AttributeType.FLOATS):
            yield np.asarray(attr.value, np.float32).tobytes()
        else:
            yield attr.value

    def new(self, value: ir.Value) -> int:
        """Return the number of ``value``; a new value gets the next number."""
        return self.numbers.setdefault(value, len(self.numbers))


def _tensors(tensors: Iterable[ir.TensorProtocol]) -> Iterator[Token]:
    """Yield the tokens of ``tensors``."""
    for tensor in tensors:
        yield from _tensor(tensor)


def _tensor(tensor: ir.TensorProtocol) -> Iterator[Token]:
    """Yield the tokens of a tensor: type, shape, bytes."""
    yield tensor.dtype.name
    yield [str(dim) for dim in tensor.shape]
    yield tensor.tobytes()


def _type(value: ir.Value) -> Token:
    """Return the type and the dims of ``value`` as text."""
    dims = None if value.shape is None else [str(dim) for dim in value.shape.dims]
    return str(value.type), dims
