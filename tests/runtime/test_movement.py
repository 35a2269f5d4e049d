"""Folds of moved constants give the results of the reference kernels, as views."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from smelt.runtime import fold
from smelt.runtime.movement import moved

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
VIEW = X.transpose(1, 0, 2)


def node(op_type: str, count: int, **attributes: object) -> ir.Node:
    made = ir.node(op_type, [ir.Value(name=f"x{i}") for i in range(count)], attributes)
    made.outputs[0].name = "y"
    return made


@pytest.mark.parametrize("source", [X, VIEW, X[:0], X.astype(np.float16), X > 3])
@pytest.mark.parametrize("perm", [None, [0, 1, 2], [2, 0, 1], [1, 0, 2]])
def test_a_transpose_is_that_of_the_kernel(source: np.ndarray, perm: list[int] | None) -> None:
    transpose = node("Transpose", 1, **({} if perm is None else {"perm": perm}))
    found, expected = moved(transpose, [source]), fold._run(transpose, [source], 20)
    assert found is not None
    assert expected is not None
    assert (found.dtype, found.shape) == (expected[0].dtype, expected[0].shape)
    assert np.array_equal(found, expected[0])
    assert np.may_share_memory(found, source) or not source.size


@pytest.mark.parametrize("source", [X, VIEW])
@pytest.mark.parametrize("shape", [[24], [-1], [4, -1], [1, 2, 3, 4], [6, 4, 1]])
def test_a_reshape_is_that_of_the_kernel(source: np.ndarray, shape: list[int]) -> None:
    operands = [source, np.asarray(shape)]
    found, expected = (
        moved(node("Reshape", 2), operands),
        fold._run(node("Reshape", 2), operands, 20),
    )
    assert found is not None
    assert expected is not None
    assert found.shape == expected[0].shape
    assert np.array_equal(found, expected[0])


def test_one_element_loses_all_dims() -> None:
    found = moved(node("Reshape", 2), [np.ones((1, 1)), np.zeros(0, np.int64)])
    assert found is not None
    assert found.shape == ()


@pytest.mark.parametrize("shape", [[0, -1], [5, 5], [-1, 7], [-1, -1], [-2, 12]])
def test_zeros_and_shapes_that_do_not_fit_are_left_to_the_kernel(shape: list[int]) -> None:
    assert moved(node("Reshape", 2), [X, np.asarray(shape)]) is None


@pytest.mark.parametrize("perm", [[0, 1], [0, 0, 1], [0, 1, 3], [-1, 0, 1]])
def test_orders_that_do_not_fit_are_left_to_the_kernel(perm: list[int]) -> None:
    assert moved(node("Transpose", 1, perm=perm), [X]) is None


def test_other_nodes_and_absent_operands_are_left_alone() -> None:
    assert moved(node("Neg", 1), [X]) is None
    assert moved(node("Reshape", 2), [X, None]) is None
    assert moved(node("Reshape", 2), [None, np.asarray([24])]) is None
    assert moved(node("Reshape", 2), [X, np.asarray([24], np.int32)]) is None
    assert moved(node("Transpose", 1), []) is None


def test_an_array_that_may_be_written_to_is_copied() -> None:
    source = np.ones((2, 3), np.float32)
    transpose = node("Transpose", 1)
    transpose.outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
    transpose.outputs[0].shape = ir.Shape([3, 2])
    (copied,) = fold.evaluate_node(transpose, [source], opset=20) or []
    assert not np.may_share_memory(copied, source)
    source.flags.writeable = False
    (kept,) = fold.evaluate_node(transpose, [source], opset=20) or []
    assert np.may_share_memory(kept, source)


@pytest.mark.parametrize("source", [X, X[::-1], X.astype(np.float16), X > 3, X.astype(np.int64)])
@pytest.mark.parametrize(
    ("indices", "batches"),
    [
        ([[0, 1], [1, -1], [-2, 0]], None),
        ([[[0, 1, 3]], [[1, -1, -4]]], 0),
        ([[0], [1]], 0),
        ([[0], [-1]], 1),
        ([[[0], [1], [-1]], [[1], [1], [0]]], 1),
        ([[[0, 1], [1, 1]], [[1, -1], [1, 0]]], 1),
    ],
)
def test_a_gather_nd_is_that_of_the_kernel(source, indices, batches) -> None:
    at = np.asarray(indices, np.int64)
    gather = node("GatherND", 2, **({} if batches is None else {"batch_dims": batches}))
    found, expected = moved(gather, [source, at]), fold._run(gather, [source, at], 20)
    assert found is not None
    assert expected is not None
    assert (found.dtype, found.shape) == (expected[0].dtype, expected[0].shape)
    assert np.array_equal(found, expected[0])


@pytest.mark.parametrize(
    ("indices", "batches"),
    [
        ([[0, 5]], 0),
        ([[-3]], 0),
        ([[0, 0, 0, 0]], 0),
        ([[0], [0], [0]], 1),
        ([0], 1),
        (np.zeros((2, 0)), 0),
        (0, 0),
    ],
)
def test_indices_that_do_not_fit_are_left_to_the_kernel(indices, batches) -> None:
    gather = node("GatherND", 2, batch_dims=batches)
    assert moved(gather, [X, np.asarray(indices, np.int64)]) is None


def test_no_index_reads_nothing() -> None:
    found = moved(node("GatherND", 2), [X, np.zeros((0, 2), np.int64)])
    assert found is not None
    assert found.shape == (0, 4)
