"""Pad: a fill and a copy, or a gather of the elements that positions outside map to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import ANY, KernelContext, kernel
from smelt.native.kernels.nest import emit_map
from smelt.native.types import C_TYPES
from smelt.program.run_sizes import Size, is_empty, larger, lowest, same, smaller


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
    """Write a fill and a copy for mode constant, else a gather by index tables
    or computed indices."""
    source, output = cx.strided_input(0), cx.output()
    pads, rank = cx.ints("pads"), len(source.shape)
    if cx.instruction.attributes["mode"] != "constant":
        _pad_by_indices(cx, pads[:rank])
        return
    value = output.type.literal(cx.float("value"))
    with cx.body.loop("i", output.size):
        cx.body.line(f"{output.name}[i] = {value};")
    copied, read_at, write_at = [], 0, 0
    for dim, size in enumerate(source.shape):
        before, after = pads[dim], pads[rank + dim]
        copied.append(cast(int, larger(0, size + smaller(before, 0) + smaller(after, 0))))
        read_at += cast(int, larger(-before, 0)) * source.strides[dim]
        write_at += cast(int, larger(before, 0)) * output.strides[dim]
    write = output.access(output.strides, write_at)
    emit_map(cx.body, copied, write, [source.access(source.strides, read_at)], "{0}")


def _pad_by_indices(cx: KernelContext, before: Sequence[int]) -> None:
    """Write a Pad of mode reflect, edge or wrap: each element reads the index of each dim.

    Indices come from constant tables; those of run-time sizes are computed in the loop.
    """
    source, output = cx.input(0), cx.output()
    mode = str(cx.instruction.attributes["mode"])
    terms, variables = [], [f"i{dim}" for dim in range(len(source.shape))]
    computed: dict[int, int] = {}
    for dim, (size, result_size) in enumerate(zip(source.shape, output.shape, strict=True)):
        stride = source.strides[dim]
        if same(size, result_size):
            terms.append(f"i{dim} * {stride}")
        elif any(isinstance(cast(object, each), Size) for each in (size, result_size, before[dim])):
            cx.require_nonempty(size)
            computed[dim] = size
            terms.append(f"place{dim} * {stride}")
        else:
            table = _source_index(mode, np.arange(result_size) - before[dim], size)
            name = cx.constant(table, C_TYPES[ir.DataType.INT64])
            terms.append(f"{name}[i{dim}] * {stride}")
    last = len(variables) - 1
    if last >= 0 and f"[i{last}] *" in terms[last] and before[last] >= 0:
        _pad_rows(cx, variables, terms, computed, before[last])
        return
    with cx.body.loops(variables, output.shape):
        _pad_elements(cx, variables, terms, computed)


def _pad_elements(
    cx: KernelContext, variables: Sequence[str], terms: Sequence[str], computed: dict[int, int]
) -> None:
    """Write one element; ``computed`` are the dims whose index is computed, with their sizes."""
    mode = str(cx.instruction.attributes["mode"])
    for dim, size in computed.items():
        cx.body.line(f"ptrdiff_t place{dim} = i{dim} - {cx.ints('pads')[dim]};")
        fold_index(cx, mode, f"place{dim}", f"{size}")
    read = f"{cx.input(0).name}[{' + '.join(terms) or '0'}]"
    cx.body.line(f"{cx.output().access().at(variables)} = {read};")


def _pad_rows(
    cx: KernelContext,
    variables: Sequence[str],
    terms: Sequence[str],
    computed: dict[int, int],
    before: int,
) -> None:
    """Write each row in three loops: before the source row, a copy of the row, and after it."""
    shape, row = cx.output().shape, variables[-1]
    copied = [*terms[:-1], f"({row} - {before})"]
    row_end = before + cx.shape(0)[-1]
    with cx.body.loops(variables[:-1], shape[:-1]):
        for start, stop, read in (
            (0, before, terms),
            (before, row_end, copied),
            (row_end, shape[-1], terms),
        ):
            if not same(start, stop):
                with cx.body.loop(row, stop, start):
                    _pad_elements(cx, variables, read, computed)


def fold_index(cx: KernelContext, mode: str, index: str, size: str) -> None:
    """Write C that maps the index ``index``, which may be outside of a dim of ``size``, into the
    dim. In mode reflect:

    ```
    place1 = (place1 % (8 > 1 ? 2 * 8 - 2 : 1) + (8 > 1 ? ...)) % (8 > 1 ? 2 * 8 - 2 : 1);
    place1 = place1 < 8 ? place1 : (8 > 1 ? 2 * 8 - 2 : 1) - place1;
    ```
    """
    if mode == "edge":
        cx.body.line(f"{index} = {index} < 0 ? 0 : {index} < {size} ? {index} : {size} - 1;")
        return
    period = size if mode == "wrap" else f"({size} > 1 ? 2 * {size} - 2 : 1)"
    cx.body.line(f"{index} = ({index} % {period} + {period}) % {period};")
    if mode == "reflect":
        cx.body.line(f"{index} = {index} < {size} ? {index} : {period} - {index};")


def _source_index(mode: str, position: np.ndarray, size: int) -> np.ndarray:
    """Return the index in a dim of ``size`` for each ``position``, which may be
    outside of the dim."""
    if mode == "edge":
        return np.asarray(np.clip(position, 0, size - 1))
    if mode == "wrap":
        return position % size
    period = max(2 * (size - 1), 1)
    folded = position % period
    return np.minimum(folded, period - folded) if size > 1 else np.zeros_like(position)
