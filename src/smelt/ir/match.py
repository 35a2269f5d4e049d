"""Patterns matched from the root back to its producers.

A pattern is compiled once into nested closures that backtrack over operand orders and
alternatives. Interior nodes lie in the graph of the root, or in one around the If whose branch
that is: there they run as often, or more. A Loop around would run them less often. Whether their
results may be read by others is checked here, once, for every rule: a match is closed unless the
pattern marks a node as ``shared``, which then survives the rewrite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import permutations
from typing import TypeAlias

import onnx_ir as ir

from smelt.ir.constants import Constants, may_be_constant
from smelt.ir.known_forms import is_known, unknown_part
from smelt.ir.pattern import Const, OneOf, Op, Optional, Pattern, Var, heads
from smelt.ir.walk import reader_outside

NESTED = 8
"""Branches in each other through which a pattern reaches out."""


class MatchState:
    """Bindings and nodes of a match in progress, with a trail for backtracking."""

    def __init__(
        self,
        constants: Constants,
        graph: ir.Graph | None,
        around: Mapping[ir.Graph, ir.Graph] | None = None,
        inner_names: frozenset[str] = frozenset(),
    ) -> None:
        self.constants = constants
        self.graph = graph
        self.around = around or {}
        self.inner_names = inner_names
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

    def sees(self, graph: ir.Graph | None) -> bool:
        """True for the graph of the root, and those around it but for Ifs, a few at most."""
        current = self.graph
        for _ in range(NESTED):
            if current is graph or current is None:
                break
            current = self.around.get(current)
        return current is graph and current is not None

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

        A result that is an operand of the match, too, is read by what replaces it: of ``m - m``,
        no rule takes one ``m`` for an inner result and the other for any value. ``inner_names``
        are those that the pattern gives to results of nodes.
        Nodes that ask for more than is known of their operator are no match either.
        """
        for node in self.nodes:
            if not is_known(node):
                self.miss(f"a {node.op_type} has {unknown_part(node)}, which is not known")
                return False
        if not self.closed:
            return True
        members = set(self.nodes)
        inner = self.inner_names
        operands = {value for name, value in self.bindings.items() if name not in inner}
        for node in self.closed:
            for value in node.outputs:
                if value in operands:
                    self.miss("an inner result is an operand, too")
                    return False
                if value.is_graph_output() or reader_outside(value, members) is not None:
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
        if not (root or node.graph is state.graph or state.sees(node.graph)):
            return False
        if not _fits(node, value, pattern):
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

    def holds_constants(node: ir.Node) -> bool:
        operands = node.inputs
        if pattern.commutative:
            return any(map(may_be_constant, operands))
        return all(place < len(operands) and may_be_constant(operands[place]) for place in places)

    if needs:
        return anywhere if pattern.commutative else in_place
    # Without other operators below the root, nobody is told which operand is no constant.
    places = [place for place, each in enumerate(pattern.inputs) if isinstance(each, Const)]
    plain = all(isinstance(each, Const | Var) for each in pattern.inputs)
    return holds_constants if places and plain else lambda node: True


def _needs(pattern: Op) -> tuple[Need, ...]:
    found = enumerate(map(heads, pattern.inputs))
    return tuple((place, head) for place, head in found if head is not None)


def _could_match(operands: Sequence[ir.Value | None], needs: tuple[Need, ...]) -> bool:
    """A cheap look at the producers, before any choice is made."""
    count = len(operands)
    for place, head in needs:
        operand = operands[place] if place < count else None
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
