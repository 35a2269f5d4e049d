"""Memory for libraries of compiled models."""

from __future__ import annotations

from smelt.runtime import c_library


def test_aligned_memory_holds_all_bytes() -> None:
    for size, alignment in ((0, 64), (1, 64), (4096, 16), (100, 1)):
        memory, address = c_library.aligned(size, alignment)
        begin = address - memory.ctypes.data
        assert address % alignment == 0
        assert 0 <= begin <= begin + size <= memory.nbytes
