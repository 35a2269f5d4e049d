import numpy as np
import onnx_ir as ir
import pytest
from rewrites import check_rewrite, check_same_numbers, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.quantize.merge_affine_dequantize_with_consecutive_ops import (
    merge_affine_dequantize_with_consecutive_ops as the_pass,
)

ONE = "float s = {0.5}, int8 z = {1}"
ROWS = "float[2] s = {0.5, 2}, int8[2] z = {1, -1}"
COLUMNS = "float[3] s = {0.5, 2, 3}, int8[3] z = {1, -1, 0}"

# moves: scales, axis before, node, shape after, order of 1..6 after, axis after
MOVES = {
    "Transpose": (ONE, "", "Transpose(d)", "3,2", "1,4,2,5,3,6", ""),
    "Transpose that does nothing": (ONE, "", "Transpose<perm=[0,1]>(d)", "2,3", "1,2,3,4,5,6", ""),
    "Transpose, a scale a row": (ROWS, "<axis=0>", "Transpose(d)", "3,2", "1,4,2,5,3,6", "<axis=1>"),
    "Transpose, negative axis": (ROWS, "<axis=-2>", "Transpose(d)", "3,2", "1,4,2,5,3,6", "<axis=1>"),
    "Transpose, a scale a column": (COLUMNS, "", "Transpose(d)", "3,2", "1,4,2,5,3,6", "<axis=0>"),
    "Reshape to a vector": (ONE, "", "Reshape(d, six)", "6", "1,2,3,4,5,6", ""),
    "Reshape that splits": (ONE, "", "Reshape(d, cube)", "3,1,2", "1,2,3,4,5,6", ""),
    "Reshape keeps rows": (ROWS, "<axis=0>", "Reshape(d, rows)", "2,1,3", "1,2,3,4,5,6", "<axis=0>"),
    "Reshape keeps columns": (COLUMNS, "", "Reshape(d, rows)", "2,1,3", "1,2,3,4,5,6", "<axis=2>"),
    "Unsqueeze": (COLUMNS, "", "Unsqueeze(d, first)", "1,2,3", "1,2,3,4,5,6", "<axis=2>"),
    "Unsqueeze at the end": (ROWS, "<axis=0>", "Unsqueeze(d, last)", "2,3,1", "1,2,3,4,5,6", "<axis=0>"),
    "Flatten": (ROWS, "<axis=0>", "Flatten(d)", "2,3", "1,2,3,4,5,6", "<axis=0>"),
    "Flatten to one row": (ONE, "", "Flatten<axis=0>(d)", "1,6", "1,2,3,4,5,6", ""),
}  # fmt: skip
SHAPES = (
    "int64[1] six = {6}, int64[3] cube = {3, 1, -1}, int64[3] rows = {0, 1, 3},"
    "int64[1] first = {0}, int64[1] last = {-1}"
)


@pytest.mark.parametrize(
    ("scales", "axis", "move", "shape", "order", "moved"), MOVES.values(), ids=MOVES
)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_moves_the_integers(
    dtype: str, scales: str, axis: str, move: str, shape: str, order: str, moved: str
) -> None:
    if dtype == "int32":
        scales = scales.replace("1, -1", "0, 0").replace("{1}", "{0}")
    scales = scales.replace("int8", dtype).replace("-1", "2" if dtype == "uint8" else "-1")
    head = f"g () => (float[{shape}] y)"
    check_rewrite(
        the_pass,
        before=f"{head} <{dtype}[2,3] q = {{1,2,3,4,5,6}}, {scales}, {SHAPES}>"
        f"{{ d = DequantizeLinear{axis}(q, s, z)  y = {move} }}",
        after=f"{head} <{dtype}[{shape}] q = {{{order}}}, {scales}>"
        f"{{ y = DequantizeLinear{moved}(q, s, z) }}",
        opset=13,
    )


