"""Cut a part out of a model, between any values of its main graph."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.errors import ErrorList, SmeltError, UsageError, did_you_mean
from smelt.frontends.onnx.check import check_model
from smelt.frontends.onnx.load import load
from smelt.frontends.onnx.read import Source
from smelt.ir import scope
from smelt.ir.defaults import default_of, restore_defaults
from smelt.ir.extraction import become_inputs, keep_needed, named_values, needed_inputs
from smelt.ir.names import values_of
from smelt.ir.opaque_types import opaque_type_of
from smelt.ir.shapes.inference import infer_within

SHOWN = 8
"""How many missing inputs an error names."""


def extract(
    source: Source, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None
) -> ir.Model:
    """Return the part of a model that computes ``outputs`` from ``inputs``, as a model.

    Both name values of the main graph: inputs, weights or results. Without ``inputs`` the part
    takes those model inputs that it needs; without ``outputs`` it returns all outputs of the model.
    New inputs and outputs get inferred types. Nodes, weights and functions that the part does not
    need are removed; an input with a default that is not among ``inputs`` becomes a weight.

    Raises UsageError E618 for unknown names, E619 if ``inputs`` do not cut the part off, and E620
    for a value without an element type.
    """
    model = load(source, as_is=True)
    values = named_values(model.graph)
    _check_names(model, values, inputs, outputs)
    infer_within(model)
    if outputs is not None:
        model.graph.outputs.clear()
        model.graph.outputs.extend(values[name] for name in outputs)
    if inputs is not None:
        _check_types(model, [values[name] for name in inputs], "input")
        become_inputs(model, [values[name] for name in inputs])
    _choose_inputs(model, inputs)
    _check_types(model, model.graph.outputs, "output")
    keep_needed(model)
    check_model(model)
    return model


def _check_names(
    model: ir.Model,
    values: dict[str, ir.Value],
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
) -> None:
    """Raise E618 for names that are unknown or listed twice, and for an empty list of outputs."""
    errors: list[SmeltError] = []
    for word, names in (("input", inputs or ()), ("output", outputs or ())):
        repeated = [name for name in dict.fromkeys(names) if list(names).count(name) > 1]
        errors += [
            UsageError(
                "E618",
                f"the {word} {name!r} is listed twice",
                why="each value is one input or output of the part",
                fix="list it once",
            )
            for name in repeated
        ]
        unknown = [name for name in dict.fromkeys(names) if name not in values]
        errors += [_unknown_value(model, values, name) for name in unknown]
    if outputs is not None and not outputs:
        errors.append(
            UsageError(
                "E618",
                "the part has no outputs",
                why="the list of outputs is empty",
                fix="name at least one output",
            )
        )
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ErrorList(errors)


def _unknown_value(model: ir.Model, values: dict[str, ir.Value], name: str) -> UsageError:
    """Return E618 for a name that is not a value of the main graph."""
    for graph in scope.graphs(model):
        if graph is not model.graph and any(value.name == name for value in values_of(graph)):
            return UsageError(
                "E618",
                f"{name!r} is a value of an inner graph or a function",
                why="a part of a model consists of nodes of the main graph",
                fix="name a value of the main graph, such as a result of the node around it",
            )
    return UsageError(
        "E618",
        f"the model has no value {name!r}",
        fix=did_you_mean(name, values, "`smelt inspect MODEL` shows inputs and outputs"),
        why="a part begins and ends at values of the main graph",
    )


def _choose_inputs(model: ir.Model, names: Sequence[str] | None) -> None:
    """Set the graph's inputs to ``names`` in order; if that is None, to those that it needs.

    Raises UsageError E619 if the outputs need further inputs.
    """
    graph = model.graph
    needed = needed_inputs(graph)
    if names is None:
        new_inputs = needed
    else:
        by_name = {value.name: value for value in graph.inputs}
        new_inputs = [by_name[name] for name in names]
        missing = [
            input_
            for input_ in needed
            if input_ not in set(new_inputs) and default_of(input_) is None
        ]
        if missing:
            raise _not_cut_off(names, missing)
    unused_inputs = [value for value in graph.inputs if value not in set(new_inputs)]
    restore_defaults(model)  # a removed input with a default becomes a weight
    graph.inputs.clear()
    graph.inputs.extend(new_inputs)
    for value in unused_inputs:
        if value.is_initializer() and scope.is_dead(value) and value.name is not None:
            del graph.initializers[value.name]


def _not_cut_off(names: Sequence[str], missing: Sequence[ir.Value]) -> UsageError:
    """Return E619, which names the inputs that are missing."""
    shown = [f"{value.name}: {_type_text(value)}" for value in missing[:SHOWN]]
    line_of_rest = [f"and {len(missing) - SHOWN} more"] if len(missing) > SHOWN else []
    together = ",".join([*names, *(str(value.name) for value in missing)])
    return UsageError(
        "E619",
        f"the outputs need {len(missing)} more input{'' if len(missing) == 1 else 's'}",
        at=[*shown, *line_of_rest],
        why="a path from an input of the model to the outputs contains none of the listed values",
        fix=f"--inputs {together}, or values after them",
    )


def _type_text(value: ir.Value) -> str:
    """Return the type of ``value`` as text, ``float[1,3]``."""
    dims = "?" if value.shape is None else ",".join(map(str, value.shape.dims))
    return f"{value.dtype.name.lower() if value.dtype is not None else '?'}[{dims}]"


def _check_types(model: ir.Model, values: Sequence[ir.Value], word: str) -> None:
    """Raise E620 for values without a type, which cannot be inputs or outputs."""
    errors: list[SmeltError] = []
    for value in values:
        if value.type is None and value.const_value is not None:
            value.type = ir.TensorType(value.const_value.dtype)
        if value.dtype is not None or opaque_type_of(value) is not None:
            continue
        node = value.producer()
        why = "the model does not declare its type"
        if node is not None:
            why = f"the result type of {node.domain or 'ai.onnx'}.{node.op_type} is unknown"
        errors.append(
            UsageError(
                "E620",
                f"{value.name!r} has no element type, so it cannot be an {word}",
                at=f"node {node.name!r}" if node is not None else "",
                why=why,
                fix="choose a value before or after it",
            )
        )
    if errors:
        raise errors[0] if len(errors) == 1 else ErrorList(errors)
