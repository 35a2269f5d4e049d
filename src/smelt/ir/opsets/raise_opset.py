"""Raises the ONNX opset of a model, operator by operator.

onnx's schemas tell whether an operator changed between two opsets. Most changes only add types, and
a node may keep its form; ``_is_compatible`` proves that per node. The others have an adapter in
``opset_adapters.py``. A node with neither is refused, and the model is left unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import onnx_ir as ir

from smelt.errors import ErrorList, Unsupported
from smelt.ir import opset, scope
from smelt.ir.constants import Constants
from smelt.ir.known_forms import NEWEST_READ
from smelt.ir.opsets.opset_adapters import ADAPTERS, UNCHANGED_FOR_INFERENCE, Adapter, breaks
from smelt.ir.opsets.versions import ir_version_of
from smelt.ir.opsets.withdrawn import NEVER, defined_from, expand_withdrawn, is_withdrawn
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.shapes.contradiction import contradiction
from smelt.ir.shapes.inference import ShapeInference

MISDECLARED = "the declared type or shape of a result is not what the node computes"
REDECLARE = "correct the declared type and shape, or remove them: smelt infers both"

LOWEST_GOAL = 13
"""The lowest target opset, because adapters produce forms of opset 13."""


def raise_opset(model: ir.Model, to: int) -> None:
    """Raise ``model`` and its functions to ONNX opset ``to``, in place.

    The IR version becomes at least that of the opset.

    Raises an ErrorList of Unsupported E230, with the model unchanged, if ``to`` is lower than the
    model's opset, newer than the installed onnx, or if an operator cannot be raised to it.
    """
    roots = _roots(model)
    _check_goal(model, to)
    problems = []
    work: list[tuple[ir.Node, list[Adapter]]] = []
    for root, imports in roots:
        start = imports.get("", to)
        for graph in scope.graphs_below(root):
            for node in graph:
                if node.domain or start == to:
                    continue
                steps = list(_steps(node, start, to))
                if None in steps:
                    problems.append(_refusal(node, start, to))
                elif steps:
                    work.append((node, [step for step in steps if step is not None]))
    if problems:
        raise ErrorList(problems)
    shapes = ShapeInference(model)
    if work and model.opset_imports.get("", to) != to:
        # Adapters read shapes. The nodes still have their old forms, which only the old opset
        # explains, so shapes are inferred before the imports change.
        shapes.infer_model()
    for _, imports in roots:
        if "" in imports:
            imports[""] = to
    model.ir_version = max(model.ir_version, ir_version_of(model.opset_imports))
    _adapt(model, work)
    shapes.restore_interface()  # inference also refined inputs and outputs, and invented dim names


def replace_withdrawn(model: ir.Model, opset: int | None = None) -> None:
    """Replace operators that ONNX does not define at the opset of ``model``.

    If raising the opset suffices, do that instead, unless the caller requested ``opset``.
    """
    withdrawn = [
        node
        for root, imports in _roots(model)
        for node in scope.nodes_below(root)
        if not node.domain and is_withdrawn(node.op_type, imports.get("", NEVER))
    ]
    if not withdrawn:
        return
    needed_opset = max(defined_from(node.op_type) for node in withdrawn)
    if opset is None and needed_opset < NEVER and _try_raise(model, needed_opset):
        return
    if model.opset_imports.get("", LOWEST_GOAL) < LOWEST_GOAL:
        return  # raising it will replace them
    shapes = ShapeInference(model)
    shapes.infer_model()
    _adapt(model, [(node, [expand_withdrawn]) for node in withdrawn])
    shapes.restore_interface()


def _try_raise(model: ir.Model, to: int) -> bool:
    """Raise the opset of ``model`` to ``to`` and return True; False, with the model unchanged, if
    refused.
    """
    try:
        raise_opset(model, to)
    except ErrorList:
        return False
    return True


def _roots(model: ir.Model) -> list[tuple[ir.Graph, dict[str, int]]]:
    """Return the graphs of ``model`` and of its functions, each with its opset imports."""
    roots = [(model.graph, model.opset_imports)]
    return roots + [
        (function.graph, function.opset_imports) for function in model.functions.values()
    ]


def has_other_meaning(node: ir.Node, opset_a: int, opset_b: int) -> bool:
    """True if ``node`` has another meaning, or none, in one of the two ONNX opsets."""
    low, high = sorted((opset_a, opset_b))
    if node.domain or low == high:
        return False
    return opset.schema(node.op_type, low) is None or any(True for _ in _steps(node, low, high))


def _check_goal(model: ir.Model, to: int) -> None:
    """Raise Unsupported E230 if ``model`` cannot be raised to opset ``to``."""
    from onnx import defs

    start = model.opset_imports.get("", to)
    newest = min(defs.onnx_opset_version(), NEWEST_READ)
    if to != start and not max(start, LOWEST_GOAL) <= to <= newest:
        raise Unsupported(
            "E230",
            f"the model cannot be raised from opset {start} to {to}",
            why=f"models are raised to opset {LOWEST_GOAL} at least and {newest} at most",
            fix=f"ask for an opset from {max(start, LOWEST_GOAL)} to {newest}, or for none",
        )


def _adapt(model: ir.Model, work: list[tuple[ir.Node, list[Adapter]]]) -> None:
    """Run the adapters of each node of ``work``; a replaced node needs no further adapter.

    Raises InvalidModel E317 if a declared type or shape is not that of the adapted node's result.
    """
    rewriter = Rewriter(model, ShapeInference(model), Constants())
    for node, adapters in work:
        for adapt in adapters:
            try:
                adapt(node, rewriter)
            except Refused as error:
                raise contradiction(node, str(error), MISDECLARED, REDECLARE) from error
            if node in rewriter.dead:
                # An adapter that replaces a node writes the form of the newest opset.
                break
    rewriter.flush()


def _steps(node: ir.Node, start: int, to: int) -> Iterator[Adapter | None]:
    """Yield the adapters that raise ``node`` from opset ``start`` to ``to``, in order.

    Yields None, and ends, at a version whose change of meaning no adapter makes up for.
    """
    if is_withdrawn(node.op_type, start):
        if defined_from(node.op_type) > to:
            yield expand_withdrawn
        return
    adapted = False
    for before, version in _changes(node.op_type, start, to):
        adapter = ADAPTERS.get((node.op_type, version))
        if breaks(node, version):
            yield None
            return
        if adapter is not None:
            adapted = True
            yield adapter
        elif (node.op_type, version) in UNCHANGED_FOR_INFERENCE or (
            _only_widens(node.op_type, before, version)
            if adapted
            else (_is_compatible(node, before, version))
        ):
            continue
        else:
            yield None
            return


@cache
def _changes(op_type: str, start: int, to: int) -> tuple[tuple[int, int], ...]:
    """Return the changes of an operator between opsets ``start`` and ``to``.

    Each is a pair: the version of the operator before and after the change.
    """
    versions: list[int] = []
    for version in range(start, to + 1):
        schema = opset.schema(op_type, version)
        since = schema.since_version if schema is not None else 0
        if schema is not None and (not versions or versions[-1] != since):
            versions.append(since)
    return tuple(pairwise(versions))


def _is_compatible(node: ir.Node, before: int, version: int) -> bool:
    """True if the newer schema accepts ``node`` unchanged and with the same meaning."""
    old, new = opset.schema(node.op_type, before), opset.schema(node.op_type, version)
    if old is None or new is None or new.deprecated:
        return False
    if not new.min_input <= len(node.inputs) <= new.max_input:
        return False
    if len(node.outputs) > new.max_output:
        return False
    old_names = [p.name for p in old.inputs]
    if len(new.inputs) < len(old_names) and len(node.inputs) > len(new.inputs):
        return False
    names = set(old.attributes) | set(new.attributes)
    return all(_keeps_attribute(node, name, before, version) for name in names)


@cache
def _only_widens(op_type: str, before: int, version: int) -> bool:
    """True if the newer schema accepts every node of the older one, with the same defaults.

    Unlike ``_is_compatible``, this needs no node: adapters will change the node before.
    """
    old, new = opset.schema(op_type, before), opset.schema(op_type, version)
    if old is None or new is None or new.deprecated:
        return False
    if new.min_input > old.min_input or new.max_input < old.max_input:
        return False
    if any(a.required and name not in old.attributes for name, a in new.attributes.items()):
        return False
    return all(
        name in new.attributes
        and opset.default_attribute(op_type, name, before)
        == opset.default_attribute(op_type, name, version)
        for name in old.attributes
    )


def _keeps_attribute(node: ir.Node, name: str, before: int, version: int) -> bool:
    """True if the attribute ``name`` of ``node``, or its absence, means the same in both
    versions."""
    old, new = opset.schema(node.op_type, before), opset.schema(node.op_type, version)
    assert old is not None
    assert new is not None
    if name in node.attributes:
        types = [schema.attributes[name].type for schema in (old, new) if name in schema.attributes]
        return len(types) == 2 and types[0] == types[1]
    if name in new.attributes and new.attributes[name].required:
        return False
    old_default = opset.default_attribute(node.op_type, name, before)
    new_default = opset.default_attribute(node.op_type, name, version)
    if name not in old.attributes:
        # A new attribute does not affect nodes without it, unless an adapter says otherwise.
        return True
    return old_default == new_default or (old_default is None and name not in new.attributes)


def _refusal(node: ir.Node, start: int, to: int) -> Unsupported:
    """Return the error E230 for ``node``."""
    return Unsupported(
        "E230",
        f"operator {node.op_type} cannot be raised from opset {start} to {to}",
        at=f"node {node.name!r} ({node.op_type})",
        why="its meaning changed in between, and smelt has no conversion for it",
        fix="export the model at a newer opset",
    )
