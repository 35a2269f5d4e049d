import numpy as np
import pytest
from rewrites import check_rewrite, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.pipelines import STAGES
from smelt.passes.quantize.distributive_quantized_binary_op_scale_normalization import (
    distributive_quantized_binary_op_scale_normalization as the_pass,
)
from smelt.runtime.runner import open_runner

HEAD = "g ({0}[N,2] x, {0}[2] y) => ({0}[N,2] w)"


def _sum(op: str, relu: bool = False, axes: str = "") -> str:
    last = "r = Relu(t)  w = QuantizeLinear(r, c, z)" if relu else "w = QuantizeLinear(t, c, z)"
    return (
        f"{{ d = DequantizeLinear{axes}(x, a, z)  e = DequantizeLinear(y, b, z)"
        f"  t = {op}(d, e)  {last} }}"
    )


@pytest.mark.parametrize("op", ["Add", "Sub"])
@pytest.mark.parametrize("relu", [False, True], ids=["", "Relu"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_the_second_scale_becomes_1(dtype: str, relu: bool, op: str) -> None:
    head = HEAD.format(dtype)
    check_rewrite(
        the_pass,
        before=f"{head} <float a = {{0.5}}, float b = {{4}}, float c = {{2}}, {dtype} z = {{3}}>"
        + _sum(op, relu),
        after=f"{head} <float a = {{0.125}}, float b = {{1}}, float c = {{0.5}}, {dtype} z = {{3}}>"
        + _sum(op, relu),
        opset=13,
    )


def test_the_first_if_only_that_is_one() -> None:
    head = HEAD.format("int8")
    body = (
        "{ d = DequantizeLinear(x, a)  e = DequantizeLinear<axis=0>(y, b)  t = Sub(d, e)"
        "  w = QuantizeLinear(t, c, z) }"
    )
    check_rewrite(
        the_pass,
        before=f"{head} <float a = {{2}}, float[2] b = {{1, 4}}, float c = {{8}}, int8 z = {{3}}>"
        + body,
        after=f"{head} <float a = {{1}}, float[2] b = {{0.5, 2}}, float c = {{4}}, int8 z = {{3}}>"
        + body,
    )


def test_the_result_may_have_a_scale_an_index() -> None:
    head = HEAD.format("int8")
    body = (
        "{ d = DequantizeLinear(x, a)  e = DequantizeLinear(y, b)  t = Add(d, e)"
        "  w = QuantizeLinear(t, c, z) }"
    )
    check_rewrite(
        the_pass,
        before=f"{head} <float a = {{2}}, float[1] b = {{4}}, float[2] c = {{8, 2}},"
        "int8[2] z = {3, 0}>" + body,
        after=f"{head} <float a = {{0.5}}, float[1] b = {{1}}, float[2] c = {{2, 0.5}},"
        "int8[2] z = {3, 0}>" + body,
    )


@pytest.mark.parametrize("op", ["Add", "Sub"])
@pytest.mark.parametrize("scales", [(0.1, 0.3, 0.7), (0.013, 0.0071, 0.031), (1e-3, 50.0, 1.0)])
def test_no_result_moves_by_more_than_one_step(op: str, scales: tuple[float, ...]) -> None:
    a, b, c = scales
    graph = (
        f"g (int8[256,256] x, int8[256,256] y) => (int8[256,256] w) <float a = {{{a}}},"
        f"float b = {{{b}}}, float c = {{{c}}}, int8 z = {{3}}>" + _sum(op)
    )
    before, after = text.parse(graph), text.parse(graph)
    assert run_pass(the_pass, after).rewrites == 1
    x, y = np.meshgrid(*[np.arange(-128, 128).astype(np.int8)] * 2)
    first, second = (open_runner(model)(x, y)[0].astype(np.int64) for model in (before, after))
    moved = np.abs(first - second)
    assert moved.max() <= 1
    assert (moved > 0).mean() < 0.01


# The bits of a float16: 24752 is 600, 22080 is 100, 1024 the smallest normal number, 11878 nearly 0.1.
KEPT = {
    "a scale that is 1 already": "float a = {0.5}, float b = {1}, float c = {2}, int8 z = {3}",
    "a scale of 0": "float a = {0.5}, float b = {0}, float c = {2}, int8 z = {3}",
    "a negative scale": "float a = {0.5}, float b = {-2}, float c = {2}, int8 z = {3}",
    "a ratio that underflows": "float a = {1e-30}, float b = {1e20}, float c = {1e18}, int8 z = {3}",
    "a ratio that overflows": "float a = {1e20}, float b = {1e-30}, float c = {1e22}, int8 z = {3}",
    "a sum that overflows": "float a = {1e37}, float b = {3e36}, float c = {1e36}, int8 z = {3}",
    "operands huge in steps": "float a = {1e9}, float b = {3e9}, float c = {0.1}, int8 z = {3}",
    "float16: the ratio overflows": "float16 a = {22080}, float16 b = {1024},"
    "float16 c = {24752}, int8 z = {3}",
    "float16: steps of the result are lost": "float16 a = {11878}, float16 b = {11900},"
    "float16 c = {11878}, int8 z = {3}",
}


@pytest.mark.parametrize("constants", KEPT.values(), ids=KEPT)
def test_keeps_scales(constants: str) -> None:
    check_unchanged(the_pass, f"{HEAD.format('int8')} <{constants}> {_sum('Add')}", opset=21)


SCALES = "float a = {0.5}, float b = {4}, float c = {2}, int8 z = {3}"
KEPT_GRAPHS = {
    "a product": f"{HEAD.format('int8')} <{SCALES}> {_sum('Mul')}",
    "another activation": f"{HEAD.format('int8')} <{SCALES}>"
    + _sum("Add", relu=True).replace("Relu", "Sigmoid"),
    "a sum that something else reads": (
        f"g (int8[2] x, int8[2] y) => (int8[2] w, float[2] n) <{SCALES}>"
        + _sum("Add").replace("}", "n = Neg(t) }")
    ),
    "an operand that is an output": (
        f"g (int8[2] x, int8[2] y) => (int8[2] w, float[2] e) <{SCALES}>" + _sum("Add")
    ),
    "an operand that is no integer": (
        f"g (int8[2] x, float[2] e) => (int8[2] w) <{SCALES}>"
        "{ d = DequantizeLinear(x, a, z)  t = Add(d, e)  w = QuantizeLinear(t, c, z) }"
    ),
    "a scale that callers give": (
        "g (int8[2] x, int8[2] y, float b) => (int8[2] w) <float a = {0.5}, float c = {2},"
        "int8 z = {3}>" + _sum("Add")
    ),
    "a scale an index on both sides": (
        "g (int8[2] x, int8[2] y) => (int8[2] w) <float[2] a = {2, 3}, float[2] b = {4, 5},"
        "float c = {2}, int8 z = {0}> { d = DequantizeLinear<axis=0>(x, a)"
        "e = DequantizeLinear<axis=0>(y, b)  t = Add(d, e)  w = QuantizeLinear(t, c, z) }"
    ),
}


@pytest.mark.parametrize("graph", KEPT_GRAPHS.values(), ids=KEPT_GRAPHS)
def test_keeps(graph: str) -> None:
    check_unchanged(the_pass, graph)


def test_only_by_request() -> None:
    assert not the_pass.default
    assert not any(the_pass.spelling in stage for stage in STAGES.values())
