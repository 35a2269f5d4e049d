import numpy as np
import onnx_ir as ir
import pytest
from rewrites import check_rewrite, check_same_numbers, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.quantize.dequantize_to_constexpr import dequantize_to_constexpr as the_pass

FOLDED = {
    "one scale": (
        "float[4] w = {-1, 0.24, 0.25, 0.76}, float s = {0.5}, int8 z = {3}",
        "q = QuantizeLinear(w, s, z)  d = DequantizeLinear(q, s, z)",
        "int8[4] q = {1, 3, 3, 5}, float s = {0.5}, int8 z = {3}",
        "d = DequantizeLinear(q, s, z)",
    ),
    "ties go to the even": (
        "float[4] w = {0.5, 1.5, 2.5, -0.5}, float s = {1}",
        "q = QuantizeLinear<output_dtype=3>(w, s)  d = DequantizeLinear(q, s)",
        "int8[4] q = {0, 2, 2, 0}, float s = {1}",
        "d = DequantizeLinear(q, s)",
    ),
    "no zero point is uint8, and saturates": (
        "float[4] w = {-1, 1e30, 127.5, 254.5}, float s = {1}",
        "q = QuantizeLinear(w, s)  d = DequantizeLinear(q, s)",
        "uint8[4] q = {0, 255, 128, 254}, float s = {1}",
        "d = DequantizeLinear(q, s)",
    ),
    "16 bits": (
        "float[4] w = {-1e9, 1e9, 0.3, 32766.5}, float s = {1}, int16 z = {1}",
        "q = QuantizeLinear(w, s, z)  d = DequantizeLinear(q, s, z)",
        "int16[4] q = {-32768, 32767, 1, 32767}, float s = {1}, int16 z = {1}",
        "d = DequantizeLinear(q, s, z)",
    ),
    "integers by a Cast": (
        "float[4] w = {1, 2, 3, 4}, float s = {1}",
        "q = Cast<to=3>(w)  d = DequantizeLinear(q, s)",
        "int8[4] q = {1, 2, 3, 4}, float s = {1}",
        "d = DequantizeLinear(q, s)",
    ),
    "integers by a Cast that drops their higher bits": (
        "int32[4] w = {1, 200, -300, 70000}, float s = {1}",
        "q = Cast<to=3>(w)  d = DequantizeLinear(q, s)",
        "int8[4] q = {1, -56, -44, 112}, float s = {1}",
        "d = DequantizeLinear(q, s)",
    ),
    "integers by a chain": (
        "int8[2,2] w = {1, 2, 3, 4}, int64[1] t = {4}, float s = {1}",
        "m = Transpose(w)  q = Reshape(m, t)  d = DequantizeLinear(q, s)",
        "int8[4] q = {1, 3, 2, 4}, float s = {1}",
        "d = DequantizeLinear(q, s)",
    ),
    "a scale by a division": (
        "int8[4] q = {1, 2, 3, 4}, float r = {1}, float t = {2}",
        "s = Div(r, t)  d = DequantizeLinear(q, s)",
        "int8[4] q = {1, 2, 3, 4}, float s = {0.5}",
        "d = DequantizeLinear(q, s)",
    ),
    "a Constant": (
        "",
        "q = Constant<value = int8[4] {1, 2, 3, 4}>()  s = Constant<value_float=0.5>()"
        "d = DequantizeLinear(q, s)",
        "int8[4] q = {1, 2, 3, 4}, float s = {0.5}",
        "d = DequantizeLinear(q, s)",
    ),
}


@pytest.mark.parametrize(("old", "before", "new", "after"), FOLDED.values(), ids=FOLDED)
def test_computes_the_integers(old: str, before: str, new: str, after: str) -> None:
    head = "g (float[N,4] x) => (float[N,4] y)"
    constants = f"<{old}>" if old else ""
    graph = f"{head} {constants} {{ {before}  y = Mul(x, d) }}"
    check_rewrite(
        the_pass,
        before=graph,
        after=f"{head} <{new}> {{ {after}  y = Mul(x, d) }}",
        opset=21,
    )
    model = text.parse(graph, 21)
    run_pass(the_pass, model)
    assert not [node for node in model.graph if node.op_type == "Constant"]
    assert all(value.uses() for value in model.graph.initializers.values())


