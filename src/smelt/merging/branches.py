"""Merge a decoder without past and one with past into one model: an If on a bool input.

::

    decoder:     ids, mask       -> logits, present
    with past:   ids, mask, past -> logits, present

    merged:      ids, mask, past, use_cache_branch
                 If(use_cache_branch) { with past } else { decoder }
                 -> logits, present

The layout is that of optimum's merged decoders, so its loader and transformers.js read the file.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.errors import ErrorList, SmeltError, UsageError
from smelt.frontends.onnx.mapped import HAD_EXTERNAL_DATA
from smelt.ir import scope
from smelt.ir.defaults import META_KEY, default_of
from smelt.ir.extraction import replace
from smelt.ir.names import forget_names, name_nodes, name_values, values_of
from smelt.merging.common_dims import CommonDims, as_dim
from smelt.merging.compatible import add_imports, make_compatible
from smelt.merging.outputs import (
    Caches,
    align_outputs,
    differences,
    merged_shape,
    return_results,
)
from smelt.merging.weights import share_weights

CONDITION = "use_cache_branch"
"""The input by which merged files of optimum choose a branch."""


def merge_branches(
    first: ir.Model,
    cached: ir.Model,
    names: tuple[str, str],
    condition: str = CONDITION,
    caches: Caches = "empty",
) -> tuple[ir.Model, list[str]]:
    """Return the merged model and the outputs that the branch with past does not compute.

    ``first`` is the decoder without past, ``cached`` the one with past. Both are emptied: their
    nodes move into the result. ``names`` are their names in errors. Raises UsageError E665 to E672
    if the models do not fit together.
    """
    _check_pair(first, cached, names, condition)
    make_compatible((first, cached), names)
    add_imports(first, cached)
    imports = dict(first.opset_imports)
    _check_inputs(first, cached, names)
    missing = align_outputs(first, cached, caches, names)
    dims = CommonDims(v for model in (first, cached) for v in model.graph.inputs)
    inputs = _united_inputs(first, cached, dims)
    results = [
        ir.Value(name=a.name, type=a.type, shape=merged_shape(dims, a, b))
        for a, b in zip(first.graph.outputs, cached.graph.outputs, strict=True)
    ]
    for index, model in enumerate((first, cached)):
        _become_branch(model, inputs, dims, index)
    chosen = ir.Value(name=condition, type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([1]))
    # If both branches use a name, the branch that comes first keeps it: the decoder without past.
    branches = {"else_branch": first.graph, "then_branch": cached.graph}
    attributes = [ir.AttrGraph(name, graph) for name, graph in branches.items()]
    node = ir.Node("", "If", [chosen], attributes, outputs=results, name="choose_branch")
    graph = ir.Graph(
        [*inputs.values(), chosen], results, nodes=[node], opset_imports=imports, name="merged"
    )
    return _finished(graph, first), missing


def _finished(graph: ir.Graph, like: ir.Model) -> ir.Model:
    """Return ``graph`` as a model with unique names, and one copy of weights that branches share.

    Functions, metadata and IR version are those of ``like``.
    """
    merged = ir.Model(
        graph,
        ir_version=like.ir_version,
        producer_name="smelt",
        functions=list(like.functions.values()),
        metadata_props=dict(like.metadata_props),
    )
    if like.graph.meta.get(HAD_EXTERNAL_DATA):
        graph.meta[HAD_EXTERNAL_DATA] = True
    share_weights(merged)
    forget_names(merged)
    name_values(merged)
    name_nodes(merged)
    return merged


def _check_pair(first: ir.Model, cached: ir.Model, names: tuple[str, str], condition: str) -> None:
    """Raise E665 unless the models are a decoder without and one with past, and E669 if an input
    already has the name of the condition."""
    first_inputs, cached_inputs = (
        [value.name for value in model.graph.inputs] for model in (first, cached)
    )
    if condition in (*first_inputs, *cached_inputs):
        raise UsageError(
            "E669",
            f"a model has an input {condition!r} already",
            at=names[0] if condition in first_inputs else names[1],
            why="the merged model gets an input of this name, which chooses the branch",
            fix="choose another name: --condition NAME",
        )
    shared_names = [
        value.name
        for value in first.graph.outputs
        if value.name in (*first_inputs, *cached_inputs, condition)
    ]
    if shared_names:
        raise UsageError(
            "E669",
            f"{shared_names[0]!r} would be both an input and an output of the merged model",
            why="callers tell inputs and outputs apart by name",
            fix="rename the output when you export the model",
        )
    why, fix = "", "give the files in this order: decoder_model.onnx decoder_with_past_model.onnx"
    if not set(first_inputs) & set(cached_inputs):
        why = "they have no input in common"
        fix = "to run one after the other: --connect OUTPUT=INPUT; to share weights: --share"
    elif not set(cached_inputs) - set(first_inputs):
        why = f"{names[1]} has no input that {names[0]} lacks, such as past keys and values"
    if why:
        what = f"{names[0]} and {names[1]} are not a decoder without past and one with past"
        raise UsageError("E665", what, why=why, fix=fix)


def _check_inputs(first: ir.Model, cached: ir.Model, names: tuple[str, str]) -> None:
    """Raise E666 for inputs of one name and different types or ranks."""
    known = {value.name: value for value in first.graph.inputs}
    pairs = [(known[v.name], v) for v in cached.graph.inputs if v.name in known]
    errors: list[SmeltError] = [
        error for pair in pairs for error in differences("input", *pair, names)
    ]
    if errors:
        raise errors[0] if len(errors) == 1 else ErrorList(errors)


def _united_inputs(
    first: ir.Model, cached: ir.Model, dims: CommonDims
) -> dict[str | None, ir.Value]:
    """Return the inputs of both models by name, those of ``first`` in front, with common dims.

    The shapes of all shared inputs come first: they pair the dims of the two models. A dim of an
    input that only one model has then gets the name of its pair. An input keeps its default value,
    under ``META_KEY``, if all models that have the input agree on it.
    """
    own, others = ({v.name: v for v in model.graph.inputs} for model in (first, cached))
    shapes = {name: dims.common_shape(own[name], others[name]) for name in own if name in others}
    united: dict[str | None, ir.Value] = {}
    for index, values in enumerate((own, others)):
        for name, value in values.items():
            if name in united:
                continue
            shape = shapes[name] if name in shapes else dims.shape_of_one(value, index)
            united[name] = ir.Value(name=name, type=value.type, shape=shape)
            default = _common_default(own.get(name), others.get(name))
            if default is not None:
                united[name].meta[META_KEY] = default
    return united


def _common_default(*values: ir.Value | None) -> ir.TensorProtocol | None:
    """Return the default of an input if all models that have the input agree on one."""
    defaults = [default_of(value) for value in values if value is not None]
    contents = {None if each is None else each.tobytes() for each in defaults}
    return defaults[0] if len(contents) == 1 else None


def _become_branch(
    model: ir.Model, inputs: dict[str | None, ir.Value], dims: CommonDims, index: int
) -> None:
    """Turn the graph of ``model`` into a branch of an If.

    The branch has no inputs: it reads ``inputs`` of the merged graph. Each of its outputs is the
    result of a node of its own. ``index`` is 0 for the decoder without past, 1 for the other. Dims
    get their names in the merged model; a dim without one becomes unknown.
    """
    graph = model.graph
    for value in list(graph.inputs):
        replace(model, value, inputs[value.name])
    graph.inputs.clear()
    graph.opset_imports.clear()
    graph.name = ("decoder", "decoder_with_past")[index]
    for inner in scope.graphs_below(graph):
        for value in values_of(inner):
            if value.shape is not None:
                translated = (dims.translated(dim, index) for dim in value.shape.dims)
                value.shape = ir.Shape([as_dim(each[0] if each else None) for each in translated])
    return_results(graph)
