import numpy as np
import onnx_ir as ir
import pytest
from rewrites import check_operators, check_rewrite, check_same_numbers, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.quantize.nullify_redundant_quantization_zero_point import (
    nullify_redundant_quantization_zero_point as the_pass,
)
from smelt.runtime.runner import open_runner


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
def test_a_dequantize_needs_no_zero(dtype: str) -> None:
    check_rewrite(
        the_pass,
        before=f"g ({dtype}[N,2] x) => (float[N,2] y) <float s = {{0.5}}, {dtype} z = {{0}}>"
        "{ y = DequantizeLinear(x, s, z) }",
        after=f"g ({dtype}[N,2] x) => (float[N,2] y) <float s = {{0.5}}>"
        "{ y = DequantizeLinear(x, s) }",
        opset=21,
    )


@pytest.mark.parametrize("attributes", ["axis=0", "axis=0, block_size=2"])
def test_nor_a_vector_of_zeros(attributes: str) -> None:
    shape = "2,2" if "block" in attributes else "4"
    numbers = "1,2,3,4"
    check_rewrite(
        the_pass,
        before=f"g (int8[4,2] x) => (float[4,2] y) <float[{shape}] s = {{{numbers}}},"
        f"int8[{shape}] z = {{0,0,0,0}}> {{ y = DequantizeLinear<{attributes}>(x, s, z) }}",
        after=f"g (int8[4,2] x) => (float[4,2] y) <float[{shape}] s = {{{numbers}}}>"
        f"{{ y = DequantizeLinear<{attributes}>(x, s) }}",
        opset=21,
    )


@pytest.mark.parametrize(("dtype", "attribute"), [("uint8", ""), ("int8", "<output_dtype=3>")])
def test_nor_a_quantize_whose_type_is_known_without(dtype: str, attribute: str) -> None:
    head = f"g (float[N] x) => ({dtype}[N] y) <float s = {{0.5}}"
    check_rewrite(
        the_pass,
        before=f"{head}, {dtype} z = {{0}}> {{ y = QuantizeLinear{attribute}(x, s, z) }}",
        after=f"{head}> {{ y = QuantizeLinear{attribute}(x, s) }}",
        opset=21,
    )


# the type, its middle, the type of the other sign, and the zero point that a QuantizeLinear keeps
SIGNS = {
    "uint8": ("128", "int8", ", w", 13),
    "int8": ("-128", "uint8", "", 13),
    "uint16": ("32768", "int16", ", w", 21),
    "int16": ("-32768", "uint16", ", w", 21),
}


@pytest.mark.parametrize("dtype", SIGNS)
def test_constants_change_sign(dtype: str) -> None:
    middle, other, _, opset = SIGNS[dtype]
    low = 0 if dtype.startswith("u") else int(middle)
    numbers = [low, low + 1, low - low % 2 + 100, low + 255]
    moved = [number - int(middle) for number in numbers]
    check_rewrite(
        the_pass,
        before=f"g () => (float[4] y) <{dtype}[4] q = {_set(numbers)}, float s = {{0.5}},"
        f"{dtype} z = {{{middle}}}> {{ y = DequantizeLinear(q, s, z) }}",
        after=f"g () => (float[4] y) <{other}[4] q = {_set(moved)}, float s = {{0.5}}>"
        "{ y = DequantizeLinear(q, s) }",
        opset=opset,
    )


def _set(numbers: list[int]) -> str:
    return "{" + ",".join(str(number) for number in numbers) + "}"


def test_packed_constants_change_sign() -> None:
    graph = (
        "g () => (float[3] y) <uint4[3] q = {1}, float s = {0.5}, uint4 z = {8}>"
        "{ y = DequantizeLinear(q, s, z) }"
    )
    before, after = text.parse(graph, 21), text.parse(graph, 21)
    for model in (before, after):
        array = np.array([0, 7, 15]).astype(ir.DataType.UINT4.numpy())
        model.graph.initializers["q"].const_value = ir.Tensor(array)
        middle = np.asarray(8).astype(ir.DataType.UINT4.numpy())
        model.graph.initializers["z"].const_value = ir.Tensor(middle)
    assert run_pass(the_pass, after).rewrites == 1
    assert after.graph[0].inputs[0].dtype == ir.DataType.INT4
    check_same_numbers(before, after, the_pass.exactness)


