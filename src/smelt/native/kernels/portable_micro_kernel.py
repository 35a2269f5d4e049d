"""The micro-kernel of matrix products of any type: a tile of ``C += A B`` in portable C.

A tile is a few rows by many columns of C. Each row is a separate array, and compilers vectorize the
innermost loop over columns. Sums stay in registers or in the first-level cache, and one load of B
serves all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from smelt.native.emit.writer import Writer
from smelt.native.kernels.kernel import KernelContext
from smelt.native.types import CType
from smelt.program.run_sizes import Size, same

ROWS = 6
COLUMNS = 32
"""Six rows of 32 sums take 768 bytes of stack, enough even for small devices; eight are no
faster."""

LANES = 8
"""The multiple that columns of a copied B are padded to."""

UNROLL = 4
"""The values of k per iteration; partial results are loaded and stored once per iteration."""


@dataclass(frozen=True, slots=True)
class Algebra:
    """The semiring of a product, as C of the element type; ``name`` is part of function names.

    ``start`` is the initial sum. ``step`` combines the sum ``{c}`` and ``{t}``, and ``product``
    computes ``{t}`` from ``{a}`` and ``{v}``.
    """

    name: str
    start: str
    product: str
    step: str


@dataclass(frozen=True, slots=True)
class Product:
    """``C[m, n] = sum over k of A[m, k] * B[k, n]``.

    ``a`` and ``c`` are pointers as C expressions; strides are in elements. B has stride 1 along n
    and ``b_k`` along k. ``bias`` points to one number per row. ``relu`` clamps results at 0. If
    ``width`` exceeds ``n``, B is padded to that many columns. ``algebra`` replaces the sum of
    products.
    """

    element: CType
    result: CType
    m: int
    n: int
    k: int
    a: str
    a_m: int
    a_k: int
    b: str
    b_k: int
    c: str
    c_m: int
    bias: str = ""
    relu: bool = False
    width: int = 0
    algebra: Algebra | None = None

    @property
    def computed(self) -> int:
        """The columns of B that the micro-kernel computes; it stores ``n`` of them."""
        return max(self.n, self.width)


def padded(columns: int) -> int:
    """Return ``columns`` rounded up to whole vectors."""
    return -(-columns // LANES) * LANES


def columns_for(rows: int, element: CType) -> int:
    """Return the columns of a tile: the fewer rows, the more, to keep multipliers busy.

    Doubles take twice the room of floats, so their tiles have half of the columns.
    """
    columns = COLUMNS * (4 if rows == 1 else 2 if rows < 4 else 1)
    return columns // 2 if element.size == 8 else columns


def emit_columns(cx: KernelContext, product: Product) -> None:
    """Write calls for all rows of a product that is one tile wide."""
    divisible = product.m - product.m % ROWS
    if isinstance(cast(object, product.m), Size):
        with cx.body.loop("i", divisible, step=ROWS):
            _call(cx, product, ROWS, "i")
        with cx.body.loop("i", product.m, start=divisible):
            _call(cx, product, 1, "i")
        return
    if divisible:
        with cx.body.loop("i", divisible, step=ROWS):
            _call(cx, product, ROWS, "i")
    if product.m > divisible:
        _call(cx, product, product.m - divisible, str(divisible))


def _call(cx: KernelContext, product: Product, rows: int, first: str) -> None:
    """Write the call for ``rows`` rows, the first of which is ``first``."""
    tile = product
    name = _tile_function(cx, tile, rows)
    left, result = _plus(tile.a, first, tile.a_m), _plus(tile.c, first, tile.c_m)
    bias = f", {_plus(tile.bias, first, 1)}" if tile.bias else ""
    strides = f"{tile.a_m}, {tile.a_k}"
    cx.body.line(
        f"{name}({tile.k}, {left}, {strides}, {tile.b}, {tile.b_k}, {result}, {tile.c_m}{bias});"
    )


def _plus(pointer: str, first: str, stride: int) -> str:
    """Return ``pointer + first * stride``, as C."""
    if first == "0" or same(stride, 0):
        return pointer
    return f"{pointer} + {first}" if same(stride, 1) else f"{pointer} + {first} * {stride}"


def _tile_function(cx: KernelContext, p: Product, rows: int) -> str:
    """Return the name of the C function for tiles of this size; strides are parameters.

    ```
    static void tile_float_float_2x8(ptrdiff_t kn, const float *restrict a, …)
    {
        float c0[8];
        float c1[8];
        for (ptrdiff_t n = 0; n < 8; ++n) {
            c0[n] = 0;
            …
        for (ptrdiff_t n = 0; n < 8; ++n) {
            c[n] = (float)c0[n];
            c[cm + n] = (float)c1[n];
    ```
    """
    name, head = _head(p, rows)
    result, sum_ = p.result.name, _sum_type(p)
    numbers = range(rows)
    out = Writer()
    out.line(head)
    with out.block(""):
        for row in numbers:
            out.line(f"{sum_} c{row}[{p.computed}];")
        with out.loop("n", p.computed):
            for row in numbers:
                start = p.algebra.start if p.algebra else "0"
                out.line(f"c{row}[n] = {f'({sum_})bias[{row}]' if p.bias else start};")
        out.line(f"const ptrdiff_t whole = kn - kn % {UNROLL};")
        _emit_steps(out, p, rows, UNROLL)
        _emit_steps(out, p, rows, 1)
        with out.loop("n", p.n):
            for row in numbers:
                value = f"({result})c{row}[n]"
                value = f"c{row}[n] < 0 ? 0 : c{row}[n]" if p.relu else value
                out.line(f"c[{_index(row, 'cm')}n] = {value};")
        if rows == 1:
            out.line("(void)am;")
            out.line("(void)cm;")
    return cx.call(name, out.text())


def _head(product: Product, rows: int) -> tuple[str, str]:
    """Return the name of the C function for tiles of ``rows`` rows, and its head."""
    suffix = ("_bias" if product.bias else "") + ("_relu" if product.relu else "")
    suffix += f"_{product.algebra.name}" if product.algebra else ""
    size = f"{rows}x{product.n}" + (
        f"of{product.computed}" if product.computed != product.n else ""
    )
    element, result = product.element.name, product.result.name
    name = f"tile_{element}_{result}_{size}{suffix}"
    bias = f", const {result} *restrict bias" if product.bias else ""
    return name, (
        f"static void {name}(ptrdiff_t kn, const {element} *restrict a, ptrdiff_t am, "
        f"ptrdiff_t ak, const {element} *restrict b, ptrdiff_t bk, {result} *restrict c, "
        f"ptrdiff_t cm{bias})"
    )


def _index(row: int, stride: str) -> str:
    """Return the offset of a row, as C: "" for row 0, ``am + `` for 1, ``2 * am + `` for 2."""
    return "" if row == 0 else f"{stride} + " if row == 1 else f"{row} * {stride} + "


def _emit_steps(out: Writer, p: Product, rows: int, steps: int) -> None:
    """Write the products of ``steps`` values of k per iteration: whole groups, or the remainder."""
    sum_, numbers, unrolled = _sum_type(p), range(rows), range(steps)
    start, stop = ("0", "whole") if steps > 1 else ("whole", "kn")
    with out.loop("k", stop, start, steps):
        for u in unrolled:
            for m in numbers:
                at = f"{_index(m, 'am')}(k + {u}) * ak"
                out.line(f"const {sum_} a{m}_{u} = ({sum_})a[{at}];")
        with out.loop("n", p.computed):
            for u in unrolled:
                out.line(f"const {sum_} v{u} = ({sum_})b[(k + {u}) * bk + n];")
            for m in numbers:
                if p.algebra is None:
                    out.line(f"c{m}[n] += {' + '.join(f'a{m}_{u} * v{u}' for u in unrolled)};")
                else:
                    _emit_algebra(out, p.algebra, sum_, m, steps)


def _sum_type(product: Product) -> str:
    """Return the C type of sums: unsigned for integers, which wrap; the result's type for
    semirings.
    """
    return product.result.modular if product.algebra is None else product.result.name


def _emit_algebra(out: Writer, algebra: Algebra, type_: str, row: int, steps: int) -> None:
    """Write ``steps`` steps of a semiring for row number ``row``."""
    out.line(f"{type_} s{row} = c{row}[n];")
    for u in range(steps):
        out.line(
            f"const {type_} t{row}_{u} = {algebra.product.format(a=f'a{row}_{u}', v=f'v{u}')};"
        )
        out.line(f"s{row} = {algebra.step.format(c=f's{row}', t=f't{row}_{u}')};")
    out.line(f"c{row}[n] = s{row};")
