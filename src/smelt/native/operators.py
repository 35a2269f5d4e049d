"""The engine's own operator ``smelt.c.ConvRelu``, a convolution followed by Relu.

It is one loop nest in C, so the convolution's result is never stored. Its function body is Conv and
Relu, so a model that holds it loads in any runtime.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.same_shape import Dim
from smelt.operators.declare import Attribute, Attributes, Operator, Result, int_of, ints_of
from smelt.operators.inputs import present

DOMAIN = "smelt.c"
CONV = ("kernel_shape", "strides", "dilations", "pads")
"""Attributes with one number per spatial dim (``pads``: all begins, then all ends)."""


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
    """Return the element type of the image and the result shape ``[N, filters, spatial...]``."""
    image, weights = inputs[0], inputs[1]
    if image is None or weights is None:
        raise ValueError("ConvRelu takes an image and weights")
    _group(attributes)
    if image.shape is None or weights.shape is None:
        return (Result(image.dtype, None),)
    kernel, strides, dilations, pads = (ints_of(attributes, name) for name in CONV)
    rank = len(kernel)
    if len(image.shape) != rank + 2 or len(weights.shape) != rank + 2 or len(pads) != 2 * rank:
        raise ValueError(f"shapes {image.shape} and {weights.shape} do not fit {rank} spatial dims")
    sizes: list[Dim] = [image.shape[0], weights.shape[0]]
    for dim in range(rank):
        # The last window begins at index size + pads - extent of the padded image.
        extent = dilations[dim] * (kernel[dim] - 1) + 1
        last = image.shape[2 + dim] + (pads[dim] + pads[rank + dim] - extent)
        sizes.append(last // strides[dim] + 1)
    return (Result(image.dtype, ir.Shape(sizes)),)


def reference(
    inputs: Sequence[np.ndarray | None], attributes: Attributes
) -> tuple[np.ndarray, ...]:
    """Return the Relu of a convolution: sliding windows of each group times its filters."""
    x, w = present(inputs[:2])
    bias = inputs[2] if len(inputs) > 2 else None
    kernel, strides, dilations, pads = (ints_of(attributes, name) for name in CONV)
    rank, group = len(kernel), _group(attributes)
    padded = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)])
    extent = [dilation * (size - 1) + 1 for dilation, size in zip(dilations, kernel, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, extent, tuple(range(2, rank + 2)))
    windows = windows[(slice(None), slice(None), *(slice(None, None, s) for s in strides))]
    for axis, dilation in enumerate(dilations, -rank):
        windows = np.take(windows, range(0, windows.shape[axis], dilation), axis)
    parts = []
    for image, filters in zip(np.split(windows, group, 1), np.split(w, group, 0), strict=True):
        axes = (1, *range(image.ndim - rank, image.ndim))
        product = np.tensordot(image, filters, (axes, tuple(range(1, rank + 2))))
        parts.append(np.moveaxis(product, -1, 1))
    result = np.concatenate(parts, axis=1)
    if bias is not None:
        result = result + bias.reshape(-1, *(1,) * rank)
    return (np.maximum(result, 0).astype(x.dtype),)


def body(
    b: Builder, inputs: Sequence[ir.Value | None], attributes: Attributes
) -> tuple[ir.Value, ...]:
    """Build the Conv and its Relu, for runtimes without the engine's kernel."""
    kernel, strides, dilations, pads = (ints_of(attributes, name) for name in CONV)
    conv = b.op(
        "Conv",
        *inputs,
        kernel_shape=kernel,
        strides=strides,
        dilations=dilations,
        pads=pads,
        group=_group(attributes),
    )
    return (b.op("Relu", conv),)


def _group(attributes: Attributes) -> int:
    """Return the attribute ``group``; raises ValueError if it is below 1."""
    value = int_of(attributes, "group")
    if value < 1:
        raise ValueError("group is below 1")
    return value


CONV_RELU = Operator(
    domain=DOMAIN,
    name="ConvRelu",
    summary="Relu of a convolution, as one loop nest",
    inputs=("x", "w", "bias?"),
    outputs=("y",),
    attributes=(
        *(Attribute(name, ir.AttributeType.INTS, required=True) for name in CONV),
        Attribute("group", ir.AttributeType.INT, 1),
    ),
    infer=infer,
    reference=reference,
    body=body,
    any_rank=True,
)

OPERATORS = (CONV_RELU,)
"""Every operator of the target."""
