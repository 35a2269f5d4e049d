"""The origin of each node: its source nodes and the rules that made it.

An origin lives in ``node.meta`` during a compile and is written to
``metadata_props["smelt.origin"]`` only on request, when the model is saved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import onnx_ir as ir

META_KEY = "smelt.origin"
NUMBER_KEY = "smelt.number"

MOST = 64
"""Maximum number of sources of an origin; without it, thousands of nodes merged pair by pair would
each carry the list of all earlier ones."""

MORE = "..."
"""Stands for further sources beyond ``MOST``."""


@dataclass(frozen=True, slots=True)
class Origin:
    """``sources``: source nodes, or ``file:line in function`` for JAX; ``rules``: in order.

    ``nodes`` are the numbers, given by ``number``, of the source nodes.
    """

    sources: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    nodes: tuple[int, ...] = ()

    def __str__(self) -> str:
        text = ", ".join(self.sources)
        return f"{text} via {', '.join(self.rules)}" if self.rules else text


def origin_of(node: ir.Node) -> Origin:
    """Return the recorded origin of ``node``, or its own name if it is a source node."""
    recorded = node.meta.get(META_KEY)
    if isinstance(recorded, Origin):
        return recorded
    return Origin(sources=(node.name or node.op_type,))


def merge(nodes: Iterable[ir.Node], rule: str) -> Origin:
    """Return the origin of nodes that ``rule`` builds from ``nodes``."""
    sources: dict[str, None] = {}
    rules: dict[str, None] = {}
    numbers: dict[int, None] = {}
    for node in nodes:
        origin = origin_of(node)
        sources.update(dict.fromkeys(origin.sources))
        rules.update(dict.fromkeys(origin.rules))
        own_number = node.meta.get(NUMBER_KEY)
        numbers.update(dict.fromkeys(origin.nodes if own_number is None else (own_number,)))
    rules[rule] = None
    node_numbers = tuple(numbers)[:MOST]
    if len(sources) > MOST:
        sources.pop(MORE, None)
        return Origin((*tuple(sources)[:MOST], MORE), tuple(rules), node_numbers)
    return Origin(tuple(sources), tuple(rules), node_numbers)


def stamp(node: ir.Node, origin: Origin) -> None:
    """Record ``origin`` on ``node``."""
    node.meta[META_KEY] = origin


def number(nodes: Iterable[ir.Node]) -> None:
    """Number ``nodes`` in order, so that results of different nodes on one source line can be told
    apart."""
    for index, node in enumerate(nodes):
        node.meta[NUMBER_KEY] = index


def numbers_of(node: ir.Node) -> tuple[int, ...]:
    """Return the number of ``node``, or the numbers of the nodes it was made from."""
    own_number = node.meta.get(NUMBER_KEY)
    return origin_of(node).nodes if own_number is None else (own_number,)


def write_to_metadata(nodes: Iterable[ir.Node]) -> None:
    """Copy origins into ``metadata_props`` so that a saved model keeps them."""
    for node in nodes:
        recorded = node.meta.get(META_KEY)
        if isinstance(recorded, Origin):
            node.metadata_props[META_KEY] = str(recorded)
