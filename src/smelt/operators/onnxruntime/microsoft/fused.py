"""``FusedConv`` and ``FusedGemm``: the ONNX operator, then a named activation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.same_shape import Dim
from smelt.operators.declare import Arguments, Attribute, Attributes, Computed, Result, int_of
from smelt.operators.inputs import filled, first, input_at, present
from smelt.operators.onnxruntime.microsoft.declared import Values, floats, ints, operator
from smelt.operators.onnxruntime.microsoft.products import infer_product
from smelt.operators.onnxruntime.microsoft.windows import ATTRIBUTES, DILATIONS, KERNEL, windows_of

_FLOATS, _STRING = ir.AttributeType.FLOATS, ir.AttributeType.STRING
_NAMED = (Attribute("activation", _STRING),)

PARAMETERS: Mapping[str, Mapping[str, float]] = {
    "": {},
    "Relu": {},
    "Tanh": {},
    "Sigmoid": {},
    "LeakyRelu": {"alpha": 0.01},
    "Clip": {"min": float(np.finfo(np.float32).min), "max": float(np.finfo(np.float32).max)},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
}
"""Activations, and their parameters in the order of the attribute, with defaults."""

COMPUTED: Mapping[str, Callable[..., np.ndarray]] = {
    "": lambda x: x,
    "Relu": lambda x: np.maximum(x, 0),
    "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "LeakyRelu": lambda x, alpha: np.where(x < 0, alpha * x, x),
    "Clip": lambda x, **ends: np.clip(x, ends["min"], ends["max"]),
    "HardSigmoid": lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
}


def _parameters(attributes: Attributes) -> tuple[str, dict[str, float]] | None:
    """Return the activation and its parameters; None if it is not in the table."""
    name = str(attributes["activation"] or "")
    if name not in PARAMETERS:
        return None
    listed = attributes.get("activation_params")
    single = (attributes.get(f"activation_{key}") for key in ("alpha", "beta", "gamma"))
    values = [*listed] if isinstance(listed, tuple | list) else [*single]
    parameters = dict(PARAMETERS[name])
    for parameter, value in zip(parameters, values, strict=False):
        if isinstance(value, int | float):
            parameters[parameter] = float(value)
    return name, parameters


def _activated(x: np.ndarray, attributes: Attributes) -> np.ndarray:
    """Return the activation of ``x``; raises ValueError if it is not in the table."""
    activation = _parameters(attributes)
    if activation is None:
        raise ValueError(f"smelt does not compute the activation {attributes['activation']!r}")
    return np.asarray(COMPUTED[activation[0]](x, **activation[1]))


def _activation(b: Builder, x: ir.Value, attributes: Attributes) -> ir.Value:
    """Build the activation of ``x``."""
    activation = _parameters(attributes)
    assert activation is not None
    name = activation[0]
    parameters: dict[str, Any] = {**activation[1]}
    if name == "Clip":
        return b.op("Clip", x, *(b.const_like(parameters[end], x) for end in ("min", "max")))
    return b.op(name, x, **parameters) if name else x


def _infer_conv(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the type of a convolution: batch, filters, and the windows along each axis."""
    x, w = first(inputs), input_at(inputs, 1)
    if x.shape is None or w is None or w.shape is None:
        return (Result(x.dtype, None),)
    kernel = [dim for dim in w.shape.dims[2:] if isinstance(dim, int)]
    if len(kernel) < len(w.shape) - 2:
        return (Result(x.dtype, None),)
    spatial: list[Dim] = windows_of(attributes, kernel).result(x.shape.dims[2:])
    return (Result(x.dtype, ir.Shape([x.shape[0], w.shape[0], *spatial])),)


def _conv(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the activation of the convolution plus bias and addend.

    A window of the image and a filter are multiplied over input channels and kernel positions;
    ``tensordot`` puts the filters last, from where they move to axis 1.
    """
    x, w = present(inputs[:2])
    bias, addend = filled(inputs[2:], 2)
    views = windows_of(attributes, w.shape[2:]).views(x, 0)
    groups, kernel_axes = int_of(attributes, "group"), tuple(range(-(w.ndim - 2), 0))
    parts = zip(np.split(views, groups, 1), np.split(w, groups), strict=True)
    summed_axes = ((1, *kernel_axes), (1, *range(2, w.ndim)))
    total = np.concatenate(
        [np.tensordot(part, filters, summed_axes) for part, filters in parts], -1
    )
    total = np.moveaxis(total if bias is None else total + bias, -1, 1)
    total = total if addend is None else total + addend
    return (_activated(total, attributes).astype(x.dtype),)


def _conv_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...] | None:
    """Build Conv, the sum with the addend, and the activation; None for an unknown activation."""
    if _parameters(attributes) is None:
        return None
    conv_attributes: dict[str, Any] = {k: v for k, v in attributes.items() if "activation" not in k}
    total = b.op("Conv", *(input_at(inputs, index) for index in range(3)), **conv_attributes)
    addend = input_at(inputs, 3)
    total = total if addend is None else b.op("Add", total, addend)
    return (_activation(b, total, attributes),)


def _infer_gemm(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the type of the product."""
    return infer_product(inputs[:2], {**attributes, "transBatchA": 0, "transBatchB": 0})


def _gemm(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the activation of the product plus addend."""
    a, b = present(inputs[:2])
    c = input_at(inputs, 2)
    lhs, rhs = (a.T if attributes["transA"] else a), (b.T if attributes["transB"] else b)
    alpha, beta = attributes["alpha"], attributes["beta"]
    assert isinstance(alpha, int | float)
    assert isinstance(beta, int | float)
    total = np.asarray(alpha * (lhs @ rhs))
    total = total if c is None else total + beta * c
    return (_activated(total, attributes).astype(a.dtype),)


def _gemm_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...] | None:
    """Build Gemm and the activation; None for an unknown activation."""
    if _parameters(attributes) is None:
        return None
    gemm_attributes: dict[str, Any] = {
        name: attributes[name] for name in ("alpha", "beta", "transA", "transB")
    }
    total = b.op("Gemm", *(input_at(inputs, index) for index in range(3)), **gemm_attributes)
    return (_activation(b, total, attributes),)


OPERATORS = (
    operator(
        "FusedConv",
        "Conv, a sum with what has its shape, and an activation",
        inputs=("X", "W", "B?", "Z?"),
        outputs=("Y",),
        attributes=(
            *ATTRIBUTES,
            DILATIONS,
            Attribute(KERNEL.name, KERNEL.type),
            *ints(group=1),
            *_NAMED,
            Attribute("activation_params", _FLOATS),
        ),
        least_ranks={"X": 3, "W": 3},
        infer=_infer_conv,
        reference=_conv,
        body=_conv_body,
    ),
    operator(
        "FusedGemm",
        "Gemm and an activation",
        inputs=("A", "B", "C?"),
        outputs=("Y",),
        attributes=(
            *floats(alpha=1.0, beta=1.0),
            *ints(transA=0, transB=0),
            *_NAMED,
            *floats(activation_alpha=None, activation_beta=None, activation_gamma=None),
        ),
        infer=_infer_gemm,
        reference=_gemm,
        body=_gemm_body,
    ),
)