def test_follows_a_chain_of_moves() -> None:
    check_rewrite(
        the_pass,
        before=f"g (float[N,3] x) => (float[N,2] y) <int8[2,3,1] q = {{1,2,3,4,5,6}}, {ROWS},"
        "int64[1] last = {2}> { d = DequantizeLinear<axis=0>(q, s, z) e = Squeeze(d, last)"
        "w = Transpose(e)  y = MatMul(x, w) }",
        after=f"g (float[N,3] x) => (float[N,2] y) <int8[3,2] q = {{1,4,2,5,3,6}}, {ROWS}>"
        "{ w = DequantizeLinear<axis=1>(q, s, z)  y = MatMul(x, w) }",
        opset=13,
    )


def test_one_scale_in_a_vector_becomes_a_scalar() -> None:
    check_rewrite(
        the_pass,
        before="g () => (float[3,1] y) <int8[1,3] q = {1,2,3}, float[1] s = {0.5}, int8[1] z = {1}>"
        "{ d = DequantizeLinear<axis=0>(q, s, z)  y = Transpose(d) }",
        after="g () => (float[3,1] y) <int8[3,1] q = {1,2,3}, float s = {0.5}, int8 z = {1}>"
        "{ y = DequantizeLinear(q, s, z) }",
    )


BLOCKS = {
    "Transpose": ("Transpose<perm=[1,0]>(d)", "<axis=0, block_size=2>", "4,2", "1,3,2,4"),
    "Reshape": ("Reshape(d, cube)", "<axis=2, block_size=2>", "1,2,4", "1,2,3,4"),
}


@pytest.mark.parametrize(("move", "moved", "shape", "order"), BLOCKS.values(), ids=BLOCKS)
def test_scales_of_blocks_move_along(move: str, moved: str, shape: str, order: str) -> None:
    data = np.arange(8).reshape(2, 4)
    integers = data.T if move.startswith("T") else data
    small = shape.replace("4", "2")
    check_rewrite(
        the_pass,
        before=f"g () => (float[{shape}] y) <int8[2,4] q = {{{_flat(data)}}}, int64[3] cube ="
        " {1, 2, 4}, float[2,2] s = {1,2,3,4}, int8[2,2] z = {1,2,3,4}>"
        f"{{ d = DequantizeLinear<axis=1, block_size=2>(q, s, z)  y = {move} }}",
        after=f"g () => (float[{shape}] y) <int8[{shape}] q = {{{_flat(integers)}}},"
        f"float[{small}] s = {{{order}}}, int8[{small}] z = {{{order}}}>"
        f"{{ y = DequantizeLinear{moved}(q, s, z) }}",
        opset=21,
    )


def _flat(array: np.ndarray) -> str:
    return ",".join(str(item) for item in array.reshape(-1))


def test_packed_integers() -> None:
    graph = (
        "g () => (float[3,2] y) <int4[2,3] q = {1}, float s = {0.5}>"
        "{ d = DequantizeLinear(q, s)  y = Transpose(d) }"
    )
    before, after = text.parse(graph, 21), text.parse(graph, 21)
    for model in (before, after):
        array = np.array([[-8, 7, 1], [2, -3, 4]]).astype(ir.DataType.INT4.numpy())
        model.graph.initializers["q"].const_value = ir.Tensor(array)
    assert run_pass(the_pass, after).rewrites == 1
    check_same_numbers(before, after, the_pass.exactness)


@pytest.mark.parametrize("shape", ["0,3", "2,0"])
def test_empty(shape: str) -> None:
    turned = ",".join(reversed(shape.split(",")))
    check_rewrite(
        the_pass,
        before=f"g () => (float[{turned}] y) <int8[{shape}] q = {{}}, float s = {{0.5}}>"
        "{ d = DequantizeLinear(q, s)  y = Transpose(d) }",
        after=f"g () => (float[{turned}] y) <int8[{turned}] q = {{}}, float s = {{0.5}}>"
        "{ y = DequantizeLinear(q, s) }",
    )