@pytest.mark.parametrize("dtype", SIGNS)
@pytest.mark.parametrize("given", ["", "<output_dtype={}>"])
def test_pairs_change_sign(dtype: str, given: str) -> None:
    middle, other, kept, opset = SIGNS[dtype]
    attribute = given.format(ir.DataType[dtype.upper()].value)
    zero = f", {other} w = {{0}}" if kept else ""
    check_rewrite(
        the_pass,
        before=f"g (float[N] x) => (float[N] y) <float s = {{0.5}}, {dtype} z = {{{middle}}}>"
        f"{{ q = QuantizeLinear{attribute}(x, s, z)  y = DequantizeLinear(q, s, z) }}",
        after=f"g (float[N] x) => (float[N] y) <float s = {{0.5}}{zero}>"
        f"{{ q = QuantizeLinear(x, s{kept})  y = DequantizeLinear(q, s) }}",
        opset=21 if given else opset,
    )


def test_pairs_of_an_axis_change_sign() -> None:
    check_rewrite(
        the_pass,
        before="g (float[N,2] x) => (float[N,2] y) <float[2] s = {0.5, 2}, uint8[2] z = {128, 128}>"
        "{ q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z) }",
        after="g (float[N,2] x) => (float[N,2] y) <float[2] s = {0.5, 2}, int8[2] z = {0, 0}>"
        "{ q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s) }",
    )


def test_every_reader_of_a_pair_follows() -> None:
    check_rewrite(
        the_pass,
        before="g (bool c, float[2] x) => (float[2] y, float[2] w) <float s = {0.5}, float t = {2},"
        "uint8 z = {128}> { q = QuantizeLinear(x, s, z)  w = DequantizeLinear(q, t, z)"
        "y = If(c) <then_branch = a () => (float[2] m) { m = DequantizeLinear(q, s, z) },"
        "else_branch = b () => (float[2] n) { n = Neg(x) }> }",
        after="g (bool c, float[2] x) => (float[2] y, float[2] w) <float s = {0.5}, float t = {2},"
        "int8 z = {0}> { q = QuantizeLinear(x, s, z)  w = DequantizeLinear(q, t)"
        "y = If(c) <then_branch = a () => (float[2] m) { m = DequantizeLinear(q, s) },"
        "else_branch = b () => (float[2] n) { n = Neg(x) }> }",
    )


@pytest.mark.parametrize(("dtype", "middle"), [("uint8", 128), ("int8", -128)])
def test_ends_of_the_range_saturate_alike(dtype: str, middle: int) -> None:
    edges = [
        -np.inf,
        -1e9,
        -128.6,
        -128.5,
        -127.5,
        -0.5,
        0.5,
        1.5,
        126.5,
        127.5,
        127.6,
        1e9,
        np.inf,
    ]
    check_operators(
        the_pass,
        f"g (float[N] x) => (float[N] y) <float s = {{1}}, {dtype} z = {{{middle}}}>"
        "{ q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z) }",
        ["QuantizeLinear", "DequantizeLinear"],
        feeds={"x": np.asarray(edges, np.float32)},
    )


