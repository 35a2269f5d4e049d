"""Products of float matrices by micro-kernels: rows of the left side by panels of the right.

A constant right side is packed into panels at compile time. A computed one is packed panel by panel
if enough rows use each panel. Otherwise it is read in place, if its columns are contiguous and fill
the widest micro-kernel; the last columns then overlap the previous ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import cast

from smelt.native.emit.writer import Writer
from smelt.native.kernels.epilogue import Epilogue
from smelt.native.kernels.float_panels import MOST_VECTORS, NARROW, PANEL, panel_for
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.reduction_loop import PAIRED, STRIDED, fetching
from smelt.native.kernels.register_blocks import MORE_SUMS, WIDE, by_registers, even_blocks, machine
from smelt.native.kernels.vector import MOST_LANES, PRELUDE, TRANSPOSE_4X4
from smelt.native.kernels.vector_micro_kernel import MicroKernel
from smelt.program.run_sizes import Size, highest, lowest, same

ROWS = 6
WIDE_ROWS = MORE_SUMS // 2
"""The rows of a micro-kernel with 16 registers, and with 32."""

RUN_ROWS = (6, 3, 1)
"""The rows of micro-kernels for a run-time number of rows."""


@dataclass(frozen=True, slots=True)
class Matrices:
    """``c[m, n] = sum over k of a[m, k] * b[k, n]``: pointers as C, sizes, strides in elements.

    Shards divide the ``rows`` or ``columns`` that ``shared`` names, if any. A packed right side is
    ``far`` if it does not stay in cache from run to run.
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
    epilogue: Epilogue
    shared: str = ""
    far: bool = False


COPIED_ROWS, NEAR_COLUMNS = 32, 2 * PANEL
"""The fewest rows for which a contiguous right side is packed, if it has more than
``NEAR_COLUMNS``: the rows of a wider one are too far apart for hardware prefetching."""


def vectors_for(rows: int) -> int:
    """Return the vectors of a micro-kernel; fewer rows have more, to keep multipliers busy."""
    few = 4 if highest(rows) <= 3 else 2
    return MOST_VECTORS if same(rows, 1) else few


def panel_workspace(m: int, n: int, k: int, stride: int) -> int:
    """Return the floats of scratch space for a right side that is not constant."""
    reads_in_place = same(stride, 1) and lowest(n) >= PANEL
    uses_panels_often = lowest(m) >= COPIED_ROWS and lowest(n) > NEAR_COLUMNS
    return 0 if reads_in_place and not uses_panels_often else 4 * PANEL * max(highest(k), 1)


