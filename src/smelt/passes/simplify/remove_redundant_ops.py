"""Compute equal nodes once: common subexpression elimination.

    before   x ─┬─> Relu ─> a            after   x ─> Relu ─> a, also read as b
                └─> Relu ─> b

Needs    (1) the same operator, equal attributes bit for bit (an absent one has its default), and
         the same operands; (2) for commutative operators, the same operands in any order. Integer
         vectors that are inferred to hold the same sizes are equal, too. A subgraph may use nodes
         of an outer graph, except DequantizeLinear: runtimes look for quantized groups within one
         graph.
Keeps    (1) random operators, operators of unknown domains, nodes with subgraphs; (2) both nodes if
         both results are outputs.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

import onnx_ir as ir

from smelt.ir import opset, scope
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.worklist import RuleStats
from smelt.operators.elementwise import COMMUTATIVE
from smelt.passes.base import EXACT, Options, PassContext, exact_but_zero_sign, graph_pass

Key: TypeAlias = Hashable
_INTEGERS = (ir.DataType.INT64, ir.DataType.INT32)
SMALL = 64 * 1024
"""Nodes with a tensor attribute of more bytes are not merged."""

FEW = 128
"""Constants of up to this many bytes are compared by their elements."""

OTHER_ORDER = "equal node, operands in another order"
EITHER_ZERO = exact_but_zero_sign("ONNX does not define the sign of a zero result of Max(x, y)")


@graph_pass(
    "remove_redundant_ops",
    __doc__,
    exactness=EITHER_ZERO,
    declares=lambda options, stats: EITHER_ZERO if OTHER_ORDER in stats.fired else EXACT,
    source="Core ML MIL: common::remove_redundant_ops",
    by_rewriter=True,
)
def remove_redundant_ops(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Merge equal nodes of the main graph and of each function, subgraphs included."""
    for root in (cx.model.graph, *(f.graph for f in cx.model.functions.values())):
        _Search(cx, rewriter, stats).graph(root)


