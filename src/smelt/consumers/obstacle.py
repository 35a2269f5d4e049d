"""Why a consumer does not take a node, and what helps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import onnx_ir as ir

from smelt.consumers.consumer import Consumer, Takes
from smelt.ir import scope
from smelt.ir.constants import tensor_of
from smelt.ir.dims import binding_advice
from smelt.ir.opset import attribute, versions
from smelt.ir.partition import is_constant_node

ELSEWHERE = "let another provider run it, or cut the model there (smelt extract)"
ANY_FORM = Takes()


class Obstacle(NamedTuple):
    """Why a node is not taken, and the remedy; both are empty if it is taken."""

    why: str
    remedy: str

    def __bool__(self) -> bool:
        return bool(self.why)


TAKEN = Obstacle("", "")
OPEN = Obstacle("its sizes must be fixed", "")
"""The remedy names the dims of the model."""


@dataclass(frozen=True)
class Outside:
    """Nodes of one operator that ``consumer`` does not take, for one reason."""

    consumer: str
    operator: str
    why: str
    remedy: str
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        more = f" and {len(self.nodes) - 1} more" if len(self.nodes) > 1 else ""
        where = f" {self.nodes[0]!r}{more}" if self.nodes else ""
        return f"{self.consumer} does not take {self.operator}{where}: {self.why}; {self.remedy}"

    def to_json(self) -> dict[str, object]:
        """Return the fields as plain data."""
        return {**vars(self), "nodes": list(self.nodes)}


def outside(model: ir.Model, consumer: Consumer) -> list[Outside]:
    """Return everything of ``model`` that ``consumer`` does not take, by operator and reason."""
    opset = model.opset_imports.get("", consumer.opsets[0])
    lowest, highest = consumer.opsets
    found: dict[tuple[str, Obstacle], list[str]] = {}
    if not lowest <= opset <= highest:
        why = f"it takes opset {lowest} to {highest}"
        wanted = min(max(opset, lowest), highest)
        found["opset " + str(opset), Obstacle(why, f"--opset {wanted}")] = []
    for node in scope.nodes(model):
        obstacle_ = obstacle(consumer, node, opset)
        if obstacle_:
            name = f"{node.domain}.{node.op_type}".lstrip(".")
            name = name if obstacle_ != OPEN else "nodes of open sizes:"
            found.setdefault((name, obstacle_), []).append(node.name or "?")
    bind = binding_advice(model.graph.inputs)
    return [
        Outside(consumer.name, name, why, remedy or bind or ELSEWHERE, tuple(nodes))
        for (name, (why, remedy)), nodes in found.items()
    ]


def key_of(node: ir.Node) -> str:
    """Return the operator of ``node`` as tables of consumers write it."""
    return f"{node.domain}::{node.op_type}" if node.domain else node.op_type


def obstacle(
    consumer: Consumer, node: ir.Node, opset: int, *, of_sizes: bool = True, deep: bool = True
) -> Obstacle:
    """Return why ``consumer`` does not take ``node`` at ``opset``.

    Without ``of_sizes``, open sizes are no reason; without ``deep``, neither are inner graphs,
    whose nodes are judged one by one. The remedy is empty for open sizes.
    """
    if is_constant_node(node):
        return TAKEN
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
    found = next(_misfits(consumer, form, node, opset), TAKEN)
    if not found and of_sizes and consumer.fixed_sizes and _is_open(node):
        return OPEN
    return found


def _misfits(consumer: Consumer, form: Takes, node: ir.Node, opset: int) -> Iterator[Obstacle]:
    """Yield each way in which ``node`` differs from what the consumer takes of its operator."""
    values = [value for value in (*node.inputs, *node.outputs) if value is not None]
    first = node.inputs[0] if node.inputs else None
    version = max((v for v in versions(node.op_type, node.domain) if v <= opset), default=0)
    if form.newest is not None and version > form.newest:
        why = f"it is version {version} of the operator, and it takes at most {form.newest}"
        yield Obstacle(why, f"--opset {version - 1}")
    for place in form.constant:
        value = node.inputs[place] if place < len(node.inputs) else None
        if value is not None and tensor_of(value) is None:
            yield Obstacle(f"input {place} is not a constant", "fold it: bind open sizes by --dim")
    for name, allowed in form.attributes.items():
        given = _plain(attribute(node, name, opset))
        if given is not None and given not in allowed:
            listed = ", ".join(map(str, allowed))
            yield Obstacle(f"{name} is {given}, and it takes {listed}", ELSEWHERE)
    if not form.gaps and None in node.inputs:
        yield Obstacle(f"input {node.inputs.index(None)} is absent before others", ELSEWHERE)
    if first is not None and form.types is not None and first.dtype not in (None, *form.types):
        yield Obstacle(f"it has no kernel for {_name(first)}", "change the type by a Cast")
    for value in values if consumer.types is not None else ():
        if value.dtype not in (None, *(consumer.types or ())) and tensor_of(value) is None:
            yield Obstacle(f"it has no element type {_name(value)}", "change the type by a Cast")
    yield from _ranks(consumer, form, values, first)


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
            wanted = f"{low} to {high}" if low < high else str(low)
            yield Obstacle(f"{len(first.shape)} dims, and it takes {wanted}", ELSEWHERE)


def _is_open(node: ir.Node) -> bool:
    """True if the shape of an operand is not known in numbers."""
    values = (value for value in node.inputs if value is not None)
    return any(v.shape is None or any(type(dim) is not int for dim in v.shape) for v in values)


def _plain(value: object) -> object:
    """Return an attribute as a hashable value that compares with those of a table."""
    return tuple(value) if isinstance(value, list | tuple) else value


def _name(value: ir.Value) -> str:
    return value.dtype.name.lower() if value.dtype is not None else "?"
