"""``QGemm`` and similar: products of integers with 32-bit sums, which become floats or bytes.

ONNX Runtime creates them in place of DequantizeLinear, Gemm, QuantizeLinear, and in place of the
nodes that dynamic quantization creates. The sums are multiplied by one factor per column; then a
bias is added.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.operators.declare import Arguments, Attributes, Computed, Result, int_of
from smelt.operators.inputs import filled, first, input_at, present
from smelt.operators.onnxruntime.microsoft.declared import Values, floats, ints, operator
from smelt.operators.onnxruntime.microsoft.products import infer_product
from smelt.operators.onnxruntime.microsoft.quantized import requantized

PLAIN: Attributes = dict.fromkeys(("transA", "transB", "transBatchA", "transBatchB"), 0)
FLOAT, INT32 = ir.DataType.FLOAT, ir.DataType.INT32


def _sums(
    a: np.ndarray, b: np.ndarray, a_zero: np.ndarray | None, b_zero: np.ndarray | None
) -> np.ndarray:
    """Return sums of products of integers minus their zero points, in 32 bits that wrap around."""
    lhs, rhs = a.astype(np.int32), b.astype(np.int32)
    lhs = lhs if a_zero is None else lhs - a_zero.astype(np.int32)
    rhs = rhs if b_zero is None else rhs - b_zero.astype(np.int32)
    return np.asarray(np.matmul(lhs, rhs))


def _infer_float(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the shape of the product, in float32."""
    (product,) = infer_product(inputs, PLAIN)
    return (Result(FLOAT, product.shape),)