class _Search:
    """One walk over a graph and its subgraphs; nodes of a subgraph are forgotten at its end.

    ``seen`` has the first node of each key; ``numbers`` numbers the values for ``number``.
    """

    def __init__(self, cx: PassContext, rewriter: Rewriter, stats: RuleStats) -> None:
        """Begin without nodes."""
        self.shapes = cx.shapes
        self.opsets = cx.index().opsets
        self.rewriter = rewriter
        self.stats = stats
        self.seen: dict[Key, ir.Node] = {}
        self.constants = cx.constants
        self.numbers: dict[Hashable, int] = {}

    def graph(self, graph: ir.Graph) -> None:
        """Merge the nodes of ``graph`` and its subgraphs with equal earlier ones.

        At the end, ``seen`` is as it was before, because nodes after a subgraph cannot read its
        values. ``replaced`` has the entries of ``seen`` that nodes of ``graph`` replaced; None for
        an entry that was new.
        """
        replaced: dict[Key, ir.Node | None] = {}
        for node in graph:
            if not self.has_earlier_equal(node, replaced):
                for inner in scope.subgraphs(node):
                    self.graph(inner)
        for key, outer in replaced.items():
            if outer is None:
                del self.seen[key]
            else:
                self.seen[key] = outer

    def has_earlier_equal(self, node: ir.Node, replaced: dict[Key, ir.Node | None]) -> bool:
        """Replace ``node`` by an equal earlier node and return True; else enter it into ``seen``.

        ``replaced`` gets the previous entry of each key: an inner node may take the place of a dead
        outer one in ``seen``, but only until its graph ends.
        """
        for key in (self.key_within_graph(node), self.key_of_sizes(node)):
            first = self.seen.get(key) if key is not None else None
            alive = first is not None and first not in self.rewriter.dead
            if first is not None and alive and self.merge(node, first):
                return True
            if key is not None and not alive:
                replaced.setdefault(key, first)
                self.seen[key] = node
        return False

    def key_within_graph(self, node: ir.Node) -> Key | None:
        """Return the key of ``node``; a DequantizeLinear of a subgraph gets a key of its own.

        So it is not merged with an equal one outside. Both results get the same number, so that
        nodes that read one or the other still have equal keys.
        """
        key = self.key(node)
        first = self.seen.get(key)
        if first is None or node.op_type != "DequantizeLinear" or first.graph is node.graph:
            return key
        self.numbers[node.outputs[0]] = self.number(first.outputs[0])
        return (key, id(node.graph))

    def key_of_sizes(self, node: ir.Node) -> Key | None:
        """Return the sizes that an integer vector or scalar is inferred to hold, as its key.

        None for other values, if a size has no name, and for numbers alone, which const-elimination
        folds.
        """
        value = node.outputs[0]
        if node.domain or len(node.outputs) != 1 or value.dtype not in _INTEGERS:
            return None
        if value.shape is None or not value.shape.is_static() or len(value.shape) > 1:
            return None
        elements = self.shapes.elements(value)
        if not elements or all(isinstance(item, int) for item in elements):
            return None
        names = tuple(item if isinstance(item, int) else item.value for item in elements)
        return (value.dtype, tuple(value.shape), names) if None not in names else None

    def merge(self, node: ir.Node, first: ir.Node) -> bool:
        """Let the results of ``first`` replace those of ``node``; False if the rewriter refuses."""
        other_order = node.op_type in ("Max", "Min") and self.operands(node) != self.operands(first)
        try:
            self.rewriter.replace(node, first.outputs, trust_shape=True)  # keeps 2
        except Refused as refused:
            self.stats.miss("equal node", str(refused), node)
            return False
        self.stats.fired[OTHER_ORDER if other_order else "equal node"] += 1
        return True

    def key(self, node: ir.Node) -> Key | None:
        """Return operator, attributes and operands of ``node``, which determine its results.

        None for a node that is never merged.
        """
        if node.op_type == "Constant" or not opset.is_deterministic(node):  # keeps 1
            return None
        attributes = []
        version = self.opsets.get(node.graph, 0) if node.graph is not None else 0
        for name, attribute in sorted(node.attributes.data.items()):
            if version and opset.is_default(node, attribute, version):  # needs 1
                continue
            frozen = _freeze(attribute)
            if frozen is None:
                return None
            attributes.append((name, frozen))
        operands = self.operands(node)
        if node.op_type in COMMUTATIVE and not node.domain:  # needs 2
            operands.sort()
        return (
            node.domain,
            node.op_type,
            node.overload,
            tuple(attributes),
            tuple(operands),
            len(node.outputs),
        )

    def operands(self, node: ir.Node) -> list[int]:
        """Return the numbers of the operands, in order."""
        return [self.number(value) for value in node.inputs]

    def number(self, value: ir.Value | None) -> int:
        """Return a number for each value, in order of appearance, so that operands can be sorted.

        Small constants with equal elements have the same number.
        """
        if value is None:
            return -1
        assigned = self.numbers.get(value)
        if assigned is not None:
            return assigned
        constant = self.constants.get(value, limit=FEW)
        if constant is None or constant.dtype.kind == "O":
            number = len(self.numbers)
        else:
            constant_key = (constant.dtype, constant.shape, constant.tobytes())
            number = self.numbers.setdefault(constant_key, len(self.numbers))
        self.numbers[value] = number
        return number


def _freeze(attr: ir.Attr) -> Hashable | None:
    """Return an attribute as a key, tensors by their bytes; None if it cannot be compared."""
    if attr.is_ref():
        return ("ref", attr.ref_attr_name)
    if attr.type == ir.AttributeType.TENSOR:
        tensor = attr.as_tensor()
        if tensor.nbytes > SMALL or tensor.dtype == ir.DataType.STRING:
            return None
        return (tensor.dtype, tuple(tensor.shape), tensor.tobytes())
    value = attr.value
    if isinstance(value, int | str):
        return (attr.type, value)
    if isinstance(value, float):
        return (attr.type, value.hex())
    if isinstance(value, tuple | list):
        items = tuple(item.hex() if isinstance(item, float) else item for item in value)
        return (attr.type, items) if all(isinstance(i, int | str) for i in items) else None
    return None
