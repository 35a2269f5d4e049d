"""Dims of inputs that may be 0 in a run, such as the length of a cache that is empty at first.

onnx_ir takes every symbol for 1 or more, and SymPy then reads ``Max(1, P)`` as ``P``. Of JAX that
is true: it takes no open size for 0. Where other models are optimized and compiled, the symbols in
the dims of their inputs are read as 0 or more, and so are those that inference makes up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from typing import Any

import onnx_ir as ir

from smelt.ir.dim_texts import is_plain, opaque_unless_plain
from smelt.ir.invented_dims import every_value, is_invented
from smelt.ir.onnx_ir_private import (
    expression_of,
    forget_expression,
    has_expression,
    make_symbols_by,
    set_expression,
)

_NAMES: ContextVar[frozenset[str] | None] = ContextVar("dims that may be 0", default=None)

_NEVER = "smelt.never_empty"
"""The key in the ``meta`` of a model's graph, and in the metadata of its file, whose source takes
no empty inputs, as JAX takes none of an open size."""

_NAME = re.compile(r"[A-Za-z_][\w.]*(?!\w*\()")
MORE = "_and_one"
"""Ends the name of the symbol that is one more than the dim."""


def note_never_empty(model: ir.Model) -> None:
    """Say that no run of ``model`` has an input with an open dim of 0."""
    model.graph.meta[_NEVER] = True


def write_never_empty(model: ir.Model) -> None:
    """Let files of ``model``, of which ``note_never_empty`` was said, say so, too."""
    dims = (dim for value in model.graph.inputs for dim in value.shape or ())
    if not all(isinstance(dim, int) for dim in dims):
        model.metadata_props[_NEVER] = "true"


def is_never_empty(model: ir.Model) -> bool:
    """True if ``note_never_empty`` said so, of this model, of what it is a copy of, or before it
    was written to a file."""
    return bool(model.graph.meta.get(_NEVER)) or model.metadata_props.get(_NEVER) == "true"


def forget_never_empty(model: ir.Model) -> None:
    """Take it back, where ``model`` gets inputs that its source has not."""
    model.graph.meta.pop(_NEVER, None)
    model.metadata_props.pop(_NEVER, None)


@contextmanager
def may_be_empty(names: Iterable[str], model: ir.Model | None = None) -> Iterator[None]:
    """Let the dims called ``names`` be 0 in some runs, for what happens inside.

    What texts of dims of ``model`` were read as before is forgotten.
    """
    take_symbols_from_zero()
    before = _NAMES.get()
    after = frozenset(names) | (before or frozenset())
    token = _NAMES.set(after)
    try:
        if model is not None and after != before:
            _read_anew(model)
        yield
    finally:
        _NAMES.reset(token)


@cache
def take_symbols_from_zero() -> None:
    """Let texts of dims be read as said here, once for the process."""
    make_symbols_by(_symbol, _NAMES.get)


def _symbol(name: str, **assumptions: bool) -> Any:
    import sympy

    if may_be_none(name):
        return sympy.Symbol(name, integer=True, nonnegative=True)
    return sympy.Symbol(name, **assumptions)


def may_be_none(name: str) -> bool:
    """True if the size called ``name`` may be 0 in a run, as said here."""
    names = _NAMES.get()
    return names is not None and (name in names or is_invented(name))


def any_may_be_none() -> bool:
    """True where sizes may be 0 at all."""
    return _NAMES.get() is not None


def _read_anew(model: ir.Model) -> None:
    for value in every_value(model):
        for dim in value.shape.dims if value.shape is not None else ():
            if not isinstance(dim, int) and has_expression(dim):
                _read_dim_anew(dim)


def _read_dim_anew(dim: ir.SymbolicDim) -> None:
    before = forget_expression(dim)
    if (dim.value or "").isidentifier():
        return
    opaque_unless_plain(dim)
    if expression_of(dim).is_Symbol and not before.is_Symbol:  # no text says that it is rounded up
        names = [each for each in before.free_symbols if is_plain(each.name)]
        anew = {each: _symbol(each.name, integer=True, positive=True) for each in names}
        set_expression(dim, before.xreplace(anew))


def expression_from_zero(dim: ir.SymbolicDim, names: Iterable[str] | None = None) -> Any:
    """The SymPy expression of ``dim``, in which each of ``names`` is one less than a symbol called
    so with ``MORE`` behind, and the others are 1 or more; without ``names``, as it is read here."""
    text = dim.value
    if names is None or text is None:
        return expression_of(dim)
    empty = frozenset(names)
    if not is_plain(text):
        return _from_one(expression_of(dim), empty)
    return from_one(_NAME.sub(lambda m: _one_less(m[0]) if m[0] in empty else m[0], text))


def _from_one(expression: Any, empty: Set[str]) -> Any:
    import sympy

    names = [symbol for symbol in expression.free_symbols if symbol.name not in empty]
    return expression.xreplace(
        {symbol: sympy.Symbol(symbol.name, integer=True, positive=True) for symbol in names}
    )


def _one_less(name: str) -> str:
    return f"({name}{MORE} - 1)"


def with_zeros(text: str, names: Set[str]) -> Any:
    """The expression of a dim's ``text`` where the sizes called ``names`` are 0, the others not;
    one that equals nothing, itself not even, where a bound is of what is divided by them."""
    import sympy

    try:
        return from_one(_NAME.sub(lambda m: "0" if m[0] in names else m[0], text))
    except ValueError:
        return sympy.nan


@lru_cache(maxsize=4096)
def from_one(text: str) -> Any:
    """The expression of a dim's ``text`` in which every size is 1 or more."""
    token = _NAMES.set(None)
    try:
        return expression_of(ir.SymbolicDim(text))
    finally:
        _NAMES.reset(token)
