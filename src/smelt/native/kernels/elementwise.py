"""Operators on one element at a time: a table of C expressions.

In an expression ``{0}`` ``{1}`` ``{2}`` are the elements read, ``@t`` the C type of the first,
``@m`` the unsigned type in which its sums wrap, ``@f`` the suffix of its functions in math.h
(``expf``), and ``@name`` the attribute of that name as a literal. NaN goes through wherever ONNX
Runtime and NumPy let it through.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from smelt.native.kernels.integer import divide, modulo, power, shift
from smelt.native.kernels.kernel import ANY, Instance, Kernel, KernelContext, register
from smelt.native.kernels.nest import emit_map
from smelt.program.storage import Needs

FLOATS: Mapping[str, str] = {
    "Abs": "fabs@f({0})",
    "Acos": "acos@f({0})",
    "Acosh": "acosh@f({0})",
    "Add": "{0} + {1}",
    "Asin": "asin@f({0})",
    "Asinh": "asinh@f({0})",
    "Atan": "atan@f({0})",
    "Atanh": "atanh@f({0})",
    "Ceil": "ceil@f({0})",
    "Celu": "{0} > 0 ? {0} : @alpha * expm1@f({0} / @alpha)",
    "Cos": "cos@f({0})",
    "Cosh": "cosh@f({0})",
    "Div": "{0} / {1}",
    "Elu": "{0} > 0 ? {0} : @alpha * expm1@f({0})",
    "Equal": "{0} == {1}",
    "Erf": "erf@f({0})",
    "Exp": "exp@f({0})",
    "Floor": "floor@f({0})",
    "Greater": "{0} > {1}",
    "GreaterOrEqual": "{0} >= {1}",
    "HardSigmoid": "fmax@f(0, fmin@f(1, @alpha * {0} + @beta))",
    "HardSwish": "{0} * fmax@f(0, fmin@f(1, {0} / 6 + (@t)0.5))",
    "IsNaN": "{0} != {0}",
    "LeakyRelu": "{0} < 0 ? @alpha * {0} : {0}",
    "Less": "{0} < {1}",
    "LessOrEqual": "{0} <= {1}",
    "Log": "log@f({0})",
    "Max": "({0} > {1} || {0} != {0}) ? {0} : {1}",
    "Min": "({0} < {1} || {0} != {0}) ? {0} : {1}",
    "Mish": "{0} * tanh@f({0} > 20 ? {0} : log1p@f(exp@f({0})))",
    "Mul": "{0} * {1}",
    "Neg": "-{0}",
    "PRelu": "{0} < 0 ? {1} * {0} : {0}",
    "Pow": "pow@f({0}, (@t){1})",
    "Reciprocal": "1 / {0}",
    "Relu": "{0} < 0 ? 0 : {0}",
    "Round": "rint@f({0})",
    "Selu": "{0} > 0 ? @gamma * {0} : @gamma * @alpha * expm1@f({0})",
    "Shrink": "{0} < -@lambd ? {0} + @bias : ({0} > @lambd ? {0} - @bias : 0)",
    "Sigmoid": "1 / (1 + exp@f(-{0}))",
    "Sign": "{0} != {0} ? {0} : (@t)(({0} > 0) - ({0} < 0))",
    "Sin": "sin@f({0})",
    "Sinh": "sinh@f({0})",
    "Softplus": "({0} > 0 ? {0} : 0) + log1p@f(exp@f(-fabs@f({0})))",
    "Softsign": "{0} / (1 + fabs@f({0}))",
    "Sqrt": "sqrt@f({0})",
    "Sub": "{0} - {1}",
    "Swish": "{0} / (1 + exp@f(-@alpha * {0}))",
    "Tan": "tan@f({0})",
    "Tanh": "tanh@f({0})",
    "ThresholdedRelu": "{0} > @alpha ? {0} : 0",
    "Where": "{0} ? {1} : {2}",
    "smelt::Erf": "erf@f({0})",
    "smelt::Erfc": "erfc@f({0})",
    "smelt::Lgamma": "lgamma@f({0})",
}

INTEGERS: Mapping[str, str] = {
    "Add": "(@t)((@m){0} + (@m){1})",
    "Sub": "(@t)((@m){0} - (@m){1})",
    "Mul": "(@t)((@m){0} * (@m){1})",
    "Neg": "(@t)(0 - (@m){0})",
    "Abs": "{0} < 0 ? (@t)(0 - (@m){0}) : {0}",
    "BitwiseAnd": "(@t)({0} & {1})",
    "BitwiseNot": "(@t)~{0}",
    "BitwiseOr": "(@t)({0} | {1})",
    "BitwiseXor": "(@t)({0} ^ {1})",
    "Equal": "{0} == {1}",
    "Greater": "{0} > {1}",
    "GreaterOrEqual": "{0} >= {1}",
    "Less": "{0} < {1}",
    "LessOrEqual": "{0} <= {1}",
    "Max": "{0} > {1} ? {0} : {1}",
    "Min": "{0} < {1} ? {0} : {1}",
    "PRelu": "{0} < 0 ? (@t)((@m){1} * (@m){0}) : {0}",
    "Relu": "{0} < 0 ? 0 : {0}",
    "Sign": "(@t)(({0} > 0) - ({0} < 0))",
}

UNSIGNED: Mapping[str, str] = {
    "Abs": "{0}",
    "PRelu": "{0}",
    "Relu": "{0}",
    "Sign": "(@t)({0} > 0)",
}
"""What differs where a value is never negative (compilers warn about comparing it with 0)."""

BOOLEANS: Mapping[str, str] = {
    "And": "{0} && {1}",
    "Equal": "{0} == {1}",
    "Not": "!{0}",
    "Or": "{0} || {1}",
    "Where": "{0} ? {1} : {2}",
    "Xor": "{0} != {1}",
}

COMPUTED = {"Div": divide, "Mod": modulo, "Pow": power, "BitShift": shift}
"""Integer operators that need a support function: division by zero must not trap."""

_FIELD = re.compile(r"@([a-z]+)")


def expression(cx: KernelContext) -> str:
    """The C expression of an instruction, types and attributes filled in."""
    op, type_ = cx.instruction.op, cx.type(0)
    if op == "Gelu":
        text = _gelu(cx)
    elif op == "IsInf":
        text = _is_infinite(cx)
    elif op == "Mod" and type_.kind == "float":
        text = "fmod@f({0}, {1})" if cx.int("fmod") else _floor_mod(cx)
    elif op in COMPUTED and type_.kind == "int":
        text = COMPUTED[op](cx)
    elif type_.kind == "int" and not type_.signed and op in UNSIGNED:
        text = UNSIGNED[op]
    else:
        text = {"float": FLOATS, "int": INTEGERS, "bool": BOOLEANS}[type_.kind][op]
    words = {"t": type_.name, "m": type_.modular, "f": type_.f}
    return _FIELD.sub(lambda m: words.get(m[1]) or _attribute(cx, m[1]), text)


def _attribute(cx: KernelContext, name: str) -> str:
    return "" if name == "f" else cx.type(0).literal(cx.float(name))


def _gelu(cx: KernelContext) -> str:
    if cx.instruction.attributes["approximate"] == "tanh":
        inner = "(@t)0.79788456080286536 * ({0} + (@t)0.044715 * {0} * {0} * {0})"
        return f"(@t)0.5 * {{0}} * (1 + tanh@f({inner}))"
    return "(@t)0.5 * {0} * (1 + erf@f({0} * (@t)0.70710678118654752))"


def _is_infinite(cx: KernelContext) -> str:
    tests = [("detect_positive", "{0} == INFINITY"), ("detect_negative", "{0} == -INFINITY")]
    wanted = [test for name, test in tests if cx.int(name)]
    return " || ".join(wanted) or "0 * ({0} == {0})"


def _floor_mod(cx: KernelContext) -> str:
    type_ = cx.type(0)
    name = f"floor_mod_{type_.name}"
    text = (
        f"static {type_.name} {name}({type_.name} a, {type_.name} b)\n{{\n"
        f"    const {type_.name} r = fmod{type_.f}(a, b);\n"
        "    return r != 0 && (r < 0) != (b < 0) ? r + b : r;\n}\n"
    )
    return cx.call(name, text) + "({0}, {1})"


def emit(cx: KernelContext) -> None:
    """One nest of loops over the output."""
    emit_each(cx, expression(cx))


def emit_each(cx: KernelContext, text: str) -> None:
    """One nest of loops, which writes the expression ``text`` of the elements read."""
    reads = [cx.input(i) for i in range(len(cx.instruction.inputs))]
    output = cx.output()
    accesses = [read.broadcast(output.shape) for read in reads]
    emit_map(cx.body, output.shape, output.access(), accesses, text)


def in_place(instance: Instance) -> Needs:
    """Any input of the size and element type of the output may be overwritten."""
    output = instance.program.slots[instance.instruction.outputs[0]]
    same = [
        position
        for position in range(len(instance.instruction.inputs))
        if (slot := instance.slot(position)) is not None
        and slot.dtype == output.dtype
        and slot.shape == output.shape
    ]
    return Needs(in_place=tuple(same))


def refuse(instance: Instance) -> str | None:
    """No expression for this kind of element."""
    op, type_ = instance.instruction.op, instance.type(0)
    table = {"float": FLOATS, "int": INTEGERS, "bool": BOOLEANS}[type_.kind]
    special = {"float": ("Gelu", "IsInf", "Mod"), "int": tuple(COMPUTED), "bool": ()}[type_.kind]
    if op not in table and op not in special:
        return f"{op} takes no {type_.name}"
    second = instance.slot(1)
    if (
        op == "Pow"
        and type_.kind == "int"
        and second is not None
        and instance.type(1).kind != "int"
    ):
        return "an integer power with an exponent that is no integer"
    return None


def operators() -> tuple[str, ...]:
    """Every operator of this file."""
    names = {*FLOATS, *INTEGERS, *BOOLEANS, *COMPUTED, "Gelu", "IsInf"}
    return tuple(sorted(names))


for _op in operators():
    register(_op, Kernel(emit, in_place, refuse, ANY))
