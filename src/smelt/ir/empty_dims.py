"""Dims of inputs that may be 0 in a run, such as the length of a cache that is empty at first.

onnx_ir takes every symbol for 1 or more, and SymPy reads ``Max(1, P)`` as ``P``. Where a model is
compiled for sizes from 0 on, questions about such a dim are asked of ``P = Q - 1`` with Q >= 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import onnx_ir as ir

from smelt.ir.dim_texts import is_plain
from smelt.ir.onnx_ir_private import expression_of

_NAMES: ContextVar[frozenset[str]] = ContextVar("dims that may be 0", default=frozenset())

_NEVER = "smelt.never_empty"
"""The key in the ``meta`` of a model's graph whose source takes no empty inputs, as JAX takes none
of an open size."""

_NAME = re.compile(r"[A-Za-z_][\w.]*(?!\w*\()")
MORE = "_and_one"
"""Ends the name of the symbol that is one more than the dim."""


def note_never_empty(model: ir.Model) -> None:
    """Say that no run of ``model`` has an input with an open dim of 0."""
    model.graph.meta[_NEVER] = True


def is_never_empty(model: ir.Model) -> bool:
    """True if ``note_never_empty`` said so, of this model or of what it is a copy of."""
    return bool(model.graph.meta.get(_NEVER))


@contextmanager
def may_be_empty(names: Iterable[str]) -> Iterator[None]:
    """Let the dims called ``names`` be 0 in some runs, for what happens inside."""
    token = _NAMES.set(_NAMES.get() | frozenset(names))
    try:
        yield
    finally:
        _NAMES.reset(token)


def expression_from_zero(dim: ir.SymbolicDim, names: Iterable[str] | None = None) -> Any:
    """The SymPy expression of ``dim``, in which each of ``names`` is one less than a symbol called
    so with ``MORE`` behind; without ``names``, those that may be 0 here."""
    empty = _NAMES.get() if names is None else frozenset(names)
    text = dim.value
    if not empty or text is None or not is_plain(text):
        return expression_of(dim)
    shifted = _NAME.sub(lambda m: f"({m[0]}{MORE} - 1)" if m[0] in empty else m[0], text)
    return expression_of(dim) if shifted == text else expression_of(ir.SymbolicDim(shifted))


def loses_a_bound(dim: ir.SymbolicDim) -> bool:
    """True if what ``dim`` is bounded by counts only in runs in which a dim is 0: computing with it
    would forget that."""
    if not _NAMES.get():
        return False  # SymPy takes milliseconds to read a Max or Min.
    plain, whole = expression_of(dim), expression_from_zero(dim)
    if plain is whole or plain is None or whole is None:
        return False
    return _bounds(plain) != _bounds(whole)


def _bounds(expression: Any) -> int:
    import sympy  # type: ignore[import-untyped]

    return len(expression.atoms(sympy.Max, sympy.Min))
