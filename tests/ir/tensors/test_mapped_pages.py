"""Pages of a mapped file are dropped and read again."""

from __future__ import annotations

import mmap

import numpy as np

from smelt.ir.tensors.mapped_pages import ReadOnlyMap, forget_pages, map_under

COUNT = 5 * mmap.PAGESIZE


def test_dropped_pages_are_read_again(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * (COUNT // 256))
    with path.open("rb") as file:
        mapped = ReadOnlyMap(file.fileno(), 0, access=mmap.ACCESS_READ)
    array = np.frombuffer(mapped, np.uint8)
    rows = np.lib.stride_tricks.as_strided(array[100:], (4, mmap.PAGESIZE), (mmap.PAGESIZE, 1))
    for each in (array, rows, rows.T, array[:0], array[7:9]):
        assert map_under(each) is mapped
        before = each.copy()
        forget_pages(each)
        np.testing.assert_array_equal(each, before)


def test_memory_stays():
    array = np.arange(COUNT)
    assert map_under(array) is None
    forget_pages(array)
    assert array[-1] == COUNT - 1
