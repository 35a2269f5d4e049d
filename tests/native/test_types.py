"""Numbers as C constants, and the least and greatest of each type."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir
import pytest

from smelt.native.types import C_TYPES

INT, LONG, ULONG, FLOAT, DOUBLE, BOOL = (
    C_TYPES[ir.DataType[name]] for name in ("INT32", "INT64", "UINT64", "FLOAT", "DOUBLE", "BOOL")
)
INTEGERS = {
    0: "0",
    7: "7",
    -7: "(-7)",
    2**31 - 1: "2147483647",
    1 - 2**31: "(-2147483647)",
    2**31: "2147483648LL",
    -(2**31): "(-2147483648LL)",
    2**63 - 1: "9223372036854775807LL",
    1 - 2**63: "(-9223372036854775807LL)",
    -(2**63): "(-9223372036854775807LL - 1)",
    2**63: "9223372036854775808ULL",
    2**64 - 1: "18446744073709551615ULL",
}


@pytest.mark.parametrize(("number", "text"), INTEGERS.items())
def test_integers(number: int, text: str) -> None:
    """A number of more bits than an int has a suffix, and the least one is no literal in C."""
    assert (ULONG if number >= 2**63 else LONG).literal(number) == text


def test_booleans() -> None:
    assert [BOOL.literal(value) for value in (True, False, 3, 0)] == ["1", "0", "1", "0"]


SPECIAL = {math.nan: "NAN", math.inf: "INFINITY", -math.inf: "(-INFINITY)"}


@pytest.mark.parametrize(("number", "text"), SPECIAL.items())
def test_special_numbers(number: float, text: str) -> None:
    assert FLOAT.literal(number) == DOUBLE.literal(number) == text


@pytest.mark.parametrize("number", [0.0, -0.0, 0.1, -2.5, 1e-45, 3.4e38, 1 / 3, 16777217.0])
def test_floats_are_exact(number: float) -> None:
    for kind, dtype in ((FLOAT, np.float32), (DOUBLE, np.float64)):
        text = kind.literal(number)
        assert text.startswith("(-") == (math.copysign(1, number) < 0)
        plain = text.strip("()")
        assert plain.endswith("f") == (kind is FLOAT)
        assert "." in plain or "e" in plain
        assert dtype(plain.removesuffix("f")).tobytes() == dtype(number).tobytes()


def test_a_double_beyond_the_floats_is_infinite() -> None:
    assert [FLOAT.literal(sign * 1e39) for sign in (1, -1)] == ["INFINITY", "(-INFINITY)"]
    assert DOUBLE.literal(1e39) == "1e+39"


WHOLE = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")


@pytest.mark.parametrize("name", WHOLE)
def test_the_least_and_the_greatest_integer(name: str) -> None:
    dtype = ir.DataType[name]
    limits, kind = np.iinfo(dtype.numpy()), C_TYPES[dtype]
    assert kind.lowest() == kind.literal(int(limits.min))
    assert kind.highest() == kind.literal(int(limits.max))


def test_the_least_and_the_greatest_of_other_types() -> None:
    assert [FLOAT.lowest(), FLOAT.highest()] == ["(-INFINITY)", "INFINITY"]
    assert [BOOL.lowest(), BOOL.highest()] == ["0", "1"]


@pytest.mark.parametrize("dtype", C_TYPES)
def test_each_type_is_stored_in_its_size(dtype: ir.DataType) -> None:
    kind = C_TYPES[dtype]
    assert kind.size == max(1, dtype.bitwidth // 8)
    if dtype.name in WHOLE:
        assert kind.name == f"{dtype.name.lower()}_t"
        assert kind.signed == dtype.is_signed()
