"""Casts of integers to integers: ONNX discards the higher bits, whatever the widths."""

from __future__ import annotations

import itertools

import numpy as np
import onnx_ir as ir
import pytest

from smelt.ir.constants import Constants
from smelt.passes.base import PassContext
from smelt.passes.simplify.const_elimination import const_elimination
from smelt.runtime.fold import evaluator
from smelt.runtime.integer_cast import cast_integers, is_integer
from smelt.runtime.runner import open_runner

WIDTHS = (2, 4, 8, 16, 32, 64)
TYPES = [ir.DataType[f"{sign}INT{width}"] for width in WIDTHS for sign in ("", "U")]
EDGES = [0, 1, -1, *(sign * 2**n + d for n in range(1, 65) for d in (-1, 0, 1) for sign in (1, -1))]


def numbers(dtype: ir.DataType) -> list[int]:
    """Return numbers of ``dtype`` at the limits of every integer type."""
    low = -(1 << dtype.bitwidth - 1) if dtype.is_signed() else 0
    high = low + (1 << dtype.bitwidth) - 1
    return sorted({n for n in EDGES if low <= n <= high})


def wrapped(number: int, dtype: ir.DataType) -> int:
    bits = number % (1 << dtype.bitwidth)
    negative = dtype.is_signed() and bits >> (dtype.bitwidth - 1)
    return bits - (1 << dtype.bitwidth) if negative else bits


def array_of(items: list[int], dtype: ir.DataType) -> np.ndarray:
    wide = np.uint64 if dtype == ir.DataType.UINT64 else np.int64
    return np.array(items, wide).astype(dtype.numpy())


PAIRS = list(itertools.permutations(TYPES, 2))


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=lambda dtype: dtype.name.lower())
def test_every_pair(source: ir.DataType, target: ir.DataType) -> None:
    items = numbers(source)
    result = cast_integers(array_of(items, source), target)
    assert result.dtype == target.numpy()
    assert [int(item) for item in result] == [wrapped(item, target) for item in items]


def cast(source: ir.DataType, target: ir.DataType) -> ir.Model:
    """Return a model that casts the numbers of ``source``, then widens the result so that NumPy can
    hold it.
    """
    array = array_of(numbers(source), source)
    value = ir.Value(name="c", type=ir.TensorType(source), shape=ir.Shape(array.shape))
    value.const_value = ir.Tensor(array, dtype=source, name="c")
    narrow = ir.node("Cast", [value], {"to": int(target)})
    wide = ir.node("Cast", narrow.outputs, {"to": int(ir.DataType.INT64)})
    wide.outputs[0].name, narrow.outputs[0].name = "y", "n"
    wide.outputs[0].type, wide.outputs[0].shape = ir.TensorType(ir.DataType.INT64), value.shape
    opset = 25 if 2 in (source.bitwidth, target.bitwidth) else 21
    graph = ir.Graph(
        [],
        wide.outputs,
        nodes=[narrow, wide],
        initializers=[value],
        opset_imports={"": opset},
        name="g",
    )
    return ir.Model(graph, ir_version=13 if opset == 25 else 10)


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=lambda dtype: dtype.name.lower())
def test_folding_gives_what_the_runtime_gives(source: ir.DataType, target: ir.DataType) -> None:
    [expected] = open_runner(cast(source, target), "onnxruntime")()
    model = cast(source, target)
    const_elimination.run(PassContext.of(model, evaluator(model)))
    holds_codes = source.bitwidth == 4 and target == ir.DataType.INT32
    casts = [node.op_type for node in model.graph if node.op_type == "Cast"]
    assert bool(casts) == holds_codes, "only 4-bit codes cast to int32 are not folded"
    folded = Constants().get(model.graph.outputs[0], limit=None)
    if folded is None:
        [folded] = open_runner(model, "onnxruntime")()
    np.testing.assert_array_equal(folded, expected)


def test_floats_and_bools_are_no_integers() -> None:
    assert not any(map(is_integer, map(np.dtype, (np.float32, np.float16, bool, object))))
    assert not is_integer(ir.DataType.BFLOAT16.numpy())
    assert not is_integer(ir.DataType.FLOAT4E2M1.numpy())
