"""Activations of 8 bits: quantize and dequantize of Core ML where they apply, else their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from targets.coreml.packages import computed, types, written

from smelt.ir import text
from smelt.runtime.runner import run

PAIR = ["quantize", "dequantize"]
X = np.linspace(-90, 150, 24, dtype=np.float32).reshape(2, 3, 4)


def pair(parameters: str, dtype: str = "int8", axis: str = "", more: str = "d = q") -> str:
    """Return text that quantizes and dequantizes x with the initializers ``parameters``."""
    names = ", ".join(each.split("=")[0].split()[-1] for each in parameters.split("; "))
    middle = "" if more == "d = q" else f"{more} "
    read = "q" if more == "d = q" else "r"
    return (
        f"g (float[2,3,4] x) => (y) <{parameters.replace('; ', ', ')}> {{ "
        f"q = QuantizeLinear{axis}(x, {names}) {middle}y = DequantizeLinear{axis}({read}, {names}) }}"
    )


ROWS = {
    "one scale": (pair("float s = {0.5}; int8 z = {0}"), PAIR),
    "a zero point": (pair("float s = {0.75}; uint8 z = {128}"), PAIR),
    "a scale an axis": (
        pair("float[3] s = {0.5, 1, 2}; int8[3] z = {0, 1, -1}", axis="<axis=1>"),
        PAIR,
    ),
    "a scale of the last axis": (
        pair("float[4] s = {0.5, 1, 2, 4}; uint8[4] z = {0, 1, 2, 3}", axis="<axis=-1>"),
        PAIR,
    ),
    "bytes that move": (
        pair(
            "float s = {0.5}; int8 z = {3}", more="t = Transpose<perm=[2,0,1]>(q) r = Identity(t)"
        ),
        ["quantize", "transpose", "dequantize"],
    ),
    "bytes that are an output": (
        "g (float[2,3,4] x) => (y) <float s = {0.5}, int8 z = {3}> { y = QuantizeLinear(x, s, z) }",
        ["quantize", "cast"],
    ),
    "bytes that are counted with": (
        "g (float[2,3,4] x) => (y) <float s = {0.5}, uint8 z = {3}> "
        "{ q = QuantizeLinear(x, s, z) i = Cast<to=6>(q) y = Add(i, i) }",
        ["quantize", "cast", "add"],
    ),
}


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("ios", [16, 17, 18])
@pytest.mark.parametrize("row", ROWS)
def test_rows(row: str, ios: int, precision: str) -> None:
    model, operators = ROWS[row]
    artifact = written(model, ios=ios, precision=precision)
    if precision == "fp32":
        assert (types(artifact) == operators) == (ios > 16)
    (found,), (wanted,) = computed(artifact, X), run(text.parse(model), [X])
    step = 0 if precision == "fp32" else 4.1  # float16 may round to the next integer
    np.testing.assert_allclose(found, wanted, 1e-3, max(step, 1e-6))


@pytest.mark.parametrize("number", ["0.00001", "1e-7"])
def test_a_scale_that_float16_rounds_is_used_in_float32(number: str) -> None:
    artifact = written(pair(f"float s = {{{number}}}; int8 z = {{0}}"), precision="fp16")
    x = X * np.float32(number)
    np.testing.assert_allclose(
        computed(artifact, x)[0], np.clip(np.round(X), -128, 127) * np.float32(number), 2e-3
    )


def test_computed_scales_are_factors() -> None:
    model = (
        "g (float[2,3,4] x, float s) => (y) <int8 z = {0}> "
        "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }"
    )
    assert "quantize" not in types(written(model))


NEAREST = "g (float[1,2,{a}] x) => (float[1,2,{b}] y) <int64[{k}] s = {{1,2,{b}}}> {{ y = Resize<{m}>(x, , , s) }}"
FLOOR = 'mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"'
HALF = 'mode="nearest", coordinate_transformation_mode="half_pixel"'


@pytest.mark.parametrize(
    ("a", "b", "mode", "native"),
    [
        ("3,2", "6,6", FLOOR, True),
        ("3,2", "6,2", FLOOR, True),
        ("3,2", "6,4", HALF, True),
        ("3,2", "5,4", FLOOR, False),
        ("4,4", "2,2", FLOOR, False),
        ("3,2", "6,4", FLOOR.replace('"floor"', '"ceil"'), False),
    ],
)
def test_rows_and_columns_that_repeat(a: str, b: str, mode: str, native: bool) -> None:
    model = NEAREST.format(a=a, b=b, k=4, m=mode)
    x = np.arange(np.prod([*map(int, a.split(","))]) * 2, dtype=np.float32)
    x = x.reshape(1, 2, *map(int, a.split(",")))
    artifact = written(model)
    assert (types(artifact) == ["upsample_nearest_neighbor"]) == native
    np.testing.assert_array_equal(computed(artifact, x)[0], run(text.parse(model), [x])[0])
