"""Pad: a fill and a copy, or a copy of the elements that positions outside map to.

A pad is a number or a run-time size: the kernels with pads in the model and in an input share all.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import cast

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import ANY, KernelContext, kernel
from smelt.native.kernels.nest import emit_map
from smelt.native.kernels.operand import Operand
from smelt.program.run_sizes import highest, is_empty, larger, lowest, same, smaller


def _pad_refusal(instance: Instance) -> str | None:
    """Return why a Pad is refused, None if it is supported."""
    mode = instance.instruction.attributes["mode"]
    pads = instance.ints("pads")
    if mode == "constant":
        return None
    if any(lowest(pad) < 0 for pad in pads):
        return f"mode {mode!r} with a negative pad"
    if mode not in ("reflect", "edge", "wrap"):
        return f"mode {mode!r}"
    if is_empty(instance.shape(0)):
        return f"mode {mode!r} of an empty tensor"
    return None


@kernel("Pad", kinds=ANY, refuse=_pad_refusal)
def pad(cx: KernelContext) -> None:
    """Write a Pad whose pads are in the model."""
    source, output = cx.strided_input(0), cx.output()
    if cx.instruction.attributes["mode"] != "constant":
        for size, result_size in zip(source.shape, output.shape, strict=True):
            if not same(size, result_size):
                cx.require_nonempty(size)
    emit_pad(cx, source, cx.ints("pads"), output.type.literal(cx.float("value")))


def emit_pad(cx: KernelContext, source: Operand, pads: Sequence[int], fill: str) -> None:
    """Write a fill and a copy for mode constant, else a copy that folds indices into the source.

    ``pads`` has the pads before all dims, then those after. ``fill`` is C.
    """
    output, rank = cx.output(), len(source.shape)
    if cx.instruction.attributes["mode"] != "constant" and rank > 0:
        _emit_folded(cx, source, pads)
        return
    with cx.body.loop("i", output.size):
        cx.body.line(f"{output.name}[i] = {fill};")
    copied, read_at, write_at = [], 0, 0
    for dim, size in enumerate(source.shape):
        before, after = pads[dim], pads[rank + dim]
        copied.append(cast(int, larger(0, size + smaller(before, 0) + smaller(after, 0))))
        read_at += cast(int, larger(-before, 0)) * source.strides[dim]
        write_at += cast(int, larger(before, 0)) * output.strides[dim]
    write = output.access(output.strides, write_at)
    emit_map(cx.body, copied, write, [source.access(source.strides, read_at)], "{0}")


def _emit_folded(cx: KernelContext, source: Operand, pads: Sequence[int]) -> None:
    """Write a Pad of mode reflect, edge or wrap, with an index into the source for each dim.

    A row along a padded last dim has three loops: before the source row, a copy, and after it.

    ```
    for (ptrdiff_t i0 = 0; i0 < 6; ++i0) {
        ptrdiff_t p0 = i0 - 1;
        p0 = p0 < 0 ? -p0 : p0;
        p0 = p0 < 4 ? p0 : 2 * 4 - 2 - p0;
        for (ptrdiff_t i1 = 0; i1 < 2; ++i1) {
            ptrdiff_t p1 = i1 - 2;
            ...
            y0[i0 * 9 + i1] = x0[p0 * 5 + p1];
    ```
    """
    body, shape, read_at = cx.body, cx.output().shape, list[str]()
    *outer, last = range(len(shape))

    def folded(dim: int) -> str:
        """Write the fold of an index, if it may leave the source, and return its name."""
        size, stays = source.shape[dim], same(source.shape[dim], shape[dim])
        return f"i{dim}" if stays else _fold(cx, dim, size, pads[dim :: len(shape)])

    with ExitStack() as loops:
        for dim in outer:
            loops.enter_context(body.loop(f"i{dim}", shape[dim]))
            read_at.append(folded(dim))
        before, end, at = pads[last], pads[last] + source.shape[last], f"i{last}"
        if same(source.shape[last], shape[last]):
            before, end = 0, shape[last]
        inside = f"({at} - {before})" if not same(before, 0) else at
        for start, stop, place in ((0, before, ""), (before, end, inside), (end, shape[last], "")):
            if not same(start, stop):
                with body.loop(at, stop, start):
                    row = place or folded(last)
                    read = source.access().at([*read_at, row])
                    write = cx.output().access().at([f"i{dim}" for dim in (*outer, last)])
                    body.line(f"{write} = {read};")


def _fold(cx: KernelContext, dim: int, size: int, pads: Sequence[int]) -> str:
    """Write C that folds the index along ``dim`` into the source, and return its name.

    Pads that are surely no longer than the source need no division.
    """
    mode, at = str(cx.instruction.attributes["mode"]), f"p{dim}"
    cx.body.line(f"ptrdiff_t {at} = i{dim} - {pads[0]};")
    below, above = {
        "edge": ("0", f"{size} - 1"),
        "wrap": (f"{at} + {size}", f"{at} - {size}"),
        "reflect": (f"-{at}", f"2 * {size} - 2 - {at}"),
    }[mode]
    if mode != "edge" and max(map(highest, pads)) + (mode == "reflect") > lowest(size):
        period = f"{size}" if mode == "wrap" else f"({size} > 1 ? 2 * {size} - 2 : 1)"
        cx.body.line(f"{at} = ({at} % {period} + {period}) % {period};")
    else:
        cx.body.line(f"{at} = {at} < 0 ? {below} : {at};")
    cx.body.line(f"{at} = {at} < {size} ? {at} : {above};")
    return at
