"""Patterns matched from the root back to its producers.

A pattern is compiled once into nested closures that backtrack over operand orders and
alternatives. Interior nodes lie in the graph of the root, or in one around the If whose branch
that is: there they run as often, or more. A Loop around would run them less often. Whether their
results may be read by others is checked once, for every rule (``MatchState.is_closed``): a match is
closed unless the pattern marks a node as ``shared``, which then survives the rewrite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from typing import TypeAlias

import onnx_ir as ir

from smelt.ir.constants import may_be_constant
from smelt.ir.match_state import MatchState
from smelt.ir.pattern import Const, OneOf, Op, Optional, Pattern, Var, heads

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
    only_leaves = all(isinstance(each, Const | Var) for each in pattern.inputs)
    return holds_constants if places and only_leaves else lambda node: True


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
