"""Encode and decode protobuf messages, whose fields ``schema.MESSAGES`` lists.

A message is a dict from field names to values: int, bool, str, bytes, a NumPy array for a packed
field, a list for a repeated field, a dict for a map or a message. When encoding, an inner message
may also be bytes. A missing field has its default; of alternatives, only the present one is a key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from smelt.mlpackage.schema import MESSAGES, Field

Message = Mapping[str, Any]

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_PACKED: dict[str, np.dtype[Any]] = {"floats": np.dtype("<f4"), "doubles": np.dtype("<f8")}


class MalformedMessage(ValueError):
    """The bytes are no message of the format: cut off, or a field of another wire type."""


def varint(number: int) -> bytes:
    """Return ``number`` as a protobuf varint: base 128, least digit first, high bit for "more"."""
    if 0 <= number < 128:
        return _SMALL[number]
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


_SMALL = [bytes([number]) for number in range(128)]


def encode(message: str, fields: Message) -> bytes:
    """Return the bytes of ``fields``, a message of type ``message``, in order of field numbers."""
    out: list[bytes] = []
    left = len(fields)
    for number, name, kind, repeated in MESSAGES[message]:
        if name not in fields:
            continue
        left -= 1
        value = fields[name]
        if repeated == "map":
            for key in sorted(value):
                item = _field(1, "string", key) + _field(2, kind, value[key])
                out += (_tag(number, LENGTH), varint(len(item)), item)
        elif repeated:
            out += [_field(number, kind, item) for item in value]
        else:
            out.append(_field(number, kind, value))
    if left:
        known = [name for _, name, _, _ in MESSAGES[message]]
        raise ValueError(f"{message} has no field {sorted(set(fields).difference(known))}")
    return b"".join(out)


def _tag(number: int, wire_type: int) -> bytes:
    """Return the tag that begins a field: its number and how its value is encoded."""
    return varint(number << 3 | wire_type)


def _field(number: int, kind: str, value: Any) -> bytes:
    """Return one field with its tag."""
    if kind in ("int", "bool"):
        return _tag(number, VARINT) + varint(int(value))
    data = _encoders[kind](value) if kind in _encoders else _message(kind, value)
    return _tag(number, LENGTH) + varint(len(data)) + data


def _message(kind: str, value: Message | bytes) -> bytes:
    """Return the bytes of an inner message, which may be encoded already."""
    return value if isinstance(value, bytes) else encode(kind, value)


def _packed_ints(values: Any) -> bytes:
    """Return integers as varints, one after another."""
    return b"".join(map(varint, np.asarray(values).ravel().tolist()))


_encoders: dict[str, Callable[[Any], bytes]] = {
    "string": lambda value: value.encode(),
    "bytes": bytes,
    "ints": _packed_ints,
    "bools": lambda values: np.asarray(values, np.uint8).tobytes(),
    "floats": lambda values: np.asarray(values, _PACKED["floats"]).tobytes(),
    "doubles": lambda values: np.asarray(values, _PACKED["doubles"]).tobytes(),
}


def decode(message: str, data: bytes | memoryview) -> dict[str, Any]:
    """Return the fields of a message of type ``message``; unknown fields are left out.

    Raises MalformedMessage for bytes that are no such message.
    """
    try:
        return _decode(message, data)
    except RecursionError as error:
        raise MalformedMessage("its messages are nested too deep") from error


def _decode(message: str, data: bytes | memoryview) -> dict[str, Any]:
    """Return the fields of a message, which may be an inner one."""
    by_number = _BY_NUMBER[message]
    view = memoryview(data)
    fields: dict[str, Any] = {}
    at = 0
    while at < len(view):
        tag, at = _read_varint(view, at)
        value, at = _read_value(view, at, tag & 7)
        field = by_number.get(tag >> 3)
        if field is not None:
            _store(fields, field, value, message)
    return fields


def field_numbers(data: bytes | memoryview) -> set[int]:
    """Return the numbers of the fields of a message; raises MalformedMessage."""
    view, at, numbers = memoryview(data), 0, set()
    while at < len(view):
        tag, at = _read_varint(view, at)
        numbers.add(tag >> 3)
        _, at = _read_value(view, at, tag & 7)
    return numbers


_BY_NUMBER = {name: {field.number: field for field in fields} for name, fields in MESSAGES.items()}


def _read_varint(view: memoryview, at: int) -> tuple[int, int]:
    """Return the varint at offset ``at``, and the offset after it."""
    number = shift = 0
    while at < len(view) and shift < 70:
        byte = view[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & ((1 << 64) - 1), at
        shift += 7
    raise MalformedMessage("a number is cut off")


def _read_value(view: memoryview, at: int, wire_type: int) -> tuple[int | memoryview, int]:
    """Return the value at offset ``at``, a number or bytes, and the offset after it."""
    if wire_type == VARINT:
        return _read_varint(view, at)
    if wire_type == LENGTH:
        size, at = _read_varint(view, at)
    elif wire_type in (FIXED32, FIXED64):
        size = 4 if wire_type == FIXED32 else 8
    else:
        raise MalformedMessage(f"the wire type {wire_type} does not exist")
    if size > len(view) - at:
        raise MalformedMessage(f"a field of {size} bytes is cut off after {len(view) - at}")
    return view[at : at + size], at + size


def _store(fields: dict[str, Any], field: Field, value: int | memoryview, message: str) -> None:
    """Decode ``value`` and store it in ``fields``; repeated and packed fields are appended.

    ``message`` names the type of the message in errors.
    """
    name, kind = field.name, field.kind
    if field.repeated == "map":
        entry = _entry(kind, _bytes(value, message, name))
        fields.setdefault(name, {})[entry[0]] = entry[1]
    elif field.repeated:
        fields.setdefault(name, []).append(_decoded(kind, value, message, name))
    elif kind in ("ints", "floats", "doubles", "bools") and name in fields:
        more = _decoded(kind, value, message, name)
        fields[name] = np.concatenate([fields[name], more])
    else:
        fields[name] = _decoded(kind, value, message, name)


def _entry(kind: str, data: memoryview) -> tuple[str, Any]:
    """Return key and value of a map entry, a message with the fields 1 (key) and 2 (value)."""
    key, item, at = "", _decode(kind, b"") if kind in MESSAGES else "", 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        value, at = _read_value(data, at, tag & 7)
        if tag >> 3 == 1:
            key = _decoded("string", value, "map", "key")
        elif tag >> 3 == 2:
            item = _decoded(kind, value, "map", "value")
    return key, item


def _bytes(value: int | memoryview, message: str, name: str) -> memoryview:
    """Return ``value`` if it is bytes; raises MalformedMessage for a number."""
    if isinstance(value, int):
        raise MalformedMessage(f"{message}.{name} is a number instead of bytes")
    return value


def _decoded(kind: str, value: int | memoryview, message: str, name: str) -> Any:
    """Return a value of ``kind`` from a number or bytes."""
    if kind in ("int", "bool"):
        if not isinstance(value, int):
            raise MalformedMessage(f"{message}.{name} is bytes instead of a number")
        signed = value - (1 << 64) if value >> 63 else value
        return bool(value) if kind == "bool" else signed
    if kind in ("ints", "bools", "floats", "doubles"):
        return _decode_packed(kind, value)
    data = _bytes(value, message, name)
    if kind == "bytes":
        return bytes(data)
    if kind == "string":
        try:
            return str(data, "utf-8")
        except UnicodeDecodeError as error:
            raise MalformedMessage(f"{message}.{name} is not UTF-8") from error
    return _decode(kind, data)


def _decode_packed(kind: str, value: int | memoryview) -> np.ndarray:
    """Return a packed array; a single number is an array of one element, as protobuf allows."""
    if kind in _PACKED:
        if isinstance(value, int) or len(value) % _PACKED[kind].itemsize:
            raise MalformedMessage(f"an array of {kind} is cut off")
        return np.frombuffer(value, _PACKED[kind])
    numbers: Sequence[int] = [value] if isinstance(value, int) else _varints(value)
    array = np.array(numbers, np.uint64).view(np.int64)
    return array.astype(np.bool_) if kind == "bools" else array


def _varints(data: memoryview) -> list[int]:
    """Return all varints of a packed array."""
    numbers, at = [], 0
    while at < len(data):
        number, at = _read_varint(data, at)
        numbers.append(number)
    return numbers
