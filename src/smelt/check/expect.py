"""``expect_graph``: assert, in a user's test, that a model has certain chains of operators."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from smelt.check.structure import (
    ARROW,
    TIMES,
    lines,
    reads,
    shape_text,
    steps,
    with_shapes,
)
from smelt.errors import Mismatch, UsageError
from smelt.ir import scope
from smelt.ir.text import operator

SHOWN = 60
"""The largest number of lines of the graph in an error."""


@dataclass(frozen=True)
class Step:
    """One node of an expected chain; an empty ``shape`` matches any shape."""

    operator: str
    shape: str

    def matches(self, node: ir.Node) -> bool:
        """True if ``node`` matches the operator and the shape."""
        if self.operator not in (operator(node), node.op_type):
            return False
        return not self.shape or _shapes_fit(self.shape, shape_text(node))


def expect_graph(
    model: ir.Model,
    expected: Sequence[str],
    *,
    exact: bool = False,
    counts: Mapping[str, int] | None = None,
    function: str = "",
) -> None:
    """Raise Mismatch E706 unless ``model`` has the chains ``expected``.

    Chains are written as in ``smelt.check.structure``. Shapes and operator domains may be left out;
    ``?`` is any size. Each chain starts at a node after the start of the previous chain, and may
    skip nodes; with ``exact`` the chains are all nodes, in order. ``counts`` are numbers of nodes
    by operator, 0 for none. ``function`` names a function to check instead of the main graph.
    ``smelt inspect MODEL --snippet`` prints the chains of a model. Raises UsageError E642 for a
    chain that cannot be parsed.
    """
    chains = [_chain(text) for text in expected]
    model = with_shapes(model)
    graph = _graph(model, function)
    nodes = steps(graph)
    problem = _difference(nodes, chains, expected) if exact else _missing(nodes, chains, expected)
    for name, count in (counts or {}).items():
        present = sum(name in (operator(node), node.op_type) for node in nodes)
        if present != count:
            problem = problem or f"there are {present} nodes {name}, not {count}"
    if problem:
        shown = lines(graph)
        line_of_rest = [f"... {len(shown) - SHOWN} more"] if len(shown) > SHOWN else []
        raise Mismatch(
            "E706",
            problem,
            at=[*shown[:SHOWN], *line_of_rest],
            why="the graph does not contain the expected chain",
            fix="change the expectation, or use --print-changed to find the pass that changed it",
        )


def _graph(model: ir.Model, function: str) -> ir.Graph:
    """Return the main graph, or that of the only function called ``function``."""
    if not function:
        return model.graph
    matches = [f for f in model.functions.values() if function in (f.name, f"{f.domain}.{f.name}")]
    if len(matches) != 1:
        names = ", ".join(f"{f.domain}.{f.name}" for f in model.functions.values())
        what = f"the model has {len(matches)} functions called {function!r}"
        raise Mismatch(
            "E706",
            what,
            at=f"functions: {names or 'none'}",
            why="the expected chain is searched in exactly one function",
            fix="let function= name one of them as DOMAIN.NAME, or leave it out for the main graph",
        )
    return matches[0].graph


def _missing(
    nodes: Sequence[ir.Node], chains: Sequence[Sequence[Step]], texts: Sequence[str]
) -> str:
    """Return a sentence about the first missing chain; empty if all are present.

    Each chain starts at the earliest possible node, which leaves most nodes to the later chains.
    """
    readers = _readers(nodes)
    start = 0
    for chain, text in zip(chains, texts, strict=True):
        while start < len(nodes) and not _can_be_followed(nodes[start], chain, readers):
            start += 1
        if start == len(nodes):
            return f"the graph has no {text!r} after the chains listed before it"
        start += 1
    return ""


Readers: TypeAlias = Mapping[ir.Node, Sequence[ir.Node]]


def _readers(nodes: Sequence[ir.Node]) -> Readers:
    """Return the consumers of each node: nodes that read a result, also in an inner graph."""
    consumers: dict[ir.Node, dict[ir.Node, None]] = {node: {} for node in nodes}
    for node in nodes:
        for value in (*node.inputs, *scope.captures(node)):
            producer = None if value is None else value.producer()
            if producer in consumers:
                consumers[producer][node] = None
    return {node: list(after) for node, after in consumers.items()}


def _can_be_followed(node: ir.Node, chain: Sequence[Step], readers: Readers) -> bool:
    """True if ``chain`` can be followed from ``node`` along consumers."""
    front = [node] if chain[0].matches(node) else []
    for step in chain[1:]:
        front = list(dict.fromkeys(r for n in front for r in readers[n] if step.matches(r)))
    return bool(front)


def _difference(
    nodes: Sequence[ir.Node], chains: Sequence[Sequence[Step]], texts: Sequence[str]
) -> str:
    """Return a sentence about the first difference between ``chains`` and ``nodes``; else empty."""
    number = 0
    for chain, text in zip(chains, texts, strict=True):
        for i, step in enumerate(chain):
            if number == len(nodes):
                return f"the graph ends before {text!r}"
            node = nodes[number]
            if not step.matches(node):
                expected_text = ":".join(filter(None, (step.operator, step.shape)))
                actual_text = ":".join(filter(None, (operator(node), shape_text(node))))
                return f"node {number} is {actual_text}, but {text!r} expects {expected_text}"
            if i and not reads(node, nodes[number - 1]):
                return (
                    f"node {number} ({operator(node)}) does not read the node before it, but"
                    f" {text!r} expects that"
                )
            number += 1
    rest = len(nodes) - number
    return f"{rest} more nodes follow, from {operator(nodes[number])} on" if rest else ""


_STEP = re.compile(r"(?P<op>[A-Za-z_][\w.]*)(:(?P<shape>\S+))?( \* (?P<count>[1-9]\d*))?")


def _chain(text: str) -> list[Step]:
    """Parse ``Conv:Bx8 -> Relu * 2`` into steps; raises UsageError E642."""
    steps_of_chain: list[Step] = []
    for part in text.split(ARROW):
        match = _STEP.fullmatch(part.strip())
        if match is None:
            raise UsageError(
                "E642",
                f"{part!r} is not a step of a chain",
                fix=f"such as 'Conv:Bx28x28x32{ARROW}Relu{TIMES}2'",
                why="a step is an operator, perhaps with shapes and a count",
            )
        step = Step(match["op"], match["shape"] or "")
        steps_of_chain += [step] * int(match["count"] or 1)
    return steps_of_chain


def _shapes_fit(wanted: str, actual: str) -> bool:
    """True if the shapes are equal size by size; ``?`` in ``wanted`` matches any size."""
    a, b = _split(wanted, ","), _split(actual, ",")
    return len(a) == len(b) and all(map(_same_sizes, a, b))


def _same_sizes(wanted: str, actual: str) -> bool:
    """True if two shapes of one output are equal; ``?`` in ``wanted`` matches any size."""
    if "()" in (wanted, actual) or not actual:
        return wanted == actual
    a, b = _split(wanted, "x"), _split(actual, "x")
    return len(a) == len(b) and all(p in ("?", q) for p, q in zip(a, b, strict=True))


def _split(text: str, at: str) -> list[str]:
    """Split ``text`` at each ``at`` outside of parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == at and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
