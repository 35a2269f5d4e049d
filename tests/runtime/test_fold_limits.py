"""What is folded: results of a known size, within the limit of bytes and of work."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from smelt.ir import text
from smelt.runtime import fold_limits
from smelt.runtime.fold_limits import is_bounded

F, D, I4 = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT4


def node_of(graph: str) -> ir.Node:
    return text.parse(f"g {graph}").graph.node(0)


@pytest.mark.parametrize(
    ("dtype", "limit", "is_in"), [(F, 16, True), (F, 15, False), (D, 32, True), (D, 31, False)]
)
def test_bytes_of_the_result(dtype: ir.DataType, limit: int, is_in: bool) -> None:
    node = node_of("(float[4] x) => (float[4] y) { y = Relu(x) }")
    node.outputs[0].dtype = dtype
    assert is_bounded(node, [np.zeros(4, np.float32)], limit) is is_in


def test_bytes_of_types_below_eight_bits_and_of_several_results() -> None:
    node = node_of("(float[3] x) => (float[3] y) { y = Relu(x) }")
    node.outputs[0].dtype = I4
    assert is_bounded(node, [np.zeros(1, np.int8)], 2)
    assert not is_bounded(node, [np.zeros(1, np.int8)], 1)
    node = node_of("(float[3] x) => (float[2] y, int64[2] i) { y, i = TopK(x, x) }")
    assert is_bounded(node, [np.zeros(3, np.float32)], 32)
    assert not is_bounded(node, [np.zeros(3, np.float32)], 31)


@pytest.mark.parametrize(("count", "is_in"), [(16, True), (17, False)])
def test_bytes_of_the_operands(count: int, is_in: bool) -> None:
    node = node_of("(float[4] x) => (float[4] y) { y = Slice(x, x, x) }")
    operands = [np.zeros(count, np.float32), None, np.zeros(0, np.float32)]
    assert is_bounded(node, operands, 16) is is_in


def test_a_result_of_no_known_type_or_size_is_not_folded() -> None:
    node = node_of("(float[4] x) => (float[4] y) { y = Relu(x) }")
    node.outputs[0].type = None
    assert not is_bounded(node, [np.zeros(4, np.float32)], 100)
    node = node_of("(string[4] x) => (string[4] y) { y = Identity(x) }")
    assert not is_bounded(node, [np.zeros(4, np.float32)], 100)
    node = node_of("(float[4] x) => (float[N] y) { y = Relu(x) }")
    assert not is_bounded(node, [np.zeros(4, np.float32)], 100)


WORK = {
    "(float[2,3] x, float[3,5] w) => (float[2,5] y) { y = MatMul(x, w) }": 30,
    "(float[3,2] x, float[3,5] w) => (float[2,5] y) { y = Gemm<transA=1>(x, w) }": 30,
    "(float[2,3] x, float[3,5] w) => (float[2,5] y) { y = Gemm(x, w) }": 30,
    "(float[1,1,4,4] x) => (float[1,1,2,2] y) { y = MaxPool<kernel_shape=[3,2]>(x) }": 24,
    "(float[1,1,4,4] x) => (float[1,1,1,1] y) { y = GlobalMaxPool(x) }": 16,
    "(float[1,1,4,4] x, float[1,1,3,3] w) => (float[1,1,2,2] y) { y = Conv(x, w) }": 64,
    '(float[2,3] x, float[3,5] w) => (float y) { y = Einsum<equation="ij,jk->">(x, w) }': 15,
    "(float[1,1,2,2] x, float[0] r, float[4] s) => (float[1,1,4,4] y) { y = Resize(x, r, s) }": 64,
    "(float[2,3,4] x, float[1,5,4] w, float[1,5,5] r) => (float[2,1,3,5] y) { y = RNN<hidden_size=5>(x, w, r) }": 270,
    "(float[4] x) => (float[4] y) { y = Relu(x) }": 0,
}


@pytest.mark.parametrize("graph", WORK)
def test_work(graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    node = node_of(graph)
    arrays = [np.zeros(value.shape.numpy(), np.float32) for value in node.inputs if value]
    for limit in (WORK[graph], WORK[graph] - 1):
        monkeypatch.setattr(fold_limits, "WORK_LIMIT", limit)
        assert is_bounded(node, arrays, 1 << 20) is (limit == WORK[graph])
