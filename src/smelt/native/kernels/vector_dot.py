"""Products of float matrices in vector tiles: rows of the left side by panels of the right.

A constant right side is laid out in panels when the model is compiled. One that is computed is
read where it lies if its columns are neighbours and enough for the widest tile; the last columns
then overlap those before. Any other is copied into scratch space, a panel at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import cast

import numpy as np

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.vector import MOST_LANES
from smelt.native.kernels.vector_tile import STRIDED, Finish, Tile, even_parts
from smelt.native.writer import Writer
from smelt.program.run_sizes import Size, highest, lowest, same

ROWS = 6
RUN_ROWS = (6, 3, 1)
"""Rows of tiles where the run decides how many there are."""
MOST_VECTORS = 8
PANEL = 2 * MOST_LANES
NARROW = MOST_LANES
"""What the last panel of a constant is padded to."""


@dataclass(frozen=True, slots=True)
class Matrices:
    """``c[m, n] = sum over k of a[m, k] * b[k, n]``: pointers as C, sizes, strides in elements.

    Parts of a run share ``rows`` or ``columns``, or neither.
    """

    m: int
    n: int
    k: int
    a: str
    a_m: int
    a_k: int
    b: str
    b_k: int
    b_n: int
    c: str
    finish: Finish
    shared: str = ""


def vectors_for(rows: int) -> int:
    """The fewer rows, the more vectors: sums enough to keep multipliers busy."""
    return MOST_VECTORS if same(rows, 1) else 4 if highest(rows) <= 3 else 2


def panel_for(rows: int) -> int:
    """Columns of a laid out panel."""
    return PANEL * 2 if highest(rows) <= 3 else PANEL


def panel_workspace(n: int, k: int, stride: int) -> int:
    """Scratch bytes for a right side that is no constant."""
    return 0 if same(stride, 1) and lowest(n) >= PANEL else 4 * PANEL * max(highest(k), 1)


def pack(matrix: np.ndarray, rows: int) -> np.ndarray:
    """``[k, n]`` as panels ``[k][columns]``, the last one padded, then room for vectors."""
    panel = panel_for(rows)
    parts = []
    for j in range(0, matrix.shape[1], panel):
        part = matrix[:, j : j + panel]
        wide = -(-part.shape[1] // NARROW) * NARROW
        parts.append(np.pad(part, ((0, 0), (0, wide - part.shape[1]))).reshape(-1))
    parts.append(np.zeros(MOST_VECTORS * MOST_LANES, np.float32))
    return np.concatenate(parts)


def emit_packed(cx: KernelContext, p: Matrices) -> None:
    """All panels of a constant right side."""
    panel, body = panel_for(p.m), cx.body
    lanes = f"{vectors_for(p.m)} * LANES"
    with _columns(cx, p, panel):
        rest = -(-(p.n % panel) // NARROW) * NARROW
        width = f"j + {panel} <= {p.n} ? {panel} : {rest}" if rest else str(panel)
        body.line(f"const ptrdiff_t width = {width};")
        with body.block(f"for (ptrdiff_t l = 0; l < width && j + l < {p.n}; l += {lanes})"):
            body.line(f"const ptrdiff_t left = (j + width < {p.n} ? j + width : {p.n}) - j - l;")
            b = f"{p.b} + j * {p.k} + l"
            _emit_rows(cx, p, b, "width", "j + l", f"0, left < {lanes} ? left : {lanes}")


def emit_direct(cx: KernelContext, p: Matrices) -> None:
    """A right side that is read where it lies."""
    body, vectors = cx.body, vectors_for(p.m) if lowest(p.n) >= MOST_VECTORS * MOST_LANES else 2
    lanes = f"{vectors} * LANES"
    with _columns(cx, p, lanes):
        body.line(f"const ptrdiff_t at = j + {lanes} <= {p.n} ? j : {p.n} - {lanes};")
        _emit_rows(cx, p, f"{p.b} + at", str(p.b_k), "at", f"j - at, {lanes}", vectors)


def emit_copied(cx: KernelContext, p: Matrices, scratch: str) -> None:
    """A right side that is copied, a panel at a time."""
    body = cx.body
    copy = _copy(cx)
    with _columns(cx, p, PANEL):
        body.line(f"const ptrdiff_t wide = {p.n} - j < {PANEL} ? {p.n} - j : {PANEL};")
        b = f"{p.b} + j * {p.b_n}"
        body.line(f"{copy}({b}, {scratch}, {p.k}, wide, {p.b_k}, {p.b_n});")
        with body.block("for (ptrdiff_t l = 0; l < wide; l += 2 * LANES)"):
            stored = "0, wide - l < 2 * LANES ? wide - l : 2 * LANES"
            _emit_rows(cx, p, f"{scratch} + l", str(PANEL), "j + l", stored, 2)


def _columns(cx: KernelContext, p: Matrices, step: int | str) -> AbstractContextManager[None]:
    """A loop over all columns ``j``, so many at a time."""
    loop = cx.body.shared_loop if p.shared == "columns" else cx.body.loop
    return loop("j", p.n, step=step)


def _emit_rows(
    cx: KernelContext, p: Matrices, b: str, b_k: str, j: str, stored: str, vectors: int = 0
) -> None:
    columns, finish = vectors or vectors_for(p.m), p.finish.at("i", j)

    def tile(rows: int) -> None:
        a = f"{p.a} + i * {p.a_m}"
        arguments = [str(p.k), a, str(p.a_m), str(p.a_k), b, b_k]
        made = Tile(rows, columns, STRIDED, "", finish)
        made.call(cx, arguments, f"{p.c} + i * {p.n} + {j}", p.n, stored)

    if isinstance(cast(object, p.m), Size):
        _emit_run_rows(cx, p.m, tile)
        return
    loop = cx.body.shared_loop if p.shared == "rows" else cx.body.loop
    for part in even_parts(p.m, ROWS):
        end = part.first + part.length * part.count
        with loop("i", end, part.first, part.length):
            tile(part.length)


def _emit_run_rows(cx: KernelContext, rows: int, tile: Callable[[int], None]) -> None:
    """As many rows as the run has: tiles of the most, then of fewer."""
    with cx.body.block(""):
        cx.body.line("ptrdiff_t i = 0;")
        for length in (each for each in RUN_ROWS if each <= highest(rows)):
            with cx.body.block(f"for (; i + {length} <= {rows}; i += {length})"):
                tile(length)


def _copy(cx: KernelContext) -> str:
    """A function that copies a panel; columns beyond those that exist are 0."""
    out = Writer()
    out.line("static void copy_panel(const float *restrict b, float *restrict to, ptrdiff_t kn,")
    out.line("    ptrdiff_t wide, ptrdiff_t bk, ptrdiff_t bn)")
    with out.block(""), out.loop("k", "kn"):
        with out.loop("n", "wide"):
            out.line(f"to[k * {PANEL} + n] = b[k * bk + n * bn];")
        with out.loop("n", PANEL, "wide"):
            out.line(f"to[k * {PANEL} + n] = 0;")
    return cx.call("copy_panel", out.text())


def emit(cx: KernelContext, p: Matrices, *, packed: bool, scratch: Sequence[str] = ()) -> None:
    """``p`` by the way that its right side asks for."""
    if packed:
        emit_packed(cx, p)
    elif scratch:
        emit_copied(cx, p, scratch[0])
    else:
        emit_direct(cx, p)
