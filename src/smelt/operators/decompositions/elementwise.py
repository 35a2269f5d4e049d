"""Decompositions of elementwise operators; results differ from the operator's by a few ulp."""

from __future__ import annotations

import math
from collections.abc import Mapping

import onnx_ir as ir

from smelt.operators.decompositions.row import Body, Call, Row, of_floats

ERF_NUMERATOR = (
    1.1283791065216064, 0.1935422569513321, 0.05310136452317238, 0.003883219789713621,
    0.0002845624985639006, 1.9867966329911724e-06,
)  # fmt: skip
ERF_DENOMINATOR = (
    1.0, 0.5048549175262451, 0.11534883081912994, 0.015207003802061081, 0.0011855398770421743,
    3.7420144508359954e-05,
)  # fmt: skip
"""``erf(x) / x`` for x up to 4 as a quotient of polynomials in x * x, fitted to scipy's erf; the
error in single precision is at most 3.6e-7."""


def _chain(op_type: str) -> Body:
    """Return the body that applies ``op_type`` to the operands one after another."""

    def body(c: Call) -> ir.Value | None:
        """Build the chain; None for a single operand."""
        first, *others = c.inputs
        if not others:
            return None
        for other in others:
            first = c.op(op_type, first, other)
        return first

    return body


def _mean(c: Call) -> ir.Value | None:
    """Return the sum of the operands divided by their number."""
    total = _chain("Add")(c)
    return c.op("Div", total, float(len(c.inputs))) if isinstance(total, ir.Value) else None


def _clamped(c: Call, x: ir.Value, alpha: float, beta: float) -> ir.Value:
    """Return ``alpha * x + beta``, clamped to [0, 1]."""
    return c.op("Clip", c.op("Add", c.op("Mul", x, alpha), beta), 0.0, 1.0)


def _hard_sigmoid(c: Call) -> ir.Value:
    """Return HardSigmoid: ``alpha * x + beta``, clamped to [0, 1]."""
    return _clamped(c, c[0], c.attributes["alpha"], c.attributes["beta"])


def _negative_part(c: Call, x: ir.Value) -> ir.Value:
    """Return ``-min(x, 0)``."""
    return c.op("Relu", c.op("Mul", x, -1.0))


def _expm1_below(c: Call, scale: float) -> ir.Value:
    """Return ``1 - exp(min(x, 0) / scale)``."""
    negative_part = _negative_part(c, c[0])
    negative_part = negative_part if scale == 1 else c.op("Div", negative_part, scale)
    return c.op("Sub", 1.0, c.op("Exp", c.op("Mul", negative_part, -1.0)))


def _elu(c: Call) -> ir.Value:
    """Return ``max(x, 0) - alpha * (1 - exp(min(x, 0)))``."""
    return c.op("Sub", c.op("Relu", c[0]), c.op("Mul", _expm1_below(c, 1.0), c.attributes["alpha"]))


def _celu(c: Call) -> ir.Value | None:
    """Return ``max(x, 0) - alpha * (1 - exp(min(x, 0) / alpha))``; None for alpha up to 0."""
    alpha = c.attributes["alpha"]
    if alpha <= 0:
        return None
    return c.op("Sub", c.op("Relu", c[0]), c.op("Mul", _expm1_below(c, alpha), alpha))


def _selu(c: Call) -> ir.Value:
    """Return ``gamma * max(x, 0) - alpha * gamma * (1 - exp(min(x, 0)))``."""
    alpha, gamma = c.attributes["alpha"], c.attributes["gamma"]
    above = c.op("Mul", c.op("Relu", c[0]), gamma)
    return c.op("Sub", above, c.op("Mul", _expm1_below(c, 1.0), alpha * gamma))


def _leaky_relu(c: Call, slope: ir.Value | float) -> ir.Value:
    """Return ``max(x, 0) + slope * min(x, 0)``."""
    return c.op("Sub", c.op("Relu", c[0]), c.op("Mul", _negative_part(c, c[0]), slope))


def _power_by_products(c: Call) -> ir.Value | None:
    """Return a power of floats with the exponent 2, 3 or 4 as products; None for another one."""
    constant = c.constants.get(c[1])
    if not c.is_float() or constant is None or constant.ndim or constant not in (2, 3, 4):
        return None
    exponent = float(constant)
    square = c.op("Mul", c[0], c[0])
    if exponent == 2:
        return square
    return c.op("Mul", square, square if exponent == 4 else c[0])


