"""Elementwise kernels: NumPy ufuncs where one means what ONNX means, expressions elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import pi, sqrt
from typing import TypeAlias

import numpy as np

from smelt.targets.host.kernels.kernel import Array, Call, Step, kernel

UFUNCS: Mapping[str, np.ufunc] = {
    "Abs": np.absolute,
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Add": np.add,
    "And": np.logical_and,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseNot": np.invert,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "Ceil": np.ceil,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Equal": np.equal,
    "Exp": np.exp,
    "Floor": np.floor,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "IsNaN": np.isnan,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Log": np.log,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Not": np.logical_not,
    "Or": np.logical_or,
    "Reciprocal": np.reciprocal,
    "Round": np.rint,
    "Sign": np.sign,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Sqrt": np.sqrt,
    "Sub": np.subtract,
    "Tan": np.tan,
    "Tanh": np.tanh,
    "Xor": np.logical_xor,
}


@kernel(*UFUNCS)
def ufunc(call: Call) -> Step:
    """One ufunc, straight into the output."""
    return Step(UFUNCS[call.op], in_place=tuple(range(len(call.inputs))))


@kernel("Max", "Min")
def extreme(call: Call) -> Step:
    """NaN wins."""
    choose = np.maximum if call.op == "Max" else np.minimum
    return Step(lambda x, y, out: choose(x, y, out=out), in_place=(0, 1))


@kernel("Relu")
def relu(call: Call) -> Step:
    """NaN stays NaN."""
    zero = np.zeros((), call.outputs[0].dtype)
    return Step(lambda x, out: np.maximum(x, zero, out=out), in_place=(0,))


@kernel("Div")
def div(call: Call) -> Step:
    """Integers are truncated towards zero, where NumPy's floor division rounds down."""
    if call.outputs[0].dtype.kind not in "iu":
        return Step(np.divide, in_place=(0, 1))
    if call.outputs[0].dtype.kind == "u":
        return Step(np.floor_divide, in_place=(0, 1))

    def truncate(x: Array, y: Array, out: Array) -> None:
        exact = np.subtract(x, np.fmod(x, y))
        np.floor_divide(exact, y, out)

    return Step(truncate)


@kernel("Mod")
def mod(call: Call) -> Step:
    """The sign of the divisor, or with ``fmod`` that of the dividend."""
    return Step(np.fmod if call.integer("fmod") else np.mod, in_place=(0, 1))


@kernel("Pow")
def power(call: Call) -> Step:
    """In the dtype of the base. Integers to a negative power are computed in float64."""
    base, exponent = call.input(0).dtype, call.input(1).dtype
    if base == exponent and base.kind == "f":
        return Step(np.power, in_place=(0, 1))
    whole = base.kind in "iu" and exponent.kind in "iu"

    def run(x: Array, y: Array, out: Array) -> None:
        if whole and not np.any(np.less(y, 0)):
            result = np.power(x, y.astype(x.dtype))
        else:
            result = np.power(x.astype(np.float64), y.astype(np.float64))
        np.copyto(out, result, casting="unsafe")

    return Step(run)


@kernel("BitShift")
def bit_shift(call: Call) -> Step:
    """A shift by the width of the type or more gives 0, as NumPy does."""
    left = call.text("direction") == "LEFT"
    return Step(np.left_shift if left else np.right_shift, in_place=(0, 1))


@kernel("Where")
def where(call: Call) -> Step:
    """``np.where`` into the output."""

    def run(condition: Array, x: Array, y: Array, out: Array) -> None:
        np.copyto(out, y)
        np.copyto(out, x, where=condition)

    return Step(run)


@kernel("Clip")
def clip(call: Call) -> Step:
    """The upper bound wins if the bounds cross; NaN stays NaN."""
    dtype = call.outputs[0].dtype
    fixed = [call.attributes[name] for name in ("min", "max")]
    bounds = [None if bound is None else np.asarray(bound, dtype=dtype) for bound in fixed]
    given = len(call.inputs)

    def run(x: Array, *rest: Array | None) -> None:
        out = rest[given - 1]
        passed = [*rest[: given - 1], None, None]
        low, high = (b if b is not None else p for b, p in zip(bounds, passed, strict=False))
        if low is None and high is None:
            np.copyto(_given(out), x)
        if low is not None:
            x = np.maximum(x, low, out=_given(out))
        if high is not None:
            np.minimum(x, high, out=_given(out))

    return Step(run, in_place=(0,))


