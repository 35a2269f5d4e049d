"""Reduction steps: drop outputs, bind symbolic dims, inline calls, replace an If by a branch."""

from __future__ import annotations

from functools import partial

import onnx_ir as ir

from smelt.check.reduction.search import Search, sweep
from smelt.errors import SmeltError
from smelt.frontends.onnx.inline import inline_functions
from smelt.ir import scope
from smelt.ir.extraction import replace
from smelt.passes.interface.materialize_symbolic_dims import bind_dims
from smelt.runtime.interface import interface_of

SIZE = 2
"""The size for symbolic dims; at size 1 operators may behave differently."""


def drop_outputs(search: Search) -> bool:
    """Remove outputs and the nodes that only they need; True if any were removed."""

    def without(chosen: range, model: ir.Model) -> bool:
        """Remove the outputs with the numbers ``chosen``; False if no output would be left."""
        outputs = list(model.graph.outputs)
        if len(outputs) <= len(chosen):
            return False
        model.graph.outputs.clear()
        model.graph.outputs.extend(v for i, v in enumerate(outputs) if i not in chosen)
        return True

    def count() -> int:
        """Return how many outputs the model has now."""
        return len(search.model.graph.outputs)

    def try_range(chosen: range) -> int:
        """Try to remove the outputs with the numbers ``chosen``; return how many were removed."""
        before = count()
        search.attempt(partial(without, chosen))
        return before - count()

    return count() > 1 and sweep(count, [try_range])


def bind_symbols(search: Search) -> bool:
    """Replace all symbolic dims by ``SIZE``, or else one by one; True if any were replaced."""
    names = interface_of(search.model).symbols()
    if not names or search.attempt(lambda model: _bind(model, names)):
        return bool(names)
    if len(names) == 1:
        return False
    return sum(search.attempt(partial(_bind, names=(name,))) for name in names) > 0


def _bind(model: ir.Model, names: tuple[str, ...]) -> bool:
    """Replace the symbolic dims ``names`` by ``SIZE``; False if that is impossible."""
    try:
        return bool(bind_dims(model, dict.fromkeys(names, SIZE)))
    except SmeltError:
        return False


def inline_calls(search: Search) -> bool:
    """Inline all functions, so that later steps can remove their nodes; True if the check still
    holds.
    """

    def inlined(model: ir.Model) -> bool:
        """Inline the functions of ``model``; False if there are none, or one cannot be inlined."""
        if not model.functions:
            return False
        try:
            inline_functions(model)
        except SmeltError:
            return False
        return True

    return search.attempt(inlined)


def choose_branches(search: Search) -> bool:
    """Replace each If by one of its branches where the check still holds; True if any were
    replaced.
    """
    any_replaced = False
    number = 0
    while number < sum(node.op_type == "If" for node in search.model.graph):
        edits = [partial(_inline_branch, number=number, branch=branch) for branch in _BRANCHES]
        if any(search.attempt(edit) for edit in edits):
            any_replaced = True
        else:
            number += 1
    return any_replaced


_BRANCHES = ("then_branch", "else_branch")


def _inline_branch(model: ir.Model, number: int, branch: str) -> bool:
    """Replace the If with the number ``number`` in the main graph by the nodes of ``branch``.

    The results of the branch replace those of the If, and its weights move to the main graph.
    Returns False if the If has no such branch, or if a graph output would have no node that
    computes it.
    """
    node = [node for node in model.graph if node.op_type == "If"][number]
    if branch not in node.attributes:
        return False
    body = node.attributes[branch].as_graph()
    branch_outputs = list(body.outputs)
    body.outputs.clear()
    branch_nodes = list(body)
    body.remove(branch_nodes)
    model.graph.insert_before(node, branch_nodes)
    for name, value in list(body.initializers.items()):
        del body.initializers[name]
        if name in model.graph.initializers:
            value.name = f"{name}.{branch}"
        model.graph.register_initializer(value)
    for old, new in zip(node.outputs, branch_outputs, strict=True):
        replace(model, old, new)
    if any(value.is_graph_output() and value.producer() is None for value in branch_outputs):
        return False  # a node must compute each output
    for reader in (node, *scope.nested_nodes(node)):
        for index in range(len(reader.inputs)):
            reader.replace_input_with(index, None)
    model.graph.remove(node)
    return True