KEPT = {
    "another zero point": (
        "g (uint8[4] x) => (float[4] y) <float s = {0.5}, uint8 z = {3}>"
        "{ y = DequantizeLinear(x, s, z) }"
    ),
    "zero points of which one is not 0": (
        "g (int8[2] x) => (float[2] y) <float[2] s = {1, 2}, int8[2] z = {0, 1}>"
        "{ y = DequantizeLinear<axis=0>(x, s, z) }"
    ),
    "zero points of which one is not the middle": (
        "g () => (float[2] y) <uint8[2] x = {5, 6}, float[2] s = {1, 2}, uint8[2] z = {128, 127}>"
        "{ y = DequantizeLinear<axis=0>(x, s, z) }"
    ),
    "a zero point that callers give": (
        "g (int8[4] x, int8 z) => (float[4] y) <float s = {0.5}> { y = DequantizeLinear(x, s, z) }"
    ),
    "a default that callers may replace": (
        "g (int8[4] x, int8 z) => (float[4] y) <float s = {0.5}, int8 z = {0}>"
        "{ y = DequantizeLinear(x, s, z) }"
    ),
    "an input around the middle": (
        "g (uint8[4] x) => (float[4] y) <float s = {0.5}, uint8 z = {128}>"
        "{ y = DequantizeLinear(x, s, z) }"
    ),
    "an output around the middle": (
        "g (float[4] x) => (uint8[4] y) <float s = {0.5}, uint8 z = {128}>"
        "{ y = QuantizeLinear(x, s, z) }"
    ),
    "a pair whose integers are an output": (
        "g (float[4] x) => (uint8[4] q, float[4] y) <float s = {0.5}, uint8 z = {128}>"
        "{ q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z) }"
    ),
    "a pair whose integers something else reads": (
        "g (float[4] x) => (uint8[4] n, float[4] y) <float s = {0.5}, uint8 z = {128}>"
        "{ q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z)  n = BitwiseNot(q) }"
    ),
    "a pair with two zero points": (
        "g (float[4] x) => (float[4] y) <float s = {0.5}, uint8 z = {128}, uint8 w = {127}>"
        "{ q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, w) }"
    ),
    "a constant that something else reads": (
        "g () => (uint8[4] n, float[4] y) <uint8[4] q = {1,2,3,4}, float s = {0.5},"
        "uint8 z = {128}> { y = DequantizeLinear(q, s, z)  n = BitwiseNot(q) }"
    ),
    "no zero point": (
        "g (float[4] x) => (float[4] y) <float s = {0.5}>"
        "{ q = QuantizeLinear(x, s)  y = DequantizeLinear(q, s) }"
    ),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT)
def test_keeps(graph: str) -> None:
    check_unchanged(the_pass, graph, opset=21)


@pytest.mark.parametrize("opset", [13, 19])
def test_keeps_the_zero_point_that_says_the_type(opset: int) -> None:
    check_rewrite(
        the_pass,
        before="g (float[4] x) => (float[4] y) <float s = {0.5}, int8 z = {0}>"
        "{ q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z) }",
        after="g (float[4] x) => (float[4] y) <float s = {0.5}, int8 z = {0}>"
        "{ q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s) }",
        opset=opset,
    )


@pytest.mark.parametrize("opset", [13, 21, 25])
def test_a_group_to_int8_keeps_its_zero_points_so_that_the_runtime_loads_it(opset: int) -> None:
    group = (
        "g (float[4] x) => (int8[4] y) <float s = {0.5}, int8 z = {0}>"
        "{ q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  a = Add(d, d)"
        "  y = QuantizeLinear(a, s, z) }"
    )
    model = text.parse(group, opset)
    run_pass(the_pass, model)
    assert [len(node.inputs) for node in model.graph] == [3, 2, 2, 3]
    (y,) = open_runner(model, optimized=True)(np.float32([1, 2, 3, -80]))
    assert y.tolist() == [4, 8, 12, -128]


@pytest.mark.parametrize(
    "graph",
    [
        "g (uint8[2,2] q) => (float[2,2] y) <float s = {0.5}, uint8 z = {0}>"
        "{ y = DequantizeLinear(q, s, z) }",
        "g (float[2,2] x) => (float[2,2] y) <float s = {0.5}, uint8 z = {128}>"
        "{ q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z) }",
        "g (float[2,2] x) => (uint8[2,2] y, float[2,2] v)"
        "<float s = {0.5}, uint8 z = {0}, uint8[2,2] w = {1,2,3,4}>"
        "{ y = QuantizeLinear(x, s, z)  v = DequantizeLinear(w, s, z) }",
    ],
)
def test_groups_stay_whole_on_request(graph: str) -> None:
    check_unchanged(the_pass, graph, keep_groups=True)
    assert run_pass(the_pass, text.parse(graph, 21)).rewrites


def test_constants_alone_make_no_group() -> None:
    graph = (
        "g (float[2,2] x) => (float[2,2] y) <float s = {{0.5}}, {}> {{ v = {}  y = MatMul(x, v) }}"
    )
    check_rewrite(
        the_pass,
        graph.format("uint8 z = {0}, uint8[2,2] w = {1,2,3,4}", "DequantizeLinear(w, s, z)"),
        graph.format("uint8[2,2] w = {1,2,3,4}", "DequantizeLinear(w, s)"),
        keep_groups=True,
    )
