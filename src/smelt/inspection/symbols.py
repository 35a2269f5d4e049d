"""The symbolic dims of a model, and the inputs that determine them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from smelt.ir.symbolic_dims.dims import symbols_of
from smelt.runtime.interface import Interface, interface_of


@dataclass
class Symbol:
    """A symbolic dim: the ``inputs`` that determine its size, and the ``outputs`` that have it.

    Both are written ``x[0]``, followed by the dim if that is an expression. If no input determines
    the dim, ``size`` is its inferred size in numbers and input dims: exporters may give the batch
    another name at an output. ``size`` is empty for data-dependent (NonZero) or unknown sizes.
    """

    name: str
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    size: str = ""


def symbols_in(model: ir.Model) -> list[Symbol]:
    """Return each symbol of the interface once, in order; unnamed dims get a name of input and
    axis.
    """
    symbols: dict[str, Symbol] = {}
    interface = interface_of(model)
    for port in interface.inputs:
        for name, place in _places(port.name, port.shape):
            symbols.setdefault(name, Symbol(name)).inputs.append(place)
    for port in interface.outputs:
        for name, place in _places(port.name, port.shape):
            symbols.setdefault(name, Symbol(name)).outputs.append(place)
    return list(symbols.values())


def set_inferred_sizes(symbols: Sequence[Symbol], declared: Interface, graph: ir.Graph) -> None:
    """Set ``size`` of symbols that no input determines, from the inferred shapes of ``graph``."""
    input_names = {symbol.name for symbol in symbols if symbol.inputs}
    inferred: dict[str, set[str]] = {}
    for port, value in zip(declared.outputs, graph.outputs, strict=True):
        if port.shape is None or value.shape is None:
            continue
        for name, dim in zip(port.shape, value.shape.dims, strict=False):
            if isinstance(dim, int) or (dim.value is not None and symbols_of(dim) <= input_names):
                inferred.setdefault(str(name), set()).add(str(dim))
    for symbol in symbols:
        sizes = inferred.get(symbol.name, set())
        if not symbol.inputs and len(sizes) == 1:
            symbol.size = sizes.pop()


def _places(port: str, shape: tuple[int | ir.SymbolicDim, ...] | None) -> list[tuple[str, str]]:
    """Return the symbols in ``shape``, each with its place."""
    places = []
    for axis, dim in enumerate(shape or ()):
        for name in sorted(symbols_of(dim)):
            text = f"{port}[{axis}]"
            places.append((name, text if str(dim) == name else f"{text} = {dim}"))
    return places
