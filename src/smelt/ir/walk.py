"""A walk from the root of a match through a region that no pattern of fixed size describes.

A pattern says how many nodes there are. Where there may be any number, or many spellings, a rule
walks by hand: up through producers, down through readers. The walk records each node that the
rewrite will replace, so that all such rules are closed by one test, and what they build is known
to come of those nodes.

::

    walk = m.walk()
    images = walk.up(m["x"], "Concat")
    ...
    if against := m.replaces(walk):
        return against
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any, TypeVar, cast

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.known_forms import is_known
from smelt.ir.onnx_ir_private import uses_of


def producer_of(value: ir.Value | None, *op_types: str) -> ir.Node | None:
    """The node behind ``value`` if it is an ONNX one of ``op_types``, in a form that is known."""
    node = value.producer() if value is not None else None
    return node if node is not None and _is_one_of(node, op_types) else None


def only_reader(value: ir.Value, *op_types: str) -> ir.Node | None:
    """The one node that reads ``value``, as its first input, if it is of ``op_types``."""
    if not scope.has_one_use(value):
        return None
    (reader,) = scope.consumers(value)
    return reader if reader.inputs[0] is value and _is_one_of(reader, op_types) else None


def reader_outside(value: ir.Value, nodes: Collection[ir.Node]) -> ir.Node | None:
    """A node that reads ``value`` and is none of ``nodes``."""
    for use in uses_of(value):
        reader: ir.Node = use.node
        if reader not in nodes:
            return reader
    return None


def _is_one_of(node: ir.Node, op_types: tuple[str, ...]) -> bool:
    return not node.domain and node.op_type in op_types and is_known(node)


class Walk:
    """``nodes`` lists what was taken, beginning with the root; ``end`` computes the last result.

    The results of the end are those that are replaced: the root's, unless the walk went down.
    All other results are inner ones.
    """

    def __init__(self, root: ir.Node) -> None:
        self.root = root
        self.end = root
        self.nodes: dict[ir.Node, None] = {root: None}

    def up(self, value: ir.Value | None, *op_types: str) -> ir.Node | None:
        """Take the node behind ``value`` if it is one of ``op_types`` in the graph of the root.

        Nodes of a graph around run at other times, and as often as that graph: they are not taken.
        """
        node = producer_of(value, *op_types)
        if node is None or node.graph is not self.root.graph:
            return None
        self.nodes.setdefault(node)
        return node

    def down(self, op_types: Collection[str]) -> ir.Node | None:
        """Take the one node that reads the result of the end, if it is one of ``op_types``.

        That node, which then is the end, reads the result as its first input.
        """
        node = only_reader(self.end.outputs[0], *op_types)
        if node is None or node.graph is not self.root.graph:
            return None
        self.take([node])
        self.end = node
        return node

    def take(self, nodes: Iterable[ir.Node]) -> None:
        """Take ``nodes``, which were looked at before."""
        self.nodes.update(dict.fromkeys(nodes))

    def mark(self) -> tuple[int, ir.Node]:
        """Where the walk stands, for ``back``."""
        return len(self.nodes), self.end

    def back(self, mark: tuple[int, ir.Node]) -> None:
        """Give back the nodes taken since ``mark``, of an attempt that failed."""
        count, self.end = mark
        while len(self.nodes) > count:
            self.nodes.popitem()

    def obstacle(self) -> str | None:
        """What forbids to replace the region: something outside that sees an inner result."""
        for node in self.nodes:
            if node is self.end:
                continue
            if node.graph is not self.root.graph:
                return f"the {node.op_type} lies in another graph"
            for value in node.outputs:
                if value.is_graph_output():
                    return f"the result of the {node.op_type} is an output"
                reader = reader_outside(value, self.nodes)
                if reader is not None:
                    where = "elsewhere" if reader.graph is node.graph else "in an inner graph"
                    return f"the result of the {node.op_type} is read {where}"
        return None


_Method = TypeVar("_Method", bound=Callable[..., Any])


def attempt(read: _Method) -> _Method:
    """Make a method an attempt: if it finds nothing, its ``walk`` gives back what it took.

    Otherwise a spelling that was tried and is not there would hold the region open. Nothing is
    what is false, such as None or False. A generator gives back when it is asked for more than it
    has: what it took for a finding lasts while whoever asked looks at that.
    """

    @wraps(read)
    def reading(reader: Any, *args: Any, **kwargs: Any) -> Any:
        mark = reader.walk.mark()
        found = read(reader, *args, **kwargs)
        if not found:
            reader.walk.back(mark)
        return found

    @wraps(read)
    def readings(reader: Any, *args: Any, **kwargs: Any) -> Any:
        mark = reader.walk.mark()
        yield from read(reader, *args, **kwargs)
        reader.walk.back(mark)

    return cast(_Method, readings if isgeneratorfunction(read) else reading)
