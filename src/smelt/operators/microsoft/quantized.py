"""``QLinearAdd`` and its like: operators between quantized numbers, of ONNX Runtime's quantizer.

Each is spelled as DequantizeLinear, the operator on floats, QuantizeLinear, which targets with
integer kernels compute in integers. Its kernels round once, so that a result is within one step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.operators.declare import Attributes, Computed, Given, Operator, Result
from smelt.operators.inputs import first, present
from smelt.operators.microsoft.declared import Values, floats, operator

X = ("X", "X_scale", "X_zero_point?")
A, B = (tuple(f"{name}{rest}" for rest in ("", "_scale", "_zero_point?")) for name in "AB")
Y, C = (tuple(f"{name}{rest}" for rest in ("_scale", "_zero_point?")) for name in "YC")


def dequantized(
    x: np.ndarray | None, scale: np.ndarray | None, zero: np.ndarray | None
) -> np.ndarray:
    """Return the floats that ``x`` stands for. Only ``zero`` may be absent."""
    assert x is not None
    assert scale is not None
    centred = x.astype(np.int32) - (0 if zero is None else zero.astype(np.int32))
    return np.asarray(centred.astype(np.float32) * scale)


def requantized(
    real: np.ndarray, scale: np.ndarray | None, zero: np.ndarray | None, dtype: np.dtype
) -> np.ndarray:
    """Return ``real`` in steps of ``scale``, rounded to even, moved by ``zero``, clipped to
    ``dtype``."""
    assert scale is not None
    bounds = ml_dtypes.iinfo(dtype)
    whole = np.rint(real / scale) + (0 if zero is None else zero.astype(np.int32))
    return np.asarray(np.clip(whole, int(bounds.min), int(bounds.max)).astype(dtype))


def _declared(
    name: str,
    summary: str,
    count: int,
    compute: Callable[..., np.ndarray],
    op: str,
    **defaults: float | None,
) -> Operator:
    """Return an operator on ``count`` quantized numbers, which ``op`` of ONNX computes on
    floats."""

    def infer(inputs: Values, attributes: Attributes) -> Sequence[Result]:
        x, shape = first(inputs), first(inputs).shape
        second = inputs[3] if count == 2 and len(inputs) > 3 else None
        if count == 2 and (second is None or second.shape is None or second.shape != shape):
            shape = None
        return (Result(x.dtype, shape),)

    def reference(inputs: Given, attributes: Attributes) -> Computed:
        given = [*inputs, *(None,) * (3 * count + 2 - len(inputs))]
        reals = [dequantized(*given[3 * i : 3 * i + 3]) for i in range(count)]
        real = compute(*reals, **attributes)
        scale, zero = given[3 * count :][:2]
        assert given[0] is not None
        return (requantized(real, scale, zero, given[0].dtype),)

    def body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
        given = [*inputs, *(None,) * (3 * count + 2 - len(inputs))]
        reals = (b.op("DequantizeLinear", *present(given[3 * i : 3 * i + 3])) for i in range(count))
        said: dict[str, Any] = {key: attributes[key] for key in defaults}
        real = b.op(op, *reals, **said)
        return (b.op("QuantizeLinear", real, *present(given[3 * count :][:2])),)

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
    return np.where(x < 0, np.float32(alpha) * x, x)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


OPERATORS = (
    _declared("QLinearAdd", "a sum of quantized numbers", 2, np.add, "Add"),
    _declared("QLinearMul", "a product of quantized numbers", 2, np.multiply, "Mul"),
    _declared("QLinearSigmoid", "Sigmoid of quantized numbers", 1, _sigmoid, "Sigmoid"),
    _declared(
        "QLinearLeakyRelu", "LeakyRelu of quantized numbers", 1, _leaky, "LeakyRelu", alpha=0.01
    ),
)
