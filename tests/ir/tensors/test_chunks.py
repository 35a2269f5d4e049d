"""The bytes of arrays in C order, whatever the order of their elements in memory."""

import itertools
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
import pytest

from smelt.ir.tensors.chunks import TransposedTensor, as_transposed, in_order

SHAPE = (3, 70, 2, 130)
"""Blocks that are cut at both ends."""


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_every_order_of_axes_becomes_c_order(
    order: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smelt.ir.tensors.chunks.SMALL", 0)
    array = np.arange(np.prod(SHAPE), dtype=np.int32).reshape(SHAPE).transpose(order)
    copy = in_order(array)
    assert copy.flags.c_contiguous
    assert copy.shape == array.shape
    assert copy.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(2000.0)[::-3],
        np.arange(6000.0).reshape(60, 100)[::-2, 3:90:5].T,
        np.broadcast_to(np.arange(130.0)[:, None], (70, 130, 3)),
        np.zeros((3, 0, 4)).T,
        np.float32(4).reshape(()),
        np.arange(300).reshape(1, 300, 1).T,
    ],
)
def test_steps_broadcasts_and_empty_arrays(
    array: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smelt.ir.tensors.chunks.SMALL", 0)
    assert in_order(array).shape == array.shape
    assert in_order(array).tobytes() == array.tobytes()


def test_large_transposed_tensors_keep_their_bytes_and_names() -> None:
    array = np.random.default_rng(0).standard_normal((3, 3, 200, 300)).astype(np.float32)
    tensor = ir.Tensor(array.transpose(3, 2, 0, 1), name="w", doc_string="said")
    found = as_transposed(tensor)
    assert isinstance(found, TransposedTensor)
    assert (found.name, found.doc_string, found.dtype) == ("w", "said", ir.DataType.FLOAT)
    assert found.tobytes() == tensor.tobytes()


@pytest.mark.parametrize(
    "tensor",
    [
        ir.Tensor(np.ones((600, 600), np.float32)),
        ir.Tensor(np.ones((4, 6), np.float32).T),
        ir.Tensor(np.ones((3000, 4000), np.uint8).T, ir.DataType.UINT4),
    ],
)
def test_tensors_in_order_small_or_packed_stay(tensor: ir.Tensor) -> None:
    assert as_transposed(tensor) is tensor
