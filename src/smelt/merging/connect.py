"""Join two models into one: outputs of the first become inputs of the second.

::

    encoder: ids -> hidden      decoder: x, y -> logits      with hidden=x
    joined:  ids, y -> logits
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx_ir as ir

from smelt.errors import ErrorList, SmeltError, UsageError, did_you_mean, listed
from smelt.ir import scope
from smelt.ir.extraction import replace
from smelt.ir.names import Names, forget_names, name_nodes, name_values, values_of
from smelt.ir.symbolic_dims.dims import names_of as names_in
from smelt.merging.compatible import add_imports, make_compatible
from smelt.merging.outputs import SHOWN, return_results, type_in_words
from smelt.merging.weights import share_weights


def connect(
    first: ir.Model,
    second: ir.Model,
    pairs: Mapping[str, str],
    names: tuple[str, str],
    prefix: str,
) -> tuple[ir.Model, dict[str, str]]:
    """Return the joined model, and the inputs and outputs of ``second`` with their new names.

    ``pairs`` maps outputs of ``first`` to inputs of ``second``, or inputs of ``first`` that
    ``second`` reads, too. Connected outputs are not outputs of the joined model. An input or output
    of ``second`` whose name ``first`` has, too, gets the ``prefix``, and so does a symbolic dim.
    ``first`` becomes the joined model, and ``second`` is emptied. Raises UsageError E673 for pairs
    that name no such values, E666 for types that do not fit, and E667 to E669.
    """
    outputs = {value.name: value for value in (*first.graph.inputs, *first.graph.outputs)}
    inputs = {value.name: value for value in second.graph.inputs}
    _check_pairs(pairs, list(map(str, outputs)), list(map(str, inputs)), names)
    make_compatible((first, second), names)
    joints = [(outputs[out], inputs[into]) for out, into in pairs.items()]
    _check_types(joints, names)
    add_imports(first, second)
    _rename_dims(first, second, joints, prefix)
    return_results(second.graph)
    for output, value in joints:
        replace(second, value, output)
        second.graph.inputs.remove(value)
    kept_outputs = [value for value in first.graph.outputs if value.name not in pairs]
    renamed = _rename_ports(first, second, kept_outputs, prefix)
    _append(first, second, kept_outputs)
    share_weights(first)
    forget_names(first)
    name_values(first)
    name_nodes(first)
    return first, renamed


def _check_pairs(
    pairs: Mapping[str, str], outputs: list[str], inputs: list[str], names: tuple[str, str]
) -> None:
    """Raise E673 unless ``pairs`` maps some of ``outputs`` to different ones of ``inputs``."""
    sides = (
        (names[0], "input or output", [*pairs], outputs),
        (names[1], "input", [*pairs.values()], inputs),
    )
    for model, word, chosen, known in sides:
        for name in chosen:
            if name not in known:
                raise UsageError(
                    "E673",
                    f"{model} has no {word} {name!r}",
                    why=f"it has {listed(known, SHOWN) or 'none'}",
                    fix=did_you_mean(name, known, "--connect OUTPUT=INPUT"),
                )
            if chosen.count(name) > 1:
                raise UsageError(
                    "E673",
                    f"the {word} {name!r} is connected twice",
                    why="each input has one value",
                    fix="name it in one --connect",
                )


def _check_types(joints: Iterable[tuple[ir.Value, ir.Value]], names: tuple[str, str]) -> None:
    """Raise E666 for connected values of different types, ranks or fixed sizes."""
    errors: list[SmeltError] = []
    for output, value in joints:
        a, b = output.shape, value.shape
        same_rank = a is None or b is None or len(a) == len(b)
        sizes = zip(_shape(output), _shape(value), strict=False)
        fits = all(m == n or not (isinstance(m, int) and isinstance(n, int)) for m, n in sizes)
        if output.type != value.type or not same_rank or not fits:
            errors.append(_does_not_fit(output, value, names))
    if errors:
        raise errors[0] if len(errors) == 1 else ErrorList(errors)


def _does_not_fit(output: ir.Value, value: ir.Value, names: tuple[str, str]) -> UsageError:
    """Return E666 for a connection of values of different types."""
    return UsageError(
        "E666",
        f"{output.name!r} cannot be the input {value.name!r}",
        at=[
            f"{name}: {type_in_words(each)}"
            for name, each in zip(names, (output, value), strict=True)
        ],
        why="connected values have one element type, rank and shape",
        fix="connect other values, or convert one model to the type of the other",
    )


def _rename_dims(
    first: ir.Model, second: ir.Model, joints: Iterable[tuple[ir.Value, ir.Value]], prefix: str
) -> None:
    """Give the symbolic dims of ``second`` names that mean one size in both models.

    A dim of a connected input is the dim of the output. Any other dim whose name ``first`` has,
    too, gets the prefix: equal names of two models need not be equal sizes.
    """
    first_names = {name for dim in _dims(first) for name in names_in(dim)}
    second_names = {name for dim in _dims(second) for name in names_in(dim)}
    connected_dims: dict[str, int | ir.SymbolicDim] = {}
    for output, value in joints:
        for outer, inner in zip(_shape(output), _shape(value), strict=False):
            name = None if isinstance(inner, int) else inner.value
            if name and (isinstance(outer, int) or outer.value):
                connected_dims[str(name)] = outer
    # A name without a free new one is dropped: the dim becomes unknown.
    new_names = {
        name: prefix + name
        for name in second_names & first_names
        if name.isidentifier() and prefix + name not in second_names | first_names
    }
    for graph in scope.graphs(second):
        for value in values_of(graph):
            if value.shape is not None:
                dims = (
                    _renamed_dim(dim, connected_dims, first_names, new_names)
                    for dim in value.shape.dims
                )
                value.shape = ir.Shape(list(dims))


def _renamed_dim(
    dim: int | ir.SymbolicDim,
    connected_dims: Mapping[str, int | ir.SymbolicDim],
    first_names: set[str],
    new: Mapping[str, str],
) -> int | ir.SymbolicDim:
    """Return ``dim`` of the second model for the joined one; unknown if it has no expression."""
    if isinstance(dim, int) or dim.value is None:
        return dim
    if dim.value in connected_dims:
        return connected_dims[dim.value]
    if not names_in(dim) & (first_names | connected_dims.keys()):
        return dim
    return ir.SymbolicDim(new.get(dim.value))


def _rename_ports(
    first: ir.Model, second: ir.Model, kept: list[ir.Value], prefix: str
) -> dict[str, str]:
    """Rename inputs and outputs of ``second`` whose names ``first`` has.

    Returns the new names by the old ones.
    """
    names = Names(str(value.name) for value in (*first.graph.inputs, *kept))
    renamed: dict[str, str] = {}
    for value in dict.fromkeys((*second.graph.inputs, *second.graph.outputs)):
        port_name = str(value.name)
        if port_name in names.taken and value not in first.graph.outputs:
            value.name = renamed[port_name] = names.free(prefix + port_name)
        names.taken.add(str(value.name))
    return renamed


def _append(first: ir.Model, second: ir.Model, kept: list[ir.Value]) -> None:
    """Move nodes, weights, inputs and outputs of ``second`` to the end of ``first``."""
    graph, other = first.graph, second.graph
    nodes, inputs, outputs = list(other), list(other.inputs), list(other.outputs)
    weights = list(other.initializers.values())
    other.outputs.clear()
    other.inputs.clear()
    other.initializers.clear()
    other.remove(nodes)
    names = Names(value.name for value in values_of(graph) if value.name)
    names.taken.update(str(value.name) for value in (*inputs, *outputs))
    for value in weights:
        value.name = names.free(str(value.name))
        graph.register_initializer(value)
    graph.extend(nodes)
    graph.inputs.extend(inputs)
    graph.outputs[:] = [*kept, *outputs]


def _dims(model: ir.Model) -> Iterable[int | ir.SymbolicDim]:
    """Yield the dims of all values of ``model``."""
    for graph in scope.graphs(model):
        for value in values_of(graph):
            yield from _shape(value)


def _shape(value: ir.Value) -> tuple[int | ir.SymbolicDim, ...]:
    """Return the dims of ``value``; empty if its rank is unknown."""
    return () if value.shape is None else tuple(value.shape.dims)
