"""What smelt reads of onnx_ir beyond its public names; nothing else of smelt does.

``docs/moving-to-a-new-jax.md`` says what to do when one of them moves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import onnx_ir as ir

READERS = ("onnx_ir._symbolic_shapes", "onnx_shape_inference._symbolic_shapes")
"""The modules that read the texts of dims, each with a parser of its own."""


def read_ceilings() -> None:
    """Let the text of a dim hold ``ceiling``, which SymPy writes for a size that is rounded up."""
    for name, functions in zip(READERS, _FUNCTIONS, strict=True):
        module = import_module(name)
        getattr(module, functions).setdefault("ceiling", module.sympy.ceiling)


def read_once() -> None:
    """Let a text be parsed once wherever its symbols mean the same: SymPy takes a millisecond."""
    for name in READERS:
        module = import_module(name)
        setattr(module, _PARSE, _Once(getattr(module, _PARSE)))


def make_symbols_by(symbol: Callable[..., Any], meaning: Callable[[], Hashable]) -> None:
    """Let each symbol that is read in the text of a dim be what ``symbol`` makes of its name and of
    what the libraries assume of it, ``integer=True, positive=True``. It makes equal ones of equal
    names as long as ``meaning`` gives equal values."""
    for name in READERS:
        module = import_module(name)
        setattr(module, _SYMPY, _Symbols(module.sympy, symbol))
        getattr(module, _PARSE).meaning = meaning


_PARSE = "parse_symbolic_expression"
"""What these modules call their parser of a text."""

PARSED = 4096
"""Texts whose expressions are kept."""


class _Once:
    """A parser that remembers the last texts that it read."""

    def __init__(self, parse: Callable[[str], Any]) -> None:
        self.meaning: Callable[[], Hashable] = lambda: None
        self._read = lru_cache(maxsize=PARSED)(lambda text, meaning: parse(text))

    def __call__(self, text: str) -> Any:
        return self._read(text, self.meaning())


_SYMPY = "sympy"
"""What these modules call SymPy."""

_FUNCTIONS = "_ALLOWED_FUNCTIONS", "ALLOWED_FUNCTIONS"
"""What each calls the functions that a text may call."""


class _Symbols:
    """SymPy, with another function in the place of ``Symbol``."""

    def __init__(self, sympy: Any, symbol: Callable[..., Any]) -> None:
        self._sympy = sympy
        self.Symbol = symbol

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sympy, name)


def uses_of(value: ir.Value) -> Collection[Any]:
    """Who reads ``value``: pairs ``(node, idx)``, not copied as ``Value.uses()`` does."""
    uses: Collection[Any] = value._uses
    return uses


def expression_of(dim: ir.SymbolicDim) -> Any:
    """The SymPy expression of a dim, with what is assumed of its symbols; None if it has none."""
    return dim._expr


def has_expression(dim: ir.SymbolicDim) -> bool:
    """True if the name of the dim has been read as an expression, or was given one."""
    return dim._expr_cache is not None


def set_expression(dim: ir.SymbolicDim, expression: Any) -> None:
    """Let ``dim`` stand for ``expression``, whatever its name reads as."""
    dim._expr_cache = expression


def forget_expression(dim: ir.SymbolicDim) -> Any:
    """Let the text of ``dim`` be read anew when it is asked; what it was read as, None if it was
    not."""
    before, dim._expr_cache = dim._expr_cache, None
    return before


def replace_inputs(node: ir.Node, inputs: Sequence[ir.Value | None]) -> None:
    """Let ``node`` read ``inputs``, as many as before, in one piece."""
    before = node.inputs
    node._inputs = tuple(inputs)
    for index, (old, new) in enumerate(zip(before, inputs, strict=True)):
        if old is not new:
            if old is not None:
                old._remove_usage(node, index)
            if new is not None:
                new._add_usage(node, index)


def replace_one_input(node: ir.Node, index: int, value: ir.Value | None) -> None:
    """The same for a single input, without a walk over the others in Python."""
    before = node.inputs
    old = before[index]
    node._inputs = (*before[:index], value, *before[index + 1 :])
    if old is not None:
        old._remove_usage(node, index)
    if value is not None:
        value._add_usage(node, index)


def times_returned(graph: ir.Graph, value: ir.Value) -> int:
    """How often ``graph`` returns ``value``."""
    count: int = graph.outputs._ref_counter[value]  # type: ignore[attr-defined]
    return count


read_once()
read_ceilings()  # on import, so that no dim is read before
