"""Elementwise operators on bytes: a table of all results, or sums and products in float.

Sums and products equal ONNX Runtime's QLinearAdd and QLinearMul, checked on all pairs of bytes: the
zero point is added before rounding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.elementwise import in_place
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.nest import emit_map
from smelt.native.kernels.quantized.fixed_point import declare, is_fixed, scaled, scaled_byte
from smelt.native.kernels.quantized.look_up import look_up
from smelt.native.kernels.quantized.quantize_vectors import RUN, last_declaration, run_of_two
from smelt.native.kernels.quantized.rounded import rounded, saturated
from smelt.native.types import C_TYPES
from smelt.program.quantized import ADD, LOOKUP, MEAN, MUL
from smelt.program.run_sizes import lowest, same

INT = frozenset({"int"})

PARTS = 1 << 20
"""The fractions of a quantization step in which sums are computed."""

FEWEST = 16
"""The fewest elements for which vectors pay."""


@kernel(LOOKUP, kinds=INT, needs=in_place, shared=True)
def lookup(cx: KernelContext) -> None:
    """Write the element of a 256-entry table that each byte selects."""
    source, table, output = cx.input(0), cx.input(1), cx.output()
    with cx.body.shared_loop("first", output.size, step=RUN):
        cx.body.line(f"const ptrdiff_t left = {output.size} - first;")
        cx.body.line(f"const ptrdiff_t n = left < {RUN} ? left : {RUN};")
        cx.body.line(
            f"{look_up(cx)}({source.name} + first, n, {table.name}, {output.name} + first);"
        )


@kernel(ADD, MUL, kinds=INT, needs=in_place, shared=True)
def add_or_multiply(cx: KernelContext) -> None:
    """Write the sum or product of a and b; scales and zero points are attributes."""
    left, right, output = cx.input(0), cx.input(1), cx.output()
    if is_fixed(cx):
        reads = [operand.broadcast(output.shape) for operand in (left, right)]
        emit_map(cx.body, output.shape, output.access(), reads, _fixed_point(cx), shared=True)
        return
    scales = [np.float32(cx.float(name)) for name in ("a_scale", "b_scale", "y_scale")]
    zeros = [cx.int(name) for name in ("a_zero", "b_zero", "y_zero")]
    emit_text = _sum if cx.instruction.op == ADD else _product
    text = emit_text(scales, zeros)  # FLOAT is the conversion to float, of a vector or an element
    scalar = text.replace("FLOAT", "(float)")
    largest = _largest(cx.instruction.op, scales, zeros)
    value = saturated(cx, scalar, "0", output.type, largest)
    sizes = [_repeated_size(operand.shape, output.shape) for operand in (left, right)]
    repeated_sizes = [size for size in sizes if size is not None]
    if len(repeated_sizes) == 2 and 0 in repeated_sizes:
        _emit_segments(cx, text, value, repeated_sizes)
        return
    reads = [operand.broadcast(output.shape) for operand in (left, right)]
    emit_map(cx.body, output.shape, output.access(), reads, value, shared=True)


def _repeated_size(shape: tuple[int, ...], result: tuple[int, ...]) -> int | None:
    """Return the size of an operand that the result repeats, 0 for one of the result's shape.

    None for others, and for a repeated operand that fills no vector. Shapes are equal, or repeated,
    at all run-time sizes.
    """
    if len(shape) == len(result) and all(map(same, shape, result)):
        return 0
    sizes = list(itertools.dropwhile(lambda size: same(size, 1), shape))
    size = math.prod(sizes)
    ends = result[len(result) - len(sizes) :]
    return size if all(map(same, sizes, ends)) and lowest(size) >= FEWEST else None


def _emit_segments(cx: KernelContext, text: str, value: str, repeated: Sequence[int]) -> None:
    """Write vectors, then single elements, of each segment of the result.

    ``repeated`` are the sizes by ``_repeated_size`` of both operands. A segment is as long as a
    repeated operand, which is read from its start in each segment. ``text`` is the C of a float
    result, ``value`` that of a byte.
    """
    left, right, output, body = cx.input(0), cx.input(1), cx.output(), cx.body
    vector_function = run_of_two(cx, text)
    size = next((size for size in repeated if size), RUN)
    names = list(zip((left.name, right.name), repeated, strict=True))
    body.line(last_declaration(0, output.type.signed))
    with body.shared_loop("first", output.size, step=size):
        body.line(f"const ptrdiff_t left = {output.size} - first;")
        body.line(f"const ptrdiff_t n = left < {size} ? left : {size};")
        to = f"(unsigned char *)({output.name} + first)"
        starts = [each + ("" if is_repeated else " + first") for each, is_repeated in names]
        body.line(f"ptrdiff_t i = {vector_function}({starts[0]}, {starts[1]}, n, last, {to});")
        with body.block("for (; i < n; ++i)"):
            body.line(
                f"{output.name}[first + i] = {value.format(*(f'({each})[i]' for each in starts))};"
            )


def _sum(scales: list[np.float32], zeros: list[int]) -> str:
    """Return the C of a sum of bytes ``{0}`` and ``{1}``, a float in units of the result's scale.

    ``scales`` and ``zeros`` have one item each for the left operand, the right operand, the result.
    """
    first, second = scales[0] / scales[2], scales[1] / scales[2]
    zero_terms = first * np.float32(zeros[0]) + second * np.float32(zeros[1])
    fixed = np.float32(zeros[2]) - zero_terms
    left, right = _literal(first), _literal(second)
    return f"({_literal(fixed)} + FLOAT({{0}}) * {left}) + FLOAT({{1}}) * {right}"


def _product(scales: list[np.float32], zeros: list[int]) -> str:
    """Return the C of a product of bytes, as ``_sum`` does of a sum."""
    factor = scales[0] * scales[1] / scales[2]
    product = f"({{0}} - {_int(zeros[0])}) * ({{1}} - {_int(zeros[1])})"
    return f"FLOAT({product}) * {_literal(factor)} + {_literal(np.float32(zeros[2]))}"


def _largest(op: str, scales: list[np.float32], zeros: list[int]) -> float:
    """Return a limit of the absolute value of a sum or product of bytes, in steps of the result."""
    first, second = (255 * float(scale) for scale in scales[:2])
    total = first + second if op == ADD else first * second
    return total / float(scales[2]) + abs(zeros[2])


def _fixed_point(cx: KernelContext) -> str:
    """Return the C of a sum or product in integers, by a multiplier and a shift.

    Both terms of a sum are scaled to 1 / ``PARTS`` of twice the larger scale, so that their factors
    are at most 1/2.
    """
    declare(cx)
    a, b, y = (cx.float(f"{name}_scale") for name in ("a", "b", "y"))
    left, right, zero = (cx.int(f"{name}_zero") for name in ("a", "b", "y"))
    type_ = cx.output().type
    first, second = f"({{0}} - {_int(left)})", f"({{1}} - {_int(right)})"
    if cx.instruction.op == MUL:
        byte = scaled_byte(f"{first} * {second}", a * b / y, zero, type_.signed)
        return f"({type_.name}){byte}"
    sum_scale = 2 * max(a, b)
    total = " + ".join(
        scaled(f"{each} * {PARTS}", scale / sum_scale) for each, scale in ((first, a), (second, b))
    )
    return f"({type_.name}){scaled_byte(total, sum_scale / (PARTS * y), zero, type_.signed)}"


def _literal(number: np.float32) -> str:
    """Return a float constant as C, with the suffix of a float: ``0.5f``."""
    return C_TYPES[ir.DataType.FLOAT].literal(float(number))


def _int(number: int) -> str:
    """Return an integer as C, a negative one in parentheses, so that it may follow a minus."""
    return str(number) if number >= 0 else f"({number})"


@kernel(MEAN, kinds=INT)
def mean(cx: KernelContext) -> None:
    """Write the mean of each ``size`` consecutive bytes, as one factor of their sum."""
    source, output = cx.input(0), cx.output()
    size = source.size // max(output.size, 1)
    zero, low = cx.int("y_zero"), -128 if output.type.signed else 0
    if is_fixed(cx):
        declare(cx)
        factor = cx.float("x_scale") / (cx.float("y_scale") * size)
        byte = scaled_byte("sum", factor, zero, output.type.signed)
    else:
        mean_factor = np.float32(cx.float("x_scale")) / (
            np.float32(cx.float("y_scale")) * np.float32(size)
        )
        rounded_sum = rounded(
            cx, f"(float)sum * {_literal(mean_factor)}", low - zero, low - zero + 255
        )
        byte = f"({rounded_sum} + {_int(zero)})"
    with cx.body.loop("o", output.size):
        cx.body.line(f"const {source.type.name} *from = {source.name} + o * {size};")
        cx.body.line(f"int32_t sum = {-cx.int('x_zero') * size};")
        with cx.body.loop("i", size):
            cx.body.line("sum += from[i];")
        cx.body.line(f"{output.name}[o] = ({output.type.name}){byte};")
