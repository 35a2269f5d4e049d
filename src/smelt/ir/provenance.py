"""Where each node comes from: the source nodes behind it and the rules that made it.

An origin lives in ``node.meta`` while a model is compiled and is written to
``metadata_props["smelt.origin"]`` only on request, when the model is saved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import onnx_ir as ir

META_KEY = "smelt.origin"
NUMBER_KEY = "smelt.number"

MOST = 64
"""Sources that an origin lists; thousands of nodes that merge pair by pair would each carry the
list of all before."""

MORE = "..."
"""Stands for the sources beyond ``MOST``."""


@dataclass(frozen=True, slots=True)
class Origin:
    """``sources``: source nodes, or ``file:line in function`` for JAX; ``rules``: in order.

    ``nodes`` are the numbers of the nodes behind it, where ``number`` gave them some.
    """

    sources: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    nodes: tuple[int, ...] = ()

    def __str__(self) -> str:
        text = ", ".join(self.sources)
        return f"{text} via {', '.join(self.rules)}" if self.rules else text


def origin_of(node: ir.Node) -> Origin:
    """The recorded origin of ``node``, or its own name if it is a source node itself."""
    recorded = node.meta.get(META_KEY)
    if isinstance(recorded, Origin):
        return recorded
    return Origin(sources=(node.name or node.op_type,))


def merge(nodes: Iterable[ir.Node], rule: str) -> Origin:
    """The origin of what ``rule`` builds from ``nodes``: up to ``MOST`` sources, then the rules."""
    sources: dict[str, None] = {}
    rules: dict[str, None] = {}
    numbers: dict[int, None] = {}
    for node in nodes:
        origin = origin_of(node)
        sources.update(dict.fromkeys(origin.sources))
        rules.update(dict.fromkeys(origin.rules))
        given = node.meta.get(NUMBER_KEY)
        numbers.update(dict.fromkeys(origin.nodes if given is None else (given,)))
    rules[rule] = None
    known = tuple(numbers)[:MOST]
    if len(sources) > MOST:
        sources.pop(MORE, None)
        return Origin((*tuple(sources)[:MOST], MORE), tuple(rules), known)
    return Origin(tuple(sources), tuple(rules), known)


def stamp(node: ir.Node, origin: Origin) -> None:
    """Record ``origin`` on ``node``."""
    node.meta[META_KEY] = origin


def number(nodes: Iterable[ir.Node]) -> None:
    """Number ``nodes`` in order, so that what comes of them can be told from others of one line."""
    for index, node in enumerate(nodes):
        node.meta[NUMBER_KEY] = index


def numbers_of(node: ir.Node) -> tuple[int, ...]:
    """The number of ``node``, or those of the nodes that it was made from."""
    given = node.meta.get(NUMBER_KEY)
    return origin_of(node).nodes if given is None else (given,)


def write_to_metadata(nodes: Iterable[ir.Node]) -> None:
    """Copy origins into ``metadata_props`` so that a saved model keeps them."""
    for node in nodes:
        recorded = node.meta.get(META_KEY)
        if isinstance(recorded, Origin):
            node.metadata_props[META_KEY] = str(recorded)
