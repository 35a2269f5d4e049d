"""Read large weights inside a model from its mapped file or its bytes, without a copy.

Protobuf copies everything that it parses, so memory would hold a model beside its file, and each
weight again when it is read. Here the bytes are walked once, and protobuf gets a mark for each
large weight: external data whose location is a random token, so that no file can contain it. All
other bytes reach protobuf unchanged. So does a weight with an unusual encoding, and protobuf then
reports a damaged model.
"""

from __future__ import annotations

import mmap
import secrets
from collections.abc import Mapping
from typing import TypeAlias

import onnx
from google.protobuf.descriptor import Descriptor

from smelt.frontends.onnx.wire import LENGTH_DELIMITED, Field, fields, head

Data: TypeAlias = "bytes | mmap.mmap"
Piece: TypeAlias = "bytes | memoryview"

LARGE = 1 << 16
"""Larger weights, in bytes, do not pass through protobuf."""

SMALLEST_MAPPED = 1 << 24
"""Smaller models, in bytes, are read into memory and parsed whole.

Two copies of them cost little, and protobuf aligns weights as kernels need.
"""

MAX_NESTING = 100
"""How deep protobuf lets messages nest."""

_ENTERED = (
    (onnx.ModelProto, ("graph", "functions")),
    (onnx.FunctionProto, ("node",)),
    (onnx.GraphProto, ("node", "initializer")),
    (onnx.NodeProto, ("attribute",)),
    (onnx.AttributeProto, ("t", "g", "graphs")),
)
_INNER: Mapping[str, Mapping[int, Descriptor]] = {
    message.DESCRIPTOR.full_name: {
        field.number: field.message_type
        for field in map(message.DESCRIPTOR.fields_by_name.get, names)
    }
    for message, names in _ENTERED
}
"""For each message type: the fields that may hold weights, and the type of their messages."""

_TENSOR = onnx.TensorProto.DESCRIPTOR
_RAW_DATA = _TENSOR.fields_by_name["raw_data"].number
_BESIDE_RAW_DATA = frozenset(
    _TENSOR.fields_by_name[name].number
    for name in ("dims", "data_type", "name", "doc_string", "metadata_props")
)
_DATA_LOCATION = _TENSOR.fields_by_name["data_location"].number
_T = onnx.AttributeProto.DESCRIPTOR.fields_by_name["t"].number


class Embedded:
    """The large weights within ``data``, a serialized model."""

    def __init__(self, data: Data = b"") -> None:
        """Hold the bytes of the model; ``mark`` is a file name that no model can have by chance."""
        self.data = data
        self.mark = secrets.token_hex(16)

    def without_weights(self) -> bytes:
        """Return the model with a mark in place of each large weight."""
        size = len(self.data)
        if size >= SMALLEST_MAPPED:
            pieces = self._message(onnx.ModelProto.DESCRIPTOR, 0, size, 0)
            if len(pieces) > 1:
                return b"".join(pieces)
        return self.data if isinstance(self.data, bytes) else self.data[:]

    def is_mark(self, tensor: onnx.TensorProto) -> bool:
        """True if ``tensor`` is a mark."""
        return len(tensor.external_data) > 0 and tensor.external_data[0].value == self.mark

    def raw(self, tensor: onnx.TensorProto) -> memoryview:
        """Return the bytes of the weight that the mark ``tensor`` stands for."""
        entries = {entry.key: entry.value for entry in tensor.external_data}
        start = int(entries["offset"])
        return memoryview(self.data)[start : start + int(entries["length"])]

    def _message(self, kind: Descriptor, start: int, end: int, depth: int) -> list[Piece]:
        """Return the message ``data[start:end]`` in pieces, with a mark for each large weight.

        One piece if the message has no large weight.
        """
        data = memoryview(self.data)
        unchanged: list[Piece] = [data[start:end]]
        message_fields = fields(data, start, end) if depth < MAX_NESTING else None
        if message_fields is None:
            return unchanged
        if kind is _TENSOR:
            return self._tensor(message_fields, start, end) or unchanged
        inner = _INNER[kind.full_name]
        numbers = [field.number for field in message_fields]
        if kind.name == "AttributeProto" and numbers.count(_T) > 1:
            return unchanged  # protobuf merges the two tensors
        pieces: list[Piece] = []
        copied = start
        for field in message_fields:
            if field.number not in inner or not _may_hold(field):
                continue
            parts = self._message(inner[field.number], field.begin, field.end, depth + 1)
            if len(parts) > 1:
                pieces += [data[copied : field.start], head(field.number, sum(map(len, parts)))]
                pieces += parts
                copied = field.end
        return [*pieces, data[copied:end]]

    def _tensor(self, tensor: list[Field], start: int, end: int) -> list[Piece] | None:
        """Return the pieces of a tensor message with a mark in place of its data.

        None if the data are small or encoded in an unusual way.
        """
        raw = [field for field in tensor if field.number == _RAW_DATA]
        other_fields = [field for field in tensor if field.number != _RAW_DATA]
        if len(raw) != 1 or not _may_hold(raw[0]) or not all(map(self._is_usual, other_fields)):
            return None
        reference = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL)
        size = raw[0].end - raw[0].begin
        for key, value in (("location", self.mark), ("offset", raw[0].begin), ("length", size)):
            reference.external_data.add(key=key, value=str(value))
        data = memoryview(self.data)
        return [data[start : raw[0].start], data[raw[0].end : end], reference.SerializeToString()]

    def _is_usual(self, field: Field) -> bool:
        """True for the fields that usually accompany raw data.

        A data location must be the default: in the model.
        """
        if field.number == _DATA_LOCATION:
            return self.data[field.begin : field.end] == b"\0"
        return field.number in _BESIDE_RAW_DATA


def _may_hold(field: Field) -> bool:
    """True if the field is long enough to contain a large weight."""
    return field.wire_type == LENGTH_DELIMITED and field.end - field.begin >= LARGE
