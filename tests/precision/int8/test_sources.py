"""Sources whose weights stay as they are: half types, and initializers that a caller may replace."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import smelt
from smelt.errors import UsageError

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def source(dtype: str, *, overridable: bool = False) -> Any:
    more = f", {dtype}[16,32] w" if overridable else ""
    proto = onnx.parser.parse_model(
        f"{HEAD} f ({dtype}[B,16] x{more}) => ({dtype}[B,32] y) {{ y = MatMul(x, w) }}"
    )
    weight = np.random.default_rng(0).normal(size=(16, 32))
    kind = np.float16 if dtype == "float16" else np.float32
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weight.astype(kind), "w"))
    return smelt.load(proto)


@pytest.mark.parametrize(
    ("dtype", "overridable"), [("float16", False), ("float16", True), ("float", True)]
)
def test_the_weight_stays(dtype: str, overridable: bool) -> None:
    kind = np.float16 if dtype == "float16" else np.float32
    samples = [{"x": np.full((2, 16), number, kind)} for number in range(4)]
    with pytest.raises(UsageError, match="no product") as raised:
        smelt.quantize(source(dtype, overridable=overridable), samples, within="9%")
    assert raised.value.code == "E678"


def test_a_float32_constant_of_the_same_model_gets_fewer_bits() -> None:
    samples = [{"x": np.full((2, 16), number, np.float32)} for number in range(4)]
    assert smelt.quantize(source("float"), samples, within="9%").chosen
