"""Prepare a model with the sizes, and some of the values, of one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import TypeAlias

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.shapes.declared import DECLARED
from smelt.ir.shapes.inferred_facts import forget_noted_elements, is_computed
from smelt.ir.symbolic_dims.dims import symbols_of
from smelt.ir.symbolic_dims.solved_dims import solvers
from smelt.passes import pipeline as language
from smelt.passes.base import PassContext
from smelt.passes.pipelines import EXPANDED, EXPANDED_OPERATORS
from smelt.passes.run import run
from smelt.program.lower import lowered_operators
from smelt.runtime.fold import evaluator
from smelt.targets.host.kernels.kernel import Array

Runner: TypeAlias = Callable[..., Sequence[Array]]
Plan: TypeAlias = Callable[[ir.Model, bool], Runner]
"""Returns a runner of a model; the second argument is True if all sizes are known. Raises
Unsupported or an ErrorList for data-dependent sizes."""
Computes: TypeAlias = Callable[[ir.Model, ir.Node], bool]


def forget_sizes(model: ir.Model) -> None:
    """Remove all shapes except those of the inputs, so that they are inferred again.

    Declared shapes may be wrong for a part of the model, or for the sizes of one call.
    """
    model.graph.meta.pop(DECLARED, None)
    for graph in scope.graphs(model):
        for value in () if graph is model.graph else graph.inputs:
            value.shape = None
        for node in graph:
            for value in node.outputs:
                if is_computed(value):
                    value.shape = None
                    forget_noted_elements(value)


def with_own_dims(model: ir.Model) -> ir.Model:
    """Return ``model`` with a new symbol for each input dim whose symbols no input determines.

    An input of shape [n + m] alone determines neither n nor m; its dim gets a symbol of its own.
    """
    dims = [dim for value in model.graph.inputs for dim in value.shape or ()]
    determined = {str(dim) for dim in dims} | {*solvers(dims)}
    if all(symbols_of(dim) <= determined for dim in dims):
        return model
    forget_sizes(model)
    names = unused_names(model)
    for value in model.graph.inputs:
        if value.shape is not None:
            value.shape = ir.Shape(
                [
                    dim if symbols_of(dim) <= determined else ir.SymbolicDim(next(names))
                    for dim in value.shape.dims
                ]
            )
    return model


def unused_names(model: ir.Model) -> Iterator[str]:
    """Yield names for new symbols, which no input of ``model`` uses.

    An inner body reads values of the outer body, whose new symbols are inputs of it.
    """
    dims = [dim for value in model.graph.inputs for dim in value.shape or ()]
    used = set().union(*map(symbols_of, dims))
    return (name for name in map("_own{}".format, count()) if name not in used)


def bound(model: ir.Model, arrays: Sequence[Array]) -> ir.Model:
    """Return a copy of ``model`` whose inputs have the shapes and element types of ``arrays``."""
    copy = model.clone()
    forget_sizes(copy)
    for value, array in zip(copy.graph.inputs, arrays, strict=True):
        value.shape = ir.Shape(array.shape)
        if value.dtype is None:
            value.dtype = ir.DataType.from_numpy(array.dtype)
    return copy


def fix_values(model: ir.Model, values: Mapping[int, Array]) -> None:
    """Replace the inputs of ``model`` at these positions by constants, in place."""
    inputs = list(model.graph.inputs)
    for position, array in values.items():
        value = inputs[position]
        value.const_value = ir.Tensor(array, dtype=value.dtype, name=value.name)
        model.graph.inputs.remove(value)
        model.graph.register_initializer(value)


def prepare(model: ir.Model, computes: Computes) -> None:
    """Run the passes of the host target on ``model``, in place.

    With the sizes of a call, passes can replace operators that have no lowering at open sizes.
    """
    cx = PassContext.of(model, evaluator(model))
    cx.kernels = frozenset(lowered_operators()) | EXPANDED_OPERATORS
    cx.computes = partial(computes, model)
    run(cx, language.parse_all("default", EXPANDED), ())
    cx.shapes.restore_interface()
