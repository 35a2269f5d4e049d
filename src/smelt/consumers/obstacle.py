"""Find the nodes that a consumer does not support, with the reason and the remedy for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from smelt.consumers.consumer import Consumer, Takes
from smelt.ir import scope
from smelt.ir.constants import tensor_of
from smelt.ir.opset import attribute, versions
from smelt.ir.partition import is_constant_node
from smelt.ir.symbolic_dims.dims import binding_advice

ELSEWHERE = "let another provider run it, or cut the model there (smelt extract)"
"""The remedy for a node for which no change of the model is known to help."""
ANY_FORM = Takes()


class Obstacle(NamedTuple):
    """The reason ``why`` a node is not supported, and the remedy; both are empty if it is."""

    why: str
    remedy: str

    def __bool__(self) -> bool:
        return bool(self.why)


NO_OBSTACLE = Obstacle("", "")
OPEN = Obstacle("its sizes must be fixed", "")
"""For nodes with open sizes. ``unsupported_nodes`` adds the remedy, which names the
model's dims.
"""


@dataclass(frozen=True)
class Outside:
    """The ``nodes`` of one operator that ``consumer`` does not support, for one reason."""

    consumer: str
    operator: str
    why: str
    remedy: str
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        """Return one line: consumer, operator, first node, number of others, reason, remedy."""
        more = f" and {len(self.nodes) - 1} more" if len(self.nodes) > 1 else ""
        where = f" {self.nodes[0]!r}{more}" if self.nodes else ""
        return f"{self.consumer} does not support {self.operator}{where}: {self.why}; {self.remedy}"

    def to_json(self) -> dict[str, object]:
        """Return the fields as plain data."""
        return {**vars(self), "nodes": list(self.nodes)}


def unsupported_nodes(model: ir.Model, consumer: Consumer) -> list[Outside]:
    """Return the nodes of ``model`` that ``consumer`` does not support, by operator and reason.

    An opset that the consumer does not read is an entry without nodes.
    """
    opset = model.opset_imports.get("", consumer.opsets[0])
    lowest, highest = consumer.opsets
    nodes_by_reason: dict[tuple[str, Obstacle], list[str]] = {}
    if not lowest <= opset <= highest:
        why = f"it takes opset {lowest} to {highest}"
        nearest_opset = min(max(opset, lowest), highest)
        nodes_by_reason["opset " + str(opset), Obstacle(why, f"--opset {nearest_opset}")] = []
    for node in scope.nodes(model):
        obstacle_ = obstacle(consumer, node, opset)
        if obstacle_:
            name = f"{node.domain}.{node.op_type}".lstrip(".")
            name = name if obstacle_ != OPEN else "nodes of open sizes:"
            nodes_by_reason.setdefault((name, obstacle_), []).append(node.name or "?")
    bind = binding_advice(model.graph.inputs)
    return [
        Outside(consumer.name, name, why, remedy or bind or ELSEWHERE, tuple(nodes))
        for (name, (why, remedy)), nodes in nodes_by_reason.items()
    ]


def key_of(node: ir.Node) -> str:
    """Return the operator of ``node`` as tables of consumers write it."""
    return f"{node.domain}::{node.op_type}" if node.domain else node.op_type


def obstacle(
    consumer: Consumer, node: ir.Node, opset: int, *, of_sizes: bool = True, deep: bool = True
) -> Obstacle:
    """Return why ``consumer`` does not support ``node`` at ``opset``, or ``NO_OBSTACLE``.

    ``of_sizes=False`` ignores open sizes; ``deep=False`` ignores inner graphs, whose nodes are
    checked one by one. The remedy is empty for open sizes.
    """
    if is_constant_node(node):
        return NO_OBSTACLE
    key = key_of(node)
    refused = consumer.refused.get(key)
    if refused is not None:
        return Obstacle(refused, ELSEWHERE)
    if consumer.operators is None:
        form = None if node.domain else ANY_FORM
    else:
        form = consumer.operators.get(key)
    if form is None:
        return Obstacle("it has no such operator", ELSEWHERE)
    misfit = _misfit(consumer, form, node, opset)
    if not misfit and of_sizes and consumer.fixed_sizes and _has_unknown_sizes(node):
        return OPEN
    return misfit


def _misfit(consumer: Consumer, form: Takes, node: ir.Node, opset: int) -> Obstacle:
    """Return the first limit that ``node`` violates, or ``NO_OBSTACLE``.

    Of several supported forms, the limits are those of the form that it violates least.
    """
    forms = [form]
    while forms[-1].otherwise is not None:
        forms.append(forms[-1].otherwise)
    misfits = min((list(_misfits(consumer, each, node, opset)) for each in forms), key=len)
    return misfits[0] if misfits else NO_OBSTACLE


def _misfits(consumer: Consumer, form: Takes, node: ir.Node, opset: int) -> Iterator[Obstacle]:
    """Yield the limits in ``form`` and in ``consumer`` that ``node`` violates."""
    values = [value for value in (*node.inputs, *node.outputs) if value is not None]
    first = node.inputs[0] if node.inputs else None
    version = max((v for v in versions(node.op_type, node.domain) if v <= opset), default=0)
    if form.newest is not None and version > form.newest:
        why = f"it is version {version} of the operator, and it takes at most {form.newest}"
        yield Obstacle(why, f"--opset {version - 1}")
    yield from _operands(form, node)
    yield from _attributes(form, node, opset)
    if first is not None and form.types is not None and first.dtype not in (None, *form.types):
        yield Obstacle(f"it has no kernel for {_name(first)}", "change the type by a Cast")
    if consumer.types is not None:
        for value in values:
            if value.dtype not in (None, *consumer.types) and tensor_of(value) is None:
                why = f"it has no element type {_name(value)}"
                yield Obstacle(why, "change the type by a Cast")
    yield from _ranks(consumer, form, values, first)


def _operands(form: Takes, node: ir.Node) -> Iterator[Obstacle]:
    """Yield the obstacles of missing inputs, and of inputs that must or must not be constants."""
    inputs = dict(enumerate(node.inputs))
    for place in form.constant:
        value = inputs.get(place)
        if value is not None and tensor_of(value) is None:
            yield Obstacle(f"input {place} is not a constant", "fold it: bind open sizes by --dim")
    for place in form.present:
        if inputs.get(place) is None:
            yield Obstacle(f"input {place} is absent", ELSEWHERE)
    for place, allowed in form.values.items():
        value = inputs.get(place)
        tensor = None if value is None else tensor_of(value)
        if tensor is not None and not np.isin(tensor.numpy(), allowed).all():
            listed = ", ".join(map(str, allowed))
            yield Obstacle(f"input {place} has other elements than {listed}", ELSEWHERE)
    if not form.gaps and None in node.inputs:
        yield Obstacle(f"input {node.inputs.index(None)} is absent before others", ELSEWHERE)
    if not form.samples:
        rank = len(node.outputs[0].shape or ())
        for place, value in inputs.items():
            tensor = None if value is None else tensor_of(value)
            if tensor is not None and len(tensor.shape) == rank > 2 and tensor.shape[0] != 1:
                why = f"input {place} is a constant of {tensor.shape[0]} samples"
                yield Obstacle(why, "export the model for one sample, or bind the batch by --dim")


def _attributes(form: Takes, node: ir.Node, opset: int) -> Iterator[Obstacle]:
    """Yield the obstacles of attributes: of their values, and whether the file names them."""
    for name, allowed in form.attributes.items():
        actual = _plain_value(attribute(node, name, opset))
        if actual is not None and actual not in allowed:
            listed = ", ".join(map(str, allowed))
            yield Obstacle(f"{name} is {actual}, and it takes {listed}", ELSEWHERE)
    for name in form.written:
        if name not in node.attributes:
            yield Obstacle(f"the file does not name {name}", ELSEWHERE)
    for name in form.unwritten:
        if name in node.attributes:
            yield Obstacle(f"the file names {name}", ELSEWHERE)


def _ranks(
    consumer: Consumer, form: Takes, values: list[ir.Value], first: ir.Value | None
) -> Iterator[Obstacle]:
    """Yield the obstacles of ranks: of the first input, and of all values."""
    most = consumer.max_rank
    for value in values:
        rank = None if value.shape is None else len(value.shape)
        if rank is not None and most is not None and rank > most:
            yield Obstacle(f"{rank} dims, and it takes at most {most}", ELSEWHERE)
    if form.ranks is not None and first is not None and first.shape is not None:
        low, high = form.ranks
        if not low <= len(first.shape) <= high:
            allowed_ranks = f"{low} to {high}" if low < high else str(low)
            yield Obstacle(f"{len(first.shape)} dims, and it takes {allowed_ranks}", ELSEWHERE)


def _has_unknown_sizes(node: ir.Node) -> bool:
    """True if the rank or a size of an operand is not known as a number."""
    values = (value for value in node.inputs if value is not None)
    return any(v.shape is None or any(type(dim) is not int for dim in v.shape) for v in values)


def _plain_value(value: object) -> object:
    """Return the value of an attribute; a list becomes a tuple, as in the tables of consumers."""
    return tuple(value) if isinstance(value, list | tuple) else value


def _name(value: ir.Value) -> str:
    """Return the element type of ``value`` as text; ``?`` if it is unknown."""
    return value.dtype.name.lower() if value.dtype is not None else "?"
