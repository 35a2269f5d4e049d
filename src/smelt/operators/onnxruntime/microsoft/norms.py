"""``SkipLayerNormalization`` and its form without a mean: a residual sum and its norm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.operators.declare import Arguments, Attributes, Computed, Result
from smelt.operators.inputs import filled, first, input_at
from smelt.operators.onnxruntime.microsoft.declared import Values, floats, operator

F32 = ir.DataType.FLOAT


def infer(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the input's type for norm and sum; statistics are one float32 per row."""
    x = first(inputs)
    others = {value.dtype for value in inputs if value is not None} - {x.dtype, None}
    if others and x.dtype is not None:
        raise ValueError(
            f"inputs are of types {', '.join(t.name for t in (x.dtype, *others) if t)}"
        )
    rows = None if x.shape is None else ir.Shape([*x.shape.dims[:-1], 1])
    return Result(x.dtype, x.shape), Result(F32, rows), Result(F32, rows), Result(x.dtype, x.shape)


def _reference(inputs: Arguments, attributes: Attributes, centred: bool) -> Computed:
    """Return ``(norm, mean, 1 / deviation, residual sum)``; ``centred`` subtracts the mean."""
    x, skip, gamma, fourth, fifth = filled(inputs, 5)
    beta, bias = (fourth, fifth) if centred else (None, fourth)
    assert x is not None
    assert skip is not None
    assert gamma is not None
    wide = np.promote_types(x.dtype, np.float32)
    total = x.astype(wide) + skip.astype(wide)
    total = total if bias is None else total + bias.astype(wide)
    mean = total.mean(-1, keepdims=True) if centred else np.zeros_like(total[..., :1])
    spread = ((total - mean) ** 2).mean(-1, keepdims=True)
    scale = 1 / np.sqrt(spread + attributes["epsilon"])
    result = (total - mean) * scale * gamma
    result = result if beta is None else result + beta
    statistics = (mean.astype(np.float32), scale.astype(np.float32))
    return result.astype(x.dtype), *statistics, total.astype(x.dtype)


def _body(
    b: Builder, inputs: Values, attributes: Attributes, centred: bool
) -> tuple[ir.Value, ...]:
    """Build the sum and its norm from its moments, because all four results may be read."""
    x, skip, gamma, beta = (input_at(inputs, index) for index in range(4))
    bias = input_at(inputs, 4) if centred else beta
    epsilon = attributes["epsilon"]
    assert isinstance(epsilon, int | float)
    dtype = first(inputs).dtype
    is_half = dtype in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
    terms = [term for term in (x, skip, bias) if term is not None]
    if is_half:
        terms = [b.op("Cast", term, to=int(F32)) for term in terms]
    sum_of_terms = b.op("Add", *terms[:2])
    sum_of_terms = b.op("Add", sum_of_terms, terms[2]) if len(terms) > 2 else sum_of_terms
    total = (
        b.op("Cast", sum_of_terms, to=int(dtype)) if is_half and dtype is not None else sum_of_terms
    )
    mean = b.mean(sum_of_terms, [-1])
    centred_sum = b.op("Sub", sum_of_terms, mean) if centred else sum_of_terms
    variance = b.mean(b.op("Mul", centred_sum, centred_sum), [-1])
    deviation = b.op("Sqrt", b.op("Add", variance, b.const_like(epsilon, sum_of_terms)))
    scale = b.op("Div", b.const_like(1, sum_of_terms), deviation)
    normed = b.op("Mul", centred_sum, scale)
    if is_half and dtype is not None:
        normed = b.op("Cast", normed, to=int(dtype))
    result = b.op("Mul", normed, gamma)
    if centred and beta is not None:
        result = b.op("Add", result, beta)
    if not centred:
        mean = b.op("Mul", mean, b.const_like(0, sum_of_terms))
    statistics = (b.op("Cast", value, to=int(F32)) for value in (mean, scale))
    return result, *statistics, total


def layer_reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return ``(layer norm, mean, 1 / standard deviation, residual sum)``."""
    return _reference(inputs, attributes, centred=True)


def layer_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build a layer normalization with its mean, factor and sum."""
    return _body(b, inputs, attributes, centred=True)


def rms_reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return ``(root-mean-square norm, zeros, 1 / root mean square, residual sum)``."""
    return _reference(inputs, attributes, centred=False)


def rms_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build root-mean-square norm, zeros, factor and sum."""
    return _body(b, inputs, attributes, centred=False)


RESULTS = ("output", "mean?", "inv_std_var?", "input_skip_bias_sum?")

SKIP_LAYER_NORM = operator(
    "SkipLayerNormalization",
    "the layer norm of a residual sum",
    inputs=("input", "skip", "gamma", "beta?", "bias?"),
    outputs=RESULTS,
    attributes=floats(epsilon=1e-12),
    infer=infer,
    reference=layer_reference,
    body=layer_body,
    any_rank=True,
)
SKIP_RMS_NORM = operator(
    "SkipSimplifiedLayerNormalization",
    "the root-mean-square norm of a residual sum",
    inputs=("input", "skip", "gamma", "bias?"),
    outputs=RESULTS,
    attributes=floats(epsilon=1e-12),
    infer=infer,
    reference=rms_reference,
    body=rms_body,
    any_rank=True,
)
OPERATORS = (SKIP_LAYER_NORM, SKIP_RMS_NORM)
