"""Rows for elementwise operators of one operand, and for Clip and PRelu."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from smelt.mlpackage.program import Element
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.rows.arithmetic import wrapped
from smelt.targets.coreml.writer import Refused, Val

SAME = {
    "Abs": "abs",
    "Acos": "acos",
    "Asin": "asin",
    "Atan": "atan",
    "Atanh": "atanh",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "Round": "round",
    "Sigmoid": "sigmoid",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}
"""ONNX operators of one operand that MIL has with the same meaning."""

WITH_NUMBERS = {
    "Elu": ("elu", ("alpha",)),
    "HardSigmoid": ("sigmoid_hard", ("alpha", "beta")),
    "LeakyRelu": ("leaky_relu", ("alpha",)),
}
"""Operators whose attributes are numbers, with the same names in MIL."""


@writes(*SAME)
def same(c: Call) -> None:
    """Write one operation of one operand."""
    c.done(wrapped(c, c.write(SAME[c.node.op_type], x=c.x())))


@writes(*WITH_NUMBERS)
def with_numbers(c: Call) -> None:
    """Write one operation with its numbers."""
    op_type, names = WITH_NUMBERS[c.node.op_type]
    numbers: dict[str, Any] = {name: float(c.attribute(name)) for name in names}
    c.done(c.write(op_type, x=c.x(), **numbers))


@writes("Identity", "Dropout")
def identity(c: Call) -> None:
    """Return the operand itself; the mask that Dropout may return is all True."""
    training = c.array(2) if c.node.op_type == "Dropout" else None
    if c.node.op_type == "Dropout" and c.has(2) and (training is None or bool(training.any())):
        raise Refused("it drops elements at random when it trains", "export in evaluation mode")
    value = c.as_written(0)
    c.done(value)
    if len(c.node.outputs) > 1 and c.node.outputs[1].name:
        shape = c.shape(value)
        mask = c.w.op(
            "fill", Element.BOOL, value.dims, name=c.node.outputs[1].name, shape=shape, value=True
        )
        c.done(None, mask)


@writes("Relu")
def relu(c: Call) -> None:
    """Write relu, or for integers, which relu does not support, the maximum with 0."""
    x = c.x()
    c.done(c.write("relu", x=x) if x.is_float else c.write("maximum", x=x, y=0))


@writes("Neg")
def negative(c: Call) -> None:
    """Write x * -1."""
    x = c.x()
    c.done(wrapped(c, c.write("mul", x=x, y=-1.0 if x.is_float else -1)))


@writes("Reciprocal")
def reciprocal(c: Call) -> None:
    """Write 1 / x; MIL's inverse adds an epsilon to x."""
    c.done(c.write("real_div", x=1.0, y=c.x()))


@writes("Log")
def logarithm(c: Call) -> None:
    """Write log with the epsilon 0; MIL adds 1e-45 by default."""
    c.done(c.write("log", x=c.x(), epsilon=0.0))


@writes("Gelu")
def gelu(c: Call) -> None:
    """Write gelu in its exact form or by tanh."""
    mode = "TANH_APPROXIMATION" if c.attribute("approximate") == "tanh" else "EXACT"
    c.done(c.write("gelu", x=c.x(), mode=mode))


@writes("Swish")
def swish(c: Call) -> None:
    """Write silu; for a factor alpha of 1.702 gelu by sigmoid, else the product of x and a
    sigmoid."""
    x, alpha = c.x(), c.attribute("alpha")
    if alpha in (None, 1.0):
        c.done(c.write("silu", x=x))
        return
    if np.float32(alpha) == np.float32(1.702):
        c.done(c.write("gelu", x=x, mode="SIGMOID_APPROXIMATION"))
        return
    c.done(c.write("mul", x=x, y=c.op("sigmoid", c.op("mul", x, float(alpha)))))


@writes("Asinh")
def asinh(c: Call) -> None:
    """Write atanh(x / sqrt(x * x + 1)) near 0, else sign(x) * log(|x| + sqrt(x * x + 1))."""
    x = c.x()
    size = c.op("abs", x)
    root = c.op("sqrt", c.op("add", c.op("mul", x, x), 1.0))
    near = c.op("atanh", c.op("real_div", x, root))
    # x * x overflows in float16 for large x; there, asinh(x) is near sign(x) * log(2 |x|)
    large = c.op("add", _log(c, size), math.log(2.0))
    far = c.select(
        c.op("greater", size, 100.0, element=Element.BOOL),
        large,
        _log(c, c.op("add", size, root)),
        x.element,
    )
    signed = c.op("mul", c.op("sign", x), far)
    c.done(c.select(c.op("less", size, 0.5, element=Element.BOOL), near, signed, x.element))


