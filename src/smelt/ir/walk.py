"""A walk from the root of a match through a region that no pattern of fixed size describes.

A pattern has a fixed number of nodes. Where a region may have any number of nodes, or many
spellings, a rule walks by hand: up through producers, down through readers. The walk records each
node that the rewrite will replace. So one check, ``Match.replaces``, serves all such rules, and the
origin of the replacement is known.

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
    """Return the producer of ``value`` if it is an ONNX node of ``op_types`` in a known form, else
    None."""
    node = value.producer() if value is not None else None
    return node if node is not None and _is_one_of(node, op_types) else None


def both_orders(
    node: ir.Node | None,
) -> tuple[tuple[ir.Value | None, ir.Value | None], ...]:
    """Return the two operands of a commutative ``node`` in both orders; () without a node."""
    if node is None:
        return ()
    first, second = node.inputs
    return (first, second), (second, first)


def only_reader(value: ir.Value, *op_types: str) -> ir.Node | None:
    """Return the single reader of ``value`` if it is of ``op_types`` and reads it as first
    input."""
    if not scope.has_one_use(value):
        return None
    (reader,) = scope.consumers(value)
    return reader if reader.inputs[0] is value and _is_one_of(reader, op_types) else None


def reader_outside(value: ir.Value, nodes: Collection[ir.Node]) -> ir.Node | None:
    """Return a reader of ``value`` that is not in ``nodes``, or None."""
    for use in uses_of(value):
        reader: ir.Node = use.node
        if reader not in nodes:
            return reader
    return None


def _is_one_of(node: ir.Node, op_types: tuple[str, ...]) -> bool:
    """True for an ONNX node of ``op_types`` that uses known features only."""
    return not node.domain and node.op_type in op_types and is_known(node)


class Walk:
    """The nodes that a rewrite will replace.

    ``nodes`` lists them, starting with the root. ``end`` is the node whose outputs are replaced:
    the root, unless the walk went down. All other outputs must be inner results of the region.
    """

    def __init__(self, root: ir.Node) -> None:
        """Begin a walk at ``root``."""
        self.root = root
        self.end = root
        self.nodes: dict[ir.Node, None] = {root: None}

    def up(self, value: ir.Value | None, *op_types: str) -> ir.Node | None:
        """Add the producer of ``value`` and return it if it is of ``op_types`` in the graph of the
        root.

        Nodes of an outer graph are not added: they run at other times and as often as that graph
        runs.
        """
        node = producer_of(value, *op_types)
        if node is None or node.graph is not self.root.graph:
            return None
        self.nodes.setdefault(node)
        return node

    def down(self, op_types: Collection[str]) -> ir.Node | None:
        """Add the single reader of the end's output if it is of ``op_types``, and make it the new
        end.

        The reader must read the output as its first input.
        """
        node = only_reader(self.end.outputs[0], *op_types)
        if node is None or node.graph is not self.root.graph:
            return None
        self.take([node])
        self.end = node
        return node

    def take(self, nodes: Iterable[ir.Node]) -> None:
        """Add ``nodes``, which the caller has already checked."""
        self.nodes.update(dict.fromkeys(nodes))

    def mark(self) -> tuple[int, ir.Node]:
        """Return the current state of the walk, for ``back``: the number of nodes, and ``end``."""
        return len(self.nodes), self.end

    def back(self, mark: tuple[int, ir.Node]) -> None:
        """Remove the nodes added since ``mark``, after an attempt that failed."""
        count, self.end = mark
        while len(self.nodes) > count:
            self.nodes.popitem()

    def obstacle(self) -> str | None:
        """Return why the region cannot be replaced (an inner result is used outside), or None."""
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
    """Make a method an attempt: if it returns a false value, its ``walk`` drops the nodes it added.

    Otherwise nodes of a failed attempt would stay in the region, and the region would not be
    closed. A generator drops its nodes when the caller asks for the next item, so the nodes of an
    item last while the caller inspects it.
    """

    @wraps(read)
    def reading(reader: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the method; drop the nodes it added if the result is false."""
        mark = reader.walk.mark()
        result = read(reader, *args, **kwargs)
        if not result:
            reader.walk.back(mark)
        return result

    @wraps(read)
    def readings(reader: Any, *args: Any, **kwargs: Any) -> Any:
        """Yield the items of the method, then drop the nodes it added."""
        mark = reader.walk.mark()
        yield from read(reader, *args, **kwargs)
        reader.walk.back(mark)

    return cast(_Method, readings if isgeneratorfunction(read) else reading)
