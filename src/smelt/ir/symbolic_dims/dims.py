"""Symbolic dims whose names may be any text.

onnx_ir reads the name of a dim as an expression, such as ``2*B``. Exporters also write names that
are no expressions: ``batch size``, ``a,b``, ``n=1``. Such a dim is one symbol of that name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeGuard

import onnx_ir as ir

from smelt.ir.symbolic_dims.dim_texts import is_plain
from smelt.ir.symbolic_dims.invented_dims import is_invented

Place = tuple[ir.Value, int]
"""A value and one of its axes."""


def is_symbolic(dim: object) -> TypeGuard[ir.SymbolicDim]:
    """True if ``dim`` is not a number.

    The type check comes first: isinstance of a protocol class takes 1.5 us for an int.
    """
    return type(dim) is not int and isinstance(dim, ir.SymbolicDim)


def unnamed_dims(inputs: Sequence[ir.Value]) -> dict[Place, str]:
    """Return a name for each dim of ``inputs`` that has none: ``x_0`` for axis 0 of ``x``.

    Users refer to dims by these names. A name that another dim has gets underscores appended.
    """
    used_names: set[str] = set()
    places: list[Place] = []
    for value in inputs:
        for axis, dim in enumerate(value.shape.dims if value.shape is not None else ()):
            if is_symbolic(dim) and (dim.value is None or is_invented(dim.value)):
                places.append((value, axis))
            else:
                used_names |= symbols_of(dim)
    new_names: dict[Place, str] = {}
    for value, axis in places:
        name = re.sub(r"\W", "_", f"{value.name}_{axis}")
        while name in used_names:
            name += "_"
        used_names.add(name)
        new_names[value, axis] = name
    return new_names


def binding_advice(inputs: Sequence[ir.Value]) -> str:
    """Return how to bind each symbolic dim of ``inputs``: ``bind them, for instance: --dim B=1``.

    Empty if all dims are numbers.
    """
    unnamed = unnamed_dims(inputs)
    names: dict[str, None] = {}
    for value in inputs:
        for axis, dim in enumerate(value.shape.dims if value.shape is not None else ()):
            name = unnamed.get((value, axis))
            names.update(dict.fromkeys([name] if name else sorted(symbols_of(dim))))
    sizes = " ".join(f"--dim {name}=1" for name in names)
    return f"bind them, for instance: {sizes}" if sizes else ""


def symbols_of(dim: int | ir.SymbolicDim) -> frozenset[str]:
    """Return the symbols on which ``dim`` depends; none for a number or an unknown dim."""
    if isinstance(dim, int) or dim.value is None:
        return frozenset()
    try:
        return dim.free_symbols()
    except (ValueError, RecursionError):
        return frozenset([dim.value])


def names_of(dim: int | ir.SymbolicDim) -> frozenset[str]:
    """Return the symbols in ``dim`` and its own text, which may be no expression; empty for
    numbers."""
    whole_name = [dim.value] if is_symbolic(dim) and dim.value is not None else []
    return symbols_of(dim) | frozenset(whole_name)


def size_of(dim: int | ir.SymbolicDim, sizes: Mapping[str, int]) -> int | ir.SymbolicDim:
    """Return ``dim`` with ``sizes`` substituted: a number if all symbols are bound."""
    if isinstance(dim, int):
        return dim
    if dim.value is not None and dim.value in sizes:
        return sizes[dim.value]
    try:
        return _without_empty(dim, sizes).evaluate(sizes)
    except (ValueError, ZeroDivisionError, RecursionError):
        return dim


_NAME = re.compile(r"[A-Za-z_][\w.]*")


def _without_empty(dim: ir.SymbolicDim, sizes: Mapping[str, int]) -> ir.SymbolicDim:
    """Return ``dim`` with 0 written for each size that is 0.

    onnx_ir assumes that every symbol is 1 or more, so it reads ``Max(0, N - 1)`` as ``N - 1``.
    """
    empty = {name for name, size in sizes.items() if size == 0}
    if not empty or dim.value is None or not is_plain(dim.value):
        return dim
    return ir.SymbolicDim(_NAME.sub(lambda m: "0" if m[0] in empty else m[0], dim.value))
