"""Fields of protobuf messages, read from bytes without a schema."""

from __future__ import annotations

import struct

import pytest

from smelt.frontends.onnx.wire import Field, fields, head, varint

NUMBERS = (0, 1, 127, 128, 300, 2**14 - 1, 2**14, 2**32 - 1, 2**64 - 1)


def tag(number: int, wire_type: int) -> bytes:
    return varint(number << 3 | wire_type)


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers(number: int) -> None:
    data = tag(1, 0) + varint(number)
    assert fields(memoryview(data), 0, len(data)) == [Field(1, 0, 0, 1, len(data))]
    assert len(varint(number)) == max(1, -(-number.bit_length() // 7))


def test_each_wire_type() -> None:
    parts = [
        tag(1, 0) + varint(300),
        tag(2, 1) + struct.pack("<d", 0.5),
        head(3, 3) + b"abc",
        tag(16, 5) + struct.pack("<f", 0.5),
        head(4, 0),
    ]
    data, found, at = b"".join(parts), [], 0
    for part, number, wire_type, size in zip(
        parts, (1, 2, 3, 16, 4), (0, 1, 2, 5, 2), (2, 8, 3, 4, 0), strict=True
    ):
        at += len(part)
        found.append(Field(number, wire_type, at - len(part), at - size, at))
    assert fields(memoryview(data), 0, len(data)) == found
    assert fields(memoryview(b"??" + data), 2, len(data) + 2) == [
        Field(each.number, each.wire_type, *(place + 2 for place in each[2:])) for each in found
    ]


DAMAGED = {
    "a group": tag(1, 3) + tag(1, 4),
    "an unknown wire type": tag(1, 7),
    "field 0": tag(0, 0) + varint(1),
    "a field number beyond 29 bits": tag(2**29, 0) + varint(1),
    "a value that is cut": head(1, 4) + b"abc",
    "a fixed number that is cut": tag(1, 5) + b"abc",
    "a varint that is cut": tag(1, 0) + b"\x80",
    "a varint that does not end": tag(1, 0) + b"\x80" * 10 + b"\x01",
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_damaged_messages_have_no_fields(data: bytes) -> None:
    assert fields(memoryview(data), 0, len(data)) is None