@writes("Acosh")
def acosh(c: Call) -> None:
    """Write 2 * atanh(sqrt((x - 1) / (x + 1))) below 2, else log(x + sqrt(x * x - 1)).

    Above 100, where x * x may overflow in float16, it is log(2 * x).
    """
    x = c.x()
    below, above = c.op("sub", x, 1.0), c.op("add", x, 1.0)
    near = c.op("mul", c.op("atanh", c.op("sqrt", c.op("real_div", below, above))), 2.0)
    root = c.op("sqrt", c.op("mul", below, above))
    large = c.op("add", _log(c, x), math.log(2.0))
    far = c.select(
        c.op("greater", x, 100.0, element=Element.BOOL),
        large,
        _log(c, c.op("add", x, root)),
        x.element,
    )
    c.done(c.select(c.op("less", x, 2.0, element=Element.BOOL), near, far, x.element))


def _log(c: Call, x: Val) -> Val:
    """Return the logarithm of ``x``, without MIL's epsilon."""
    return c.w.op("log", x.element, x.dims, name=f"{x.name}_log", x=x, epsilon=0.0)


@writes("IsNaN")
def is_nan(c: Call) -> None:
    """Write x != x."""
    x = c.x()
    c.done(c.write("not_equal", x=x, y=x))


@writes("IsInf")
def is_inf(c: Call) -> None:
    """Write a comparison with infinity, of one sign or both."""
    x = c.x()
    positive, negative_too = c.attribute("detect_positive"), c.attribute("detect_negative")
    if positive and negative_too:
        c.done(c.write("equal", x=c.op("abs", x), y=_infinity(x)))
    elif positive or negative_too:
        c.done(c.write("equal", x=x, y=_infinity(x) if positive else -_infinity(x)))
    else:
        c.done(c.w.op("fill", Element.BOOL, x.dims, shape=c.shape(x), value=False))


def _infinity(x: Val) -> np.ndarray:
    """Return infinity of the type of ``x``."""
    return np.asarray(np.inf, x.element.numpy)


@writes("Clip")
def clip(c: Call) -> None:
    """Write clip for two constant finite bounds, else maximum and minimum with each bound."""
    x = c.x()
    bounds = [c.array(1), c.array(2)]
    constant = all(each is not None and np.isfinite(each).all() for each in bounds)
    if (
        x.is_float
        and constant
        and all(_fits(each, x.element) for each in bounds if each is not None)
    ):
        low, high = (float(each.reshape(())) for each in bounds if each is not None)
        c.done(c.write("clip", x=x, alpha=low, beta=high))
        return
    for index, op_type in ((1, "maximum"), (2, "minimum")):
        array = c.array(index)
        if not c.has(index) or (array is not None and not _limits(array, x.element, index)):
            continue
        x = c.op(
            op_type, x, c.x(index) if array is None else c.constant(array.reshape(()), x.element)
        )
    c.done(x)


def _fits(array: np.ndarray, element: Element) -> bool:
    """True if a bound is finite in the type ``element``, too, and does not become 0 there."""
    with np.errstate(over="ignore"):
        narrow = array.astype(element.numpy)
    return bool(np.isfinite(narrow).all()) and narrow.any() == array.any()


def _limits(array: np.ndarray, element: Element, index: int) -> bool:
    """True if a bound limits some value of the type ``element``.

    ``index`` is 1 for a lower bound, 2 for an upper one. False for the least or greatest number.
    """
    if element == Element.INT32:
        limits = np.iinfo(np.int32)
        return bool((array > limits.min).all() if index == 1 else (array < limits.max).all())
    limit = np.finfo(element.numpy)
    wide = array.astype(np.float64)
    return bool((wide > float(limit.min)).all() if index == 1 else (wide < float(limit.max)).all())


@writes("PRelu")
def prelu(c: Call) -> None:
    """Write prelu with a constant slope per channel; else a choice between x and slope * x."""
    x, slope = c.x(), c.array(1)
    channels = x.dims[1] if x.rank in (3, 4, 5) else None
    if slope is not None and x.is_float and channels is not None:
        per_channel = (channels, *(1 for _ in x.dims[2:]))
        if slope.shape in (per_channel, (1, *per_channel)):
            c.done(c.write("prelu", x=x, alpha=c.constant(slope.reshape(-1), x.element)))
            return
    below = c.op("less", x, 0.0 if x.is_float else 0, element=Element.BOOL)
    c.done(c.select(below, c.op("mul", x, c.x(1)), x, x.element))
