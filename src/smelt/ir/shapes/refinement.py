"""Propagates better-known types, dims and elements while a model is rewritten.

A fold turns an operand into a constant; then shapes of its consumers can be inferred that were
unknown before. So if a replacement is better known than the old value, its readers are inferred
again, and then the readers of each result that gains. This includes captures, bodies of loops, and
outputs of branches and loops. Facts only grow, so the propagation ends; a value is visited once per
gain.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.constants import is_constant
from smelt.ir.same_shape import Dim
from smelt.ir.shapes import loop_refinement
from smelt.ir.shapes.declared import copy_rank
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.shapes.known_dims import merged_statements, says_more


class Facts(NamedTuple):
    """The known facts about one value; ``elements`` are those of a small integer vector."""

    shape: ir.Shape | None
    dtype: ir.DataType | None
    elements: tuple[Dim, ...] | None


class Refinement:
    """Keeps the facts about one model up to date."""

    def __init__(self, model: ir.Model, shapes: ShapeInference) -> None:
        """Store the model and its inference.

        ``_returned`` maps a value to the nodes whose subgraphs return it; it is made on first use.
        """
        self.model = model
        self.shapes = shapes
        self._returned: dict[ir.Value, list[ir.Node]] | None = None

    def note_returned(self, new: ir.Value, old: ir.Value) -> None:
        """Note that a subgraph now returns ``new`` in place of ``old``, after a rewrite."""
        if self._returned is not None and old in self._returned:
            self._returned[new] = self._returned.pop(old)

    def unite(self, old: ir.Value, new: ir.Value) -> tuple[bool, bool]:
        """Give ``new``, which replaces ``old``, all facts that are known about one of them.

        Returns ``(old_gains, new_gains)``: whether the united facts exceed those of ``old``, and
        whether they exceed those of ``new``.
        """
        copy_rank(old, new)
        old_gains = new_gains = False
        if old.shape is not None and new.shape is not None:
            if old.shape is not new.shape and old.shape.dims != new.shape.dims:
                old_gains = merged_statements(old.shape.dims, new.shape.dims) is not None
                dims = merged_statements(new.shape.dims, old.shape.dims)
                if dims is not None and not new.is_initializer():
                    new.shape, new_gains = ir.Shape(dims), True
        elif old.shape is not None:
            if not new.is_graph_input():
                new.shape, new_gains = old.shape, True
        elif new.shape is not None:
            old_gains = True
        if new.type is None and old.type is not None:
            new.type, new_gains = old.type, True
        old_gains |= old.type is None and new.type is not None
        old_gains_elements, new_gains_elements = self._unite_elements(old, new)
        return old_gains or old_gains_elements, new_gains or new_gains_elements

    def _unite_elements(self, old: ir.Value, new: ir.Value) -> tuple[bool, bool]:
        """Unite the known elements of small integer tensors; return ``(old_gains, new_gains)``."""
        if is_constant(new):
            return not is_constant(old), False
        if not _may_be_sizes(new):
            return False, False
        old_elements, new_elements = self.shapes.elements(old), self.shapes.elements(new)
        if old_elements is not None and new_elements is None:
            self.shapes.note_elements(new, old_elements)
            return False, True
        old_gains = new_elements is not None and (
            old_elements is None or merged_statements(old_elements, new_elements) is not None
        )
        return old_gains, False

    def propagate(self, nodes: Iterable[ir.Node], dead: set[ir.Node]) -> list[ir.Node]:
        """Infer ``nodes`` again, then the readers of each result that gains.

        Returns the nodes whose results gained, and their readers.
        """
        pending = deque(dict.fromkeys(nodes))
        waiting = set(pending)
        gained: dict[ir.Node, None] = {}
        while pending:
            node = pending.popleft()
            waiting.discard(node)
            if node in dead or node.graph is None:
                continue
            for value in self._infer(node):
                producer = value.producer()
                readers = self._readers(value)
                gained.update(dict.fromkeys(readers if producer is None else (producer, *readers)))
                new = [reader for reader in readers if reader not in waiting]
                waiting.update(new)
                pending.extend(new)
        return list(gained)

    def infer(self, node: ir.Node) -> list[ir.Node]:
        """Infer only ``node`` again; return the readers of each of its results that gains."""
        return [reader for value in self._infer(node) for reader in self._readers(value)]

    def _readers(self, value: ir.Value) -> list[ir.Node]:
        """Return the nodes that read ``value``, or whose subgraphs return it."""
        return [*scope.consumers(value), *self.returning(value)]

    def _infer(self, node: ir.Node) -> Iterator[ir.Value]:
        """Infer ``node`` again and yield the values that gain."""
        if scope.is_flat(node):
            affected: list[ir.Value] = list(node.outputs)
            before = [self._facts(value) for value in affected]
            self.shapes.infer_node(node)
        else:
            affected = loop_refinement.affected(node)
            before = [self._facts(value) for value in affected]
            loop_refinement.refine(self.shapes, node)
        for value, known in zip(affected, before, strict=True):
            if self._gains(known, value):
                yield value

    def _facts(self, value: ir.Value) -> Facts:
        """Return shape, dtype and tracked elements of ``value``."""
        elements = self.shapes.elements(value) if _may_be_sizes(value) else None
        known_elements = None if elements is None else tuple(elements)
        return Facts(value.shape, value.dtype, known_elements)

    def _gains(self, known: Facts, value: ir.Value) -> bool:
        """True if more is known about ``value`` than ``known``."""
        shape, dtype, elements = self._facts(value)
        if shape is not None and shape is not known.shape:
            return (
                known.shape is None or merged_statements(known.shape.dims, shape.dims) is not None
            )
        if dtype is not None and known.dtype is None:
            return True
        if elements is None or elements is known.elements:
            return False
        return known.elements is None or any(map(says_more, elements, known.elements))

    def returning(self, value: ir.Value) -> list[ir.Node]:
        """Return the nodes whose subgraphs return ``value``."""
        if not value.is_graph_output():
            return []
        if self._returned is None:
            self._returned = {}
            for node in scope.nodes(self.model):
                for inner in scope.subgraphs(node):
                    for output in inner.outputs:
                        self._returned.setdefault(output, []).append(node)
        return self._returned.get(value, [])


def _may_be_sizes(value: ir.Value) -> bool:
    """True if ``value`` may hold sizes: integers of rank 0 or 1."""
    if value.dtype not in (ir.DataType.INT64, ir.DataType.INT32):
        return False
    return value.shape is None or len(value.shape) < 2
