"""Loads and stores of storage types: floats of 16 bits and less, integers of 4 and 2 bits.

Kernels compute in ``float`` or in a byte; stores round once, to nearest, ties to even. Overflow is
infinity in 16 bits; in 8 bits it is the largest number if ``saturate`` is set, as Cast defines it.
Elements smaller than a byte are packed as in ONNX, the first in the low bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.types import CType

LOAD, STORE = "smelt.c::Load", "smelt.c::Store"


@dataclass(frozen=True, slots=True)
class Minifloat:
    """A float format of a sign, an exponent and ``mantissa`` bits; special values are given as
    codes.

    Values that meet ``limit`` overflow to ``infinity``, or to ``nan`` if there is no infinity.
    ``largest`` is the code of the largest number. ``unsigned_zero``: there is no -0.
    """

    word: str
    sign: int
    mantissa: int
    bias: int
    limit: str
    largest: int
    nan: int
    infinity: int | None = None
    unsigned_zero: bool = False


_F16 = Minifloat("uint16_t", 0x8000, 10, 15, ">= 65520.0", 0x7BFF, 0x7E00, 0x7C00)
_BF16 = Minifloat("uint16_t", 0x8000, 7, 127, ">= 3.3961775292304601e38", 0x7F7F, 0x7FC0, 0x7F80)
MINIFLOATS = {
    ir.DataType.FLOAT16: _F16,
    ir.DataType.BFLOAT16: _BF16,
    ir.DataType.FLOAT8E4M3FN: Minifloat("uint8_t", 0x80, 3, 7, "> 464.0", 0x7E, 0x7F),
    ir.DataType.FLOAT8E4M3FNUZ: Minifloat(
        "uint8_t", 0x80, 3, 8, ">= 248.0", 0x7F, 0x80, unsigned_zero=True
    ),
    ir.DataType.FLOAT8E5M2: Minifloat("uint8_t", 0x80, 2, 15, ">= 61440.0", 0x7B, 0x7E, 0x7C),
    ir.DataType.FLOAT8E5M2FNUZ: Minifloat(
        "uint8_t", 0x80, 2, 16, ">= 61440.0", 0x7F, 0x80, unsigned_zero=True
    ),
    ir.DataType.FLOAT4E2M1: Minifloat("uint8_t", 0x8, 1, 1, ">= 7.0", 0x7, 0x8),
}
ONLY_SATURATES = frozenset({ir.DataType.FLOAT4E2M1})
SATURATES = frozenset({dtype for dtype in MINIFLOATS if dtype.bitwidth == 8}) | ONLY_SATURATES


@kernel(LOAD, kinds=frozenset({"int"}))
def load(cx: KernelContext) -> None:
    """Write the exact conversion of codes to numbers."""
    dtype = cx.program.slots[cx.instruction.inputs[0]].dtype
    source, output = cx.input(0), cx.output()
    with cx.body.loop("i", output.size):
        code = _unpacked_element(source.name, dtype)
        if dtype == POWER:
            value = f"{cx.call('value_of_power', VALUE_OF_POWER)}({code})"
        elif dtype in MINIFLOATS:
            value = f"{cx.call(f'value_of_{dtype.name.lower()}', _value(dtype))}({code})"
        elif output.type.signed:
            half = 1 << (dtype.bitwidth - 1)
            value = f"(int8_t)((int)(({code}) ^ {half}u) - {half})"
        else:
            value = f"(uint8_t)({code})"
        cx.body.line(f"{output.name}[i] = {value};")


@kernel(STORE, kinds=frozenset({"float", "int"}))
def store(cx: KernelContext) -> None:
    """Write the conversion of numbers to the nearest codes; integers keep their low bits.

    Codes that share a byte are put together, the first one in its low bits.

    ```
    unsigned byte = 0;
    for (ptrdiff_t j = 0; j < 2; ++j) {
        const ptrdiff_t i = b * 2 + j;
        if (i < 5)
            byte |= ((uint8_t)x[i] & 15u) << (4 * j);
    }
    y[b] = (uint8_t)byte;
    ```
    """
    dtype = cx.program.slots[cx.instruction.outputs[0]].dtype
    source, output = cx.input(0), cx.output()
    per_byte = 8 // dtype.bitwidth

    def stored_bits(at: str) -> str:
        """Return the C of the bits to store for the element at index ``at``."""
        if dtype == POWER:
            return f"{_power(cx)}((float){source.name}[{at}])"
        if dtype not in MINIFLOATS:
            return f"(uint8_t){source.name}[{at}]"
        saturate = dtype in ONLY_SATURATES or (dtype in SATURATES and bool(cx.int("saturate")))
        name = f"{dtype.name.lower()}_of_{source.type.name}" + ("_saturated" if saturate else "")
        return f"{cx.call(name, _code(name, dtype, source.type, saturate))}({source.name}[{at}])"

    if per_byte <= 1:
        with cx.body.loop("i", output.size):
            cx.body.line(f"{output.name}[i] = {stored_bits('i')};")
        return
    mask = (1 << dtype.bitwidth) - 1
    with cx.body.loop("b", -(-output.size // per_byte)):
        cx.body.line("unsigned byte = 0;")
        with cx.body.loop("j", per_byte):
            cx.body.line(f"const ptrdiff_t i = b * {per_byte} + j;")
            cx.body.line(f"if (i < {output.size})")
            cx.body.line(f"    byte |= ({stored_bits('i')} & {mask}u) << ({dtype.bitwidth} * j);")
        cx.body.line(f"{output.name}[b] = (uint8_t)byte;")


POWER = ir.DataType.FLOAT8E8M0
"""Powers of 2 without a sign, for scales: the exponent of a float; 255 is NaN."""

VALUE_OF_POWER = """static float value_of_power(unsigned code)
{
    return code == 255u ? NAN : ldexpf(1.0f, (int)code - 127);
}
"""


def _power(cx: KernelContext) -> str:
    """Return the name of a function that rounds a float up to a power of 2, the default of ONNX.

    If it saturates, overflow is the largest power.
    """
    saturate = bool(cx.int("saturate"))
    name = "power_of_float" + ("_saturated" if saturate else "")
    saturating = "    if (e == 254u)\n        return 254u;\n" if saturate else ""
    return cx.call(
        name,
        f"static uint8_t {name}(float x)\n{{\n    uint32_t bits;\n"
        "    memcpy(&bits, &x, sizeof bits);\n    const unsigned e = bits >> 23 & 255u;\n"
        f"    if (e == 255u)\n        return 255u;\n{saturating}"
        "    return (uint8_t)(e + ((bits & 0x7FFFFFu) != 0 ? 1u : 0u));\n}\n",
    )


def _unpacked_element(array: str, dtype: ir.DataType) -> str:
    """Return element ``i`` of an array, which may be packed, as C."""
    bits = int(dtype.bitwidth)
    if bits >= 8:
        return f"{array}[i]"
    per_byte = 8 // bits
    return f"{array}[i / {per_byte}] >> ({bits} * (i % {per_byte})) & {(1 << bits) - 1}u"


def _value(dtype: ir.DataType) -> str:
    """Return the branch-free C function from the code of a minifloat to its number.

    The code is shifted to the bits of a float (23 of mantissa, a bias of 127), and the difference
    of the biases added to its exponent. A subnormal is then one binade too high, with an implicit
    1, which is subtracted.
    """
    layout, name = MINIFLOATS[dtype], f"value_of_{dtype.name.lower()}"
    shift, raised = 23 - layout.mantissa, 127 - layout.bias
    lines = [
        f"static inline float {name}(unsigned code)",
        "{",
        f"    const uint32_t a = code & {layout.sign - 1}u;",
        f"    uint32_t bits = (a << {shift}) + {raised << 23}u;",
    ]
    if raised:
        lines += [
            f"    const uint32_t one = {(raised + 1) << 23}u, above = (a << {shift}) + one;",
            "    float least, low;",
            "    memcpy(&least, &one, sizeof least);",
            "    memcpy(&low, &above, sizeof low);",
            "    low -= least;",
            "    uint32_t subnormal;",
            "    memcpy(&subnormal, &low, sizeof low);",
            f"    bits = a < {1 << layout.mantissa}u ? subnormal : bits;",
        ]
    if layout.infinity is not None:
        lines += [f"    bits = a == {layout.infinity}u ? 0x7F800000u : bits;"]
    if layout.unsigned_zero:
        lines += [f"    bits = code == {layout.nan}u ? 0x7FC00000u : bits;"]
    elif dtype not in ONLY_SATURATES:
        most = layout.largest if layout.infinity is None else layout.infinity
        lines += [f"    bits = a > {most}u ? 0x7FC00000u : bits;"]
    lines += [
        f"    bits |= (uint32_t)(code & {layout.sign}u) << {32 - layout.sign.bit_length()};",
        "    float value;",
        "    memcpy(&value, &bits, sizeof value);",
        "    return value;",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _code(name: str, dtype: ir.DataType, source: CType, saturate: bool) -> str:
    """Return the branch-free C function from a number to the code of the nearest minifloat.

    Floats have 23 bits of mantissa and an exponent bias of 127, doubles 52 and 1023. The steps:

    1. ``a``, the bits without the sign;
    2. ``normal``: half of the last kept place is added, which rounds and may carry into the
       exponent; then ``drop`` bits go, and the exponents' biases are subtracted;
    3. ``subnormal``, for a number below the smallest normal one: adding ``scale``, a number whose
       last place is the unit of the subnormals, rounds it;
    4. ``code``: one of both, or the code of an overflow or NaN, with the sign.
    """
    f, t = MINIFLOATS[dtype], source
    mantissa_bits, bias = (23, 127) if t.name == "float" else (52, 1023)
    drop, lowest = mantissa_bits - f.mantissa, bias - f.bias + 1
    u, magnitude = ("u", "0x7FFFFFFFu") if t.size == 4 else ("ull", "0x7FFFFFFFFFFFFFFFull")
    over = f.largest if saturate else f.infinity
    beyond = f.nan if over is None else over
    comparison, limit = f.limit.split()
    infinity, signs = f"{(2 * bias + 1) << mantissa_bits}{u}", 8 * t.size - f.sign.bit_length()
    lines = [
        f"static inline {f.word} {name}({t.name} x)",
        "{",
        f"    {t.word} bits;",
        "    memcpy(&bits, &x, sizeof bits);",
        f"    const {t.word} a = bits & {magnitude}, unit = {(lowest + drop) << mantissa_bits}{u};",
        f"    const unsigned sign = (unsigned)(bits >> {signs}) & {f.sign}u;",
        f"    {t.name} low, scale;",
        "    memcpy(&low, &a, sizeof low);",
        "    memcpy(&scale, &unit, sizeof scale);",
        "    low += scale;",
        f"    {t.word} subnormal;",
        "    memcpy(&subnormal, &low, sizeof low);",
        f"    const {t.word} half = {(1 << (drop - 1)) - 1}{u} + (a >> {drop} & 1u);",
        f"    const {t.word} normal = ((a + half) >> {drop}) - {(lowest - 1) << f.mantissa}{u};",
        f"    {t.word} code = a < {lowest << mantissa_bits}{u} ? subnormal - unit : normal;",
        f"    code = a {comparison} {_bits(float(limit), t)}{u} ? {beyond}{u} : code;",
        f"    code = a > {infinity} ? {f.nan}{u} : code;",
    ]
    if f.unsigned_zero:
        code_text = f"code == 0 ? 0 : code == {f.nan}u ? {f.nan}u : sign | (unsigned)code"
    else:
        code_text = "sign | (unsigned)code"
    return "\n".join([*lines, f"    return ({f.word})({code_text});", "}"]) + "\n"


def _bits(value: float, type_: CType) -> int:
    """Return the bits of ``value`` as a float or double: 0x3F800000 for 1 as float."""
    is_float = type_.size == 4
    array = np.float32(value) if is_float else np.float64(value)
    return int(array.view(np.uint32 if is_float else np.uint64))
