"""Weights side by side."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from smelt.ir.tensors.lazy_concat import LazyConcat, concatenated_once


def test_it_holds_what_the_parts_hold() -> None:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    b = np.arange(8, dtype=np.float32).reshape(4, 2).T
    joined = LazyConcat([ir.Tensor(a), ir.Tensor(b)])
    expected = np.concatenate([a, b], axis=1)
    np.testing.assert_array_equal(joined.numpy(), expected)
    assert joined.tobytes() == expected.tobytes()
    assert (joined.shape, joined.dtype) == (ir.Shape((2, 7)), ir.DataType.FLOAT)
    assert joined.nbytes == expected.nbytes
    assert ir.serde.serialize_tensor(joined).raw_data == expected.tobytes()


def test_equal_parts_have_equal_samples_and_others_mostly_not() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(64, 48)).astype(np.float32) for _ in range(3)]
    tensors = [ir.Tensor(array) for array in arrays]
    copies = [ir.Tensor(array.copy()) for array in arrays]
    assert LazyConcat(tensors).sample(16) == LazyConcat(copies).sample(16)
    assert LazyConcat(tensors).sample(16) != LazyConcat([*tensors[1:], tensors[0]]).sample(16)


@pytest.mark.parametrize(("count", "elements"), [(1, 2), (4, 8), (8, 16), (16, 16), (99, 16)])
def test_a_sample_holds_as_many_elements_of_each_part(count: int, elements: int) -> None:
    parts = [ir.Tensor(np.arange(8, dtype=np.int32).reshape(2, 4)) for _ in range(2)]
    assert len(LazyConcat(parts).sample(count)) == elements * 4


def test_readers_share_it_inside_of_a_block():
    parts = [ir.tensor(np.full((2, width), width, np.float32)) for width in (1, 3)]
    lazy = LazyConcat(parts)
    assert lazy.numpy() is not lazy.numpy()
    with concatenated_once():
        first, again = lazy.numpy(), lazy.numpy()
    assert np.shares_memory(first, again)
    np.testing.assert_array_equal(first, np.concatenate([part.numpy() for part in parts], axis=1))
