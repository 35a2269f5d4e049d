"""Rules: a pattern, and a function that builds the replacement or says why not.

::

    @rule(op("Mul", var("x"), op("Sigmoid", var("x")), commutative=True), min_opset=24)
    def swish(m: Match, b: Builder) -> Replacement:
        return b.op("Swish", m["x"], alpha=1.0)
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import SMALL, Constants
from smelt.ir.match import Look, Matcher, compile_look, compile_pattern
from smelt.ir.match_state import MatchState
from smelt.ir.pattern import OneOf, Op, can_occur, depth, inner_names, roots, size
from smelt.ir.walk import Walk


@dataclass(frozen=True)
class Miss:
    """A match that was refused, and the condition that failed.

    ``opset`` is the first ONNX opset at which the rule would apply, if the opset was the reason.
    """

    reason: str
    opset: int = 0


Replacement: TypeAlias = "ir.Value | tuple[ir.Value | None, ...] | Miss | None"
"""One value per output of the root; None in a tuple for an output that nobody reads.

A bare None refuses without a reason: the match is not worth a near miss in the report.
"""


class Match:
    """The bindings of a match: ``m["x"]`` is the value of ``x``, ``m.node("x")`` its producer.

    ``nodes`` are replaced by the rewrite; the outputs of ``end`` get the new values. ``options`` is
    an instance of the options dataclass of the pass.
    """

    def __init__(self, root: ir.Node, state: MatchState, opset: int, options: Any = None) -> None:
        self.root = root
        self.end = root
        self.nodes = list(state.nodes)
        self.constants: Constants = state.constants
        self.opset = opset
        self.options = options
        self._bindings = dict(state.bindings)

    def __getitem__(self, name: str) -> ir.Value:
        """Return the value bound to ``name``; raises KeyError if an optional operand is absent."""
        value = self._bindings[name]
        if value is None:
            raise KeyError(f"{name!r} is absent in this match")
        return value

    def get(self, name: str) -> ir.Value | None:
        """Return the value bound to ``name``, None if it is absent or in another alternative."""
        return self._bindings.get(name)

    def node(self, name: str) -> ir.Node:
        """Return the node that produces the value bound to ``name``."""
        node = self[name].producer()
        if node is None:
            raise KeyError(f"{name!r} is no result of a node")
        return node

    def walk(self) -> Walk:
        """Return a walk beyond the pattern, starting at the root."""
        return Walk(self.root)

    def replaces(self, walk: Walk) -> Miss | None:
        """Add the nodes of ``walk`` to the replaced nodes; return a Miss if they cannot be
        replaced.

        Call this before anything is built. New nodes are inserted before the root, so their inputs
        must be computed there.
        """
        obstacle = walk.obstacle()
        if obstacle is not None:
            return Miss(obstacle)
        self.end = walk.end
        self.nodes += [node for node in walk.nodes if node not in self.nodes]
        return None

    def array(self, value: ir.Value | str | None, limit: int | None = SMALL) -> np.ndarray | None:
        """Return the constant that a value, or the value bound to a name, holds, else None."""
        return self.constants.get(self.get(value) if isinstance(value, str) else value, limit)

    def scalar(self, value: ir.Value | str | None) -> int | float | bool | None:
        """Return the element of a one-element constant as a Python number, else None."""
        return self.constants.scalar(self.get(value) if isinstance(value, str) else value)

    def ints(self, value: ir.Value | str | None) -> tuple[int, ...] | None:
        """Return an integer constant as a flat tuple, else None."""
        return self.constants.ints(self.get(value) if isinstance(value, str) else value)


Build: TypeAlias = Callable[[Match, Builder], Replacement]


@dataclass(frozen=True)
class Rule:
    """One rewrite.

    ``min_opset``: the lowest ONNX opset whose operators it reads or creates. ``same_shape``: the
    pattern implies that the replacement has the shape of the root, so the rewriter does not require
    a proof from inferred shapes (a proved conflict is still refused). ``needs``: ONNX operators
    that the rule looks for outside its pattern, at least one of which the model must have; the
    worklist then re-queues readers one level further. ``benefit`` orders the rules by which a
    target selects, highest first; by default it is the ``size`` of the pattern, so that a compound
    precedes its parts. Passes ignore it.
    """

    name: str
    pattern: Op | OneOf
    build: Build
    min_opset: int = 13
    same_shape: bool = False
    needs: tuple[str, ...] = ()
    benefit: int | None = None
    roots: tuple[tuple[str, str], ...] = field(init=False)
    depth: int = field(init=False)
    size: int = field(init=False)
    _inner_names: frozenset[str] = field(init=False, repr=False)
    _matchers: tuple[tuple[int, tuple[str, ...], Look, Matcher], ...] = field(
        init=False, repr=False
    )

    def __post_init__(self) -> None:
        """Compile the pattern."""
        tops = self.pattern.alternatives if isinstance(self.pattern, OneOf) else (self.pattern,)
        matchers = [
            (top.output, top.op_types, compile_look(top), compile_pattern(top, root=True))
            for top in tops
            if isinstance(top, Op)
        ]
        object.__setattr__(self, "roots", roots(self.pattern))
        object.__setattr__(self, "depth", depth(self.pattern) + bool(self.needs))
        object.__setattr__(self, "size", size(self.pattern))
        object.__setattr__(self, "_inner_names", inner_names(self.pattern))
        object.__setattr__(self, "_matchers", tuple(matchers))

    def can_match_in(self, operators: Container[tuple[str, str]]) -> bool:
        """True if a model with these ``(domain, op_type)`` may contain a match."""
        if self.needs and not any(("", op_type) in operators for op_type in self.needs):
            return False
        return can_occur(self.pattern, operators)

    def look(self, op_type: str) -> Look:
        """Return a fast filter for roots of ``op_type``: False if the rule cannot match."""
        looks = [look for _, op_types, look, _ in self._matchers if op_type in op_types]
        if len(looks) == 1:
            return looks[0]
        return lambda node, constants: any(look(node, constants) for look in looks)

    def match(
        self,
        node: ir.Node,
        constants: Constants,
        opset: int,
        around: Mapping[ir.Graph, ir.Graph] | None = None,
        options: Any = None,
    ) -> Match | Miss | None:
        """Match at ``node``; return a Miss if the operators fit but a constant or a reader does
        not.

        ``around`` maps branches of Ifs to the graphs from which they may take nodes; ``options``
        are passed to the match.
        """
        state: MatchState | None = None
        for output, op_types, look, matcher in self._matchers:
            if node.op_type not in op_types or output >= len(node.outputs):
                continue
            if not look(node, constants):
                continue
            if state is None:
                state = MatchState(constants, node.graph, around, self._inner_names)
            if matcher(node.outputs[output], state, state.is_closed):
                return Match(node, state, opset, options)
        return None if state is None or state.near_miss is None else Miss(state.near_miss)


def rule(
    pattern: Op | OneOf,
    *,
    min_opset: int = 13,
    same_shape: bool = False,
    needs: tuple[str, ...] = (),
    name: str | None = None,
    benefit: int | None = None,
) -> Callable[[Build], Rule]:
    """Make a Rule of the decorated build function, named after it."""

    def decorate(build: Build) -> Rule:
        """Return the rule that ``build`` applies."""
        rule_name = name or build.__name__
        return Rule(rule_name, pattern, build, min_opset, same_shape, needs, benefit)

    return decorate


KEPT = 64
"""Number of operator sets for which a RuleSet caches its rules; models have few distinct ones."""


class RuleSet:
    """Rules indexed by the ``(domain, op_type)`` of their roots, in the given order."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        """Index ``rules`` by the operator and domain of their roots.

        ``_within`` caches the subsets of the rules for the operators that a model has.
        """
        self.rules = tuple(rules)
        self.depth = max((rule.depth for rule in self.rules), default=1)
        self._by_root: dict[str, dict[str, list[tuple[Rule, Look]]]] = {}
        self._within: dict[frozenset[tuple[str, str]], RuleSet] = {}
        for rule_ in self.rules:
            for domain, op_type in rule_.roots:
                rules_of_root = self._by_root.setdefault(op_type, {}).setdefault(domain, [])
                rules_of_root.append((rule_, rule_.look(op_type)))

    def within(self, operators: frozenset[tuple[str, str]]) -> RuleSet:
        """Return the rules that can match in a model with these ``(domain, op_type)``."""
        known = self._within.get(operators)
        if known is None:
            possible = [rule for rule in self.rules if rule.can_match_in(operators)]
            known = self if len(possible) == len(self.rules) else RuleSet(possible)
            if len(self._within) >= KEPT:
                self._within.clear()
            self._within[operators] = known
        return known

    @property
    def roots(self) -> Iterable[tuple[str, str]]:
        """Yield the ``(domain, op_type)`` at which a rule can match."""
        for op_type, domains in self._by_root.items():
            yield from ((domain, op_type) for domain in domains)

    def for_node(self, node: ir.Node) -> Iterable[tuple[Rule, Look]]:
        """Return the rules whose root may be ``node``, each with its fast filter."""
        domains = self._by_root.get(node.op_type)
        return domains.get(node.domain, ()) if domains is not None else ()
