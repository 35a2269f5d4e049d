"""Large arrays that a rewrite computes wait in a file; what a model holds already stays."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from smelt.ir.tensors import chunks, constants_on_disk
from smelt.ir.tensors.chunks import array_chunks
from smelt.ir.tensors.constants_on_disk import new_memory_budget, note_owned, spilled

LARGE = np.arange(600_000, dtype=np.float32).reshape(600, 1000)


@pytest.fixture(autouse=True)
def no_room_in_memory(monkeypatch):
    monkeypatch.setattr(constants_on_disk, "IN_MEMORY", 0)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize(
    "make",
    [
        lambda: LARGE * 2,
        lambda: (LARGE * 2).T,
        lambda: (LARGE * 2)[::2],
        lambda: LARGE.astype(ml_dtypes.bfloat16),
        lambda: LARGE > 7,
    ],
    ids=["dense", "transposed", "strided", "bfloat16", "bool"],
)
def test_a_new_array_moves_to_a_file_and_stays_the_same(make, monkeypatch):
    monkeypatch.setattr(constants_on_disk, "SPILLED", 1 << 19)
    array = spilled(make())
    assert not array.flags.owndata
    assert not array.flags.writeable
    assert isinstance(array.base.base.obj, constants_on_disk._Segment)
    np.testing.assert_array_equal(array, make())
    assert array.dtype == make().dtype


def test_small_arrays_and_views_of_what_is_held_stay():
    small = np.ones(10)
    assert spilled(small) is small
    note_owned(LARGE)
    view = LARGE.T
    assert spilled(view) is view
    mapped = spilled(LARGE * 2)
    assert spilled(mapped) is mapped
    texts = np.array(["a"] * (1 << 20), dtype=object)
    assert spilled(texts) is texts


def test_as_much_as_there_is_room_for_stays_in_memory(monkeypatch):
    monkeypatch.setattr(constants_on_disk, "IN_MEMORY", 2 * LARGE.nbytes)
    first, second, third, fourth = (LARGE * number for number in (2, 3, 4, 5))
    with new_memory_budget():
        assert spilled(first) is first
        assert spilled(first) is first
        assert spilled(second.T).base is second
        assert spilled(third) is not third
        del first
        assert spilled(third) is third
    with new_memory_budget():
        assert spilled(fourth) is fourth


def test_the_file_goes_with_the_last_array():
    if not Path("/proc/self/fd").exists():
        pytest.skip("this system does not list open files")
    gc.collect()
    before = open_files()
    arrays = [spilled(LARGE * number) for number in range(2, 6)]
    assert open_files() <= before + 2
    del arrays
    gc.collect()
    assert open_files() == before


def test_an_array_that_exceeds_the_open_file_gets_its_own(monkeypatch):
    monkeypatch.setattr(constants_on_disk, "SEGMENT", 3_000_000)
    arrays = [spilled(LARGE * number) for number in range(2, 6)]
    assert len({id(array.base.base.obj) for array in arrays}) == 4
    for number, array in enumerate(arrays, start=2):
        np.testing.assert_array_equal(array, LARGE * number)


def test_without_room_for_a_file_arrays_stay_in_memory(monkeypatch):
    def fail(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", fail)
    monkeypatch.setattr(constants_on_disk, "_current", None)
    array = LARGE * 2
    assert spilled(array) is array


@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 1000), (1000, 1), (2, 7, 11, 3), (0, 3), ()])
def test_chunks_are_the_bytes_in_order(shape, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK", 100)
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    for view in (array, array.T, array[::-1] if shape else array):
        pieces = [bytes(chunk) for chunk in array_chunks(view)]
        assert b"".join(pieces) == view.tobytes()
        assert all(len(piece) <= 100 for piece in pieces)
