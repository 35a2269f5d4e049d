"""Softmax of bytes along the last dim, with a table of exponentials and float sums."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.quantized.fixed_point import is_fixed
from smelt.native.kernels.quantized.fixed_softmax import fixed_softmax
from smelt.native.kernels.quantized.quantize_vectors import last_declaration, quantize_run
from smelt.native.kernels.quantized.rounded import rounded
from smelt.native.types import C_TYPES
from smelt.program.quantized import SOFTMAX
from smelt.program.storage import Needs

EXPONENTIALS = """static float exponentials(const unsigned char *restrict x, ptrdiff_t n,
    const float *restrict table, float *restrict e)
{
    float a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;
    const ptrdiff_t whole = n - n % 4;
    for (ptrdiff_t i = 0; i < whole; i += 4) {
        a += e[i] = table[x[i]];
        b += e[i + 1] = table[x[i + 1]];
        c += e[i + 2] = table[x[i + 2]];
        d += e[i + 3] = table[x[i + 3]];
    }
    for (ptrdiff_t i = whole; i < n; ++i)
        a += e[i] = table[x[i]];
    return (a + b) + (c + d);
}
"""


def _needs(instance: Instance) -> Needs:
    """Return the scratch space of a row of exponentials."""
    return Needs(workspace=4 * instance.shape(0)[-1])


def _refuse(instance: Instance) -> str | None:
    """Return why a scalar is refused, None for other shapes."""
    return None if instance.shape(0) else "no dim to sum over"


@kernel(SOFTMAX, kinds=frozenset({"int"}), needs=_needs, refuse=_refuse, shared=True)
def softmax(cx: KernelContext) -> None:
    """Write the exponentials of each row and their sum, then the quotients as bytes."""
    source, output, body = cx.input(0), cx.output(), cx.body
    size = source.shape[-1]
    if is_fixed(cx):
        _emit_fixed(cx, size)
        return
    table = cx.input(1)
    scale = C_TYPES[ir.DataType.FLOAT].literal(float(np.float32(cx.float("y_scale"))))
    zero, low = cx.int("y_zero"), -128 if output.type.signed else 0
    exponentials, run = cx.call("exponentials", EXPONENTIALS), quantize_run(cx)
    rounded_share = rounded(cx, f"{cx.scratch(C_TYPES[ir.DataType.FLOAT])}[i] / all", 0, 512)
    body.line(last_declaration(zero, output.type.signed))
    with _row_loop(cx) as row_bytes:
        total = f"{exponentials}({row_bytes}, {size}, {table.name}, scratch)"
        body.line(f"const float all = {total} * {scale};")
        body.line(f"ptrdiff_t i = {run}(scratch, {size}, all, last, (unsigned char *)to);")
        with body.block(f"for (; i < {size}; ++i)"):
            body.line(f"const int32_t near = {rounded_share} + {zero};")
            clamped = f"near < {low} ? {low} : near > {low + 255} ? {low + 255} : near"
            body.line(f"to[i] = ({output.type.name})({clamped});")


def _emit_fixed(cx: KernelContext, size: int) -> None:
    """Write each row by the function that computes in integers."""
    output, body = cx.output(), cx.body
    table = cx.program.constants[cx.instruction.inputs[1]]
    function, arguments = fixed_softmax(cx, table, cx.float("y_scale"))
    zero, low = cx.int("y_zero"), -128 if output.type.signed else 0
    with _row_loop(cx) as row_bytes:
        ends = f"{zero}, {low}, (unsigned char *)to"
        body.line(f"{function}({row_bytes}, {size}, {arguments}, {ends});")


@contextmanager
def _row_loop(cx: KernelContext) -> Iterator[str]:
    """Write a loop over rows ``from`` with results ``to``; yield the bytes that index the table."""
    source, output, body = cx.input(0), cx.output(), cx.body
    size = source.shape[-1]
    with body.shared_loop("o", source.size // size):
        body.line(f"const {source.type.name} *from = {source.name} + o * {size};")
        body.line(f"{output.type.name} *to = {output.name} + o * {size};")
        yield _emit_less_largest(cx) if cx.int("from_max") else "(const unsigned char *)from"


def _emit_less_largest(cx: KernelContext) -> str:
    """Write a copy of the row in place of its results, shifted so that its largest byte is 255."""
    body, size = cx.body, cx.input(0).shape[-1]
    body.line("int32_t most = from[0];")
    with body.loop("i", size):
        body.line("most = from[i] > most ? from[i] : most;")
    body.line("unsigned char *moved = (unsigned char *)to;")
    with body.loop("i", size):
        body.line("moved[i] = (unsigned char)(from[i] - most + 255);")
    return "moved"