AXES = {
    "an axis": ("<axis=0>", "2", "1, 10", "0, 1"),
    "an axis from the end": ("<axis=-2>", "2", "1, 10", "0, 1"),
    "the default axis": ("", "3", "1, 10, 2", "0, 1, 2"),
    "blocks": ("<axis=1, block_size=2>", "2,2", "1, 10, 2, 4", "0, 1, 2, 3"),
}


@pytest.mark.parametrize(("axis", "shape", "scales", "zeros"), AXES.values(), ids=AXES)
def test_scales_of_an_axis_or_of_blocks(axis: str, shape: str, scales: str, zeros: str) -> None:
    graph = (
        "g () => (float[2,3] y) <float[2,3] w = {1, 20, 31, 44, -50, -66},"
        f"float[{shape}] s = {{{scales}}}, int8[{shape}] z = {{{zeros}}}>"
        f"{{ q = QuantizeLinear{axis}(w, s, z)  y = DequantizeLinear{axis}(q, s, z) }}"
    )
    before, after = text.parse(graph, 21), text.parse(graph, 21)
    run_pass(the_pass, after)
    assert [node.op_type for node in after.graph] == ["DequantizeLinear"]
    check_same_numbers(before, after, the_pass.exactness)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("scale", [0.1, 0.3, 1 / 3, 1e-3, 17.0])
def test_the_integers_are_those_of_a_runtime(dtype: str, scale: float) -> None:
    graph = (
        f"g () => ({dtype}[4096] y) <float[4096] w = {{0}}, float s = {{{scale:.9g}}},"
        f"{dtype} z = {{5}}> {{ y = QuantizeLinear(w, s, z) }}"
    )
    before, after = text.parse(graph, 21), text.parse(graph, 21)
    steps = np.random.default_rng(0).integers(-600, 600, 4096) / 2
    for model in (before, after):
        array = (steps * np.float32(scale)).astype(np.float32)
        array[:4] = [np.inf, -np.inf, 3e38, -3e38]
        model.graph.initializers["w"].const_value = ir.Tensor(array)
    run_pass(the_pass, after)
    assert [node.op_type for node in after.graph] == ["Identity"]
    check_same_numbers(before, after, the_pass.exactness)


def test_4_bits() -> None:
    graph = (
        "g () => (float[5] y) <float[5] w = {-9, 7.5, 1.5, 0.4, 100}, float s = {1}>"
        "{ q = QuantizeLinear<output_dtype=22>(w, s)  y = DequantizeLinear(q, s) }"
    )
    before, after = text.parse(graph, 21), text.parse(graph, 21)
    run_pass(the_pass, after)
    assert after.graph[0].inputs[0].dtype == ir.DataType.INT4
    check_same_numbers(before, after, the_pass.exactness)


@pytest.mark.parametrize("shape", ["", "0", "2,0"])
def test_scalars_and_empty_constants(shape: str) -> None:
    declared = f"[{shape}]" if shape else ""
    content = "{0}" if not shape else "{}"
    check_rewrite(
        the_pass,
        before=f"g () => (float{declared or '[]'} y) <float{declared} w = {content},"
        "float s = {0.5}> { q = QuantizeLinear(w, s)  y = DequantizeLinear(q, s) }",
        after=f"g () => (float{declared or '[]'} y) <uint8{declared} q = {content},"
        "float s = {0.5}> { y = DequantizeLinear(q, s) }",
    )


def test_in_a_branch_of_an_outer_constant() -> None:
    graph = """g (bool c, float[2] x) => (float[2] y) <{} w = {{1, 2}}, float s = {{1}}> {{
        y = If(c) <then_branch = a () => (float[2] m) {{ {} }},
                   else_branch = b () => (float[2] n) {{ n = Neg(x) }}>
    }}"""
    check_rewrite(
        the_pass,
        before=graph.format("float[2]", "q = QuantizeLinear(w, s)  m = DequantizeLinear(q, s)"),
        after=graph.format("uint8[2]", "m = DequantizeLinear(w, s)"),
    )


def test_the_floats_stay_for_other_readers() -> None:
    check_rewrite(
        the_pass,
        before="g (float[2] x) => (float[2] y, float[2] v) <float[2] w = {1, 2}, float s = {1}>"
        "{ q = QuantizeLinear(w, s)  y = DequantizeLinear(q, s)  v = Mul(x, w) }",
        after="g (float[2] x) => (float[2] y, float[2] v) <float[2] w = {1, 2},"
        "uint8[2] q = {1, 2}, float s = {1}> { y = DequantizeLinear(q, s)  v = Mul(x, w) }",
    )


