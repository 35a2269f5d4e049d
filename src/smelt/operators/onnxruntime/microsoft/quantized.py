"""``QLinearAdd`` and similar operators: operators between quantized numbers, of ONNX Runtime's
quantizer.

The body of each is DequantizeLinear, the operator on floats, QuantizeLinear. Targets with integer
kernels compute that form in integers. Kernels of ONNX Runtime round once, so results agree within
one step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.operators.declare import Arguments, Attributes, Computed, Operator, Result
from smelt.operators.inputs import filled, first, present
from smelt.operators.onnxruntime.microsoft.declared import Values, floats, operator

X = ("X", "X_scale", "X_zero_point?")
A, B = (tuple(f"{name}{suffix}" for suffix in ("", "_scale", "_zero_point?")) for name in "AB")
Y, C = (tuple(f"{name}{suffix}" for suffix in ("_scale", "_zero_point?")) for name in "YC")


def dequantized(
    x: np.ndarray | None, scale: np.ndarray | None, zero: np.ndarray | None
) -> np.ndarray:
    """Return the floats that ``x`` represents; only ``zero`` may be absent."""
    assert x is not None
    assert scale is not None
    centred = x.astype(np.int32) - (0 if zero is None else zero.astype(np.int32))
    return np.asarray(centred.astype(np.float32) * scale)


def requantized(
    real: np.ndarray, scale: np.ndarray | None, zero: np.ndarray | None, dtype: np.dtype
) -> np.ndarray:
    """Return ``real / scale``, rounded to even, plus ``zero``, clipped to ``dtype``."""
    assert scale is not None
    bounds = ml_dtypes.iinfo(dtype)
    rounded = np.rint(real / scale) + (0 if zero is None else zero.astype(np.int32))
    return np.asarray(np.clip(rounded, int(bounds.min), int(bounds.max)).astype(dtype))


def _quantized_operator(
    name: str,
    summary: str,
    count: int,
    compute: Callable[..., np.ndarray],
    op: str,
    **defaults: float | None,
) -> Operator:
    """Return an operator on ``count`` quantized numbers.

    ``op`` is the operator of ONNX that computes it on floats, and ``compute`` its NumPy function.
    The inputs are (number, scale, zero point) of each operand, then scale and zero point of the
    result; absent zero points at the end may be left out.
    """

    def infer(inputs: Values, attributes: Attributes) -> Sequence[Result]:
        """Return the type of the first operand; no shape if a second operand has another."""
        x, shape = first(inputs), first(inputs).shape
        second = inputs[3] if count == 2 and len(inputs) > 3 else None
        if count == 2 and (second is None or second.shape is None or second.shape != shape):
            shape = None
        return (Result(x.dtype, shape),)

    def reference(inputs: Arguments, attributes: Attributes) -> Computed:
        """Return the quantized result of ``compute`` on floats."""
        padded = filled(inputs, 3 * count + 2)
        reals = [dequantized(*padded[3 * i : 3 * i + 3]) for i in range(count)]
        real = compute(*reals, **attributes)
        scale, zero = padded[3 * count :][:2]
        assert padded[0] is not None
        return (requantized(real, scale, zero, padded[0].dtype),)

    def body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
        """Build DequantizeLinear, ``op``, QuantizeLinear."""
        padded = filled(inputs, 3 * count + 2)
        reals = (
            b.op("DequantizeLinear", *present(padded[3 * i : 3 * i + 3])) for i in range(count)
        )
        options: dict[str, Any] = {key: attributes[key] for key in defaults}
        real = b.op(op, *reals, **options)
        return (b.op("QuantizeLinear", real, *present(padded[3 * count :][:2])),)

    return operator(
        name,
        summary,
        inputs=(*X, *Y) if count == 1 else (*A, *B, *C),
        outputs=("Y" if count == 1 else "C",),
        attributes=floats(**defaults),
        infer=infer,
        reference=reference,
        body=body,
    )


def _leaky(x: np.ndarray, alpha: float) -> np.ndarray:
    """Return ``alpha * x`` if x is negative, else x."""
    return np.where(x < 0, np.float32(alpha) * x, x)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    """Return the logistic function."""
    return np.asarray(1 / (1 + np.exp(-x)))


OPERATORS = (
    _quantized_operator("QLinearAdd", "a sum of quantized numbers", 2, np.add, "Add"),
    _quantized_operator("QLinearMul", "a product of quantized numbers", 2, np.multiply, "Mul"),
    _quantized_operator("QLinearSigmoid", "Sigmoid of quantized numbers", 1, _sigmoid, "Sigmoid"),
    _quantized_operator(
        "QLinearLeakyRelu", "LeakyRelu of quantized numbers", 1, _leaky, "LeakyRelu", alpha=0.01
    ),
)
