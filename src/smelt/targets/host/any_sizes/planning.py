"""A model with the sizes, and some of the values, of one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import TypeAlias

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.declared import DECLARED
from smelt.ir.dims import symbols_of
from smelt.ir.inferred_facts import forget_noted_elements, is_computed
from smelt.passes import pipeline as language
from smelt.passes.base import PassContext
from smelt.passes.pipelines import EXPANDED, EXPANDED_OPERATORS
from smelt.passes.run import run
from smelt.program.lower import lowered_operators
from smelt.runtime.fold import evaluator
from smelt.targets.host.kernels.kernel import Array

Runner: TypeAlias = Callable[..., Sequence[Array]]
Plan: TypeAlias = Callable[[ir.Model, bool], Runner]
"""What runs a model, whose sizes are those of one call if the second argument says so. Raises
Unsupported or an ErrorList of it for sizes that no plan can know."""
Computes: TypeAlias = Callable[[ir.Model, ir.Node], bool]


def forget_sizes(model: ir.Model) -> None:
    """Leave no shape but those of the inputs: others were told by what a model declares."""
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
    """``model``, in which dims of inputs that are made of sizes which none of them has alone are
    sizes of their own."""
    dims = [dim for value in model.graph.inputs for dim in value.shape or ()]
    told = {str(dim) for dim in dims}
    if all(symbols_of(dim) <= told for dim in dims):
        return model
    forget_sizes(model)
    names = free_names(model)
    for value in model.graph.inputs:
        if value.shape is not None:
            value.shape = ir.Shape(
                [
                    dim if symbols_of(dim) <= told else ir.SymbolicDim(next(names))
                    for dim in value.shape.dims
                ]
            )
    return model


def free_names(model: ir.Model) -> Iterator[str]:
    """Names for dims that no input of ``model`` has; bodies in bodies read values of each other."""
    dims = [dim for value in model.graph.inputs for dim in value.shape or ()]
    taken = set().union(*map(symbols_of, dims))
    return (name for name in map("_own{}".format, count()) if name not in taken)


def bound(model: ir.Model, arrays: Sequence[Array]) -> ir.Model:
    """A copy of ``model`` whose inputs have the shapes of ``arrays``, and known element types."""
    copy = model.clone()
    forget_sizes(copy)
    for value, array in zip(copy.graph.inputs, arrays, strict=True):
        value.shape = ir.Shape(array.shape)
        if value.dtype is None:
            value.dtype = ir.DataType.from_numpy(array.dtype)
    return copy


def fix_values(model: ir.Model, values: Mapping[int, Array]) -> None:
    """Make constants of the inputs at these places."""
    inputs = list(model.graph.inputs)
    for place, array in values.items():
        value = inputs[place]
        value.const_value = ir.Tensor(array, dtype=value.dtype, name=value.name)
        model.graph.inputs.remove(value)
        model.graph.register_initializer(value)


def prepare(model: ir.Model, computes: Computes) -> None:
    """The passes of this target on a model whose sizes are known."""
    cx = PassContext.of(model, evaluator(model))
    cx.kernels = frozenset(lowered_operators()) | EXPANDED_OPERATORS
    cx.computes = partial(computes, model)
    run(cx, language.parse_all("default", EXPANDED), ())
    cx.shapes.restore_interface()
