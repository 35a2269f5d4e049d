"""Activations: formulas, or NumPy functions where those are more accurate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from smelt.operators.elementwise.row import Rounding, Row
from smelt.operators.numeric import Arithmetic, Number


def sigmoid(x: Any) -> Any:
    """Return the logistic function of an array."""
    from scipy.special import expit

    return np.asarray(expit(x))


def celu(m: Arithmetic, x: Number, *, alpha: float) -> Number:
    """Return ``x`` if positive, else ``alpha * expm1(x / alpha)``.

    ONNX adds max(0, x) and min(0, alpha * expm1(x / alpha)), which for alpha 0 is NaN at x >= 0.
    """
    if alpha == 0 and math.copysign(1.0, alpha) > 0:
        return alpha * m.expm1(x / alpha) + 0.0
    return m.where(x > 0.0, x, alpha * m.expm1(x / alpha))


def elu(m: Arithmetic, x: Number, *, alpha: float) -> Number:
    """Return ``x`` if positive, else ``alpha * expm1(x)``."""
    return m.where(x > 0.0, x, alpha * m.expm1(x))


def gelu(m: Arithmetic, x: Number, *, approximate: str) -> Number:
    """Return ``x`` times the normal distribution function, exact or by tanh."""
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1.0 + m.tanh(inner))
    return 0.5 * x * (1.0 + m.erf(x * math.sqrt(0.5)))


def hard_sigmoid(m: Arithmetic, x: Number, *, alpha: float, beta: float) -> Number:
    """Return ``alpha * x + beta``, clamped to [0, 1]."""
    return m.maximum(m.minimum(alpha * x + beta, 1.0), 0.0)


def hard_swish(m: Arithmetic, x: Number) -> Number:
    """Return ``x`` times its hard sigmoid."""
    return x * hard_sigmoid(m, x, alpha=1 / 6, beta=0.5)


def leaky_relu(m: Arithmetic, x: Number, *, alpha: float) -> Number:
    """Return ``alpha * x`` if x is negative, else ``x``."""
    return m.where(x < 0.0, alpha * x, x)


def mish(m: Arithmetic, x: Number) -> Number:
    """Return ``x * tanh(softplus(x))``."""
    return x * m.tanh(softplus(m, x))


def prelu(m: Arithmetic, x: Number, slope: Number) -> Number:
    """Return ``slope * x`` if x is negative, else ``x``."""
    return m.where(x < 0.0, slope * x, x)


def selu(m: Arithmetic, x: Number, *, alpha: float, gamma: float) -> Number:
    """Return ``gamma * x`` if x is positive, else ``gamma * alpha * expm1(x)``."""
    return m.where(x > 0.0, gamma * x, gamma * alpha * m.expm1(x))


def shrink(m: Arithmetic, x: Number, *, bias: float, lambd: float) -> Number:
    """Return ``x`` moved towards 0 by ``bias``, and 0 within ``lambd`` of 0."""
    return m.where(x < -lambd, x + bias, m.where(x > lambd, x - bias, 0.0))


def softplus(m: Arithmetic, x: Number) -> Number:
    """Return ``log(1 + exp(x))``, also where exp(x) overflows."""
    return m.maximum(x, 0.0) + m.log1p(m.exp(-m.abs(x)))


def softsign(m: Arithmetic, x: Number) -> Number:
    """Return ``x / (1 + |x|)``."""
    return x / (1.0 + m.abs(x))


def swish(m: Arithmetic, x: Number, *, alpha: float) -> Number:
    """Return ``x * sigmoid(alpha * x)``."""
    return x * m.sigmoid(alpha * x)


def thresholded_relu(m: Arithmetic, x: Number, *, alpha: float) -> Number:
    """Return ``x`` if greater than ``alpha``, else 0."""
    return m.where(x > alpha, x, 0.0)


PRODUCT = Rounding.PRODUCT

ROWS = (
    Row("Celu", formula=celu),
    Row("Elu", formula=elu),
    Row("Gelu", formula=gelu),
    Row("HardSigmoid", formula=hard_sigmoid),
    Row("HardSwish", formula=hard_swish),
    Row("LeakyRelu", formula=leaky_relu, rounding=PRODUCT),
    Row("Mish", formula=mish),
    Row(
        "PRelu",
        operands=2,
        formula=prelu,
        integers="{0} < 0 ? (@t)((@m){1} * (@m){0}) : {0}",
        unsigned="{0}",
        rounding=PRODUCT,
    ),
    Row(
        "Relu",
        floats="{0} < 0 ? 0 : {0}",
        integers="{0} < 0 ? 0 : {0}",
        unsigned="{0}",
        rounding=Rounding.EXACT,
    ),
    Row("Selu", formula=selu),
    Row("Shrink", formula=shrink, rounding=PRODUCT),
    Row("Sigmoid", array=sigmoid, floats="1 / (1 + exp@f(-{0}))", primitive="logistic"),
    Row("Softplus", formula=softplus),
    Row("Softsign", formula=softsign),
    Row("Swish", formula=swish),
    Row("ThresholdedRelu", formula=thresholded_relu, rounding=Rounding.EXACT),
)
