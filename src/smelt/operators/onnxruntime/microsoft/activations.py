"""``Gelu``, ``BiasGelu``, ``FastGelu`` and ``QuickGelu``: activations, some with a bias."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.operators.declare import Arguments, Attributes, Computed
from smelt.operators.elementwise.functions import erf
from smelt.operators.inputs import filled, first, input_at
from smelt.operators.onnxruntime.microsoft.declared import Values, floats, like_first, operator


def _sum(inputs: Arguments) -> np.ndarray:
    """Return the input plus the bias if present, to which the activation is applied."""
    x, bias = filled(inputs, 2)
    assert x is not None
    return x if bias is None else x + bias


def _exact_gelu(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return exact Gelu of the sum."""
    x = _sum(inputs)
    return ((0.5 * x * (1 + erf(x * math.sqrt(0.5)))).astype(x.dtype),)


def _by_tanh(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return Gelu by tanh of the sum."""
    x = _sum(inputs)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return ((0.5 * x * (1 + np.tanh(inner))).astype(x.dtype),)


def _by_sigmoid(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return x times the sigmoid of alpha x."""
    x, alpha = _sum(inputs), attributes["alpha"]
    return ((x / (1 + np.exp(-np.asarray(alpha, x.dtype) * x))).astype(x.dtype),)


def _biased(b: Builder, inputs: Values) -> ir.Value:
    """Build the sum of the input and the bias, if there is one."""
    x, bias = first(inputs), input_at(inputs, 1)
    return x if bias is None else b.op("Add", x, bias)


def _exact_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build Gelu of the sum; before opset 20, from Erf."""
    x = _biased(b, inputs)
    if b.model.opset_imports.get("", 1) >= 20:
        return (b.op("Gelu", x),)
    tail = b.op("Erf", b.op("Mul", x, b.const_like(math.sqrt(0.5), x)))
    half = b.op("Mul", x, b.const_like(0.5, x))
    return (b.op("Mul", half, b.op("Add", tail, b.const_like(1, x))),)


def _tanh_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build Gelu by tanh of the sum; before opset 20, from Tanh."""
    x = _biased(b, inputs)
    if b.model.opset_imports.get("", 1) >= 20:
        return (b.op("Gelu", x, approximate="tanh"),)
    cube = b.op("Mul", b.op("Mul", x, x), x)
    inner = b.op("Add", x, b.op("Mul", cube, b.const_like(0.044715, x)))
    tail = b.op("Tanh", b.op("Mul", inner, b.const_like(math.sqrt(2 / math.pi), x)))
    half = b.op("Mul", x, b.const_like(0.5, x))
    return (b.op("Mul", half, b.op("Add", tail, b.const_like(1, x))),)


def _sigmoid_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build x times the sigmoid of alpha x."""
    x, alpha = first(inputs), attributes["alpha"]
    assert isinstance(alpha, int | float)
    return (b.op("Mul", x, b.op("Sigmoid", b.op("Mul", x, b.const_like(alpha, x)))),)


GELU = operator(
    "Gelu",
    "x times the normal distribution at x",
    inputs=("X",),
    outputs=("Y",),
    infer=like_first(),
    reference=_exact_gelu,
    body=_exact_body,
    any_rank=True,
)
BIAS_GELU = operator(
    "BiasGelu",
    "Gelu of a sum with a bias of one dim",
    inputs=("A", "B"),
    outputs=("C",),
    infer=like_first(),
    reference=_exact_gelu,
    body=_exact_body,
    any_rank=True,
)
FAST_GELU = operator(
    "FastGelu",
    "Gelu by tanh, of a sum with a bias if there is one",
    inputs=("X", "bias?"),
    outputs=("Y",),
    infer=like_first(),
    reference=_by_tanh,
    body=_tanh_body,
    any_rank=True,
)
QUICK_GELU = operator(
    "QuickGelu",
    "x times the sigmoid of alpha x",
    inputs=("X",),
    outputs=("Y",),
    attributes=floats(alpha=1.702),
    infer=like_first(),
    reference=_by_sigmoid,
    body=_sigmoid_body,
    any_rank=True,
)
OPERATORS = (GELU, BIAS_GELU, FAST_GELU, QUICK_GELU)
