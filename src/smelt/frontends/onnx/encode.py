"""Encode a model as the bytes of its file, without holding large weights in memory.

Protobuf builds a whole message, then its bytes, so a model would be in memory three times. Here
protobuf serializes a model with marks in place of large tensors. In the result, each mark is
replaced by the tensor's bytes, and the lengths of the messages around it are corrected. The file
equals protobuf's own output byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, TypeAlias

import onnx
import onnx_ir as ir
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from smelt.errors import ResourceLimit
from smelt.frontends.onnx.data_file import DataFile, write_tensor
from smelt.frontends.onnx.map_types import proto_of
from smelt.frontends.onnx.read import MAX_FILE
from smelt.frontends.onnx.wire import head
from smelt.ir import scope

SMALL = 256
"""Smaller tensors, in bytes, stay in the model.

They include shapes, axes and scales of Resize. ONNX Runtime needs these before it opens another
file, and refuses the model otherwise.
"""

STREAMED = 1 << 16
"""Larger tensors, in bytes, inside of the model do not pass through protobuf."""

MARK = "\0smelt"
_RAW_DATA = onnx.TensorProto.DESCRIPTOR.fields_by_name["raw_data"]

Piece: TypeAlias = "bytes | ir.TensorProtocol"


@dataclass
class Encoded:
    """The file of a model as pieces: bytes, and tensors to read on writing."""

    pieces: list[Piece]

    @property
    def size(self) -> int:
        """The size of the model in bytes."""
        return sum(map(_size, self.pieces))

    def write(self, stream: BinaryIO) -> None:
        """Write the model."""
        for piece in self.pieces:
            if isinstance(piece, bytes):
                stream.write(piece)
            else:
                write_tensor(piece, stream)


def encode(model: ir.Model, file: DataFile | None = None, smallest: int = SMALL) -> Encoded:
    """Return the encoding of ``model``, which is modified.

    Weights of at least ``smallest`` bytes become external data of ``file``, if that is given.
    Raises ResourceLimit E504 if the rest does not fit into one protobuf.
    """
    location = file.location if file is not None else None
    if file is not None:
        _put_external(model, file, smallest)
    streamed: list[ir.TensorProtocol] = []
    for graph in scope.graphs(model):
        for name, value in graph.initializers.items():
            if value.const_value is not None and not _refers_to(value.const_value, location):
                value.const_value = _mark_of(value.const_value, name, streamed)
        for node in graph:
            for attribute in list(node.attributes.values()):
                if attribute.type == ir.AttributeType.TENSOR and not attribute.is_ref():
                    tensor = attribute.as_tensor()
                    marked = _mark_of(tensor, tensor.name or "", streamed)
                    if marked is not tensor:
                        node.attributes[attribute.name] = ir.AttrTensor(attribute.name, marked)
    encoded = Encoded(_pieces(proto_of(model), streamed))
    check_size(encoded.size)
    return encoded


def check_size(size: int) -> None:
    """Raise ResourceLimit E504 if ``size`` bytes are too many for a protobuf."""
    if size > MAX_FILE:
        raise ResourceLimit(
            "E504",
            f"the model takes {size:,} bytes",
            fix="save it to a file with external_data=True, which writes weights to a second file",
            why="a protobuf holds at most 2 GiB",
        )


def _put_external(model: ir.Model, file: DataFile, smallest: int) -> None:
    """Make large initializers external data of ``file``."""
    for graph in scope.graphs(model):
        for name, value in graph.initializers.items():
            tensor = value.const_value
            if tensor is not None and _becomes_external(tensor, smallest):
                value.const_value = _reference(tensor, name, file.location, file.put(tensor))


def _becomes_external(tensor: ir.TensorProtocol, smallest: int) -> bool:
    """True for a tensor of at least ``smallest`` bytes that is not text."""
    return tensor.dtype != ir.DataType.STRING and tensor.nbytes >= smallest


def _reference(
    tensor: ir.TensorProtocol, name: str, location: str, offset: int
) -> ir.ExternalTensor:
    """Return an external tensor that has the type, shape and notes of ``tensor``."""
    return ir.ExternalTensor(
        location,
        offset,
        tensor.nbytes,
        tensor.dtype,
        shape=ir.Shape(tensor.shape.numpy()),
        name=name,
        doc_string=tensor.doc_string,
        metadata_props=dict(tensor.metadata_props),
    )


def _refers_to(tensor: ir.TensorProtocol, location: str | None) -> bool:
    """True if ``tensor`` refers to the external data file that is being written."""
    return isinstance(tensor, ir.ExternalTensor) and tensor.location == location


def _mark_of(
    tensor: ir.TensorProtocol, name: str, streamed: list[ir.TensorProtocol]
) -> ir.TensorProtocol:
    """Return a mark for a tensor that bypasses protobuf, and add the tensor to ``streamed``.

    Small tensors inside of the model are returned unchanged.
    """
    bypasses = isinstance(tensor, ir.ExternalTensor) or tensor.nbytes >= STREAMED
    if not bypasses or tensor.dtype == ir.DataType.STRING:
        return tensor
    streamed.append(tensor)
    return _reference(tensor, name, MARK, len(streamed) - 1)


def _pieces(message: Message, streamed: Sequence[ir.TensorProtocol]) -> list[Piece]:
    """Return the serialized ``message`` with each mark replaced by its tensor."""
    if not _holds_mark(message):
        return [message.SerializeToString(deterministic=True)]
    if isinstance(message, onnx.TensorProto):
        return _tensor_pieces(message, streamed)
    pieces: list[Piece] = []
    for descriptor, value in message.ListFields():
        for part, plain in _parts(message, descriptor, value):
            if plain:
                pieces.append(part.SerializeToString(deterministic=True))
                continue
            inner = _pieces(part, streamed)
            pieces.append(head(descriptor.number, sum(map(_size, inner))))
            pieces += inner
    return pieces


def _parts(
    message: Message, descriptor: FieldDescriptor, value: object
) -> Iterator[tuple[Message, bool]]:
    """Yield ``(message, is free of marks)`` for the values of a field, in order.

    Each value that contains a mark is yielded alone. The other values are gathered into copies of
    ``message`` that hold only this field.
    """
    gathered = type(message)()
    if descriptor.message_type is None:
        _copy_field(message, gathered, descriptor)
        yield gathered, True
        return
    repeated = isinstance(value, Sequence) or not isinstance(value, Message)
    items: Iterable[object] = value if repeated else (value,)  # type: ignore[assignment]
    for item in items:
        if _holds_mark(item):
            if gathered.ByteSize():
                yield gathered, True
                gathered = type(message)()
            yield item, False
        elif repeated:
            getattr(gathered, descriptor.name).append(item)
        else:
            getattr(gathered, descriptor.name).CopyFrom(item)
    if gathered.ByteSize():
        yield gathered, True


def _copy_field(source: Message, target: Message, descriptor: FieldDescriptor) -> None:
    """Copy a number, text or list of these."""
    value = getattr(source, descriptor.name)
    if isinstance(value, int | float | str | bytes):
        setattr(target, descriptor.name, value)
    else:
        getattr(target, descriptor.name).extend(value)


def _holds_mark(message: Message) -> bool:
    """True if ``message`` may contain a mark.

    Graphs always count, because ``_pieces`` searches them field by field.
    """
    match message:
        case onnx.TensorProto():
            entries = message.external_data
            return len(entries) > 0 and entries[0].value == MARK
        case onnx.NodeProto():
            return any(map(_holds_mark, message.attribute))
        case onnx.AttributeProto():
            if message.HasField("t"):
                return _holds_mark(message.t)
            return message.HasField("g") or len(message.graphs) > 0
        case onnx.ModelProto() | onnx.GraphProto() | onnx.FunctionProto():
            return True
    return False


def _tensor_pieces(message: onnx.TensorProto, streamed: Sequence[ir.TensorProtocol]) -> list[Piece]:
    """Return the message of a marked tensor in three pieces.

    They are the fields before the data, the data, and the fields after the data.
    """
    index = next(int(entry.value) for entry in message.external_data if entry.key == "offset")
    before, after = onnx.TensorProto(), onnx.TensorProto()
    before.CopyFrom(message)
    before.ClearField("external_data")
    before.ClearField("data_location")
    for descriptor, _ in before.ListFields():
        if descriptor.number > _RAW_DATA.number:
            _copy_any(before, after, descriptor)
            before.ClearField(descriptor.name)
    tensor = streamed[index]
    return [
        before.SerializeToString(deterministic=True) + head(_RAW_DATA.number, tensor.nbytes),
        tensor,
        after.SerializeToString(deterministic=True),
    ]


def _copy_any(source: Message, target: Message, descriptor: FieldDescriptor) -> None:
    """Copy a field of any type; repeated messages are copied whole."""
    if descriptor.message_type is None:
        _copy_field(source, target, descriptor)
    else:
        getattr(target, descriptor.name).extend(getattr(source, descriptor.name))


def _size(piece: Piece) -> int:
    """Return the size of ``piece`` in bytes."""
    return len(piece) if isinstance(piece, bytes) else piece.nbytes
