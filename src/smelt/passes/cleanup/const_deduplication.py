"""Keep one copy of equal constants.

    before   w1 = {1, 2}, w2 = {1, 2}    after   w1 = {1, 2}, read in both places

A constant of an outer graph serves the graphs inside it; what two branches have alike moves to the
main graph.

Needs    (1) the same element type, dims and bytes: -0 is not 0, and NaN equals itself.
Keeps    (1) constants that a graph returns or callers may override; (2) those under
         ``const-threshold`` elements. Weights are read only where another has their type and dims.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir import constants, scope
from smelt.ir.chunks import tensor_chunks
from smelt.ir.lazy_concat import LazyConcat
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, PassContext, graph_pass

LONG = 4096
"""Bytes from which a constant is compared by a sample, then by digest."""

SAMPLED = 256
"""Elements of a sample, about."""


@dataclass(frozen=True)
class Threshold:
    """``const_threshold``: constants of fewer elements are left alone."""

    const_threshold: int = 0


@graph_pass(
    "const_deduplication",
    __doc__,
    exactness=EXACT,
    options_type=Threshold,
    source="Core ML MIL: common::const_deduplication",
)
def const_deduplication(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Threshold
) -> None:
    _Search(rewriter, stats, options.const_threshold, cx.model.graph).graph(cx.model.graph)
    for function in cx.model.functions.values():
        # A function has no initializers that could serve two branches.
        _Search(rewriter, stats, options.const_threshold, None).graph(function.graph)


class _Kind:
    """The constants of one type and shape, by a sample of what they hold.

    The first is not read before there is a second; whole constants are read only where samples
    agree.
    """

    def __init__(self) -> None:
        self.lone: ir.Value | None = None
        self.alike: dict[bytes, list[ir.Value]] = {}

    def add(self, value: ir.Value) -> list[ir.Value]:
        """The constants that ``value`` may equal; it counts from now on."""
        if self.lone is None and not self.alike:
            self.lone = value
            return []
        if self.lone is not None:
            self.alike[_sample(self.lone)] = [self.lone]
            self.lone = None
        known = self.alike.setdefault(_sample(value), [])
        known.append(value)
        return known[:-1]

    def like(self, value: ir.Value) -> list[ir.Value]:
        """The constants that ``value`` may equal; it does not count itself."""
        if self.lone is None and not self.alike:
            return []
        found = self.add(value)
        self.remove(value)
        return found

    def remove(self, value: ir.Value) -> None:
        if self.lone is value:
            self.lone = None
        else:
            self.alike[_sample(value)].remove(value)


def _sample(value: ir.Value) -> bytes:
    """Some of the elements, all of them of a short constant."""
    tensor = constants.tensor_of(value)
    assert tensor is not None
    size = tensor.size
    if size * tensor.dtype.bitwidth < 8 * LONG:
        return tensor.tobytes()
    if isinstance(tensor, LazyConcat):
        return tensor.sample(SAMPLED)
    # A flat iterator copies nothing else, even of weights that are views of others.
    return tensor.numpy().flat[:: max(1, size // SAMPLED)].tobytes()


def _key(value: ir.Value) -> Hashable:
    """What equal constants have in common."""
    tensor = constants.tensor_of(value)
    assert tensor is not None
    return tensor.dtype, tuple(tensor.shape.numpy())  # needs 1


class _Search:
    """One walk. Constants of inner graphs serve no others when the walk leaves them; then they are
    in ``left``, and move to ``top`` where another equals them.
    """

    def __init__(
        self, rewriter: Rewriter, stats: RuleStats, threshold: int, top: ir.Graph | None
    ) -> None:
        self.rewriter = rewriter
        self.stats = stats
        self.threshold = threshold
        self.top = top
        self.kinds: dict[Hashable, _Kind] = {}
        self.left: dict[Hashable, _Kind] = {}
        self.digests: dict[ir.Value, bytes] = {}

    def graph(self, graph: ir.Graph) -> list[tuple[_Kind, ir.Value]]:
        """Walk over ``graph`` and all below it; its constants that no earlier one stands for."""
        found: list[tuple[_Kind, ir.Value]] = []
        for value in list(graph.initializers.values()):
            self.visit(value, found)
        for node in graph:
            if node.op_type == "Constant" and not node.domain:
                self.visit(node.outputs[0], found)
            for inner in scope.subgraphs(node):
                self.leave(self.graph(inner))
        return found

    def leave(self, found: list[tuple[_Kind, ir.Value]]) -> None:
        """Let the constants of an inner graph serve no others as they are."""
        for kind, value in found:
            kind.remove(value)
            if self.top is not None and not value.is_graph_output():
                self.left.setdefault(_key(value), _Kind()).add(value)

    def visit(self, value: ir.Value, found: list[tuple[_Kind, ir.Value]]) -> None:
        tensor = constants.tensor_of(value)
        if tensor is None or tensor.dtype == ir.DataType.STRING or scope.is_dead(value):
            return
        if self.threshold and tensor.size < self.threshold:  # keeps 2
            return
        key = _key(value)
        kind = self.kinds.get(key)
        if kind is None:
            kind = self.kinds[key] = _Kind()
        other = self.equal(value, kind.add(value))
        if other is not None:
            kind.remove(value)
            self.merge(value, other)
            return
        left = self.left.get(key)
        other = self.equal(value, left.like(value)) if left is not None else None
        fixed = value.is_graph_output() or self.rewriter.exhausted
        if left is not None and other is not None and not fixed:
            left.remove(other)
            kind.remove(value)
            shared = self.hoisted(other)
            kind.add(shared)
            self.merge(other, shared)
            self.merge(value, shared)
            return
        found.append((kind, value))

    def equal(self, value: ir.Value, candidates: list[ir.Value]) -> ir.Value | None:
        """The first of ``candidates``, whose samples agree, that equals ``value``."""
        tensor = constants.tensor_of(value)
        assert tensor is not None
        for other in candidates:
            if tensor.nbytes < LONG or self.digest(value) == self.digest(other):
                return other
        return None

    def hoisted(self, value: ir.Value) -> ir.Value:
        """A constant of the main graph that holds the tensor of ``value``."""
        assert self.top is not None
        tensor = constants.tensor_of(value)
        assert tensor is not None
        first = self.top[0]
        return self.rewriter.builder(first, [first], "const_deduplication").tensor(
            tensor, value.name
        )

    def merge(self, value: ir.Value, other: ir.Value) -> None:
        try:
            self.rewriter.merge_constants(value, other)  # keeps 1
            self.stats.fired["equal constant"] += 1
        except Refused:
            return

    def digest(self, value: ir.Value) -> bytes:
        if value not in self.digests:
            tensor = constants.tensor_of(value)
            assert tensor is not None
            digest = hashlib.sha256()
            for chunk in tensor_chunks(tensor):
                digest.update(chunk)
            self.digests[value] = digest.digest()
        return self.digests[value]