def _mish(c: Call) -> ir.Value:
    """Return ``x * tanh(softplus(x))``."""
    return c.op("Mul", c[0], c.op("Tanh", c.op("Softplus", c[0])))


def _swish(c: Call) -> ir.Value:
    """Return ``x * sigmoid(alpha * x)``."""
    return c.op("Mul", c[0], c.op("Sigmoid", c.op("Mul", c[0], c.attributes["alpha"])))


def _softplus(c: Call) -> ir.Value:
    """Return ``log(1 + exp(x))`` without an overflow."""
    decay = c.op("Exp", c.op("Mul", c.op("Abs", c[0]), -1.0))
    return c.op("Add", c.op("Relu", c[0]), c.op("Log", c.op("Add", decay, 1.0)))


def _gelu(c: Call) -> ir.Value:
    """Return ``x`` times the normal distribution function, by Erf or by Tanh."""
    x = c[0]
    if c.attributes["approximate"] == "tanh":
        cube = c.op("Mul", c.op("Mul", x, x), x)
        inner = c.op("Add", x, c.op("Mul", cube, 0.044715))
        curve = c.op("Tanh", c.op("Mul", inner, math.sqrt(2 / math.pi)))
    else:
        curve = c.op("Erf", c.op("Mul", x, math.sqrt(0.5)))
    return c.op("Mul", c.op("Mul", x, 0.5), c.op("Add", curve, 1.0))


def _polynomial(c: Call, x: ir.Value, coefficients: tuple[float, ...]) -> ir.Value:
    """Return the sum of ``coefficients[k] * x ** k`` by Horner's rule."""
    total = c.op("Mul", x, coefficients[-1])
    for number in coefficients[-2:0:-1]:
        total = c.op("Mul", c.op("Add", total, number), x)
    return c.op("Add", total, coefficients[0])


def _erf(c: Call) -> ir.Value | None:
    """Return Erf as ``x`` times a quotient of two polynomials in ``x * x``; None for doubles, for
    which that is too coarse.

    ``x`` is clamped to 4.3, where the quotient exceeds 1, and the result to 1. So large numbers
    give exactly 1, which Gelu needs: it multiplies ``x`` by ``1 - erf``.
    """
    if c[0].dtype == ir.DataType.DOUBLE:
        return None
    x = c.op("Clip", c[0], -4.3, 4.3)
    square = c.op("Mul", x, x)
    above = c.op("Mul", x, _polynomial(c, square, ERF_NUMERATOR))
    quotient = c.op("Div", above, _polynomial(c, square, ERF_DENOMINATOR))
    return c.op("Clip", quotient, -1.0, 1.0)


ROWS: Mapping[str, tuple[Row, ...]] = {
    "Abs": (Row("Max Mul", of_floats(lambda c: c.op("Max", c[0], c.op("Mul", c[0], -1.0)))),),
    "Celu": (Row("Relu Mul Div Exp Sub", _celu),),
    "Elu": (Row("Relu Mul Exp Sub", _elu),),
    "Erf": (Row("Clip Mul Add Div", _erf),),
    "Gelu": (Row("Mul Add Erf Tanh", _gelu),),
    "HardSigmoid": (Row("Mul Add Clip", _hard_sigmoid),),
    "HardSwish": (Row("Mul Add Clip", lambda c: c.op("Mul", c[0], _clamped(c, c[0], 1 / 6, 0.5))),),
    "LeakyRelu": (Row("Relu Mul Sub", lambda c: _leaky_relu(c, c.attributes["alpha"])),),
    "Mean": (Row("Add Div", _mean),),
    "Mish": (Row("Mul Tanh Softplus", _mish),),
    "Neg": (Row("Mul", of_floats(lambda c: c.op("Mul", c[0], -1.0))),),
    "PRelu": (Row("Relu Mul Sub", of_floats(lambda c: _leaky_relu(c, c[1]))),),
    "Pow": (Row("Mul", _power_by_products),),
    "Reciprocal": (Row("Div", lambda c: c.op("Div", 1.0, c[0])),),
    "Relu": (Row("Clip", of_floats(lambda c: c.op("Clip", c[0], 0.0))),),
    "Selu": (Row("Relu Mul Exp Sub", _selu),),
    "Softplus": (Row("Exp Mul Abs Relu Log Add", _softplus),),
    "Softsign": (
        Row("Div Add Abs", lambda c: c.op("Div", c[0], c.op("Add", c.op("Abs", c[0]), 1.0))),
    ),
    "Sum": (Row("Add", _chain("Add")),),
    "Swish": (Row("Mul Sigmoid", _swish),),
}
