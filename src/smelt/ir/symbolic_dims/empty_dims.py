"""Dims of inputs that may be 0 in a run, such as the length of a cache that is empty at first.

onnx_ir assumes that every symbol is 1 or more, and SymPy then simplifies ``Max(1, P)`` to ``P``.
That holds for JAX, which takes no symbolic size for 0. For other models, this module makes the
symbols in dims of inputs, and the symbols that inference invents, 0 or more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from typing import Any

import onnx_ir as ir

from smelt.ir.onnx_ir_private import (
    expression_of,
    forget_expression,
    has_expression,
    make_symbols_by,
    set_expression,
)
from smelt.ir.symbolic_dims.dim_texts import is_plain, opaque_unless_plain
from smelt.ir.symbolic_dims.invented_dims import every_value, is_invented

_NAMES: ContextVar[frozenset[str] | None] = ContextVar("dims that may be 0", default=None)

_NEVER = "smelt.never_empty"
"""Key in the ``meta`` of a graph and in the metadata of a file: the source of the model takes no
empty inputs, as JAX takes none with a symbolic size of 0."""

_NAME = re.compile(r"[A-Za-z_][\w.]*(?!\w*\()")
PLUS_ONE = "_and_one"
"""Suffix of the symbol for dim + 1."""


def note_never_empty(model: ir.Model) -> None:
    """Note that no run of ``model`` has an input with a symbolic dim of 0."""
    model.graph.meta[_NEVER] = True


def write_never_empty(model: ir.Model) -> None:
    """Write the note of ``note_never_empty`` into the metadata of ``model``, so that files keep
    it."""
    dims = (dim for value in model.graph.inputs for dim in value.shape or ())
    if not all(isinstance(dim, int) for dim in dims):
        model.metadata_props[_NEVER] = "true"


def is_never_empty(model: ir.Model) -> bool:
    """True if ``note_never_empty`` was called for this model, for a model it is a copy of, or
    before it was saved."""
    return bool(model.graph.meta.get(_NEVER)) or model.metadata_props.get(_NEVER) == "true"


def forget_never_empty(model: ir.Model) -> None:
    """Drop the note of ``note_never_empty``, because ``model`` gets inputs that its source
    lacks."""
    model.graph.meta.pop(_NEVER, None)
    model.metadata_props.pop(_NEVER, None)


@contextmanager
def may_be_empty(names: Iterable[str], model: ir.Model | None = None) -> Iterator[None]:
    """Let the dims called ``names`` be 0 in some runs, within this context.

    Expressions of dims of ``model`` that were parsed under other assumptions are parsed again.
    """
    take_symbols_from_zero()
    before = _NAMES.get()
    after = frozenset(names) | (before or frozenset())
    token = _NAMES.set(after)
    try:
        if model is not None and after != before:
            _parse_all_again(model)
        yield
    finally:
        _NAMES.reset(token)


@cache
def take_symbols_from_zero() -> None:
    """Make onnx_ir create symbols by the assumptions of this module; takes effect once per
    process."""
    make_symbols_by(_symbol, _NAMES.get)


def _symbol(name: str, **assumptions: bool) -> Any:
    """Return the SymPy symbol ``name``: 0 or more if the size may be 0, else by ``assumptions``."""
    import sympy

    if may_be_zero(name):
        return sympy.Symbol(name, integer=True, nonnegative=True)
    return sympy.Symbol(name, **assumptions)


def may_be_zero(name: str) -> bool:
    """True if the size called ``name`` may be 0 in the current context."""
    names = _NAMES.get()
    return names is not None and (name in names or is_invented(name))


def any_may_be_zero() -> bool:
    """True if the current context lets sizes be 0."""
    return _NAMES.get() is not None


def _parse_all_again(model: ir.Model) -> None:
    """Parse the expressions of all dims of ``model`` again under the current assumptions."""
    for value in every_value(model):
        for dim in value.shape or ():
            if not isinstance(dim, int) and has_expression(dim):
                _parse_again(dim)


def _parse_again(dim: ir.SymbolicDim) -> None:
    """Parse the expression of ``dim`` again under the current assumptions."""
    before = forget_expression(dim)
    if (dim.value or "").isidentifier():
        return
    opaque_unless_plain(dim)
    if expression_of(dim).is_Symbol and not before.is_Symbol:  # a rounded-up size has no plain text
        plain_symbols = [symbol for symbol in before.free_symbols if is_plain(symbol.name)]
        new_symbols = {
            symbol: _symbol(symbol.name, integer=True, positive=True) for symbol in plain_symbols
        }
        set_expression(dim, before.xreplace(new_symbols))


def expression_allowing_zero(dim: ir.SymbolicDim, names: Iterable[str] | None = None) -> Any:
    """Return the SymPy expression of ``dim`` for sizes ``names`` that may be 0.

    Other sizes are 1 or more. SymPy gets ``N_and_one - 1`` for a size ``N`` of ``names``: onnx_ir
    assumes that symbols of a text are 1 or more. Without ``names``, return the expression of the
    current context.
    """
    text = dim.value
    if names is None or text is None:
        return expression_of(dim)
    empty = frozenset(names)
    if not is_plain(text):
        return _assume_positive(expression_of(dim), empty)
    return expression_of_positive(
        _NAME.sub(lambda m: _one_less(m[0]) if m[0] in empty else m[0], text)
    )


def _assume_positive(expression: Any, empty: Set[str]) -> Any:
    """Return ``expression`` with every symbol except those of ``empty`` assumed to be 1 or more."""
    import sympy

    names = [symbol for symbol in expression.free_symbols if symbol.name not in empty]
    return expression.xreplace(
        {symbol: sympy.Symbol(symbol.name, integer=True, positive=True) for symbol in names}
    )


def _one_less(name: str) -> str:
    """Return the text ``(N_and_one - 1)`` for the name ``N``."""
    return f"({name}{PLUS_ONE} - 1)"


def with_zeros(text: str, names: Set[str]) -> Any:
    """Return the expression of a dim's ``text`` with 0 for the sizes called ``names``.

    Other sizes are 1 or more. Returns NaN, which equals nothing, if the text divides by zero within
    a bound.
    """
    import sympy

    try:
        return expression_of_positive(_NAME.sub(lambda m: "0" if m[0] in names else m[0], text))
    except ValueError:
        return sympy.nan


@lru_cache(maxsize=4096)
def expression_of_positive(text: str) -> Any:
    """Return the expression of a dim's ``text`` in which every size is 1 or more."""
    token = _NAMES.set(None)
    try:
        return expression_of(ir.SymbolicDim(text))
    finally:
        _NAMES.reset(token)
