"""Keep one copy of equal constants.

    before   w1 = {1, 2}, w2 = {1, 2}    after   w1 = {1, 2}, read in both places

A constant of an outer graph also replaces equal constants of its subgraphs. A constant that two
branches share moves to the main graph.

Needs    (1) the same element type, dims and bytes: -0 differs from 0, and NaN equals itself.
Keeps    (1) constants that a graph returns or callers may override; (2) constants of fewer than
         ``const-threshold`` elements. Weights are read only if another has their type and dims.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir import constants, scope
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.tensors.chunks import tensor_digest
from smelt.ir.tensors.lazy_concat import LazyConcat
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, PassContext, graph_pass

LONG = 4096
"""Constants of this many bytes are compared by a sample first, then by a digest."""

SAMPLED = 256
"""Approximate number of elements in a sample."""


@dataclass(frozen=True)
class Threshold:
    """``const_threshold``: constants of fewer elements are not merged."""

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
    """Merge equal constants of the main graph with its subgraphs, and of each function."""
    _Search(rewriter, stats, options.const_threshold, cx.model.graph).graph(cx.model.graph)
    for function in cx.model.functions.values():
        # A function has no initializers that two branches could share.
        _Search(rewriter, stats, options.const_threshold, None).graph(function.graph)


class _Kind:
    """The constants of one type and shape, grouped by a sample of their elements.

    The first constant, ``unsampled``, is read only when a second arrives; whole constants are read
    only if their samples agree.
    """

    def __init__(self) -> None:
        """Begin without constants."""
        self.unsampled: ir.Value | None = None
        self.by_sample: dict[bytes, list[ir.Value]] = {}

    def add(self, value: ir.Value) -> list[ir.Value]:
        """Add ``value`` and return the earlier constants that may equal it."""
        if self.unsampled is None and not self.by_sample:
            self.unsampled = value
            return []
        if self.unsampled is not None:
            self.by_sample[_sample(self.unsampled)] = [self.unsampled]
            self.unsampled = None
        same_sample = self.by_sample.setdefault(_sample(value), [])
        same_sample.append(value)
        return same_sample[:-1]

    def candidates_for(self, value: ir.Value) -> list[ir.Value]:
        """Return the constants that may equal ``value``, without adding it."""
        if self.unsampled is None and not self.by_sample:
            return []
        candidates = self.add(value)
        self.remove(value)
        return candidates

    def remove(self, value: ir.Value) -> None:
        """Remove ``value``, which was added before."""
        if self.unsampled is value:
            self.unsampled = None
        else:
            self.by_sample[_sample(value)].remove(value)


def _sample(value: ir.Value) -> bytes:
    """Return the bytes of some elements; of all elements if the constant is short."""
    tensor = constants.tensor_of(value)
    assert tensor is not None
    size = tensor.size
    if size * tensor.dtype.bitwidth < 8 * LONG:
        return tensor.tobytes()
    if isinstance(tensor, LazyConcat):
        return tensor.sample(SAMPLED)
    # A flat iterator copies only the sample, even if the weight is a view of another.
    return tensor.numpy().flat[:: max(1, size // SAMPLED)].tobytes()


def _key(value: ir.Value) -> Hashable:
    """Return the dtype and dims of a constant; equal constants have equal keys."""
    tensor = constants.tensor_of(value)
    assert tensor is not None
    return tensor.dtype, tuple(tensor.shape.numpy())  # needs 1


class _Search:
    """One walk over a graph and its subgraphs that merges equal constants.

    ``kinds`` holds the constants in scope. When the walk leaves a subgraph, its constants move to
    ``out_of_scope``; if a later constant equals one of them, a new constant in ``top`` replaces
    both.
    """

    def __init__(
        self, rewriter: Rewriter, stats: RuleStats, threshold: int, top: ir.Graph | None
    ) -> None:
        """Prepare a walk that merges constants of at least ``threshold`` elements.

        Without ``top``, constants of different subgraphs are not merged.
        """
        self.rewriter = rewriter
        self.stats = stats
        self.threshold = threshold
        self.top = top
        self.kinds: dict[Hashable, _Kind] = {}
        self.out_of_scope: dict[Hashable, _Kind] = {}
        self.digests: dict[ir.Value, bytes] = {}

    def graph(self, graph: ir.Graph) -> list[tuple[_Kind, ir.Value]]:
        """Walk over ``graph`` and its subgraphs; return its constants that equal no earlier one."""
        distinct: list[tuple[_Kind, ir.Value]] = []
        for value in list(graph.initializers.values()):
            self.visit(value, distinct)
        for node in graph:
            if node.op_type == "Constant" and not node.domain:
                self.visit(node.outputs[0], distinct)
            for inner in scope.subgraphs(node):
                self.leave(self.graph(inner))
        return distinct

    def leave(self, distinct: list[tuple[_Kind, ir.Value]]) -> None:
        """Move the constants of a subgraph to ``out_of_scope``."""
        for kind, value in distinct:
            kind.remove(value)
            if self.top is not None and not value.is_graph_output():
                self.out_of_scope.setdefault(_key(value), _Kind()).add(value)

    def visit(self, value: ir.Value, distinct: list[tuple[_Kind, ir.Value]]) -> None:
        """Merge ``value`` with an equal constant, in scope or out of it.

        Append it to ``distinct`` if there is none. An equal constant of another branch is out of
        scope; then both are replaced by one in the graph around both.
        """
        tensor = constants.tensor_of(value)
        if tensor is None or tensor.dtype == ir.DataType.STRING or scope.is_dead(value):
            return
        if self.threshold and tensor.size < self.threshold:  # keeps 2
            return
        key = _key(value)
        in_scope = self.kinds.get(key)
        if in_scope is None:
            in_scope = self.kinds[key] = _Kind()
        other = self.equal(value, in_scope.add(value))
        if other is not None:
            in_scope.remove(value)
            self.merge(value, other)
            return
        of_other_branches = self.out_of_scope.get(key)
        other = (
            self.equal(value, of_other_branches.candidates_for(value))
            if of_other_branches is not None
            else None
        )
        must_stay = value.is_graph_output() or self.rewriter.exhausted
        if of_other_branches is not None and other is not None and not must_stay:
            of_other_branches.remove(other)
            in_scope.remove(value)
            shared = self.hoisted(other)
            in_scope.add(shared)
            self.merge(other, shared)
            self.merge(value, shared)
            return
        distinct.append((in_scope, value))

    def equal(self, value: ir.Value, candidates: list[ir.Value]) -> ir.Value | None:
        """Return the first of ``candidates`` that equals ``value``; their samples agree already;
        None if none does.
        """
        tensor = constants.tensor_of(value)
        assert tensor is not None
        for other in candidates:
            if tensor.nbytes < LONG or self.digest(value) == self.digest(other):
                return other
        return None

    def hoisted(self, value: ir.Value) -> ir.Value:
        """Return a new constant of the main graph with the tensor of ``value``."""
        assert self.top is not None
        tensor = constants.tensor_of(value)
        assert tensor is not None
        first = self.top[0]
        return self.rewriter.builder(first, [first], "const_deduplication").tensor(
            tensor, value.name
        )

    def merge(self, value: ir.Value, other: ir.Value) -> None:
        """Let ``other`` replace ``value``, unless the rewriter refuses."""
        try:
            self.rewriter.merge_constants(value, other)  # keeps 1
            self.stats.fired["equal constant"] += 1
        except Refused:
            return

    def digest(self, value: ir.Value) -> bytes:
        """Return the SHA-256 digest of a constant's bytes, computed once."""
        if value not in self.digests:
            tensor = constants.tensor_of(value)
            assert tensor is not None
            self.digests[value] = tensor_digest(tensor)
        return self.digests[value]
