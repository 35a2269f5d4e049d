"""``smelt.Bitcast``: what ONNX nodes compute agrees, bit by bit, with the memory itself."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from smelt import operators
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.bitcast import OPERATOR
from smelt.runtime.onnxruntime import OnnxRuntime

FLOATS = {
    "float16": (np.float16, np.uint16),
    "bfloat16": (ml_dtypes.bfloat16, np.uint16),
    "float": (np.float32, np.uint32),
    "double": (np.float64, np.uint64),
}
NAMES = {np.uint8: "uint8", np.uint16: "uint16", np.uint32: "uint32", np.uint64: "uint64"}


def patterns(unsigned: type) -> np.ndarray:
    """All bits of 16, else every exponent with small, large and random significands."""
    width = np.iinfo(unsigned).bits
    if width == 16:
        return np.arange(1 << 16, dtype=np.uint16)
    mantissa = {32: 23, 64: 52}[width]
    top = (1 << mantissa) - 1
    rng = np.random.default_rng(0)
    tails = [0, 1, 2, top // 2, top // 2 + 1, top - 1, top, *rng.integers(0, top, 9).tolist()]
    heads = range(1 << (width - mantissa))
    return np.array([h << mantissa | t for h in heads for t in tails], dtype=unsigned)


def is_number(x: np.ndarray) -> np.ndarray:
    """False for NaN."""
    with np.errstate(invalid="ignore"):  # A signalling NaN, which NumPy reports.
        return ~np.isnan(x.astype(np.float64))


def bitcast(x: np.ndarray, source: str, target: ir.DataType, opset: int = 18) -> np.ndarray:
    """``x`` through the function that the operator becomes."""
    kind = target.name.lower()
    model = text.parse(
        f"g ({source}[N] x) => ({kind}[N] y) {{ y = smelt.Bitcast<to={int(target)}>(x) }}"
    )
    model.opset_imports[""] = opset
    ShapeInference(model).infer_model()
    assert operators.attach_functions(model) == ()
    y = OnnxRuntime(model)(x)[0]
    assert isinstance(y, np.ndarray)
    return y


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("opset", [18, 23])
def test_bits_of_floats(name: str, opset: int) -> None:
    dtype, unsigned = FLOATS[name]
    bits = patterns(unsigned)
    x = bits.view(dtype)
    got = bitcast(x, name, ir.DataType.from_numpy(np.dtype(unsigned)), opset)
    number = is_number(x)
    np.testing.assert_array_equal(got[number], bits[number])
    assert len(set(got[~number].tolist())) == 1
    assert not is_number(got[~number].view(dtype)).any()


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("opset", [18, 23])
def test_floats_of_bits(name: str, opset: int) -> None:
    dtype, unsigned = FLOATS[name]
    bits = patterns(unsigned)
    x = bits.view(dtype)
    got = bitcast(bits, NAMES[unsigned], ir.DataType.from_numpy(np.dtype(dtype)), opset)
    number = is_number(x)
    np.testing.assert_array_equal(got[number].view(unsigned), bits[number])
    assert not is_number(got[~number]).any()


def test_signed_integers_have_the_same_bits() -> None:
    x = np.array([0.0, -0.0, 1.5, -1.5, -np.inf], np.float32)
    got = bitcast(x, "float", ir.DataType.INT32)
    np.testing.assert_array_equal(got, x.view(np.int32))
    back = bitcast(x.view(np.int32), "int32", ir.DataType.FLOAT)
    np.testing.assert_array_equal(back.view(np.int32), x.view(np.int32))


def test_integers_and_half_floats_among_themselves() -> None:
    x = np.array([0, 1, 127, 128, 255], np.uint8)
    np.testing.assert_array_equal(bitcast(x, "uint8", ir.DataType.INT8), x.view(np.int8))
    half = np.array([1.0, -2.5, 6e-8, -0.0, np.inf], np.float16)
    got = bitcast(half, "float16", ir.DataType.BFLOAT16)
    np.testing.assert_array_equal(got.view(np.uint16), half.view(np.uint16))


def test_the_reference_keeps_every_bit_and_the_shape() -> None:
    bits = np.array([[0x7FC00001, 0xFFC00000]], np.uint32)
    (x,) = OPERATOR.reference((bits,), {"to": int(ir.DataType.FLOAT)})
    (back,) = OPERATOR.reference((x,), {"to": int(ir.DataType.UINT32)})
    np.testing.assert_array_equal(back, bits)
    (scalar,) = OPERATOR.reference((np.ones((), np.float32),), {"to": int(ir.DataType.INT32)})
    assert scalar.shape == ()


@pytest.mark.parametrize("to", [ir.DataType.DOUBLE, ir.DataType.BOOL, ir.DataType.STRING])
def test_another_width_or_kind_is_an_error(to: ir.DataType) -> None:
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2]))
    with pytest.raises(ValueError, match=r"differ in width|takes integers and floats"):
        OPERATOR.infer((x,), {"to": int(to)})
