"""``smelt.Threefry2x32``: the vectors its authors publish, and the function that runtimes get."""

from __future__ import annotations

import jax
import numpy as np
import onnx_ir as ir
import pytest

import smelt
from smelt import operators
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.threefry2x32 import OPERATOR
from smelt.runtime.onnxruntime import OnnxRuntime

# Random123, "kat_vectors", threefry2x32 with 20 rounds: counter, key, result.
KNOWN = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


def words(numbers: tuple[int, ...]) -> list[np.ndarray]:
    return [np.array(number, np.uint32) for number in numbers]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_known_answers(
    counter: tuple[int, ...], key: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    got = OPERATOR.reference([*words(key), *words(counter)], {})
    assert tuple(int(word) for word in got) == expected


@pytest.mark.parametrize("opset", [18, 23])
@pytest.mark.parametrize(
    "shapes", [("", "", "", "N"), ("M,1", "M,1", "N", "M,N"), ("", "", "", "")]
)
def test_runtimes_compute_the_same(shapes: tuple[str, ...], opset: int) -> None:
    inputs = ", ".join(
        f"uint32[{shape}] {name}" for name, shape in zip("abcd", shapes, strict=True)
    )
    model = text.parse(
        f"g ({inputs}) => (uint32[] y, uint32[] z) {{ y, z = smelt.Threefry2x32(a, b, c, d) }}"
    )
    for output in model.graph.outputs:
        output.shape = None
    model.opset_imports[""] = opset
    ShapeInference(model).infer_model()
    assert operators.attach_functions(model) == ()
    sizes = {"M": 3, "N": 5, "1": 1}
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(0, 1 << 32, [sizes[dim] for dim in shape.split(",") if dim], np.uint32)
        for shape in shapes
    ]
    expected = OPERATOR.reference(arrays, {})
    for got, wanted in zip(OnnxRuntime(model)(*map(np.asarray, arrays)), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def value(dtype: ir.DataType, dims: list[int | str]) -> ir.Value:
    return ir.Value(type=ir.TensorType(dtype), shape=ir.Shape(dims))


def test_operands_that_cannot_be_right_are_errors() -> None:
    word, three = value(ir.DataType.UINT32, []), value(ir.DataType.UINT32, [3])
    with pytest.raises(ValueError, match="uint32"):
        OPERATOR.infer([word, word, word, value(ir.DataType.INT32, [])], {})
    with pytest.raises(ValueError, match="four"):
        OPERATOR.infer([word, word, word], {})
    with pytest.raises(ValueError, match="broadcast"):
        OPERATOR.infer([word, word, three, value(ir.DataType.UINT32, [2])], {})


def test_shapes_broadcast_and_two_symbols_give_an_unknown_one() -> None:
    word = value(ir.DataType.UINT32, [])
    rows, columns = value(ir.DataType.UINT32, ["N", 1]), value(ir.DataType.UINT32, [4])
    first, second = OPERATOR.infer([word, word, rows, columns], {})
    assert first == second
    assert str(first.shape) == "[N,4]"
    (other, _) = OPERATOR.infer([word, word, rows, value(ir.DataType.UINT32, ["M", 1])], {})
    assert other.shape is not None
    assert str(other.shape[0]) not in ("N", "M")


def test_draws_of_all_shapes_call_one_function() -> None:
    def draws(key):
        return jax.random.t(key, 2.0, (5,)), jax.random.uniform(key, (2, 3)), jax.random.normal(key)

    model = smelt.optimize(smelt.trace(draws, "key[]"), functions=True)
    proto = smelt.to_proto(model, functions=True)
    names = [function.name for function in proto.functions]
    assert names.count("Threefry2x32") == 1
    assert not [name for name in names if name.startswith("Threefry2x32_")]
