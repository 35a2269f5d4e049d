"""Division by a constant becomes multiplication by its reciprocal."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from literals import literal
from rewrites import check_rewrite, check_same_numbers, check_unchanged, run_pass

from smelt import optimize
from smelt.ir import text
from smelt.passes.simplify.divide_to_multiply import divide_to_multiply


def quotient(*divisor: float, dtype: str = "float", shape: str = "", op: str = "Div") -> str:
    return (
        f"g ({dtype}[N,2] x) => ({dtype}[N,2] y) <{dtype}{shape} c = {literal(dtype, *divisor)}> "
        f"{{ y = {op}(x, c) }}"
    )


@pytest.mark.parametrize("dtype", ["float", "float16", "double"])
@pytest.mark.parametrize(
    ("divisor", "factor", "shape"),
    [
        ((8,), (0.125,), ""),
        ((-0.25,), (-4,), ""),
        ((2, -16), (0.5, -0.0625), "[2]"),
        ((4,), (0.25,), "[1,1]"),
    ],
)
def test_a_power_of_two_keeps_every_bit(
    dtype: str, divisor: tuple[float, ...], factor: tuple[float, ...], shape: str
) -> None:
    check_rewrite(
        divide_to_multiply,
        quotient(*divisor, dtype=dtype, shape=shape),
        quotient(*factor, dtype=dtype, shape=shape, op="Mul"),
    )


def test_the_bits_of_every_float16() -> None:
    before = f"g (float16[65536] x) => (float16[65536] y) <float16 c = {literal('float16', 32)}> {{ y = Div(x, c) }}"
    source, model = text.parse(before), text.parse(before)
    run_pass(divide_to_multiply, model)
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    check_same_numbers(source, model, divide_to_multiply.exactness, {"x": every})


def test_bfloat16() -> None:
    model = text.parse(quotient(4, -8, dtype="bfloat16", shape="[2]"))
    run_pass(divide_to_multiply, model)
    (node,) = model.graph
    factor = node.inputs[1]
    assert node.op_type == "Mul"
    assert factor is not None
    assert factor.const_value is not None
    array = factor.const_value.numpy()
    assert array.dtype == ml_dtypes.bfloat16
    assert array.astype(float).tolist() == [0.25, -0.125]


def test_a_constant_that_broadcasts() -> None:
    check_rewrite(
        divide_to_multiply,
        "g (float[2] x) => (float[3,2] y) <float[3,1] c = {1,2,4}> { y = Div(x, c) }",
        "g (float[2] x) => (float[3,2] y) <float[3,1] c = {1,0.5,0.25}> { y = Mul(x, c) }",
    )


@pytest.mark.parametrize("divisor", [3, 0.1, -700])
@pytest.mark.parametrize("dtype", ["float", "double", "float16"])
def test_fast_takes_any_divisor(divisor: float, dtype: str) -> None:
    number = {"float": np.float32, "double": np.float64, "float16": np.float16}[dtype]
    factor = float(number(1 / np.float64(number(divisor))))
    check_rewrite(
        divide_to_multiply,
        quotient(divisor, dtype=dtype),
        quotient(factor, dtype=dtype, op="Mul"),
        modes=("normal",),
        fast=True,
    )


@pytest.mark.parametrize("pipeline", ["divide-to-multiply", "divide-to-multiply{fast=true}"])
def test_the_option_by_name(pipeline: str) -> None:
    done = optimize(text.parse(quotient(3)), pipeline=pipeline, verify="each")
    assert [node.op_type for node in done.graph] == ["Mul" if "fast" in pipeline else "Div"]


NEVER = {
    "zero": quotient(0),
    "minus zero": quotient(2, -0.0, shape="[2]"),
    "a reciprocal that overflows": quotient(1e-5, dtype="float16"),
    "a subnormal divisor": quotient(1e-39),
    "a subnormal reciprocal": quotient(2.0**127),
    "integers": "g (int32[N] x) => (int32[N] y) <int32 c = {2}> { y = Div(x, c) }",
    "unsigned integers": "g (uint8[N] x) => (uint8[N] y) <uint8 c = {2}> { y = Div(x, c) }",
    "a constant over x": "g (float[N] x) => (float[N] y) <float c = {2}> { y = Div(c, x) }",
    "a divisor of the caller": "g (float[N] x, float c) => (float[N] y) <float c = {2}> "
    "{ y = Div(x, c) }",
}


@pytest.mark.parametrize("graph", NEVER.values(), ids=NEVER.keys())
@pytest.mark.parametrize("fast", [False, True])
def test_keeps(graph: str, fast: bool) -> None:
    check_unchanged(divide_to_multiply, graph, fast=fast)


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("dtype", ["float16", "float"])
@pytest.mark.parametrize("fast", [False, True])
def test_keeps_divisors_that_are_not_finite(number: float, dtype: str, fast: bool) -> None:
    check_unchanged(divide_to_multiply, quotient(number, dtype=dtype), fast=fast)


@pytest.mark.parametrize("divisor", [(3,), (2.0000002,), (1, 3)])
def test_keeps_what_would_be_rounded(divisor: tuple[float, ...]) -> None:
    check_unchanged(divide_to_multiply, quotient(*divisor, shape="[2]" if divisor[1:] else ""))
