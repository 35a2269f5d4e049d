"""Compute equal things once: common subexpression elimination.

    before   x ─┬─> Relu ─> a            after   x ─> Relu ─> a, also read as b
                └─> Relu ─> b

Needs    (1) the same operator, attributes bit for bit, where an absent one has its default, and
         the same operands; (2) operands of commutative operators in any order. Or vectors of
         integers that inference knows to hold the same sizes. An inner graph may use what an outer
         one has, but dequantizes by itself: runtimes look for quantized groups within one graph.
Keeps    (1) random operators, operators of unknown domains, nodes that hold graphs; (2) both names
         where both results are outputs.
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
FEW = 128
"""Bytes of a constant up to which operands are compared by what they hold."""

OTHER_ORDER = "equal node, operands in another order"
EITHER_ZERO = exact_but_zero_sign("ONNX leaves open which zero Max(x, y) and Max(y, x) return")


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
    for root in (cx.model.graph, *(f.graph for f in cx.model.functions.values())):
        _Search(cx, rewriter, stats).graph(root)


class _Search:
    """One walk over a graph and all below it; what an inner graph finds, it forgets again."""

    def __init__(self, cx: PassContext, rewriter: Rewriter, stats: RuleStats) -> None:
        self.shapes = cx.shapes
        self.opsets = cx.index().opsets
        self.rewriter = rewriter
        self.stats = stats
        self.seen: dict[Key, ir.Node] = {}
        self.constants = cx.constants
        self.numbers: dict[Hashable, int] = {}

    def graph(self, graph: ir.Graph) -> None:
        found: dict[Key, ir.Node | None] = {}
        for node in graph:
            if not self.merged(node, found):
                for inner in scope.subgraphs(node):
                    self.graph(inner)
        for key, outer in found.items():
            if outer is None:
                del self.seen[key]
            else:
                self.seen[key] = outer

    def merged(self, node: ir.Node, found: dict[Key, ir.Node | None]) -> bool:
        """True if an earlier node stands for ``node`` now; else notes what it computes.

        ``found`` takes what each key stood for before this graph: a node that is dead by now gives
        way to one of an inner graph, which nothing outside may read.
        """
        for key in (self.key_within_graph(node), self.sizes(node)):
            first = self.seen.get(key) if key is not None else None
            alive = first is not None and first not in self.rewriter.dead
            if first is not None and alive and self.merge(node, first):
                return True
            if key is not None and not alive:
                found.setdefault(key, first)
                self.seen[key] = node
        return False

    def key_within_graph(self, node: ir.Node) -> Key | None:
        """``key``, but that of a DequantizeLinear which an outer graph has too is its own.

        Its floats are then known to be the same: what both graphs compute of them still merges.
        """
        key = self.key(node)
        first = self.seen.get(key)
        if first is None or node.op_type != "DequantizeLinear" or first.graph is node.graph:
            return key
        self.numbers[node.outputs[0]] = self.number(first.outputs[0])
        return (key, id(node.graph))

    def sizes(self, node: ir.Node) -> Key | None:
        """Which dims a vector or scalar of integers holds; None if a dim has no name."""
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
        other_order = node.op_type in ("Max", "Min") and self.operands(node) != self.operands(first)
        try:
            self.rewriter.replace(node, first.outputs, trust_shape=True)  # keeps 2
        except Refused as refused:
            self.stats.miss("equal node", str(refused), node)
            return False
        self.stats.fired[OTHER_ORDER if other_order else "equal node"] += 1
        return True

    def key(self, node: ir.Node) -> Key | None:
        """What decides the results of ``node``; None for nodes that stay apart."""
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
        """The numbers of the operands, in their order."""
        return [self.number(value) for value in node.inputs]

    def number(self, value: ir.Value | None) -> int:
        """A number for each value, in the order met, so that operands can be sorted.

        Small constants are values by what they hold: each rule makes its own.
        """
        if value is None:
            return -1
        known = self.numbers.get(value)
        if known is not None:
            return known
        constant = self.constants.get(value, limit=FEW)
        if constant is None or constant.dtype.kind == "O":
            number = len(self.numbers)
        else:
            held = (constant.dtype, constant.shape, constant.tobytes())
            number = self.numbers.setdefault(held, len(self.numbers))
        self.numbers[value] = number
        return number


def _freeze(attr: ir.Attr) -> Hashable | None:
    """An attribute as a key, tensors by their bytes; None if it cannot be compared."""
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
