"""Read and write the part of protobuf's wire format that is needed to cut and join messages."""

from __future__ import annotations

from typing import NamedTuple

LENGTH_DELIMITED = 2

_FIXED = {1: 8, 5: 4}
"""The length in bytes of the fixed-size wire types."""

_LONGEST = 10
"""The length in bytes of the longest varint of 64 bits."""

_LONGEST_TAG = 2**32 - 1
"""The tags of protobuf are 32-bit numbers."""


class Field(NamedTuple):
    """A field of a message: its tag starts at ``start``, its value is ``begin`` to ``end``."""

    number: int
    wire_type: int
    start: int
    begin: int
    end: int


def fields(data: memoryview, start: int, end: int) -> list[Field] | None:
    """Return the fields of the message in ``data[start:end]``; None if damaged or with groups."""
    result: list[Field] = []
    position = start
    try:
        while position < end:
            tag, begin = _read_varint(data, position)
            wire_type = tag & 7
            if wire_type == LENGTH_DELIMITED:
                size, begin = _read_varint(data, begin)
                stop = begin + size
            elif wire_type == 0:
                stop = _read_varint(data, begin)[1]
            else:
                stop = begin + _FIXED[wire_type]
            if stop > end or tag < 8 or tag > _LONGEST_TAG:
                return None
            result.append(Field(tag >> 3, wire_type, position, begin, stop))
            position = stop
    except (IndexError, KeyError, ValueError):
        return None
    return result


def head(number: int, size: int) -> bytes:
    """Return tag and length of field ``number`` of ``size`` bytes."""
    return varint(number << 3 | LENGTH_DELIMITED) + varint(size)


def varint(number: int) -> bytes:
    """Return a nonnegative number as a varint: seven bits per byte, lowest first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def _read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return ``(number, position after it)`` of the varint at position ``at``.

    Raises ValueError for a varint of more than 64 bits, IndexError at the end of ``data``.
    """
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    number = byte & 0x7F
    for length in range(1, _LONGEST):
        byte = data[at + length]
        number |= (byte & 0x7F) << 7 * length
        if byte < 0x80:
            return number, at + length + 1
    raise ValueError("a varint does not end")
