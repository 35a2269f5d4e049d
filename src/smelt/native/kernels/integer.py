"""Integer operators that C leaves partly undefined.

Results that ONNX defines are as ONNX defines them. Division by zero gives 0, and the lowest value
divided by -1 wraps around, so no input can trap.
"""

from __future__ import annotations

from smelt.native.kernels.kernel import KernelContext


def divide(cx: KernelContext) -> str:
    """Return the C of truncating division. Compilers vectorize it if the divisor is constant."""
    divisor = _divisor(cx)
    if divisor not in (0, -1):
        return f"({cx.type(0).name})({{0}} / {cx.type(1).literal(divisor)})"
    return _binary(cx, "divide", "return (T)(b == 0 ? 0 : a / b);", "(T)(0 - (M)a)")


def _divisor(cx: KernelContext) -> int:
    """Return the constant divisor of all elements, 0 if it is computed or differs by element."""
    constant = cx.program.constants.get(cx.instruction.inputs[1])
    return 0 if constant is None or constant.size != 1 else int(constant.reshape(-1)[0])


def modulo(cx: KernelContext) -> str:
    """Return C of the remainder with the divisor's sign, or the dividend's if ``fmod`` is set."""
    signed, divisor, type_ = cx.type(0).signed, _divisor(cx), cx.type(0)
    keeps_dividend_sign = not signed or cx.int("fmod")
    if divisor > 0:
        remainder = f"({{0}} % {type_.literal(divisor)})"
        floored = f"{remainder} + ({remainder} < 0 ? {type_.literal(divisor)} : 0)"
        return f"({type_.name})({remainder if keeps_dividend_sign else floored})"
    if keeps_dividend_sign:
        return _binary(cx, "remainder", "return (T)(b == 0 ? 0 : a % b);", "0")
    body = "if (b == 0)\n        return 0;\n    a = (T)(a % b);\n"
    body += "    return (T)(a != 0 && (a < 0) != (b < 0) ? a + b : a);"
    return _binary(cx, "modulo", body, "0")


QUOTIENT = """    const double d = b == 0 ? 1.0 : (double)b;
    const int64_t q = b == 0 ? 0 : (int64_t)((double)a / d), rest = b == 0 ? 0 : a - q * b;
"""
"""A double quotient of 32-bit integers truncates to the exact result. CPUs that convert vectors of
doubles to 64-bit integers divide in vectors this way; others divide integers."""

VECTORS = {
    "divide": "(void)rest;\n    return (T)q;",
    "remainder": "return (T)rest;",
    "modulo": "return (T)(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);",
}


def _binary(cx: KernelContext, stem: str, body: str, by_minus_one: str) -> str:
    """Add a C function of two numbers, and return its call.

    ``stem`` is the name without the type, ``by_minus_one`` the C of the result for the divisor -1.

    ```
    static int32_t divide_int32_t(int32_t a, int32_t b)
    {
        if (b == -1)
            return (int32_t)(0 - (uint32_t)a);
        return (int32_t)(b == 0 ? 0 : a / b);
    }
    ```
    """
    type_ = cx.type(0)
    name = f"{stem}_{type_.name}"
    guard = f"    if (b == -1)\n        return {by_minus_one};\n" if type_.signed else ""
    text = f"static T {name}(T a, T b)\n{{\n{guard}    {body}\n}}\n"
    if type_.size <= 4:
        by_vectors = f"static inline T {name}(T a, T b)\n{{\n{QUOTIENT}    {VECTORS[stem]}\n}}\n"
        text = f"#if defined(__AVX512DQ__)\n{by_vectors}#else\n{text}#endif\n"
    text = text.replace("(M)", f"({type_.modular})").replace("(T)", f"({type_.name})")
    text = text.replace("T a", f"{type_.name} a").replace("T b", f"{type_.name} b")
    text = text.replace("static T", f"static {type_.name}")
    text = text.replace("static inline T", f"static inline {type_.name}")
    return cx.call(name, text) + "({0}, {1})"


def power(cx: KernelContext) -> str:
    """Return the C of repeated squaring, which wraps around.

    A negative exponent gives a fraction, truncated to 0, 1 or -1.
    """
    base, exponent = cx.type(0), cx.type(1)
    name = f"power_{base.name}_{exponent.name}"
    lines = [f"static {base.name} {name}({base.name} a, {exponent.name} b)", "{"]
    if exponent.signed:
        lines += ["    if (b < 0)"]
        minus_one_case = " : a == -1 ? (b % 2 == 0 ? 1 : -1)" if base.signed else ""
        lines += [f"        return ({base.name})(a == 1 ? 1{minus_one_case} : 0);"]
    lines += [
        f"    {base.modular} r = 1, s = ({base.modular})a;",
        "    for (; b != 0; b /= 2) {",
        "        if (b % 2 != 0)",
        "            r *= s;",
        "        s *= s;",
        "    }",
        f"    return ({base.name})r;",
        "}",
    ]
    return cx.call(name, "\n".join(lines) + "\n") + "({0}, {1})"


def shift(cx: KernelContext) -> str:
    """Return the C of a shift. A shift by a negative number or by all bits leaves 0.

    A right shift of a negative number by all bits leaves -1.
    """
    type_ = cx.type(0)
    left = cx.instruction.attributes["direction"] == "LEFT"
    shifted_out = "{0} < 0 ? -1 : 0" if type_.signed and not left else "0"
    test = f"{{1}} >= {8 * type_.size}" + (" || {1} < 0" if type_.signed else "")
    shifted = f"(({type_.modular}){{0}} << {{1}})" if left else "({0} >> {1})"
    return f"({type_.name})({test} ? ({shifted_out}) : {shifted})"
