"""Dims that are clamped to the size of a table: S and Min(512, S) are equal wherever they
broadcast.

Positions beyond a table fail at run time. A bound that one axis of a broadcast proves also holds on
the other axes. For a table of 64 x 64, ``table[P : P + S, : P + S]`` has Min(64, P + S) columns and
Min(64, P + S) - Min(64, P) rows. If it is added to scores of S rows and P + S columns, the columns
prove that P + S <= 64. So no Min has an effect, and the table has S rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import onnx_ir as ir

from smelt.ir.onnx_ir_private import expression_of
from smelt.ir.same_shape import Dim
from smelt.ir.symbolic_dims.bounded_sizes import inside_bound

_Bounds: TypeAlias = Sequence[tuple[ir.SymbolicDim, int]]
"""Dims with their upper bounds."""


def broadcast_sizes(dims_by_axis: Mapping[int, Sequence[Dim]]) -> dict[int, Dim | None]:
    """Return, by axis, the size to which the dims of that axis broadcast; None if it is not known.

    ``dims_by_axis`` has the dims of all operands by axis. A number and a clamped dim are equal only
    under bounds that other axes prove. For the table of this module:

        {2: [S, Min(64, P + S) - Min(64, P)], 3: [P + S, Min(64, P + S)]}   =>   {2: S, 3: P + S}

    Axis 3 has a known size and proves P + S <= 64. Under this bound, axis 2 is S.
    """
    sizes: dict[int, Dim | None] = {}
    for axis, dims in dims_by_axis.items():
        symbols = [dim for dim in dims if not isinstance(dim, int)]
        if len(symbols) == len(dims):
            sizes[axis] = _common_dim(symbols) or _unclamped(symbols)
    bounds = _bounds(
        (clamped, whole) for axis, whole in sizes.items() for clamped in dims_by_axis[axis]
    )
    for axis, dims in dims_by_axis.items():
        if bounds and sizes.get(axis) is None and len(dims) == 2:
            whole = next(
                (
                    candidate
                    for candidate, dim in (dims, dims[::-1])
                    if _is_never_clamped(dim, candidate, bounds)
                ),
                None,
            )
            if whole is not None:
                sizes[axis] = whole
    return sizes


def is_clamped(dim: ir.SymbolicDim) -> bool:
    """True if ``dim`` contains a Min with a number."""
    return dim.value is not None and "Min(" in dim.value


def all_equal_if_broadcast(dims: Sequence[Dim], wholes: Sequence[Dim]) -> list[bool]:
    """Return, for each pair of ``dims`` and ``wholes``, if the dim equals the whole wherever it
    broadcasts to it."""
    pairs = list(zip(dims, wholes, strict=True))
    bounds = _bounds(pairs)
    return [equal_if_broadcast(*pair) or _is_never_clamped(*pair, bounds) for pair in pairs]


def equal_if_broadcast(dim: Dim, whole: Dim) -> bool:
    """True if ``dim`` equals ``whole`` wherever it broadcasts to it: S, Min(512, S), Max(0, S)."""
    if isinstance(dim, int) or isinstance(whole, int):
        return isinstance(dim, int) and isinstance(whole, int) and dim == whole
    if dim.value == whole.value:
        return dim.value is not None
    bound = bound_of(dim, whole)
    return (bound is not None and bound > 1) or _size_of_bounded_pair((whole, dim)) is whole


def bound_of(clamped: ir.SymbolicDim, whole: ir.SymbolicDim) -> int | None:
    """Return the number n if ``clamped`` is Min(n, ``whole``), else None."""
    if clamped.value is None or not clamped.value.startswith("Min("):
        return None
    # onnx_ir would read these two texts as 1.
    if clamped.value in (f"Min(1, {whole.value})", f"Min({whole.value}, 1)"):
        return 1
    bounds = [bound for bound in expression_of(clamped).args if str(bound) != whole.value]
    return int(bounds[0]) if len(bounds) == 1 and bounds[0].is_Integer else None


def _common_dim(symbols: Sequence[ir.SymbolicDim]) -> ir.SymbolicDim | None:
    """Return the one dim that all of ``symbols`` equal, else None.

    Dims are equal if they simplify to the same expression, or if one is the other bounded by 0: ``N
    - 1`` and ``Max(0, N - 1)``. A plain name is not compared.
    """
    first, *others = symbols
    if first.value is None or first.value.isidentifier():
        return None
    same = all(symbol.value is not None and symbol + 0 == first + 0 for symbol in others)
    return first + 0 if same else _size_of_bounded_pair(symbols)


def _size_of_bounded_pair(symbols: Sequence[ir.SymbolicDim]) -> ir.SymbolicDim | None:
    """Return X if ``symbols`` are X and Max(0, X), which are equal because X is a size; else
    None."""
    if len(symbols) != 2:
        return None
    for size, bounded in (symbols, symbols[::-1]):
        inside = inside_bound(bounded.value or "")
        if inside and ir.SymbolicDim(inside) + 0 == size + 0:
            return size
    return None


def _unclamped(symbols: Sequence[ir.SymbolicDim]) -> ir.SymbolicDim | None:
    """Return S if ``symbols`` are S and Min(512, S), whose broadcast is S; else None."""
    if len(symbols) != 2:
        return None
    for whole, clamped in (symbols, symbols[::-1]):
        bound = bound_of(clamped, whole)
        if bound is not None and bound >= 1:
            return whole
    return None


def _bounds(pairs: Iterable[tuple[Dim, Dim | None]]) -> _Bounds:
    """Return the upper bounds that pairs (clamped, whole) prove: Min(64, S) with S proves S <= 64.

    Min(1, S) proves nothing, because 1 broadcasts to any size.
    """
    bounds = []
    for dim, whole in pairs:
        if isinstance(dim, ir.SymbolicDim) and isinstance(whole, ir.SymbolicDim) and dim != whole:
            bound = bound_of(dim, whole)
            bounds += [(whole, bound)] if bound is not None and bound > 1 else []
    return bounds


def _is_never_clamped(dim: Dim, whole: Dim, bounds: _Bounds) -> bool:
    """True if ``dim`` equals ``whole`` under ``bounds``, because each Min in it has no effect."""
    if isinstance(dim, int) or not bounds or not is_clamped(dim):
        return False
    import sympy

    expression = expression_of(dim)
    without_min = {}
    for clamped in expression.atoms(sympy.Min):
        number, *sizes = sorted(clamped.args, key=lambda arg: not arg.is_Integer)
        if len(sizes) == 1 and number.is_Integer:
            for largest_dim, bound in bounds:
                if number >= bound and (expression_of(largest_dim) - sizes[0]).is_nonnegative:
                    without_min[clamped] = sizes[0]
    uncut = expression.xreplace(without_min) if without_min else expression
    expected = whole if isinstance(whole, int) else expression_of(whole)
    return bool(without_min) and sympy.simplify(uncut - expected) == 0