def emit_packed(cx: KernelContext, p: Matrices) -> None:
    """Write a loop over panels of a constant right side."""
    panel, body = panel_for(p.m), cx.body
    lanes = f"{vectors_for(p.m)} * LANES"
    if same(p.m, 1):  # a panel of whole vectors, however many lanes they have
        lanes = f"({WIDE} ? {panel // MOST_LANES} : {MOST_VECTORS}) * LANES"
    with _columns(cx, p, panel):
        last_width = -(-(p.n % panel) // NARROW) * NARROW
        width = f"j + {panel} <= {p.n} ? {panel} : {last_width}" if last_width else str(panel)
        body.line(f"const ptrdiff_t width = {width};")
        with body.block(f"for (ptrdiff_t l = 0; l < width && j + l < {p.n}; l += {lanes})"):
            body.line(f"const ptrdiff_t left = (j + width < {p.n} ? j + width : {p.n}) - j - l;")
            b = f"{p.b} + j * {p.k} + l"
            if _is_fetched(p):
                following = f"j + {panel} < {p.n} ? j + {panel} : 0"
                body.line(f"const float *ahead = {p.b} + ({following}) * {p.k};")
            with _or_one_vector(cx, p, panel, b, "width"):
                stored = f"0, left < {lanes} ? left : {lanes}"
                if same(p.m, 1):
                    _emit_row(cx, p, b, stored)
                else:
                    _emit_rows(cx, p, b, "width", "j + l", stored, fetches=_is_fetched(p))


def _is_fetched(product: Matrices) -> bool:
    """True if the next panel is prefetched while rows are multiplied by one."""
    return product.far and isinstance(cast(object, product.m), int) and vectors_for(product.m) == 2


@contextmanager
def _or_one_vector(
    cx: KernelContext, product: Matrices, panel: int, panel_pointer: str, pitch: str
) -> Iterator[None]:
    """Write ``if (left <= LANES)`` with one vector, if that can be; the caller writes the else."""
    one_is_enough = isinstance(cast(object, product.n), int) and 0 < product.n % panel <= NARROW
    if not one_is_enough:
        yield
        return
    cx.call("LANES", PRELUDE)
    cx.body.line(f"#if {WIDE}")
    with cx.body.block("if (left <= LANES)"):
        _emit_rows(cx, product, panel_pointer, pitch, "j + l", "0, left", 1)
    cx.body.line("else")
    cx.body.line("#endif")
    with cx.body.block(""):
        yield


def emit_direct(cx: KernelContext, p: Matrices) -> None:
    """Write a product whose right side is read in place."""
    body, vectors = cx.body, vectors_for(p.m) if lowest(p.n) >= MOST_VECTORS * MOST_LANES else 2
    lanes = f"{vectors} * LANES"
    with _columns(cx, p, lanes):
        body.line(f"const ptrdiff_t at = j + {lanes} <= {p.n} ? j : {p.n} - {lanes};")
        _emit_rows(cx, p, f"{p.b} + at", str(p.b_k), "at", f"j - at, {lanes}", vectors)


def emit_copied(cx: KernelContext, product: Matrices, scratch: str) -> None:
    """Write a product whose right side is packed at run time, panel by panel."""
    body = cx.body
    copy = _copy(cx, same(product.b_k, 1) and not same(product.b_n, 1))
    with _columns(cx, product, PANEL):
        body.line(f"const ptrdiff_t wide = {product.n} - j < {PANEL} ? {product.n} - j : {PANEL};")
        columns = f"{product.b} + j * {product.b_n}"
        body.line(f"{copy}({columns}, {scratch}, {product.k}, wide, {product.b_k}, {product.b_n});")
        with body.block("for (ptrdiff_t l = 0; l < wide; l += 2 * LANES)"):
            body.line("const ptrdiff_t left = wide - l;")
            stored = "0, left < 2 * LANES ? left : 2 * LANES"
            with _or_one_vector(cx, product, PANEL, f"{scratch} + l", str(PANEL)):
                _emit_rows(cx, product, f"{scratch} + l", str(PANEL), "j + l", stored, 2)


def _columns(cx: KernelContext, product: Matrices, step: int | str) -> AbstractContextManager[None]:
    """Return a loop over all columns ``j``, ``step`` at a time."""
    loop = cx.body.shared_loop if product.shared == "columns" else cx.body.loop
    return loop("j", product.n, step=step)


def _emit_rows(
    cx: KernelContext,
    p: Matrices,
    b: str,
    b_k: str,
    j: str,
    stored: str,
    vectors: int = 0,
    *,
    fetches: bool = False,
) -> None:
    """Write a loop over rows by micro-kernels; ``b`` and ``b_k``: right side and its row stride."""
    columns, epilogue = vectors or vectors_for(p.m), p.epilogue.at("i", j)

    def tile(rows: int, when: str = WIDE if columns == 1 else "", fetch: int = 0) -> None:
        """Write the call of a micro-kernel."""
        micro_kernel = MicroKernel(
            rows, columns, fetching(fetch) if fetch else STRIDED, "", epilogue, when=when
        )
        _call(cx, p, micro_kernel, (b, b_k), j, stored, ["ahead"] if fetch else [])
        if fetch:
            cx.body.line(f"ahead += {fetch * p.k};")

    if isinstance(cast(object, p.m), Size):
        _emit_runtime_rows(cx, p.m, tile)
        return
    loop = cx.body.shared_loop if p.shared == "rows" else cx.body.loop
    narrow = even_blocks(p.m, WIDE_ROWS if columns == 1 else machine().rows)
    wide = even_blocks(p.m, ROWS if columns > 2 else WIDE_ROWS)
    for when, parts in by_registers(cx.body, narrow, wide):
        tiles = sum(part.count for part in parts)
        fetch = -(-PANEL // tiles) if fetches else 0
        for part in parts:
            with loop("i", part.end, part.first, part.length):
                tile(part.length, WIDE if columns == 1 else when, fetch)


def _call(
    cx: KernelContext,
    p: Matrices,
    micro_kernel: MicroKernel,
    b: tuple[str, str],
    j: str,
    stored: str,
    extra: Sequence[str] = (),
) -> None:
    """Write the call of a micro-kernel for rows from ``i`` on and columns from ``j`` on."""
    arguments = [str(p.k), f"{p.a} + i * {p.a_m}", str(p.a_m), str(p.a_k), *b, *extra]
    micro_kernel.call(cx, arguments, f"{p.c} + i * {p.n} + {j}", p.n, stored)


def _emit_row(cx: KernelContext, product: Matrices, panel_pointer: str, stored: str) -> None:
    """Write a single row by a panel: vectors twice as wide, half as many, with two sums each."""
    body, epilogue = cx.body, product.epilogue.at("i", "j + l")
    cx.call("LANES", PRELUDE)
    with body.loop("i", 1):
        body.line(f"#if {WIDE}")
        micro_kernel = MicroKernel(1, panel_for(1) // MOST_LANES, PAIRED, "", epilogue, when=WIDE)
        _call(cx, product, micro_kernel, (panel_pointer, "width"), "j + l", stored)
        body.line("#else")
        micro_kernel = MicroKernel(1, MOST_VECTORS, STRIDED, "", epilogue, when=f"!({WIDE})")
        _call(cx, product, micro_kernel, (panel_pointer, "width"), "j + l", stored)
        body.line("#endif")


def _emit_runtime_rows(cx: KernelContext, rows: int, tile: Callable[[int], None]) -> None:
    """Write loops over a run-time number of rows: the tallest micro-kernel first."""
    with cx.body.block(""):
        cx.body.line("ptrdiff_t i = 0;")
        for length in (each for each in RUN_ROWS if each <= highest(rows)):
            with cx.body.block(f"for (; i + {length} <= {rows}; i += {length})"):
                tile(length)


def _copy(cx: KernelContext, transposed: bool) -> str:
    """Return the name of a function that packs a padded panel; ``transposed`` for
    contiguous columns."""
    name = "copy_transposed" if transposed else "copy_panel"
    cx.call("LANES", PRELUDE)
    out = Writer()
    out.line(f"static void {name}(const float *restrict b, float *restrict to, ptrdiff_t kn,")
    out.line("    ptrdiff_t wide, ptrdiff_t bk, ptrdiff_t bn)")
    with out.block(""):
        if transposed:
            cx.call("transpose_4x4", TRANSPOSE_4X4)
            out.lines(BY_FOURS)
        with out.loop("k", "kn", "first" if transposed else 0):
            with out.loop("n", "wide"):
                out.line(f"to[k * {PANEL} + n] = b[k * bk + n * bn];")
            with out.loop("n", PANEL, "wide"):
                out.line(f"to[k * {PANEL} + n] = 0;")
    return cx.call(name, out.text())


BY_FOURS = f"""#if LANES > 1
const ptrdiff_t first = kn - kn % 4;
for (ptrdiff_t k = 0; k < first; k += 4) {{
    if (wide < {PANEL})
        for (ptrdiff_t i = k * {PANEL}; i < (k + 4) * {PANEL}; ++i)
            to[i] = 0;
    const float *columns = b + k;
    for (ptrdiff_t n = 0; n < wide; n += 4, columns += 4 * bn) {{
        if (wide - n >= 4) {{
            transpose_4x4(columns, bn, to + k * {PANEL} + n, {PANEL});
            continue;
        }}
        for (ptrdiff_t m = 0; m < wide - n; ++m)
            for (ptrdiff_t i = 0; i < 4; ++i)
                to[(k + i) * {PANEL} + n + m] = columns[i + m * bn];
    }}
}}
#else
const ptrdiff_t first = 0;
#endif
"""
"""Four columns at a time of four elements each, transposed in registers. It is one loop: for a
second one, from the end of the first, GCC 12 warns that it may not end."""


def emit(cx: KernelContext, p: Matrices, *, packed: bool, scratch: Sequence[str] = ()) -> None:
    """Write the product ``p``; ``scratch`` has room for a copy of its right side."""
    if packed:
        emit_packed(cx, p)
    elif scratch:
        emit_copied(cx, p, scratch[0])
    else:
        emit_direct(cx, p)
