"""Selection: rewrite ONNX operators to those of a target, by its rules in order of benefit.

A rule may need several nodes of which another rule matches one alone. So rules of the highest
benefit run to their fixed point first, then those of the next; the benefit is the size of the
pattern unless the rule sets it (as the pattern benefits of MLIR). Nodes that a rule makes are
offered to all rules again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import onnx_ir as ir

from smelt.errors import InternalError, did_you_mean
from smelt.ir import scope
from smelt.ir.constants import Constants
from smelt.ir.index import NodeIndex
from smelt.ir.opset import domains
from smelt.ir.pattern import can_occur
from smelt.ir.pattern import operators as operators_in
from smelt.ir.rewrite import Rewriter
from smelt.ir.rule import Match, Rule, RuleSet
from smelt.ir.shapes.declared import restore_ranks
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.worklist import REWRITES_PER_NODE, RuleStats, Worklist


@dataclass
class Selection:
    """What the rules did.

    ``shadowed`` has ``(rule, node, others)`` for each rule that matched at first and never fired,
    because ``others`` rewrote one of its nodes before.
    """

    stats: RuleStats = field(default_factory=RuleStats)
    shadowed: list[tuple[Rule, str, tuple[Rule, ...]]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return fired rules and near misses, in the form of pass reports."""
        misses = [
            {"rule": rule, "reason": why, "count": count, "node": self.stats.example[rule, why]}
            for (rule, why), count in self.stats.missed.items()
        ]
        misses += [
            {"rule": rule.name, "reason": _taken_by(others), "count": 1, "node": node}
            for rule, node, others in self.shadowed
        ]
        return {"fired": dict(self.stats.fired), "near_misses": misses}


def select(model: ir.Model, rules: Sequence[Rule]) -> Selection:
    """Apply ``rules`` to ``model`` until none applies, and return what each did.

    Warns of a rule that lost all its matches to rules with fewer nodes, since it cannot fire while
    they go first. Raises InternalError E903 if rules undo each other.
    """
    selection = Selection()
    if not rules:
        return selection
    for rule in rules:
        _warn_of_unknown(rule)
    shapes = ShapeInference(model)
    shapes.infer_model()
    rewriter = Rewriter(model, shapes, Constants())
    candidates = _candidates(NodeIndex(model), rules, rewriter.constants)
    _run(rewriter, _by_benefit(rules), selection.stats)
    _drop_unread(rewriter)
    restore_ranks(model)
    selection.shadowed += _shadowed_candidates(candidates, rules, selection.stats)
    for rule, node, others in selection.shadowed:
        if all(other.size < rule.size or other.pattern == rule.pattern for other in others):
            warnings.warn(
                f"the rule {rule.name} never fired: it matches at {node!r}, but {_taken_by(others)}"
                " (a higher benefit lets it go first)",
                stacklevel=2,
            )
    return selection


class _Known:
    """Contains every operator, except names in ONNX's domain that no version of ONNX has."""

    def __contains__(self, key: object) -> bool:
        """True for an operator that ONNX defines, and for every operator of another domain."""
        domain, name = key if isinstance(key, tuple) else ("", "")
        return domain != "" or "" in domains().get(name, ())


def _warn_of_unknown(rule: Rule) -> None:
    """Warn of a rule that can never match, because ONNX never had one of its operators."""
    if not can_occur(rule.pattern, _Known()):
        unknown = sorted(key[1] for key in operators_in(rule.pattern) if key not in _Known())
        hint = did_you_mean(unknown[0], domains(), "")
        warnings.warn(
            f"the rule {rule.name} can never fire: ONNX has no operator {unknown[0]!r}"
            + (f"; {hint}" if hint else ""),
            stacklevel=3,
        )


def warn_of_unknown_kernels(target: str, field: str, names: Iterable[str]) -> None:
    """Warn of operators in ``field`` of a target that no version of ONNX has.

    Operators of other domains are written ``ai.onnx.ml::Scaler``.
    """
    for name in sorted(name for name in names if "::" not in name and ("", name) not in _Known()):
        hint = did_you_mean(name, domains(), "")
        warnings.warn(
            f"`{field}` of target {target!r}: ONNX has no operator {name!r}"
            + (f"; {hint}" if hint else ""),
            stacklevel=3,
        )


def benefit(rule: Rule) -> int:
    """Return the benefit of ``rule``: its own, or the number of nodes in its pattern."""
    return rule.size if rule.benefit is None else rule.benefit


def _drop_unread(rewriter: Rewriter) -> None:
    """Remove the constants that only replaced nodes read."""
    for graph in scope.graphs(rewriter.model):
        for value in list(graph.initializers.values()):
            rewriter.drop_initializer(value)


def _by_benefit(rules: Sequence[Rule]) -> list[RuleSet]:
    """Return sets of rules of equal benefit, highest first."""
    ordered = sorted(rules, key=benefit, reverse=True)
    return [RuleSet(group) for _, group in groupby(ordered, benefit)]


def _run(rewriter: Rewriter, rule_sets: Sequence[RuleSet], stats: RuleStats) -> None:
    """Run the rule sets to a joint fixed point; raises InternalError E903 if there is none."""
    budget = REWRITES_PER_NODE * NodeIndex(rewriter.model).count + 1000
    has_changed = True
    while has_changed:
        has_changed = False
        for number, rules in enumerate(rule_sets):
            before = stats.fired.total()
            Worklist(rewriter, rules, stats).run()
            # What the first set makes is offered to all others in this round.
            has_changed |= number > 0 and stats.fired.total() > before
        if stats.fired.total() > budget:
            raise InternalError(
                "E903",
                f"selection does not end; the rules that fired are {', '.join(stats.fired)}",
                why=f"{REWRITES_PER_NODE} rewrites per node mean that rules undo each other",
                fix="leave one of them out of the target",
            )


def _candidates(
    index: NodeIndex, rules: Sequence[Rule], constants: Constants
) -> list[tuple[Rule, str, frozenset[tuple[str, str]]]]:
    """Return the first match of each rule in the original model: rule, node, and its operators."""
    candidates = []
    for rule in rules if len(rules) > 1 else ():
        for node in index.nodes(rule.roots):
            assert node.graph is not None
            match = rule.match(node, constants, index.opsets[node.graph], index.around)
            if isinstance(match, Match):
                operators = frozenset((each.domain, each.op_type) for each in match.nodes)
                candidates.append((rule, node.name or node.op_type, operators))
                break
    return candidates


def _shadowed_candidates(
    candidates: Sequence[tuple[Rule, str, frozenset[tuple[str, str]]]],
    rules: Sequence[Rule],
    stats: RuleStats,
) -> Iterator[tuple[Rule, str, tuple[Rule, ...]]]:
    """Yield each candidate whose rule never fired, with the rules that took its nodes."""
    refused = {name for name, _ in stats.missed}
    for rule, node, operators in candidates:
        if stats.fired[rule.name] or rule.name in refused:
            continue
        others = tuple(
            other
            for other in rules
            if stats.fired[other.name] and not operators.isdisjoint(other.roots)
        )
        if others:
            yield rule, node, others


def _taken_by(rules: Sequence[Rule]) -> str:
    """Return the text of a near miss: the rules that rewrote a node first."""
    names = " and ".join(rule.name for rule in rules)
    return f"{names} took {'its node' if len(rules) == 1 else 'its nodes'} first"