def _infer_int32(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the shape of the product, in int32."""
    (product,) = infer_product(inputs, PLAIN)
    return (Result(INT32, product.shape),)


def _to_float(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the sums times both scales, plus the bias."""
    a, b, a_scale, b_scale = present(inputs[:4])
    a_zero, b_zero, bias = filled(inputs[4:], 3)
    sums = _sums(a, b, a_zero, b_zero).astype(np.float32) * (a_scale * b_scale)
    return (sums if bias is None else sums + bias,)


def _scaled_sums(b: Builder, sums: ir.Value, factor: ir.Value, bias: ir.Value | None) -> ir.Value:
    """Build ``sums`` as floats, times ``factor``, plus ``bias``."""
    result = b.op("Mul", b.op("Cast", sums, to=int(FLOAT)), factor)
    return result if bias is None else b.op("Add", result, bias)


def _to_float_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build MatMulInteger, its scaling and the bias."""
    lhs, rhs, a_scale, b_scale, a_zero, b_zero, bias = filled(inputs, 7)
    sums = b.op("MatMulInteger", lhs, rhs, a_zero, b_zero)
    return (_scaled_sums(b, sums, b.op("Mul", a_scale, b_scale), bias),)


def quantized_at_run_time(a: np.ndarray) -> tuple[np.ndarray, np.float32, np.ndarray]:
    """Return ``(bytes, scale, zero point)`` as DynamicQuantizeLinear computes them."""
    low, high = np.float32(a.min(initial=0)), np.float32(a.max(initial=0))
    scale = (high - low) / np.float32(255) if high > low else np.float32(1)
    zero = np.rint(np.clip(-low / scale, 0, 255)).astype(np.uint8)
    return requantized(a, np.asarray(scale), zero, np.dtype(np.uint8)), scale, zero


def _dynamic(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the product of ``a``, quantized by its range, and quantized weights."""
    a, b, b_scale, b_zero, bias = filled(inputs, 5)
    assert a is not None
    codes, scale, zero = quantized_at_run_time(a)
    return _to_float((codes, b, np.asarray(scale), b_scale, zero, b_zero, bias), attributes)


def _dynamic_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build DynamicQuantizeLinear, MatMulInteger, scaling and bias."""
    a, right, b_scale, b_zero, bias = filled(inputs, 5)
    codes, scale, zero = b.ops("DynamicQuantizeLinear", a, outputs=3)
    sums = b.op("MatMulInteger", codes, right, zero, b_zero)
    return (_scaled_sums(b, sums, b.op("Mul", scale, b_scale), bias),)


def _wide_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build MatMul of both operands cast to int32, because MatMulInteger takes bytes only."""
    return (b.op("MatMul", *(b.op("Cast", value, to=int(INT32)) for value in inputs)),)


def _product_in_32_bits(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the product in 32 bits."""
    a, b = present(inputs)
    return (_sums(a, b, a_zero=None, b_zero=None),)


def _infer_gemm(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the shape of the product in the type of the zero point, by default float32."""
    a, b, y_zero = first(inputs), input_at(inputs, 3), input_at(inputs, 8)
    (product,) = infer_product((a, b), {**PLAIN, **attributes})
    return (Result(FLOAT if y_zero is None else y_zero.dtype, product.shape),)


def _gemm(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the 32-bit sums plus C, times ``alpha * a_scale * b_scale / y_scale``."""
    a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero = filled(inputs, 9)
    assert a is not None
    assert b is not None
    lhs = a.T if attributes["transA"] else a
    rhs = b.T if attributes["transB"] else b
    rhs_zero = b_zero
    sums = _sums(lhs, rhs, a_zero, rhs_zero)
    sums = sums if c is None else sums + c
    assert a_scale is not None
    assert b_scale is not None
    factor = np.asarray(attributes["alpha"], np.float32) * a_scale * b_scale
    if y_scale is None:
        return (np.asarray(sums.astype(np.float32) * factor, np.float32),)
    assert y_zero is not None
    real = sums.astype(np.float32) * (factor / y_scale)
    return (requantized(real, np.ones((), np.float32), y_zero, y_zero.dtype),)


def _gemm_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build a Gemm of the dequantized A, B and C.

    A target with integer kernels recognizes this form and computes it in integers.
    """
    a, a_scale, a_zero, codes_of_b, b_scale, b_zero, c, y_scale, y_zero = filled(inputs, 9)
    lhs = b.op("DequantizeLinear", a, a_scale, a_zero)
    axis = 0 if int_of(attributes, "transB") else 1
    rhs = b.op("DequantizeLinear", codes_of_b, b_scale, b_zero, axis=axis)
    transposed_a = int_of(attributes, "transA")
    result = b.op("Gemm", lhs, rhs, transA=transposed_a, transB=int_of(attributes, "transB"))
    if c is not None:
        steps = b.op("Mul", a_scale, b_scale)
        result = b.op("Add", result, b.op("DequantizeLinear", c, steps, axis=-1))
    alpha = attributes["alpha"]
    assert isinstance(alpha, int | float)
    if alpha != 1:
        result = b.op("Mul", result, b.const_like(alpha, result))
    return (result if y_scale is None else b.op("QuantizeLinear", result, y_scale, y_zero),)


QGEMM = operator(
    "QGemm",
    "Gemm of quantized matrices, to quantized numbers or floats",
    inputs=(
        *("A", "a_scale", "a_zero_point", "B", "b_scale", "b_zero_point"),
        *("C?", "y_scale?", "y_zero_point?"),
    ),
    outputs=("Y",),
    attributes=(*ints(transA=0, transB=0), *floats(alpha=1.0)),
    infer=_infer_gemm,
    reference=_gemm,
    body=_gemm_body,
)
TO_FLOAT = operator(
    "MatMulIntegerToFloat",
    "MatMulInteger, times a scale per column, plus a bias",
    inputs=("A", "B", "a_scale", "b_scale", "a_zero_point?", "b_zero_point?", "bias?"),
    outputs=("Y",),
    infer=_infer_float,
    reference=_to_float,
    body=_to_float_body,
)
DYNAMIC = operator(
    "DynamicQuantizeMatMul",
    "a product in float of quantized weights and a matrix that is quantized at run time",
    inputs=("A", "B", "b_scale", "b_zero_point?", "bias?"),
    outputs=("Y",),
    infer=_infer_float,
    reference=_dynamic,
    body=_dynamic_body,
)
WIDE = operator(
    "MatMulInteger16",
    "a product of integers of 16 bits, in 32 bits",
    inputs=("A", "B"),
    outputs=("Y",),
    infer=_infer_int32,
    reference=_product_in_32_bits,
    body=_wide_body,
)
OPERATORS = (QGEMM, TO_FLOAT, DYNAMIC, WIDE)
