"""Readers of elementwise arithmetic, comparisons and logic."""

from __future__ import annotations

from functools import partial

import onnx_ir as ir

from smelt.frontends.coreml.call import Call
from smelt.frontends.coreml.registry import READERS, reads
from smelt.frontends.coreml.types import WORDS

UNARY = {
    "abs": "Abs",
    "acos": "Acos",
    "asin": "Asin",
    "atan": "Atan",
    "atanh": "Atanh",
    "ceil": "Ceil",
    "cos": "Cos",
    "cosh": "Cosh",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "identity": "Identity",
    "logical_not": "Not",
    "relu": "Relu",
    "round": "Round",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "softplus": "Softplus",
    "softsign": "Softsign",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
}
"""Operators of one input that ONNX has with the same meaning."""

BINARY = {
    "add": "Add",
    "equal": "Equal",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
    "less": "Less",
    "less_equal": "LessOrEqual",
    "logical_and": "And",
    "logical_or": "Or",
    "logical_xor": "Xor",
    "maximum": "Max",
    "minimum": "Min",
    "mul": "Mul",
    "pow": "Pow",
    "real_div": "Div",
    "sub": "Sub",
}
"""Operators of two inputs that ONNX has with the same meaning.

``real_div`` of integers rounds towards zero, as Div does; ``floor_div`` rounds down.
"""


def _unary(call: Call, op_type: str) -> ir.Value:
    """Return ``op_type`` of ``x``."""
    return call.op(op_type, call.x)


def _binary(call: Call, op_type: str) -> ir.Value:
    """Return ``op_type`` of ``x`` and ``y``."""
    return call.op(op_type, call.x, call.value("y"))


READERS.update({name: partial(_unary, op_type=kind) for name, kind in UNARY.items()})
READERS.update({name: partial(_binary, op_type=kind) for name, kind in BINARY.items()})


@reads("not_equal")
def _not_equal(call: Call) -> ir.Value:
    """Return whether ``x`` and ``y`` differ."""
    return call.op("Not", call.op("Equal", call.x, call.value("y")))


def _shifted(call: Call, default: float) -> ir.Value:
    """Return ``x + epsilon``, or ``x`` if the element type rounds epsilon to 0.

    ``default`` is the epsilon that Core ML documents for the operator.
    """
    x = call.x
    assert x.dtype is not None
    epsilon = x.dtype.numpy().type(call.number("epsilon", default))
    return call.op("Add", x, call.scope.shared.constant(epsilon)) if epsilon else x


@reads("inverse")
def _inverse(call: Call) -> ir.Value:
    """Return 1 / (x + epsilon)."""
    return call.op("Reciprocal", _shifted(call, 1e-4))


@reads("log")
def _log(call: Call) -> ir.Value:
    """Return log(x + epsilon): -103 for 0 in float32, where ONNX has -inf."""
    return call.op("Log", _shifted(call, 1e-45))


@reads("rsqrt")
def _rsqrt(call: Call) -> ir.Value:
    """Return 1 / sqrt(x + epsilon)."""
    return call.op("Reciprocal", call.op("Sqrt", _shifted(call, 1e-12)))


@reads("exp2")
def _exp2(call: Call) -> ir.Value:
    """Return 2 to the power of ``x``."""
    return call.op("Pow", call.filled(2, call.x), call.x)


@reads("square")
def _square(call: Call) -> ir.Value:
    """Return ``x`` times itself."""
    return call.op("Mul", call.x, call.x)


def _is_float(x: ir.Value) -> bool:
    """True if ``x`` holds floating-point numbers."""
    return x.dtype is not None and x.dtype.is_floating_point()


@reads("floor_div")
def _floor_div(call: Call) -> ir.Value:
    """Return ``floor(x / y)``.

    ONNX rounds integer quotients towards zero. That is 1 too large where there is a remainder and
    the signs of ``x`` and ``y`` differ: there, both kinds of Mod give different remainders.
    """
    x, y = call.x, call.value("y")
    quotient = call.op("Div", x, y)
    if _is_float(x):
        return call.op("Floor", quotient)
    same = call.op("Equal", call.op("Mod", x, y), call.op("Mod", x, y, fmod=1))
    assert x.dtype is not None
    return call.op("Sub", quotient, call.builder.cast(call.op("Not", same), x.dtype))


@reads("mod")
def _mod(call: Call) -> ir.Value:
    """Return the remainder of ``x / y`` with the sign of ``y``.

    ONNX has this remainder for integers only. For floats, ``y`` is added to a remainder that has
    the other sign.
    """
    x, y = call.x, call.value("y")
    if not _is_float(x):
        return call.op("Mod", x, y)
    rest = call.op("Mod", x, y, fmod=1)
    other_sign = call.op(
        "Less", call.op("Mul", call.op("Sign", rest), y), call.filled(0, y)
    )  # the sign, not the rest, is multiplied: a tiny product would be 0
    return call.op("Where", other_sign, call.op("Add", rest, y), rest)


@reads("clip")
def _clip(call: Call) -> ir.Value:
    """Return ``x`` between ``alpha`` and ``beta``."""
    return call.op("Clip", call.x, call.like("alpha", call.x), call.like("beta", call.x))


@reads("threshold")
def _threshold(call: Call) -> ir.Value:
    """Return ``x``, but at least ``alpha``."""
    return call.op("Max", call.x, call.like("alpha", call.x))


@reads("cast")
def _cast(call: Call) -> ir.Value:
    """Return ``x`` in another element type."""
    name = call.word("dtype")
    if name not in WORDS:
        raise call.refused(f"there is no element type {name!r}")
    return call.op("Cast", call.x, to=int(WORDS[name]))


@reads("select")
def _select(call: Call) -> ir.Value:
    """Return ``a`` where ``cond`` is true, else ``b``.

    Without ``a`` and ``b``, return the indices at which ``cond`` is true, (count, rank).
    """
    if not call.has("a") and not call.has("b"):
        places = call.op("Transpose", call.op("NonZero", call.value("cond")), perm=[1, 0])
        return call.builder.cast(places, call.result_type())
    return call.op("Where", call.value("cond"), call.value("a"), call.value("b"))
