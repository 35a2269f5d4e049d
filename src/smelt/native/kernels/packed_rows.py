"""GatherBlockQuantized: rows of a table of 4-bit or 8-bit codes, as floats."""

from __future__ import annotations

from smelt.native.kernels.indexing import declare_position
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.quantized.operands import is_present

SCALES, ZEROS = 2, 3
"""The positions of inputs."""


def _refuse(instance: Instance) -> str | None:
    """Return why the instruction is refused, None if it is supported."""
    bits, size = instance.int("bits"), instance.int("block_size")
    shapes = [instance.shape(0), instance.shape(SCALES)]
    if any(len(shape) != 2 or not all(isinstance(d, int) for d in shape) for shape in shapes):
        return "a table of other than two known dims"
    if instance.int("gather_axis") or instance.int("quantize_axis") not in (1, -1):
        return "rows that are not contiguous"
    if bits not in (4, 8) or size < 1 or shapes[0][1] * 8 != shapes[1][1] * size * bits:
        return "rows that are not whole blocks of 4 or 8 bits"
    types = {0: "uint8_t", SCALES: "float", ZEROS: "uint8_t"}
    given = [i for i in types if is_present(instance, i)]
    return None if all(instance.type(i).name == types[i] for i in given) else "other types"


@kernel("GatherBlockQuantized", refuse=_refuse, kinds=frozenset({"int"}))
def packed_rows(cx: KernelContext) -> None:
    """Write a loop over indices and, in it, over the codes of a row.

    ```
    ptrdiff_t at = (ptrdiff_t)x1[i];
    for (ptrdiff_t k = 0; k < 1024; ++k) {
        const int code = x0[at * 512 + k / 2] >> k % 2 * 4 & 15;
        y0[i * 1024 + k] = (float)(code - 8) * x2[at * 32 + k / 32];
    }
    ```
    """
    body, table, indices, scales = cx.body, cx.input(0), cx.input(1), cx.input(SCALES)
    zeros, output, bits = cx.optional(ZEROS), cx.output(), cx.int("bits")
    (count, row_bytes), (_, blocks) = cx.shape(0), cx.shape(SCALES)
    length, per_byte, mask = row_bytes * 8 // bits, 8 // bits, (1 << bits) - 1

    def code(name: str, row: int, index: str) -> str:
        """Return the C of code ``index`` of a packed row of ``row`` bytes."""
        return (
            f"{name}[at * {row} + {index} / {per_byte}] >> {index} % {per_byte} * {bits} & {mask}"
        )

    with body.loop("i", indices.size):
        declare_position(cx, indices, "i", count, clamp=True)
        with body.loop("k", length):
            body.line(f"const ptrdiff_t b = k / {cx.int('block_size')};")
            body.line(f"const int code = {code(table.name, row_bytes, 'k')};")
            zero = str(1 << bits - 1)
            if zeros is not None:
                body.line(f"const int zero = {code(zeros.name, -(-blocks // per_byte), 'b')};")
                zero = "zero"
            value = f"(float)(code - {zero}) * {scales.name}[at * {blocks} + b]"
            body.line(f"{output.name}[i * {length} + k] = {value};")