def test_result_type_stays() -> None:
    check_rewrite(
        the_pass,
        before="g () => (float16[2,1] y) <int8[1,2] q = {1,2}, float s = {0.5}>"
        "{ d = DequantizeLinear<output_dtype=10>(q, s)  y = Transpose(d) }",
        after="g () => (float16[2,1] y) <int8[2,1] q = {1,2}, float s = {0.5}>"
        "{ y = DequantizeLinear<output_dtype=10>(q, s) }",
    )


KEPT = {
    "integers that something else reads": (
        "g () => (float[3,2] y, int8[2,3] n) <int8[2,3] q = {1,2,3,4,5,6}, float s = {0.5}>"
        "{ d = DequantizeLinear(q, s)  y = Transpose(d)  n = Neg(q) }"
    ),
    "floats that something else reads": (
        "g () => (float[3,2] y, float[2,3] n) <int8[2,3] q = {1,2,3,4,5,6}, float s = {0.5}>"
        "{ d = DequantizeLinear(q, s)  y = Transpose(d)  n = Neg(d) }"
    ),
    "floats that are an output": (
        "g () => (float[3,2] y, float[2,3] d) <int8[2,3] q = {1,2,3,4,5,6}, float s = {0.5}>"
        "{ d = DequantizeLinear(q, s)  y = Transpose(d) }"
    ),
    "integers that callers give": (
        "g (int8[2,3] q) => (float[3,2] y) <float s = {0.5}>"
        "{ d = DequantizeLinear(q, s)  y = Transpose(d) }"
    ),
    "a default that callers may replace": (
        "g (int8[2,3] q) => (float[3,2] y) <int8[2,3] q = {1,2,3,4,5,6}, float s = {0.5}>"
        "{ d = DequantizeLinear(q, s)  y = Transpose(d) }"
    ),
    "a reshape that mixes the axis": (
        f"g () => (float[6] y) <int8[2,3] q = {{1,2,3,4,5,6}}, {ROWS}, int64[1] t = {{6}}>"
        "{ d = DequantizeLinear<axis=0>(q, s, z)  y = Reshape(d, t) }"
    ),
    "a reshape with an axis of that size elsewhere": (
        "g () => (float[3,2] y) <int8[2,3] q = {1,2,3,4,5,6}, float[2] s = {1, 2},"
        "int64[2] t = {3, 2}> { d = DequantizeLinear<axis=0>(q, s)  y = Reshape(d, t) }"
    ),
    "blocks that a reshape cuts": (
        "g () => (float[4,2] y) <int8[2,4] q = {1,2,3,4,5,6,7,8}, float[2,2] s = {1,2,3,4},"
        "int64[2] t = {4, 2}>"
        "{ d = DequantizeLinear<axis=1, block_size=2>(q, s)  y = Reshape(d, t) }"
    ),
    "scales of blocks that callers give": (
        "g (float[2,2] s) => (float[4,2] y) <int8[2,4] q = {1,2,3,4,5,6,7,8}>"
        "{ d = DequantizeLinear<axis=1, block_size=2>(q, s)  y = Transpose(d) }"
    ),
    "a shape that callers give": (
        "g (int64[2] t) => (float[M,N] y) <int8[2,3] q = {1,2,3,4,5,6}, float s = {0.5}>"
        "{ d = DequantizeLinear(q, s)  y = Reshape(d, t) }"
    ),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT)
def test_keeps(graph: str) -> None:
    check_unchanged(the_pass, graph, opset=21)


def test_scale_that_callers_give_is_passed_on() -> None:
    check_rewrite(
        the_pass,
        before="g (float[2] s) => (float[3,2] y) <int8[2,3] q = {1,2,3,4,5,6}>"
        "{ d = DequantizeLinear<axis=0>(q, s)  y = Transpose(d) }",
        after="g (float[2] s) => (float[3,2] y) <int8[3,2] q = {1,4,2,5,3,6}>"
        "{ y = DequantizeLinear<axis=1>(q, s) }",
    )
