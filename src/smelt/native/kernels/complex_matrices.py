"""The real 2x2 matrices of complex numbers, which products of complex numbers read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from smelt.native.kernels.blocks import blocked, transposed_loop
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.nest import Access, collapse
from smelt.program.instruction import COMPLEX_MATRICES
from smelt.program.run_sizes import is_empty


@kernel(COMPLEX_MATRICES, shared=True)
def complex_matrices(cx: KernelContext) -> None:
    """Write one loop nest that reads each pair once and writes its four elements.

    ```
    for (ptrdiff_t i0 = 0; i0 < 64; ++i0) {
        const float re = x0[i0 * 2], im = x0[1 + i0 * 2];
        y0[i0 * 2] = re;
        y0[1 + i0 * 2] = im;
        y0[128 + i0 * 2] = -im;
    ```
    """
    source, output, perm, axis = cx.input(0), cx.output(), cx.ints("perm"), cx.int("axis")
    shape = tuple(source.shape[dim] for dim in perm)
    if is_empty(shape):
        return
    steps = (*output.strides[:axis], *output.strides[axis + 1 : -1])
    write = Access(output.name, output.type, steps, output.first)
    strides = tuple(source.strides[dim] for dim in perm)
    read = Access(source.name, source.type, strides, source.first)
    sizes, (write, read) = collapse(shape, (write, read))
    variables = [f"i{dim}" for dim in range(len(sizes))]
    shared = cx.body.widest(sizes)
    read_loop = transposed_loop(sizes, _in_pairs(write.strides), [_in_pairs(read.strides)])
    if read_loop is not None and shared is None:
        nest = blocked(cx.body, variables, sizes, read_loop)
    else:
        nest = cx.body.loops(variables, sizes, shared) if sizes else cx.body.block("")
    re, im = (replace(read, offset=read.offset + part).at(variables) for part in (0, 1))
    with nest:
        cx.body.line(f"const {source.type.name} re = {re}, im = {im};")
        elements = zip(("re", "im", "im", "re"), cx.ints("signs"), strict=True)
        for number, (name, sign) in enumerate(elements):
            row, column = divmod(number, 2)
            place = write.offset + row * output.strides[axis] + column
            element = replace(write, offset=place).at(variables)
            cx.body.line(f"{element} = {'-' if sign < 0 else ''}{name};")


def _in_pairs(strides: Sequence[int]) -> tuple[int, ...]:
    """Return ``strides``, which count floats, in pairs of floats. A stride that depends on sizes of
    the run is returned unchanged."""
    return tuple(step // 2 if isinstance(step, int) else step for step in strides)
