"""Patterns as values, matched from the root back to its producers.

::

    x = var("x")
    swish = op("Mul", x, op("Sigmoid", x), commutative=True)

A pattern is compiled once into nested closures that backtrack over operand orders and
alternatives. Interior nodes must lie in the graph of the root. Whether their results may be
read by others is checked here, once, for every rule: a match is closed unless the pattern marks
a node as ``shared``, which then survives the rewrite.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TypeAlias

import onnx_ir as ir

from smelt.ir.constants import SMALL, Constants

AttributePattern: TypeAlias = int | float | str | tuple[int, ...] | tuple[float, ...]


@dataclass(frozen=True)
class Var:
    """Any value. The same name twice in a pattern means the same value twice."""

    name: str


@dataclass(frozen=True)
class Const:
    """A constant; with ``number``, one element equal to it within ``ulp`` of its dtype."""

    number: float | None
    name: str | None
    ulp: int
    limit: int | None


@dataclass(frozen=True)
class Op:
    """Output ``output`` of a node with one of ``op_types``."""

    op_types: tuple[str, ...]
    inputs: tuple[Pattern, ...]
    domain: str
    name: str | None
    output: int
    commutative: bool
    shared: bool
    rest: bool
    attributes: tuple[tuple[str, AttributePattern], ...]


@dataclass(frozen=True)
class OneOf:
    """The first alternative with which the whole pattern matches."""

    alternatives: tuple[Pattern, ...]


@dataclass(frozen=True)
class Optional:
    """An input that may be absent."""

    pattern: Pattern


Pattern: TypeAlias = Var | Const | Op | OneOf | Optional


def var(name: str) -> Var:
    """Any value, bound to ``name``."""
    return Var(name)


def const(
    number: float | None = None,
    *,
    name: str | None = None,
    ulp: int = 1,
    limit: int | None = SMALL,
) -> Const:
    """A constant of at most ``limit`` bytes: any, or exactly one element close to ``number``.

    The rank is free; that a constant such as ``[[2.0]]`` must not raise the rank of the result
    is checked when a rewrite compares shapes.
    """
    return Const(number, name, ulp, limit)


def op(
    op_type: str | Iterable[str],
    *inputs: Pattern,
    domain: str = "",
    name: str | None = None,
    output: int = 0,
    commutative: bool = False,
    shared: bool = False,
    rest: bool = False,
    **attributes: AttributePattern,
) -> Op:
    """A node. ``name`` binds the output; ``rest`` allows more inputs than listed.

    ``commutative`` tries every order of the inputs; ``shared`` lets others read the output.
    Attributes must be present and equal.
    """
    op_types = (op_type,) if isinstance(op_type, str) else tuple(op_type)
    listed = tuple(attributes.items())
    return Op(op_types, inputs, domain, name, output, commutative, shared, rest, listed)


def one_of(*alternatives: Pattern) -> OneOf:
    """Any of ``alternatives``, tried in order; those of a OneOf among them stand for it."""
    flat = (p.alternatives if isinstance(p, OneOf) else (p,) for p in alternatives)
    return OneOf(tuple(each for group in flat for each in group))


def optional(pattern: Pattern) -> Optional:
    """``pattern``, or no input at all."""
    return Optional(pattern)


class MatchState:
    """Bindings and nodes of a match in progress, with a trail for backtracking."""

    def __init__(self, constants: Constants, graph: ir.Graph | None) -> None:
        self.constants = constants
        self.graph = graph
        self.bindings: dict[str, ir.Value | None] = {}
        self.nodes: list[ir.Node] = []
        self.closed: list[ir.Node] = []
        self.near_miss: str | None = None
        self._near = 1
        self._trail: list[str] = []

    def miss(self, reason: str) -> None:
        """Note what failed, unless another attempt got further than this and the root."""
        if len(self.nodes) > self._near:
            self._near, self.near_miss = len(self.nodes), reason

    def bind(self, name: str, value: ir.Value | None) -> bool:
        """Bind ``name``, or check that it is bound to the same value."""
        if name in self.bindings:
            return self.bindings[name] is value
        self.bindings[name] = value
        self._trail.append(name)
        return True

    def mark(self) -> tuple[int, int, int]:
        return len(self._trail), len(self.nodes), len(self.closed)

    def undo(self, mark: tuple[int, int, int]) -> None:
        names, nodes, closed = mark
        for name in self._trail[names:]:
            del self.bindings[name]
        del self._trail[names:]
        del self.nodes[nodes:]
        del self.closed[closed:]

    def is_closed(self) -> bool:
        """True if nothing outside the match reads an interior result that is not shared.

        Nodes with attributes that refer to those of a function are no match either.
        """
        for node in self.nodes:
            if any(attr.is_ref() for attr in node.attributes.data.values()):
                return False
        members = set(self.nodes)
        for node in self.closed:
            for value in node.outputs:
                if value.is_graph_output() or any(use.node not in members for use in value._uses):
                    self.miss("an inner result is read elsewhere")
                    return False
        return True


Continue: TypeAlias = Callable[[], bool]
Matcher: TypeAlias = Callable[["ir.Value | None", MatchState, Continue], bool]


def compile_pattern(pattern: Pattern, *, root: bool = False) -> Matcher:
    """A function that matches ``pattern`` at a value and calls its continuation on success."""
    if isinstance(pattern, Var):
        return _match_var(pattern)
    if isinstance(pattern, Const):
        return _match_const(pattern)
    if isinstance(pattern, OneOf):
        return _match_one_of([compile_pattern(p, root=root) for p in pattern.alternatives])
    if isinstance(pattern, Optional):
        return _match_optional(compile_pattern(pattern.pattern))
    return _match_op(pattern, [compile_pattern(p) for p in pattern.inputs], root)


def _match_var(pattern: Var) -> Matcher:
    name = pattern.name
    reason = f"{name!r} would be two different values"

    def match(value: ir.Value | None, state: MatchState, then: Continue) -> bool:
        if value is None:
            return False
        mark = state.mark()
        if not state.bind(name, value):
            state.miss(reason)
        elif then():
            return True
        state.undo(mark)
        return False

    return match


def _match_const(pattern: Const) -> Matcher:
    reason = f"{pattern.name or 'an operand'!r} is not a constant"
    if pattern.number is not None:
        reason = f"an operand is not the constant {pattern.number:.7g}"

    def match(value: ir.Value | None, state: MatchState, then: Continue) -> bool:
        if pattern.number is None:
            if state.constants.get(value, pattern.limit) is None:
                state.miss(reason)
                return False
        elif not state.constants.is_number(value, pattern.number, pattern.ulp):
            state.miss(reason)
            return False
        mark = state.mark()
        if (pattern.name is None or state.bind(pattern.name, value)) and then():
            return True
        state.undo(mark)
        return False

    return match


def _match_one_of(matchers: list[Matcher]) -> Matcher:
    def match(value: ir.Value | None, state: MatchState, then: Continue) -> bool:
        return any(matcher(value, state, then) for matcher in matchers)

    return match


def _match_optional(matcher: Matcher) -> Matcher:
    def match(value: ir.Value | None, state: MatchState, then: Continue) -> bool:
        return then() if value is None else matcher(value, state, then)

    return match


def _match_op(pattern: Op, subs: list[Matcher], root: bool) -> Matcher:
    op_types = frozenset(pattern.op_types)
    needs = _needs(pattern)
    required = sum(not isinstance(p, Optional) for p in pattern.inputs)

    def match(value: ir.Value | None, state: MatchState, then: Continue) -> bool:
        node = value.producer() if value is not None else None
        if value is None or node is None or node.op_type not in op_types:
            return False
        if not (root or node.graph is state.graph) or not _fits(node, value, pattern):
            return False
        operands = _given(node.inputs)
        if len(operands) < required or (len(operands) > len(subs) and not pattern.rest):
            return False
        for order in _orders(operands, len(subs), pattern.commutative):
            if needs and not _could_match(order, needs):
                continue
            mark = state.mark()
            state.nodes.append(node)
            if not root and not pattern.shared:
                state.closed.append(node)
            bound = pattern.name is None or state.bind(pattern.name, value)
            if bound and _match_inputs(subs, order, 0, state, then):
                return True
            state.undo(mark)
        return False

    return match


Need: TypeAlias = tuple[int, frozenset[str]]
"""The place of an operand, and the operators that it must come from."""


def compile_look(pattern: Op) -> Callable[[ir.Node], bool]:
    """A function that says, much faster than a match, that ``pattern`` cannot match at a root.

    It looks at the producers of the operands alone, so True promises nothing.
    """
    needs = _needs(pattern)

    def in_place(node: ir.Node) -> bool:
        return _could_match(node.inputs, needs)

    def anywhere(node: ir.Node) -> bool:
        for _, head in needs:
            for value in node.inputs:
                producer = value.producer() if value is not None else None
                if producer is not None and producer.op_type in head:
                    break
            else:
                return False
        return True

    if not needs:
        return lambda node: True
    return anywhere if pattern.commutative else in_place


def _needs(pattern: Op) -> tuple[Need, ...]:
    heads = enumerate(map(_heads, pattern.inputs))
    return tuple((place, head) for place, head in heads if head is not None)


def _heads(pattern: Pattern) -> frozenset[str] | None:
    """The operators that a value for ``pattern`` must come from; None if it is free."""
    if isinstance(pattern, Op):
        return frozenset(pattern.op_types)
    if isinstance(pattern, OneOf):
        heads = [_heads(p) for p in pattern.alternatives]
        known = [head for head in heads if head is not None]
        return frozenset().union(*known) if len(known) == len(heads) else None
    return None


def _could_match(operands: Sequence[ir.Value | None], needs: tuple[Need, ...]) -> bool:
    """A cheap look at the producers, before any choice is made."""
    for place, head in needs:
        operand = operands[place] if place < len(operands) else None
        producer = operand.producer() if operand is not None else None
        if producer is None or producer.op_type not in head:
            return False
    return True


def _match_inputs(
    subs: list[Matcher],
    operands: tuple[ir.Value | None, ...],
    index: int,
    state: MatchState,
    then: Continue,
) -> bool:
    if index == len(subs):
        return then()
    operand = operands[index] if index < len(operands) else None
    return subs[index](
        operand, state, lambda: _match_inputs(subs, operands, index + 1, state, then)
    )


def _given(inputs: Sequence[ir.Value | None]) -> tuple[ir.Value | None, ...]:
    """Inputs without the empty ones at the end."""
    count = len(inputs)
    while count and inputs[count - 1] is None:
        count -= 1
    return tuple(inputs[:count])


def _orders(
    operands: tuple[ir.Value | None, ...], count: int, commutative: bool
) -> Iterable[tuple[ir.Value | None, ...]]:
    if not commutative or count != len(operands):
        return (operands,)
    return (operands, operands[::-1]) if count == 2 else permutations(operands)


def _fits(node: ir.Node, value: ir.Value, pattern: Op) -> bool:
    """Domain, output index and attributes agree."""
    if node.domain != pattern.domain or value.index() != pattern.output:
        return False
    for name, expected in pattern.attributes:
        given = node.attributes.get(name)
        if given is None or given.value != expected:
            return False
    return True


def can_occur(pattern: Pattern, operators: Container[tuple[str, str]]) -> bool:
    """False if ``pattern`` needs a node whose ``(domain, op_type)`` is not among ``operators``."""
    if isinstance(pattern, Op):
        return any((pattern.domain, op_type) in operators for op_type in pattern.op_types) and all(
            can_occur(each, operators) for each in pattern.inputs
        )
    if isinstance(pattern, OneOf):
        return any(can_occur(each, operators) for each in pattern.alternatives)
    return True


def roots(pattern: Pattern) -> tuple[tuple[str, str], ...]:
    """The ``(domain, op_type)`` that the root of ``pattern`` can have."""
    if isinstance(pattern, OneOf):
        return tuple(dict.fromkeys(key for p in pattern.alternatives for key in roots(p)))
    if isinstance(pattern, Op):
        return tuple((pattern.domain, op_type) for op_type in pattern.op_types)
    raise TypeError("the root of a pattern is an op, or one_of several")


def depth(pattern: Pattern) -> int:
    """How many nodes the longest chain from the root back holds."""
    if isinstance(pattern, Op):
        return 1 + max((depth(p) for p in pattern.inputs), default=0)
    if isinstance(pattern, OneOf):
        return max(depth(p) for p in pattern.alternatives)
    if isinstance(pattern, Optional):
        return depth(pattern.pattern)
    return 0