KEPT = {
    "a compressed weight": (
        "g (float[2] x) => (float[2] y) <int8[2] q = {1, 2}, float s = {0.5}>"
        "{ w = DequantizeLinear(q, s)  y = Mul(x, w) }"
    ),
    "what is computed from a compressed weight": (
        "g () => (uint8[2] y) <int8[2] q = {1, 2}, float s = {0.5}>"
        "{ w = DequantizeLinear(q, s)  n = Abs(w)  y = QuantizeLinear(n, s) }"
    ),
    "other constant arithmetic": (
        "g (float[2] x) => (float[2] y) <float[2] a = {1, 2}, float[2] b = {3, 4}>"
        "{ c = Add(a, b)  y = Mul(x, c) }"
    ),
    "constant arithmetic above an activation": (
        "g (float[2] x) => (uint8[2] y) <float[2] a = {1, 2}, float[2] b = {3, 4}, float s = {1}>"
        "{ c = Add(a, b)  m = Mul(x, c)  y = QuantizeLinear(m, s) }"
    ),
    "floats that callers may replace": (
        "g (float[2] w) => (uint8[2] y) <float[2] w = {1, 2}, float s = {0.5}>"
        "{ y = QuantizeLinear(w, s) }"
    ),
    "a scale that callers give": (
        "g (float s) => (uint8[2] y) <float[2] w = {1, 2}> { y = QuantizeLinear(w, s) }"
    ),
    "a scale of 0": (
        "g () => (uint8[2] y) <float[2] w = {1, 2}, float s = {0}> { y = QuantizeLinear(w, s) }"
    ),
    "float16 between two steps": (
        "g () => (uint8[1] y) <float16[1] w = {15411}, float16 s = {11878}>"
        "{ y = QuantizeLinear(w, s) }"
    ),
    "8-bit floats": (
        "g () => (float8e4m3fn[2] y) <float[2] w = {1, 2}, float s = {0.5}>"
        "{ y = QuantizeLinear<output_dtype=17>(w, s) }"
    ),
    "integers that would grow": (
        "g () => (float[300,300] y) <int8[1,1] q = {1}, int64[2] t = {300, 300}, float s = {0.5}>"
        "{ w = Expand(q, t)  y = DequantizeLinear(w, s) }"
    ),
    "random floats": (
        "g () => (uint8[2] y) <float s = {0.5}>"
        "{ w = RandomNormal<shape=[2]>()  y = QuantizeLinear(w, s) }"
    ),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT)
def test_keeps(graph: str) -> None:
    check_unchanged(the_pass, graph, opset=21)


def test_keeps_nan() -> None:
    model = text.parse("g () => (uint8[2] y) <float[2] w = {1, 2}, float s = {0.5}>"
                       "{ y = QuantizeLinear(w, s) }")  # fmt: skip
    model.graph.initializers["w"].const_value = ir.Tensor(np.array([1, np.nan], np.float32))
    assert run_pass(the_pass, model).rewrites == 0


SHARED = """g (int64[2] i, float[2,300] x) => (int8[2,300] y, float[2,300] z)
<int8[300,300] w = {0}, float s = {0.5}>
{ y = Gather(w, i)  t = Transpose(w)  d = DequantizeLinear(t, s)  z = MatMul(x, d) }"""
INTEGERS = """g (int64[2] i, uint8[2,300] x) => (int8[2,300] y, int32[2,300] z) <int8[300,300] w = {0}>
{ y = Gather(w, i)  t = Transpose(w)  z = MatMulInteger(x, t) }"""


@pytest.mark.parametrize("graph", [SHARED, INTEGERS], ids=["dequantized", "integers"])
def test_a_shared_table_is_stored_once_unless_copies_are_requested(graph: str) -> None:
    def parsed(text_: str) -> ir.Model:
        model = text.parse(text_, opset=21)
        numbers = np.arange(300 * 300, dtype=np.int32).reshape(300, 300)
        model.graph.initializers["w"].const_value = ir.Tensor(numbers.astype(np.int8))
        return model

    assert not run_pass(the_pass, parsed(graph)).rewrites
    assert run_pass(the_pass, parsed(graph), copy_shared=True).rewrites
    alone = graph.replace("y = Gather(w, i)", "y = Gather(x, i)").replace("int8[2,300] y", "y")
    alone = alone.replace("(y,", "(float[2,300] y," if graph == SHARED else "(uint8[2,300] y,")
    assert run_pass(the_pass, parsed(alone)).rewrites
