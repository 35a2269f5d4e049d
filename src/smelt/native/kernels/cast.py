"""Cast: conversions that C defines, and those that C leaves undefined.

A float out of the integer type's range, or NaN, becomes its lowest value, as on x86. Narrow
integers take the low bits.
"""

from __future__ import annotations

from smelt.native.kernels.kernel import ANY, KernelContext, kernel
from smelt.native.kernels.lane_math import IN_LOOPS
from smelt.native.kernels.nest import emit_map
from smelt.native.types import C_TYPES, CType


def element(cx: KernelContext) -> tuple[list[str], str]:
    """Return no statements, and the C that converts one element ``{0}`` to the result's type."""
    target = C_TYPES[cx.program.slots[cx.instruction.outputs[0]].dtype]
    return [], conversion(cx, cx.type(), target)


@kernel("Cast", kinds=ANY, element=element)
def cast(cx: KernelContext) -> None:
    """Convert each element."""
    source, output = cx.input(0), cx.output()
    emit_map(
        cx.body,
        (output.size,),
        output.access((1,)),
        [source.access((1,))],
        conversion(cx, source.type, output.type),
    )


def conversion(cx: KernelContext, source: CType, target: CType) -> str:
    """Return the C expression that converts ``{0}`` from ``source`` to ``target``."""
    if target.kind == "bool":
        return "{0} != 0"
    if source.kind == "float" and target.kind == "int":
        return f"({target.name}){_checked_cast(cx, source, target)}({{0}})"
    return f"({target.name}){{0}}"


def _checked_cast(cx: KernelContext, source: CType, target: CType) -> str:
    """Return the name of a function that converts every float to an integer, ``target`` or wider.

    ```
    static IN_LOOPS int64_t float_to_int64_t(float x)
    {
        const int inside = (x >= (-9223372036854775808.0f)) & (x < 9223372036854775808.0f);
        const int64_t near = (int64_t)(inside ? x : 0);
        return inside ? near : INT64_MIN;
    }
    ```
    """
    if target.name == "uint64_t":
        wide, low, high, if_outside = "uint64_t", "> (-1.0@)", "18446744073709551616.0@", "0"
    elif target.name == "int32_t" or (target.size == 1 and source.f):
        # The lowest bits of a float beyond these integers are 0.
        wide, low, high, if_outside = "int32_t", "> (-2147483649.0)", "2147483648.0@", "INT32_MIN"
        low = ">= (-2147483648.0f)" if source.f else low
    else:
        wide, high, if_outside = "int64_t", "9223372036854775808.0@", "INT64_MIN"
        low = ">= (-9223372036854775808.0@)"
    name = f"{source.name}_to_{wide}"
    cx.call("IN_LOOPS", IN_LOOPS)  # otherwise GCC does not inline it into loops that round apart
    text = (
        f"static IN_LOOPS {wide} {name}({source.name} x)\n{{\n"
        f"    const int inside = (x {low}) & (x < {high});\n"
        f"    const {wide} near = ({wide})(inside ? x : 0);\n"
        f"    return inside ? near : {if_outside};\n}}\n"
    ).replace("@", source.f)
    return cx.call(name, text)
