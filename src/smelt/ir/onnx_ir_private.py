"""All private names of onnx_ir that smelt uses.

``docs/moving-to-a-new-jax.md`` says what to do when one of them moves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import onnx_ir as ir
from onnx_ir import _cloner

DIM_PARSERS = ("onnx_ir._symbolic_shapes", "onnx_shape_inference._symbolic_shapes")
"""The modules that parse the texts of dims, each with its own parser."""


def allow_ceilings() -> None:
    """Let the text of a dim contain ``ceiling``, which SymPy writes for a size that is rounded
    up."""
    for name, functions in zip(DIM_PARSERS, _FUNCTIONS, strict=True):
        module = import_module(name)
        getattr(module, functions).setdefault("ceiling", module.sympy.ceiling)


def cache_parsers() -> None:
    """Put a cache before the parsers of dims: SymPy takes a millisecond to parse a text.

    The cache key includes ``meaning``, see ``make_symbols_by``.
    """
    for name in DIM_PARSERS:
        module = import_module(name)
        setattr(module, _PARSE, _CachedParser(getattr(module, _PARSE)))


def make_symbols_by(symbol: Callable[..., Any], meaning: Callable[[], Hashable]) -> None:
    """Let the libraries that parse the text of a dim create its symbols by ``symbol``.

    It is called as ``symbol(name, **assumptions)`` in place of ``sympy.Symbol``.
    The libraries pass the assumptions ``integer=True, positive=True``. ``meaning`` is part of the
    cache key: while it returns equal values, ``symbol`` must return equal symbols for equal names.
    """
    for name in DIM_PARSERS:
        module = import_module(name)
        setattr(module, _SYMPY, _Symbols(module.sympy, symbol))
        getattr(module, _PARSE).meaning = meaning


_PARSE = "parse_symbolic_expression"
"""The name of the parser in each module of ``DIM_PARSERS``."""

PARSED = 4096
"""Number of cached expressions."""


class _CachedParser:
    """A parser with a cache, keyed by the text and ``meaning()``."""

    def __init__(self, parse: Callable[[str], Any]) -> None:
        """Cache ``parse`` by text and ``meaning``, which stands for everything else that a result
        depends on.
        """
        self.meaning: Callable[[], Hashable] = lambda: None
        self._read = lru_cache(maxsize=PARSED)(lambda text, meaning: parse(text))

    def __call__(self, text: str) -> Any:
        return self._read(text, self.meaning())


_SYMPY = "sympy"
"""The name under which each module of ``DIM_PARSERS`` imports SymPy."""

_FUNCTIONS = "_ALLOWED_FUNCTIONS", "ALLOWED_FUNCTIONS"
"""Per module of ``DIM_PARSERS``, the name of its table of functions that a text may call."""


class _Symbols:
    """The SymPy module with another function in place of ``Symbol``."""

    def __init__(self, sympy: Any, symbol: Callable[..., Any]) -> None:
        self._sympy = sympy
        self.Symbol = symbol

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sympy, name)


def uses_of(value: ir.Value) -> Collection[Any]:
    """Return the uses of ``value`` as pairs ``(node, idx)``, without the copy of
    ``Value.uses()``."""
    uses: Collection[Any] = value._uses
    return uses


def expression_of(dim: ir.SymbolicDim) -> Any:
    """Return the SymPy expression of a dim, with assumptions about its symbols; None if it has
    none."""
    return dim._expr


def has_expression(dim: ir.SymbolicDim) -> bool:
    """True if the text of the dim was parsed, or an expression was set."""
    return dim._expr_cache is not None


def set_expression(dim: ir.SymbolicDim, expression: Any) -> None:
    """Set the expression of ``dim``, whatever its text says."""
    dim._expr_cache = expression


def forget_expression(dim: ir.SymbolicDim) -> Any:
    """Drop the expression of ``dim``, so that its text is parsed again; return the old expression
    or None."""
    before, dim._expr_cache = dim._expr_cache, None
    return before


def replace_inputs(node: ir.Node, inputs: Sequence[ir.Value | None]) -> None:
    """Replace all inputs of ``node`` at once by ``inputs`` of the same number."""
    before = node.inputs
    node._inputs = tuple(inputs)
    for index, (old, new) in enumerate(zip(before, inputs, strict=True)):
        if old is not new:
            if old is not None:
                old._remove_usage(node, index)
            if new is not None:
                new._add_usage(node, index)


def replace_one_input(node: ir.Node, index: int, value: ir.Value | None) -> None:
    """Replace input ``index`` of ``node`` without a walk over the others in Python."""
    before = node.inputs
    old = before[index]
    node._inputs = (*before[:index], value, *before[index + 1 :])
    if old is not None:
        old._remove_usage(node, index)
    if value is not None:
        value._add_usage(node, index)


def times_returned(graph: ir.Graph, value: ir.Value) -> int:
    """Return how often ``value`` is an output of ``graph``."""
    count: int = graph.outputs._ref_counter[value]  # type: ignore[attr-defined]
    return count


class Cloner(_cloner.Cloner):
    """Copies graphs as the library does, but faster: no empty metadata, results in one step."""

    def clone_node(self, node: ir.Node, deep_copy: bool = False) -> ir.Node:
        """Return a copy of ``node``.

        A node with inputs that were not copied, or with device configurations, is left to the
        library's method.
        """
        known = self._value_map
        inputs = [None if value is None else known.get(value) for value in node._inputs]
        if inputs.count(None) != node._inputs.count(None) or node.device_configurations:
            return super().clone_node(node, deep_copy=deep_copy)
        attributes = [*node._attributes.values()]
        if any(attr.type in _GRAPHS for attr in attributes):
            copies = (self.clone_attr(attr.name, attr, deep_copy=deep_copy) for attr in attributes)
            attributes = [attr for attr in copies if attr is not None]
        copy = ir.Node(
            node._domain,
            node._op_type,
            inputs,
            attributes,
            overload=node._overload,
            outputs=[self._copy_value(value) for value in node._outputs],
            version=node._version,
            name=node._name,
            doc_string=node.doc_string,
            metadata_props=dict(node._metadata_props) if node._metadata_props else None,
        )
        if node._metadata:
            self.clone_meta(node._metadata, copy.meta)
        return copy

    def clone_own(self, attr: ir.Attr) -> ir.Attr | None:
        """Return a copy of ``attr`` under the same name."""
        return self.clone_attr(attr.name, attr)

    def _clone_or_get_value(self, value: ir.Value, deep_copy: bool = False) -> ir.Value:
        """Return the copy of ``value``, made at the first request."""
        known = self._value_map.get(value)
        return self._copy_value(value) if known is None else known

    def _copy_value(self, value: ir.Value) -> ir.Value:
        """Return a copy of ``value`` and record it in the value map."""
        props = value._metadata_props
        copy = self._value_map[value] = ir.Value(
            name=value._name,
            shape=_copied_shape(value._shape),
            type=value._type,
            doc_string=value.doc_string,
            const_value=value._const_value,
            metadata_props=dict(props) if props else None,
        )
        if value._metadata:
            self.clone_meta(value._metadata, copy.meta)
        return copy


_GRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


def _copied_shape(shape: ir.Shape | None) -> ir.Shape | None:
    """Return a copy of ``shape`` that is not frozen; None for an unknown shape."""
    if shape is None:
        return None
    copy = ir.Shape.__new__(ir.Shape)
    copy._dims, copy._denotations = shape._dims.copy(), shape._denotations.copy()
    copy._frozen = False
    return copy


cache_parsers()
allow_ceilings()  # on import, so that no dim is read before
