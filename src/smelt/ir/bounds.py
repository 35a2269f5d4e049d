"""Bounds of symbolic dims, for targets that plan memory before the sizes of a run are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext

import onnx_ir as ir

from smelt.errors import UsageError
from smelt.ir.symbolic_dims.dims import symbols_of, unnamed_dims
from smelt.ir.symbolic_dims.empty_dims import is_never_empty, may_be_empty
from smelt.ir.symbolic_dims.solved_dims import solvers

BOUNDS = "smelt.bounds"
CHECKED = "smelt.checked_bounds"
Bounds = tuple[int, int]


def note_bounds(
    model: ir.Model, bounds: Mapping[str, Bounds], least: int = 0, *, checked: bool = False
) -> None:
    """Note the least and the greatest size of each symbol in ``bounds``.

    A dim without a name gets the name by which ``bounds`` calls it. ``least`` is the smallest size
    that an input may have in any case. ``checked``: each run refuses sizes outside the bounds.
    Raises UsageError E633 for a name that no input or output has, and for invalid bounds.
    """
    unnamed = unnamed_dims(model.graph.inputs)
    for (value, axis), name in unnamed.items():
        if name in bounds and value.shape is not None:
            dims = list(value.shape.dims)
            dims[axis] = ir.SymbolicDim(name)
            value.shape = ir.Shape(dims)
    input_symbols = _names(model.graph.inputs)
    port_symbols = input_symbols | _names(model.graph.outputs)
    for name, (low, high) in bounds.items():
        if name not in port_symbols:
            others = ", ".join(port_symbols | dict.fromkeys(unnamed.values()))
            raise UsageError(
                "E633",
                f"no input or output has a dim called {name!r}",
                why=f"the symbolic dims are {others or 'none'}",
                fix="`smelt inspect` shows the symbolic dims",
            )
        lowest = least if name in input_symbols else 0
        highest_is_0 = name in input_symbols and high < 1
        if not lowest <= low <= high or highest_is_0:
            raise UsageError(
                "E633",
                f"the dim {name!r} cannot be from {low} to {high}",
                why=f"the lower bound of an input is {least} or more, the upper bound "
                "1 or more and not below the lower"
                f"{'; JAX assumes that every size is 1 or more' if least else ''}",
                fix=f"for instance: --dim {name}=1..{max(low, high, 16)}",
            )
    model.graph.meta[BOUNDS] = dict(bounds)
    model.graph.meta[CHECKED] = checked


def _names(values: Iterable[ir.Value]) -> dict[str, None]:
    """Return the symbols in the shapes of ``values``, in order."""
    shapes = [value.shape.dims for value in values if value.shape is not None]
    return dict.fromkeys(
        name for dims in shapes for dim in dims for name in sorted(symbols_of(dim))
    )


def bounds_of(graph: ir.Graph) -> Mapping[str, Bounds]:
    """Return the noted bounds by symbol."""
    bounds: Mapping[str, Bounds] = graph.meta.get(BOUNDS) or {}
    return bounds


def checked_bounds(graph: ir.Graph) -> Mapping[str, Bounds]:
    """Return ``readable_bounds`` if each run refuses sizes outside the bounds, else nothing."""
    return readable_bounds(graph) if graph.meta.get(CHECKED) else {}


def never_one(graph: ir.Graph | None, dims: Iterable[int | ir.SymbolicDim]) -> bool:
    """True if no symbolic dim of ``dims`` can be 1, so that none of them can broadcast.

    Such a dim is a single symbol whose checked lower bound is 2 or more.
    """
    bounds = {} if graph is None else checked_bounds(graph)
    return all(isinstance(d, int) or bounds.get(str(d), (0, 0))[0] >= 2 for d in dims)


def possibly_zero_symbols(graph: ir.Graph) -> list[str]:
    """Return the symbols whose noted lower bound is 0."""
    return [name for name, (low, _) in bounds_of(graph).items() if low == 0]


def sizes_from_zero(model: ir.Model) -> AbstractContextManager[None]:
    """Return a context in which shape inference assumes that input dims of ``model`` may be 0.

    Dims with a lower bound of 1 or more stay positive. The context changes nothing if the source of
    the model takes no empty inputs.
    """
    if is_never_empty(model):
        return nullcontext()
    bounds = bounds_of(model.graph)
    names = [name for name in _names(model.graph.inputs) if bounds.get(name, (0, 0))[0] == 0]
    return may_be_empty(names, model)


def keep_bounds(graph: ir.Graph, part: ir.Graph) -> None:
    """Copy to ``part``, a graph cut from ``graph``, the bounds of sizes that its inputs have."""
    bounds = readable_bounds(graph, part.inputs)
    if bounds:
        part.meta[BOUNDS] = bounds


def readable_bounds(graph: ir.Graph, inputs: Iterable[ir.Value] | None = None) -> dict[str, Bounds]:
    """Return the noted bounds of the symbols whose sizes follow from the shapes of ``inputs``.

    None stands for all inputs of ``graph``.
    """
    values = graph.inputs if inputs is None else inputs
    readable = solvers(dim for value in values for dim in value.shape or ())
    return {name: ends for name, ends in bounds_of(graph).items() if name in readable}


def has_unbounded_dim(value: ir.Value, bounds: Mapping[str, Bounds]) -> bool:
    """True if a dim of ``value`` is neither a number nor an expression of symbols with
    ``bounds``."""
    if value.shape is None:
        return True
    return not all(
        isinstance(dim, int) or (dim.value is not None and symbols_of(dim) <= bounds.keys())
        for dim in value.shape.dims
    )
