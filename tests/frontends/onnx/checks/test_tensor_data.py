"""Numbers in int32_data lie within their element type, and tensors hold as many as they need."""

from __future__ import annotations

import onnx_ir as ir
import pytest
from onnx import TensorProto

from smelt.errors import InvalidModel
from smelt.frontends.onnx.checks.tensor_data import check_data

RANGES = {
    "BOOL": (0, 1),
    "INT8": (-128, 127),
    "UINT8": (0, 255),
    "INT16": (-(2**15), 2**15 - 1),
    "UINT16": (0, 2**16 - 1),
    "INT4": (-128, 255),
    "UINT4": (0, 255),
    "INT2": (-128, 255),
    "UINT2": (0, 255),
    "FLOAT4E2M1": (0, 255),
    "FLOAT8E5M2": (0, 255),
    "FLOAT16": (0, 2**16 - 1),
    "BFLOAT16": (0, 2**16 - 1),
}
"""Types of 2 and 4 bits are packed into bytes; floats are bit patterns."""

UNITS = {"INT4": 2, "UINT4": 2, "FLOAT4E2M1": 2, "INT2": 4, "UINT2": 4}


@pytest.mark.parametrize("name", RANGES)
def test_numbers_of_a_type(name: str) -> None:
    dtype, (lowest, highest) = ir.DataType[name], RANGES[name]
    count = 2 * UNITS.get(name, 1)
    for numbers in ([lowest, highest], [lowest - 1, highest], [lowest, highest + 1]):
        tensor = TensorProto(int32_data=numbers)
        if numbers == [lowest, highest]:
            check_data(tensor, dtype, count, "here", None)
            check_data(tensor, dtype, count - UNITS.get(name, 1) + 1, "here", None)
            continue
        with pytest.raises(InvalidModel) as refused:
            check_data(tensor, dtype, count, "here", None)
        assert refused.value.code == "E311"
        assert f"{min(numbers)} to {max(numbers)}" in refused.value.why
        assert f"{lowest} to {highest}" in refused.value.why


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("more", [-1, 1])
def test_counts_of_a_type(name: str, more: int) -> None:
    packed = UNITS.get(name, 1)
    count = 2 * packed + (more if more > 0 else -packed)
    with pytest.raises(InvalidModel, match="holds 2 numbers where its dims need"):
        check_data(TensorProto(int32_data=[0, 1]), ir.DataType[name], count, "here", None)


@pytest.mark.parametrize(("raw", "is_right"), [(b"\0\1", True), (b"\0\2", False), (b"", False)])
def test_raw_booleans(raw: bytes, is_right: bool) -> None:
    tensor = TensorProto(raw_data=raw)
    if is_right:
        check_data(tensor, ir.DataType.BOOL, len(raw), "here", raw)
    else:
        with pytest.raises(InvalidModel):
            check_data(tensor, ir.DataType.BOOL, 2, "here", raw)


def test_unsigned_numbers_of_32_bits() -> None:
    check_data(TensorProto(uint64_data=[2**32 - 1]), ir.DataType.UINT32, 1, "here", None)
    with pytest.raises(InvalidModel, match="outside"):
        check_data(TensorProto(uint64_data=[2**32]), ir.DataType.UINT32, 1, "here", None)
