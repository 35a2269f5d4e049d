"""The one way to edit a graph.

A Rewriter replaces results, inserts nodes and removes dead nodes. It refuses an edit that would
lose or rename a graph output, or change the dtype or shape of a value, so a pass cannot break an
interface by mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import onnx_ir as ir
from onnx_shape_inference import SYM_DATA_KEY

from smelt.errors import InternalError
from smelt.ir import provenance, scope
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.node_inputs import detach, set_input
from smelt.ir.onnx_ir_private import times_returned
from smelt.ir.same_shape import conflicting_shapes, same_shape
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.shapes.refinement import Refinement


class Refused(Exception):
    """An edit was not allowed; the message names the failed condition. The graph is unchanged."""


class Rewriter:
    """Edits one model. ``count`` is the number of edits so far, at most ``limit``.

    ``kernels`` are the ONNX operators that new nodes may use besides those of the model, None for
    all; ``extensions`` are those beyond ONNX that the target computes. ``removed`` lists dead
    nodes; ``builders`` lists the builders whose nodes are in use. The limit serves bisection:
    stopping early finds the edit at which a result becomes wrong. ``flush`` removes
    dead nodes, because one removal costs as much as many; a dead node has no inputs at once.
    """

    def __init__(
        self,
        model: ir.Model,
        shapes: ShapeInference,
        constants: Constants,
        limit: int | None = None,
        kernels: frozenset[str] | None = None,
        extensions: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        """Edit ``model`` up to ``limit`` times; keep ``shapes`` and ``constants`` up to date."""
        self.kernels, self.extensions = kernels, extensions
        self.model, self.limit = model, limit
        self.shapes = shapes
        self.constants = constants
        self.count = 0
        self.removed: list[ir.Node] = []
        self.builders: list[Builder] = []
        self.dead: set[ir.Node] = set()
        self.refinement = Refinement(model, shapes)
        self._returned: dict[ir.Graph, dict[ir.Value, list[int]]] = {}
        self._dead_in: dict[ir.Graph, list[ir.Node]] = {}
        self._waiting: dict[ir.Node, None] | None = None
        self._function_graphs = {function.graph for function in model.functions.values()}

    def builder(self, before: ir.Node, sources: Iterable[ir.Node], rule: str) -> Builder:
        """Return a Builder that inserts before ``before`` and stamps nodes as made by ``rule``."""
        graph = before.graph
        if graph is None:
            raise InternalError("E902", f"node {before.name!r} is in no graph")
        return Builder(
            self.model,
            graph,
            self.shapes,
            before=before,
            origin=cache(lambda: provenance.merge(sources, rule)),
            in_function=graph in self._function_graphs,
            kernels=self.kernels,
            extensions=self.extensions,
            spills=True,
        )

    def replace(
        self,
        node: ir.Node,
        values: Sequence[ir.Value | None],
        *,
        trust_shape: bool = False,
        rule: str = "",
    ) -> list[ir.Node]:
        """Replace the outputs of ``node`` by ``values`` and remove the nodes that become dead.

        Returns the live nodes that a worklist has to try again: readers of the old outputs,
        producers that lost a reader, and, except within ``in_order``, nodes whose results are now
        inferred more precisely. ``trust_shape`` accepts values whose shape is not proved to be that
        of the output. ``rule`` is the origin of an Identity that an output of the graph may need.
        Raises Refused, and changes nothing, if a live output has no replacement or one of another
        dtype or shape.
        """
        self.check(node, values, trust_shape)
        touched: dict[ir.Node, None] = {}
        gaining: dict[ir.Node, None] = {}
        for old, new in zip(node.outputs, values, strict=True):
            if new is None or new is old:
                continue
            touched.update(dict.fromkeys(scope.consumers(old)))
            gaining.update(dict.fromkeys(self._substitute(node, old, new, rule)))
        self.count += 1
        touched.update(dict.fromkeys(self.remove_dead([node])))
        if self._waiting is not None:
            self._waiting.update(gaining)
        elif gaining:
            touched.update(dict.fromkeys(self.refinement.propagate(gaining, self.dead)))
        return [item for item in touched if item not in self.dead]

    def check(self, node: ir.Node, values: Sequence[ir.Value | None], trust_shape: bool) -> None:
        """Raise Refused unless ``values`` may replace the outputs of ``node``."""
        if self.exhausted:
            raise Refused(f"the limit of {self.limit} rewrites is reached")
        if len(values) != len(node.outputs):
            raise Refused(f"{len(values)} values for {len(node.outputs)} outputs")
        for old, new in zip(node.outputs, values, strict=True):
            if new is None:
                if not scope.is_dead(old):
                    raise Refused(f"output {old.index()} is read, but has no replacement")
                continue
            if old.dtype is not None and new.dtype is not None and old.dtype != new.dtype:
                raise Refused(f"the dtype would change from {old.dtype} to {new.dtype}")
            if conflicting_shapes(old.shape, new.shape):
                raise Refused(f"the shape would change from {old.shape} to {new.shape}")
            if not trust_shape and new.shape is None and (maker := _foreign_operator(new)):
                raise Refused(f"{maker} gives no shape: is an operator of this name declared?")
            if not trust_shape and not same_shape(old.shape, new.shape):
                raise Refused(f"the shape {new.shape} is not proved to be {old.shape}")
            if _is_output_identity(node, old) and not _can_be_renamed(new, node.graph):
                raise Refused("the output of the graph needs this Identity")

    @contextmanager
    def in_order(self) -> Iterator[None]:
        """Defer type and shape inference for a pass that visits nodes in order.

        ``replace`` collects the nodes with an operand of a more precise type. The pass calls
        ``infer_again`` at each node, which is so inferred once, however many of its operands
        changed. The nodes that the pass did not visit are inferred when the block ends.
        """
        self._waiting = {}
        try:
            yield
        finally:
            waiting, self._waiting = self._waiting, None
            self.refinement.propagate(waiting, self.dead)

    def infer_again(self, node: ir.Node) -> None:
        """Infer ``node`` again, within ``in_order``, if the type of an operand is more precise."""
        if self._waiting and node in self._waiting:
            del self._waiting[node]
            self._waiting.update(dict.fromkeys(self.refinement.infer(node)))

    def swap_branches(self, node: ir.Node, condition: ir.Value) -> None:
        """Exchange the branches of the If ``node`` and make ``condition`` its condition."""
        if self.exhausted:
            raise Refused(f"the limit of {self.limit} rewrites is reached")
        names = ("then_branch", "else_branch")
        first, second = (node.attributes[name].as_graph() for name in names)
        for name, graph in zip(names, (second, first), strict=True):
            node.attributes[name] = ir.AttrGraph(name, graph)
        old_condition = node.inputs[0]
        node.replace_input_with(0, condition)
        self.count += 1
        if old_condition is not None and (producer := old_condition.producer()) is not None:
            self.remove_dead([producer])

    def remove_dead(self, nodes: Iterable[ir.Node]) -> list[ir.Node]:
        """Remove the nodes of ``nodes`` that nobody reads, then the producers that become dead.

        Returns the live nodes among ``nodes`` and the live producers that lost a reader.
        """
        survivors: dict[ir.Node, None] = {}
        pending = list(nodes)
        while pending:
            node = pending.pop()
            if node in self.dead or node.graph is None:
                continue
            if not scope.is_unread(node):
                survivors[node] = None
                continue
            self.dead.add(node)
            self.removed.append(node)
            self._dead_in.setdefault(node.graph, []).append(node)
            for reader in (node, *scope.nested_nodes(node)):
                pending.extend(detach(reader))
        return [node for node in survivors if node not in self.dead]

    def merge_constants(self, old: ir.Value, new: ir.Value) -> None:
        """Replace the constant ``old`` by ``new`` of equal content, and drop ``old``.

        Raises Refused if a graph returns ``old`` or callers may override it.
        """
        if self.exhausted:
            raise Refused(f"the limit of {self.limit} rewrites is reached")
        if old.is_graph_output() or old.is_graph_input():
            raise Refused("the constant is part of the interface")
        for use in old.uses():
            set_input(use.node, use.idx, new)
        self.count += 1
        producer = old.producer()
        if producer is not None:
            self.remove_dead([producer])
        else:
            self.drop_initializer(old)

    def drop_initializer(self, value: ir.Value) -> bool:
        """Remove ``value`` if it is an initializer that nobody reads; return True if removed."""
        graph = value.graph
        unused = value.is_initializer() and not value.is_graph_input() and scope.is_dead(value)
        if graph is None or value.name is None or not unused:
            return False
        del graph.initializers[value.name]
        self.count += 1
        return True

    def flush(self) -> None:
        """Remove dead nodes from the node lists."""
        for graph, dead in self._dead_in.items():
            graph.remove(dead)
        self._dead_in.clear()
        self.dead.clear()

    @property
    def exhausted(self) -> bool:
        """True once ``limit`` edits are made; every further edit is refused."""
        return self.limit is not None and self.count >= self.limit

    def _substitute(self, node: ir.Node, old: ir.Value, new: ir.Value, rule: str) -> list[ir.Node]:
        """Let readers of ``old`` read ``new``; return nodes with an operand of a more precise
        type."""
        old_gains, new_gains = self.refinement.unite(old, new)
        gaining = list(scope.consumers(new)) if new_gains else []
        if old_gains:
            gaining += scope.consumers(old)
        if old.is_graph_output():
            new = self._as_output(node, old, new, rule)
        for use in old.uses():
            if use.node not in self.dead:
                set_input(use.node, use.idx, new)
        if old_gains or new_gains:
            gaining += self.refinement.returning(new)
        return gaining

    def _positions(self, graph: ir.Graph, value: ir.Value) -> list[int]:
        """Return the output positions of ``value`` in ``graph``, cached until outputs change: until
        a listed output is another value, or ``value`` is an output more often than listed."""
        outputs = graph.outputs
        for is_fresh in (False, True):
            if is_fresh or graph not in self._returned:
                positions = self._returned[graph] = {}
                for index, output in enumerate(tuple(outputs)):
                    positions.setdefault(output, []).append(index)
            known = self._returned[graph].get(value, [])
            is_current = all(index < len(outputs) and outputs[index] is value for index in known)
            if is_current and len(known) == times_returned(graph, value):
                break
        return known

    def _as_output(self, node: ir.Node, old: ir.Value, new: ir.Value, rule: str) -> ir.Value:
        """Make ``new``, or an Identity of it if it must keep its name, an output of the graph in
        place of ``old``, under the name of ``old``; return the new output."""
        graph = node.graph
        assert graph is not None
        if not _can_be_renamed(new, graph):
            builder = self.builder(node, [node], rule)
            self.builders.append(builder)
            new = builder.op("Identity", new)
        for index in self._positions(graph, old):
            graph.outputs[index] = new
        self._returned[graph].setdefault(new, []).extend(self._returned[graph].pop(old, []))
        self.refinement.note_returned(new, old)
        name, old.name = old.name, None
        new.name = name
        noted = old.metadata_props.items()
        new.metadata_props.update({k: text for k, text in noted if k != SYM_DATA_KEY})
        new.doc_string = old.doc_string
        return new


def _foreign_operator(value: ir.Value) -> str:
    """Return the non-ONNX operator that computes ``value``, or an empty text."""
    node = value.producer()
    return f"{node.domain}.{node.op_type}" if node is not None and node.domain else ""


def _is_output_identity(node: ir.Node, output: ir.Value) -> bool:
    """True if ``node`` is an Identity whose output the graph returns."""
    return output.is_graph_output() and node.op_type == "Identity" and not node.domain


def _can_be_renamed(value: ir.Value, graph: ir.Graph | None) -> bool:
    """True if ``value`` is an inner result of ``graph``, which may return it under a new name."""
    producer = value.producer()
    return producer is not None and producer.graph is graph and not value.is_graph_output()
