"""Packed weights are made once, and may be in a file in place of memory."""

from __future__ import annotations

import gc
import hashlib

import numpy as np
import onnx_ir as ir
import pytest

import smelt
from smelt.ir import text
from smelt.native.kernels.float_panels import PANEL, pack
from smelt.native.packed_once import (
    SMALLEST,
    WeightFile,
    digest_in_file,
    in_file,
    packed_once,
    weights_in,
)

LARGE = np.arange(SMALLEST, dtype=np.float32).reshape(64, -1)


def test_the_same_memory_is_packed_once_while_it_is_in_use():
    made = []
    first, again = (packed_once(LARGE, "a", lambda: made.append(1) or LARGE + 1) for _ in "ab")
    assert again is first
    assert packed_once(LARGE, "b", lambda: LARGE + 2) is not first
    del first, again
    gc.collect()
    packed_once(LARGE, "a", lambda: made.append(1) or LARGE + 1)
    assert len(made) == 2


def test_numbers_that_were_written_since_are_packed_again():
    weight = LARGE.copy()
    first = packed_once(weight, "a", lambda: weight + 1)
    weight *= 2
    again = packed_once(weight, "a", lambda: weight + 1)
    np.testing.assert_array_equal(first, LARGE + 1)
    np.testing.assert_array_equal(again, LARGE * 2 + 1)


def test_a_model_compiled_again_has_the_weights_of_now():
    weight = np.ones((64, 128), np.float32)
    x = np.ones((8, 64), np.float32)
    artifacts, results = [], []
    for factor in (1, 3):
        weight[:] = factor
        model = text.parse(
            "g (float[8,64] x, float[64,128] w) => (float[8,128] y) { y = MatMul(x, w) }"
        )
        value = model.graph.inputs.pop()
        value.const_value = ir.Tensor(weight, name="w")
        model.graph.register_initializer(value)
        artifacts.append(smelt.compile(model, target="host", engine="native"))
        results.append(float(artifacts[-1](x)[0].max()))
    assert results == [64, 192]


def test_large_arrays_are_mapped_from_the_file(tmp_path):
    file = WeightFile(tmp_path / "weights")
    small = np.zeros(3, np.float32)
    with weights_in(file):
        packed = packed_once(LARGE, "twice", lambda: LARGE * 2)
        equal = packed_once(LARGE.copy(), "twice", lambda: LARGE * 2)
        assert equal.ctypes.data == packed.ctypes.data  # equal bytes of other memory
        assert digest_in_file(packed) is not None
        assert in_file(small, b"small") is small
        with pytest.raises(ValueError, match="read-only"):
            packed[0, 0] = 1
    assert digest_in_file(packed) is None  # outside of the block
    start = file.places[packed.ctypes.data]
    file.close()
    content = (tmp_path / "weights").read_bytes()
    assert content[start : start + packed.nbytes] == (LARGE * 2).tobytes()
    assert hashlib.sha256(content).hexdigest() == file.digest.hexdigest()
    np.testing.assert_array_equal(packed, LARGE * 2)


def test_a_full_disk_leaves_weights_in_memory(tmp_path, monkeypatch):
    file = WeightFile(tmp_path / "weights")

    def full(data, alignment):
        raise OSError("no space")

    monkeypatch.setattr(file, "write", full)
    assert file.add(LARGE) is LARGE


def test_programs_of_one_row_and_of_many_share_panels(tmp_path):
    matrix = np.arange(5.0 * 70, dtype=np.float32).reshape(5, 70)
    assert not np.array_equal(pack(matrix, 1), pack(matrix, 6))
    with weights_in(WeightFile(tmp_path / "weights")):
        np.testing.assert_array_equal(pack(matrix, 1), pack(matrix, 6))


@pytest.mark.parametrize("columns", [1, 16, 33, 64, 70])
def test_panels_are_padded_to_vectors(columns):
    matrix = np.arange(3.0 * columns, dtype=np.float32).reshape(3, columns) + 1
    packed = pack(matrix, 6)
    at = 0
    for first in range(0, columns, PANEL):
        panel = matrix[:, first : first + PANEL]
        width = -(-panel.shape[1] // 16) * 16
        rows = packed[at : at + 3 * width].reshape(3, width)
        np.testing.assert_array_equal(rows[:, : panel.shape[1]], panel)
        assert not rows[:, panel.shape[1] :].any()
        at += 3 * width
    assert not packed[at:].any()
