"""Only results of known size are folded, within the limits of bytes and of work."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
import pytest

from smelt.ir import text
from smelt.runtime import fold_limits
from smelt.runtime.fold_limits import is_bounded, is_undefined

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


SIZES = [
    ("(int64[2] s) => (float[N,M] y) { y = ConstantOfShape(s) }", ([2, 3],), 6),
    ("(float[2,1] x, int64[3] s) => (float[N,2,3] y) { y = Expand(x, s) }", ([[1], [2]], [4, 1, 3]), 24),
    ("(float[2,3] x, int64[1] s) => (float[N,M] y) { y = Expand(x, s) }", ([[1, 2, 3]] * 2, [1]), 6),
    ("(float[1] x, int64[1] s) => (float[N] y) { y = Expand(x, s) }", ([1], [0]), 0),
    ("(float[2] x, int64[1] r) => (float[N] y) { y = Tile(x, r) }", ([1, 2], [5]), 10),
    ("(float a, float b, float d) => (float[N] y) { y = Range(a, b, d) }", (1, 4.5, 1), 4),
    ("(float a, float b, float d) => (float[N] y) { y = Range(a, b, d) }", (4, 1, 1), 0),
    ("(float[2,2] x, int64[1] s) => (float[N] y) { y = Reshape(x, s) }", ([[1, 2]] * 2, [-1]), 4),
    ("(float[1,2] x, int64[1] a) => (float[N] y) { y = Squeeze(x, a) }", ([[1, 2]], [0]), 2),
    ("(double[2] x, int64[1] a) => (double[1,N] y) { y = Unsqueeze(x, a) }", ([1, 2], [0]), 2),
    ("(double[3] x, int64[1] a) => (double[N] y) { y = Slice(x, a, a) }", ([1, 2, 3], [0], [0]), 3),
    ("(double[3] x, int64[2] s) => (double[N] y, double[M] z) { y, z = Split(x, s) }", ([1, 2, 3], [1, 2]), 3),
    ("(float[3] x, float[2] z) => (float[N] y) { y = Concat<axis=0>(x, z) }", ([1, 2, 3], [4, 5]), 5),
    ("(float[2,2] x) => (int64[2,N] y) { y = NonZero(x) }", ([[1, 2]] * 2,), 8),
    ("(float x) => (int64[M,N] y) { y = NonZero(x) }", (1,), 1),
    ("(double[3] x, bool[2] c) => (double[N] y) { y = Compress<axis=0>(x, c) }", ([1, 2, 3], [1, 0]), 3),
    ("(float[1,2,4] b, float[1,3,2] s) => (int64[N,3] y) { y = NonMaxSuppression(b, s) }", ([[[0] * 4] * 2], [[[1, 2]] * 3]), 18),
    ("(double[3] x) => (double[N] y, int64[N] i, int64[M] j, int64[N] c) { y, i, j, c = Unique(x) }", ([1, 2, 3],), 12),
    ("(float[2,1,1] x) => (int64[N] y) { y = Shape(x) }", ([[[1]], [[2]]],), 3),
    ("(float[2] x) => (int64[N] y) { y = Size(x) }", ([1, 2],), 1),
]  # fmt: skip
"""The elements that a result of undeclared size may have, by the values of the operands."""


def operands_of(node: ir.Node, values: Sequence[object]) -> list[np.ndarray]:
    """Return the operands of ``node`` in the types that it declares."""
    return [
        np.array(value, operand.dtype.numpy())
        for operand, value in zip(node.inputs, values, strict=True)
    ]


@pytest.mark.parametrize(("graph", "values", "count"), SIZES)
def test_elements_by_the_values_of_the_operands(
    graph: str, values: Sequence[object], count: int
) -> None:
    node = node_of(graph)
    operands = operands_of(node, values)
    needed = max(output.dtype.bitwidth for output in node.outputs) * count // 8
    for_operands = -(-sum(array.nbytes for array in operands) // 4)
    least = next(limit for limit in range(1000) if is_bounded(node, operands, limit))
    assert least == max(needed, for_operands)


@pytest.mark.parametrize(
    ("graph", "operands"),
    [
        ("(int64[N] s) => (float[N,M] y) { y = ConstantOfShape(s) }", [None]),
        ("(float[2] x, int64[1] r) => (float[N] y) { y = Tile(x, r) }", [np.ones(2), None]),
        (
            "(float a, float b, float d) => (float[N] y) { y = Range(a, b, d) }",
            [np.float32(0), np.float32(1), np.float32(0)],
        ),
    ],
)
def test_an_absent_operand_or_a_step_of_zero_tells_no_size(
    graph: str, operands: list[np.ndarray | None]
) -> None:
    assert not is_bounded(node_of(graph), operands, 1 << 20)


UNDEFINED = {
    "(int8[2] x, int8[2] z) => (int8[2] y) { y = Div(x, z) }": [
        (([-127, 5], [-1, 1]), False),
        (([-128, 5], [-1, 1]), True),
        (([-128, 5], [1, 1]), False),
        (([3, 5], [1, 0]), True),
    ],
    "(uint8[2] x, uint8[2] z) => (uint8[2] y) { y = Mod(x, z) }": [
        (([0, 5], [255, 1]), False),
        (([0, 5], [1, 0]), True),
    ],
    "(float[1] x, float[1] z) => (float[1] y) { y = Div(x, z) }": [(([1], [0]), False)],
    "(int8[1] x, int8[1] z) => (int8[1] y) { y = Pow(x, z) }": [
        (([-5], [3]), False),
        (([2], [6]), False),
        (([2], [7]), True),
        (([-12], [2]), True),
    ],
    "(int64[1] x, int64[1] z) => (int64[1] y) { y = Pow(x, z) }": [
        (([2], [53]), False),
        (([2], [54]), True),
    ],
    "(int8[2] x) => (int8 y) { y = ReduceProd<keepdims=0>(x) }": [
        (([0, 127],), False),
        (([0, -128],), True),
        (([1, 127],), False),
        (([2, 64],), True),
    ],
    "(int8[2] x) => (int8 y) { y = ReduceSum<keepdims=0>(x) }": [
        (([100, 27],), False),
        (([100, 28],), True),
        (([-100, -28],), True),
    ],
    "(int8[2] x) => (int8 y) { y = ReduceSumSquare<keepdims=0>(x) }": [
        (([11, 2],), False),
        (([11, 3],), True),
    ],
    "(int8[2] x) => (int8 y) { y = ReduceL2<keepdims=0>(x) }": [(([11, 3],), True)],
    "(int8[2] x) => (int8 y) { y = ReduceL1<keepdims=0>(x) }": [(([11, 3],), False)],
    "(float[2] x) => (float y) { y = ReduceSum<keepdims=0>(x) }": [(([3e38, 3e38],), False)],
    "(float[2] x) => (int8[2] y) { y = Cast<to=3>(x) }": [
        (([127.9, -128.9],), False),
        (([128, 0],), True),
        (([0, -129],), True),
        (([0, np.nan],), True),
        (([0, np.inf],), True),
    ],
    "(float[2] x) => (uint8[2] y) { y = Cast<to=2>(x) }": [
        (([255.9, -0.9],), False),
        (([256, 0],), True),
        (([0, -1],), True),
    ],
    "(bfloat16[1] x) => (int8[1] y) { y = Cast<to=3>(x) }": [
        (([127],), False),
        (([200],), True),
    ],
    "(int64[1] x) => (int8[1] y) { y = Cast<to=3>(x) }": [(([300],), False)],
    "(float[1] x) => (float16[1] y) { y = Cast<to=10>(x) }": [(([1e30],), False)],
    "(bool[1] x) => (int8[1] y) { y = Cast<to=3>(x) }": [(([1],), False)],
    '(uint8[2] x, uint8[2] z) => (uint8[2] y) { y = BitShift<direction="LEFT">(x, z) }': [
        (([1, 1], [7, 0]), False),
        (([1, 1], [8, 0]), True),
    ],
    '(uint32[1] x, uint32[1] z) => (uint32[1] y) { y = BitShift<direction="LEFT">(x, z) }': [
        (([1], [31]), False),
        (([1], [32]), True),
    ],
    "(float[1] x) => (float[1] y) { y = Relu(x) }": [(([1],), False)],
}  # fmt: skip


@pytest.mark.parametrize("graph", UNDEFINED)
def test_results_that_onnx_leaves_undefined(graph: str) -> None:
    node = node_of(graph)
    for values, is_so in UNDEFINED[graph]:
        assert is_undefined(node, operands_of(node, values)) is is_so, values
