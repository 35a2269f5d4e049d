"""Read and change a WebAssembly module: its exported globals and its data.

A module is the magic number, the version and sections: an id, a length and that many bytes.
Numbers are LEB128. https://webassembly.github.io/spec/core/binary
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

HEADER = b"\0asm\1\0\0\0"
IMPORT, GLOBAL, EXPORT, DATA, DATA_COUNT = 2, 6, 7, 11, 12
GLOBAL_KIND = 3
I32_CONST, END = 0x41, 0x0B


@dataclass
class Reader:
    """Bytes of a module and the place from which the next number is read."""

    data: bytes
    at: int = 0

    def byte(self) -> int:
        """Return the next byte."""
        self.at += 1
        return self.data[self.at - 1]

    def take(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""
        self.at += count
        return self.data[self.at - count : self.at]

    def unsigned(self) -> int:
        """Return the next unsigned number."""
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def signed(self) -> int:
        """Return the next signed number."""
        begin = self.at
        number = self.unsigned()
        bits = 7 * (self.at - begin)
        return number - (1 << bits) if number >> (bits - 1) else number


def unsigned(number: int) -> bytes:
    """Return ``number`` in LEB128."""
    data = bytearray()
    while number >= 0x80:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*data, number])


def signed(number: int) -> bytes:
    """Return ``number`` in signed LEB128."""
    data = bytearray()
    while not -64 <= number < 64:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*data, number & 0x7F])


def sections(module: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield id and contents of each section."""
    reader = Reader(module, len(HEADER))
    while reader.at < len(module):
        kind = reader.byte()
        yield kind, reader.take(reader.unsigned())


def import_count(module: bytes) -> int:
    """Return the number of imports."""
    return sum(Reader(data).unsigned() for kind, data in sections(module) if kind == IMPORT)


def addresses(module: bytes) -> dict[str, int]:
    """Return the value of each exported global that is a constant number."""
    by_kind = dict(sections(module))
    values = _global_values(Reader(by_kind[GLOBAL])) if GLOBAL in by_kind else []
    reader, found = Reader(by_kind[EXPORT]), {}
    for _ in range(reader.unsigned()):
        name = reader.take(reader.unsigned()).decode()
        kind, index = reader.byte(), reader.unsigned()
        if kind == GLOBAL_KIND:
            found[name] = values[index]
    return found


def _global_values(reader: Reader) -> list[int]:
    """Return the first values of all globals, which lld makes of 32-bit constants."""
    values = []
    for _ in range(reader.unsigned()):
        reader.take(2)
        if reader.byte() != I32_CONST:
            raise ValueError("a global that is no 32-bit constant")
        values.append(reader.signed() & 0xFFFFFFFF)
        if reader.byte() != END:
            raise ValueError("a global without an end")
    return values


def with_data(module: bytes, address: int, data: bytes) -> bytes:
    """Return ``module`` with ``data`` in its memory at ``address`` when it is instantiated."""
    start = address - (1 << 32) if address >> 31 else address
    offset = bytes([0, I32_CONST]) + signed(start) + bytes([END])
    segment = offset + unsigned(len(data)) + data
    parts, has_data = [HEADER], False
    for kind, contents in sections(module):
        reader = Reader(contents)
        changed = contents
        if kind == DATA:
            has_data = True
            changed = unsigned(reader.unsigned() + 1) + contents[reader.at :] + segment
        elif kind == DATA_COUNT:
            changed = unsigned(reader.unsigned() + 1)
        parts += [bytes([kind]), unsigned(len(changed)), changed]
    if not has_data:
        changed = unsigned(1) + segment
        parts += [bytes([DATA]), unsigned(len(changed)), changed]
    return b"".join(parts)