def _given(array: Array | None) -> Array:
    assert array is not None
    return array


@kernel("Cast")
def cast(call: Call) -> Step:
    """Floats to integers truncate; what is out of range is undefined in ONNX."""
    return Step(lambda x, out: np.copyto(out, x, casting="unsafe"))


Expression: TypeAlias = Callable[[Array, Call], Array]


def _sigmoid(x: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(x))


def _erf(x: Array) -> Array:
    from scipy.special import erf

    return np.asarray(erf(x))


def _erfc(x: Array) -> Array:
    from scipy.special import erfc

    return np.asarray(erfc(x))


def _softplus(x: Array) -> Array:
    return np.asarray(np.logaddexp(x, np.zeros((), x.dtype)))


def _gelu(x: Array, call: Call) -> Array:
    if call.text("approximate") == "tanh":
        return np.asarray(0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x))))
    return np.asarray(0.5 * x * (1 + _erf(x * sqrt(0.5))))


def _hard_sigmoid(x: Array, alpha: float, beta: float) -> Array:
    return np.asarray(np.minimum(np.maximum(alpha * x + beta, 0), 1))


def _celu(x: Array, alpha: float) -> Array:
    return np.asarray(np.maximum(x, 0) + np.minimum(alpha * np.expm1(x / alpha), 0))


def _is_inf(x: Array, call: Call) -> Array:
    positive = np.isposinf(x) if call.integer("detect_positive") else np.zeros(x.shape, bool)
    return np.asarray(positive | np.isneginf(x)) if call.integer("detect_negative") else positive


def _selu(x: Array, alpha: float, gamma: float) -> Array:
    return gamma * np.where(x > 0, x, alpha * np.expm1(x))


def _shrink(x: Array, bias: float, bound: float) -> Array:
    return np.where(x < -bound, x + bias, np.where(x > bound, x - bias, np.zeros((), x.dtype)))


EXPRESSIONS: Mapping[str, Expression] = {
    "Celu": lambda x, call: _celu(x, call.real("alpha")),
    "Elu": lambda x, call: np.where(x < 0, call.real("alpha") * np.expm1(x), x),
    "Erf": lambda x, call: _erf(x),
    "Gelu": _gelu,
    "HardSigmoid": lambda x, call: _hard_sigmoid(x, call.real("alpha"), call.real("beta")),
    "HardSwish": lambda x, call: x * _hard_sigmoid(x, 1 / 6, 0.5),
    "IsInf": _is_inf,
    "LeakyRelu": lambda x, call: np.where(x < 0, call.real("alpha") * x, x),
    "Mish": lambda x, call: x * np.tanh(_softplus(x)),
    "Selu": lambda x, call: _selu(x, call.real("alpha"), call.real("gamma")),
    "Shrink": lambda x, call: _shrink(x, call.real("bias"), call.real("lambd")),
    "Sigmoid": lambda x, call: _sigmoid(x),
    "Softplus": lambda x, call: _softplus(x),
    "Softsign": lambda x, call: x / (1 + np.abs(x)),
    "Swish": lambda x, call: x * _sigmoid(call.real("alpha") * x),
    "ThresholdedRelu": lambda x, call: np.where(x > call.real("alpha"), x, np.zeros_like(x)),
    "smelt::Erf": lambda x, call: _erf(x),
    "smelt::Erfc": lambda x, call: _erfc(x),
}


@kernel(*EXPRESSIONS, wide=True)
def expression(call: Call) -> Step:
    """A NumPy expression, copied into the output."""
    compute = EXPRESSIONS[call.op]
    return Step(lambda x, out: np.copyto(out, compute(x, call), casting="unsafe"))


@kernel("PRelu")
def prelu(call: Call) -> Step:
    """``slope * x`` where x is negative."""

    def run(x: Array, slope: Array, out: Array) -> None:
        np.copyto(out, np.where(x < 0, slope * x, x))

    return Step(run)
