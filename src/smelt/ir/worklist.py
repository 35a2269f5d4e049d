"""Runs rules to a fixed point with one worklist.

Every node is tried once; a rewrite re-queues only nodes that it can affect: the new nodes, the
readers of the new value as far down as a pattern reaches, and producers that lost a reader. The
cost is linear in nodes plus rewrites.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import onnx_ir as ir

from smelt.errors import InternalError, UsageError
from smelt.extensions import blame
from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.index import NodeIndex
from smelt.ir.int64 import BeyondInt64
from smelt.ir.interface_change import InterfaceChange
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.rule import Match, Miss, Replacement, Rule, RuleSet

REWRITES_PER_NODE = 10
"""More rewrites than this per initial node, plus a constant, indicate rules that undo each
other."""

FANOUT = 8
"""Maximum number of readers of a value that are queued again; more would cost too much."""


Item = TypeVar("Item")


class Tally(Counter[Item]):
    """A Counter that is constructed empty in a tenth of the time.

    Each run of a pass creates three, and most runs count nothing.
    """

    def __init__(self) -> None:
        dict.__init__(self)


@dataclass
class RuleStats:
    """The number of rewrites per rule, and each failed condition with a node where it failed.

    ``rewrites`` counts edits; it is 0 if and only if the model is unchanged. ``needs`` counts
    misses by the ONNX opset that they need. ``interface`` lists changes of inputs and outputs.
    ``skipped``: a value with more than ``FANOUT`` readers changed, and they were not tried again.
    ``unseen`` counts edits that no other pass can notice, such as dropping an unread constant.
    """

    rewrites: int = 0
    unseen: int = 0
    fired: Tally[str] = field(default_factory=Tally)
    missed: Tally[tuple[str, str]] = field(default_factory=Tally)
    example: dict[tuple[str, str], str] = field(default_factory=dict)
    needs: Tally[int] = field(default_factory=Tally)
    interface: list[InterfaceChange] = field(default_factory=list)
    skipped: bool = False

    def miss(self, rule: str, reason: str, node: ir.Node, opset: int = 0) -> None:
        """Count a failed condition of ``rule`` at ``node``; ``opset`` is the opset it needs, if
        any."""
        self.missed[rule, reason] += 1
        self.example.setdefault((rule, reason), node.name or node.op_type)
        if opset:
            self.needs[opset] += 1


def replace_or_miss(
    rewriter: Rewriter,
    stats: RuleStats,
    rule: str,
    node: ir.Node,
    values: Sequence[ir.Value | None],
    builder: Builder,
    fired: str,
) -> bool:
    """Replace the results of ``node`` by ``values``, which ``builder`` made; count it as ``fired``.

    If the rewriter refuses, count a miss of ``rule``, discard what was built and return False.
    """
    try:
        rewriter.replace(node, values, trust_shape=True, rule=rule)
    except Refused as refused:
        builder.discard()
        stats.miss(rule, str(refused), node)
        return False
    stats.fired[fired] += 1
    return True


class Worklist:
    """Applies a set of rules to a model until none applies.

    ``rules`` are the rules that can match in the model, by its operators; a rewrite that creates a
    new operator may add rules. ``options`` are the options of the pass.
    """

    def __init__(
        self,
        rewriter: Rewriter,
        rules: RuleSet | Iterable[Rule],
        stats: RuleStats | None = None,
        index: NodeIndex | None = None,
        options: Any = None,
    ) -> None:
        """Set up ``rules`` for the model of ``rewriter``; ``index`` is reused if given.

        ``_queue`` are the nodes to try, ``_queued`` the same as a set; ``_recent`` are the last
        rules that fired, for the error about rules that undo each other.
        """
        self.options = options
        self.rewriter = rewriter
        self.index = index if index is not None else NodeIndex(rewriter.model)
        self._every = rules if isinstance(rules, RuleSet) else RuleSet(rules)
        self._operators = self.index.operators
        self.rules = self._every.within(self._operators)
        self.stats = stats if stats is not None else RuleStats()
        self._queue: deque[ir.Node] = deque()
        self._queued: set[ir.Node] = set()
        self._recent: deque[str] = deque(maxlen=2)

    def run(self) -> RuleStats:
        """Rewrite until nothing applies; raises InternalError E903 if rules undo each other."""
        self._queue.extend(self.index.nodes(self.rules.roots))
        self._queued.update(self._queue)
        budget = REWRITES_PER_NODE * self.index.count + 1000
        try:
            while self._queue and not self.rewriter.exhausted:
                node = self._queue.popleft()
                self._queued.discard(node)
                if node not in self.rewriter.dead and self._try_rules(node):
                    budget -= 1
                    if budget < 0:
                        raise self._ping_pong()
        finally:
            self.rewriter.flush()
        return self.stats

    def _push(self, node: ir.Node) -> None:
        """Queue ``node`` unless it is queued, or is the root of no rule."""
        if node not in self._queued and self.rules.for_node(node):
            self._queued.add(node)
            self._queue.append(node)

    def _try_rules(self, node: ir.Node) -> bool:
        """Apply the first rule that matches at ``node``; return True if one did."""
        assert node.graph is not None
        opset, constants = self.index.opsets[node.graph], self.rewriter.constants
        for rule, could_match in self.rules.for_node(node):
            if not could_match(node, constants):
                continue
            match = rule.match(node, constants, opset, self.index.around, self.options)
            if isinstance(match, Miss):
                self.stats.miss(rule.name, match.reason, node)
            elif match is not None:
                if opset < rule.min_opset:
                    reason = f"the model has opset {opset}; the rule needs {rule.min_opset}"
                    self.stats.miss(rule.name, reason, node, rule.min_opset)
                elif self._apply(rule, match):
                    return True
        return False

    def _apply(self, rule: Rule, match: Match) -> bool:
        """Build the replacement of ``match`` and insert it; return False, with a noted Miss, if
        refused."""
        builder = self.rewriter.builder(match.root, match.nodes, rule.name)
        replacement = _build_replacement(rule, match, builder)
        if replacement is None or isinstance(replacement, Miss):
            builder.discard()
            if isinstance(replacement, Miss):
                self.stats.miss(rule.name, replacement.reason, match.root, replacement.opset)
            return False
        unsupported = self._unsupported_operator(builder)
        if unsupported:
            builder.discard()
            self.stats.miss(rule.name, f"the target does not compute {unsupported}", match.root)
            return False
        values = replacement if isinstance(replacement, tuple) else (replacement,)
        _check_values(rule, match, replacement, values)
        _check_acyclic(rule, match.end, builder.created)
        try:
            touched = self.rewriter.replace(
                match.end, values, trust_shape=rule.same_shape, rule=rule.name
            )
        except Refused as refused:
            builder.discard()
            self.stats.miss(rule.name, str(refused), match.root)
            return False
        self.rewriter.builders.append(builder)
        self.stats.fired[rule.name] += 1
        self._recent.append(rule.name)
        if builder.created:
            self._add_operators({(node.domain, node.op_type) for node in builder.created})
            self.rewriter.remove_dead(builder.created)
        self._push_affected(touched, builder.created)
        return True

    def _add_operators(self, created_types: set[tuple[str, str]]) -> None:
        """Consider from now on the rules that need operators of ``created_types``."""
        if not created_types <= self._operators:
            self._operators = self._operators | created_types
            self.rules = self._every.within(self._operators)

    def _unsupported_operator(self, builder: Builder) -> str:
        """Return the name of a created operator that the target does not support; empty if there is
        none.

        Operators that the model had before are allowed.
        """
        if self.rewriter.kernels is None:
            return ""
        created_types = {node.op_type for node in builder.created if not node.domain}
        unsupported = (name for name in sorted(created_types - self.rewriter.kernels))
        return next((name for name in unsupported if ("", name) not in self._operators), "")

    def _push_affected(self, touched: Iterable[ir.Node], created: Iterable[ir.Node]) -> None:
        """Queue the nodes at which a rule may match now: new and touched nodes, and readers up to
        the rules' depth.
        """
        frontier = [n for n in (*created, *touched) if n not in self.rewriter.dead]
        seen = set(frontier)
        for _ in range(self.rules.depth):
            readers: list[ir.Node] = []
            for node in frontier:
                if node.graph in self.index.opsets:
                    self._push(node)
                for value in node.outputs:
                    if scope.num_uses(value) <= FANOUT:
                        readers.extend(n for n in scope.consumers(value) if n not in seen)
                    else:
                        self.stats.skipped = True
            seen.update(readers)
            frontier = readers

    def _ping_pong(self) -> InternalError:
        """Return the error E903, which names the last rules."""
        names = " and ".join(dict.fromkeys(self._recent))
        return InternalError(
            "E903",
            f"rewriting does not end; the last rules to fire were {names}",
            why=f"more than {REWRITES_PER_NODE} rewrites per node mean that rules undo each other",
            fix="leave one of them out of the pipeline, and report the model",
        )


def _build_replacement(rule: Rule, match: Match, builder: Builder) -> Replacement:
    """Return the replacement that ``rule`` builds; a Miss if a number does not fit into int64."""
    try:
        return rule.build(match, builder)
    except BeyondInt64 as error:
        return Miss(error.what)
    except Exception as error:
        blame(error, rule.build, f"the rule {rule.name}")
        raise


def _check_values(
    rule: Rule, match: Match, replacement: object, values: tuple[object, ...]
) -> None:
    """Raise UsageError unless all ``values`` that ``rule`` returned are values or None."""
    if not all(value is None or isinstance(value, ir.Value) for value in values):
        raise UsageError(
            "E653",
            f"the rule {rule.name} returns neither values nor a Miss",
            at=f"node {match.root.name!r} ({match.root.op_type})",
            why=f"it returned {repr(replacement)[:60]}",
            fix='return what stands for the root, None, or Miss("why")',
        )


def _check_acyclic(rule: Rule, end: ir.Node, created: Iterable[ir.Node]) -> None:
    """Raise InternalError E904 if a created node reads the result of ``end``, which it replaces."""
    for node in created:
        if any(value is not None and value.producer() is end for value in node.inputs):
            raise InternalError(
                "E904",
                f"rule {rule.name} reads the result that it replaces",
                at=f"node {end.name!r} ({end.op_type})",
            )
