"""Patterns matched from the root back to its producers.

A pattern is compiled once into nested closures that backtrack over operand orders and alternatives.
Interior nodes lie in the graph of the root, or in a graph that contains it through branches of If:
there they run at least as often. Nodes outside of a Loop would run less often.
``MatchState.is_closed`` checks that only nodes marked as ``shared`` have readers elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import permutations
from typing import TypeAlias

import onnx_ir as ir

from smelt.ir.constants import Constants, may_be_constant
from smelt.ir.match_state import MatchState
from smelt.ir.pattern import Const, OneOf, Op, Optional, Pattern, Var, heads

Continue: TypeAlias = Callable[[], bool]
Matcher: TypeAlias = Callable[["ir.Value | None", MatchState, Continue], bool]
Leaf: TypeAlias = Callable[["ir.Value | None", MatchState], bool]
"""Matches a pattern without alternatives. The enclosing node undoes its bindings."""
Look: TypeAlias = Callable[[ir.Node, Constants], bool]
"""A fast filter on the root: False if the pattern cannot match there."""


def compile_pattern(pattern: Pattern, *, root: bool = False) -> Matcher:
    """Return a function that matches ``pattern`` at a value and then calls its continuation."""
    leaf = _leaf(pattern)
    if leaf is not None:
        return _match_leaf(leaf)
    if isinstance(pattern, OneOf):
        return _match_one_of([compile_pattern(p, root=root) for p in pattern.alternatives])
    if isinstance(pattern, Optional):
        return _match_optional(compile_pattern(pattern.pattern))
    assert isinstance(pattern, Op)
    return _match_op(
        pattern, [_leaf(p) or _Choice(compile_pattern(p)) for p in pattern.inputs], root
    )


def _leaf(pattern: Pattern) -> Leaf | None:
    """Return the matcher of a pattern without alternatives, None for other patterns."""
    if isinstance(pattern, Var):
        return _var(pattern)
    if isinstance(pattern, Const):
        return _const(pattern)
    if isinstance(pattern, Optional) and (leaf := _leaf(pattern.pattern)) is not None:
        present = leaf
        return lambda value, state: value is None or present(value, state)
    return None


def _var(pattern: Var) -> Leaf:
    """Return the matcher of a variable: any present value, the same at each occurrence."""
    name = pattern.name
    reason = f"{name!r} would be two different values"

    def match(value: ir.Value | None, state: MatchState) -> bool:
        """Bind the variable to ``value``; note a miss if it is bound to another."""
        if value is None:
            return False
        if state.bind(name, value):
            return True
        state.miss(reason)
        return False

    return match


def _const(pattern: Const) -> Leaf:
    """Return the matcher of a constant, which notes a near miss if the value is another."""
    name, number, holds = pattern.name, pattern.number, _predicate_of(pattern)
    reason = f"{name!r} is not a constant" if name else "an operand is not a constant"
    if number is not None:
        reason = f"an operand is not the constant {number:.7g}"
    elif pattern.every is not None:
        reason = f"an operand is not {pattern.every:.7g} everywhere"

    def match(value: ir.Value | None, state: MatchState) -> bool:
        """True if ``value`` is the required constant; bind its name, if it has one."""
        if not holds(value, state.constants):
            state.miss(reason)
            return False
        return name is None or state.bind(name, value)

    return match


def _predicate_of(pattern: Const) -> Callable[[ir.Value | None, Constants], bool]:
    """Return a predicate on values: True if a value is the constant that ``pattern`` requires."""
    number, every, ulp, limit = pattern.number, pattern.every, pattern.ulp, pattern.limit
    if number is not None:
        return lambda value, constants: constants.is_number(value, number, ulp)
    if every is not None:
        return lambda value, constants: constants.is_filled(value, every)
    return lambda value, constants: constants.get(value, limit) is not None


def _match_leaf(leaf: Leaf) -> Matcher:
    """Return a matcher that runs ``leaf``, then the continuation, and undoes bindings on
    failure."""

    def match(value: ir.Value | None, state: MatchState, then: Continue) -> bool:
        """Match the leaf and continue; undo its bindings on failure."""
        mark = state.mark()
        if leaf(value, state) and then():
            return True
        state.undo(mark)
        return False

    return match


def _match_one_of(matchers: list[Matcher]) -> Matcher:
    """Return the matcher that tries ``matchers`` in order until the rest of the match succeeds."""

    def match(value: ir.Value | None, state: MatchState, then: Continue) -> bool:
        """True if one of ``matchers`` matches ``value`` and the continuation succeeds."""
        return any(matcher(value, state, then) for matcher in matchers)

    return match


def _match_optional(matcher: Matcher) -> Matcher:
    """Return the matcher of an operand that may be absent."""

    def match(value: ir.Value | None, state: MatchState, then: Continue) -> bool:
        """True if ``value`` is absent or matches, and the continuation succeeds."""
        return then() if value is None else matcher(value, state, then)

    return match


class _Choice:
    """An operand pattern with alternatives; its matcher needs the continuation."""

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher


def _match_op(pattern: Op, subs: list[Leaf | _Choice], root: bool) -> Matcher:
    """Return the matcher of an operator: producer, attributes, then operands in each order."""
    op_types = frozenset(pattern.op_types)
    needs = _needs(pattern)
    required = sum(not isinstance(p, Optional) for p in pattern.inputs)

    def match(value: ir.Value | None, state: MatchState, then: Continue) -> bool:
        """Match the producer of ``value``, then its operands, then the rest by ``then``."""
        node = value.producer() if value is not None else None
        if value is None or node is None or node.op_type not in op_types:
            return False
        if not (root or node.graph is state.graph or state.sees(node.graph)):
            return False
        if not _fits_pattern(node, value, pattern):
            return False
        operands = _present(node.inputs)
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
"""The position of an operand, and the operators that may produce it."""


def compile_look(pattern: Op) -> Look:
    """Return a fast filter: False if ``pattern`` cannot match at a root.

    It reads the root, the producers of its operands and scalar constants; True promises nothing.
    """
    look, where = _look_at_operands(pattern), pattern.where
    if where is None:
        return look
    predicate = where
    return lambda node, constants: predicate(node) and look(node, constants)


def _look_at_operands(pattern: Op) -> Look:
    """Return a filter on the operators that produce the operands; if the pattern requires none, on
    the constants among the operands."""
    needs = _needs(pattern)

    def in_place(node: ir.Node, constants: Constants) -> bool:
        """True if each operand has a fitting producer, in the order of the pattern."""
        return _could_match(node.inputs, needs)

    def anywhere(node: ir.Node, constants: Constants) -> bool:
        """True if for each need an operand of ``node`` has a fitting producer."""
        for _, head in needs:
            for value in node.inputs:
                producer = value.producer() if value is not None else None
                if producer is not None and producer.op_type in head:
                    break
            else:
                return False
        return True

    def holds_constants(node: ir.Node, constants: Constants) -> bool:
        """True if ``node`` has an operand for each constant of the pattern."""
        for place, holds in constants_by_place:
            for value in node.inputs if pattern.commutative else node.inputs[place : place + 1]:
                if may_be_constant(value) and (holds is None or holds(value, constants)):
                    break
            else:
                return False
        return True

    if needs:
        return anywhere if pattern.commutative else in_place
    # In a larger pattern, a wrong constant is a near miss, which the match itself must report.
    constants_by_place = []
    for place, operand in enumerate(pattern.inputs):
        if isinstance(operand, Const):
            is_any = operand.number is None and operand.every is None
            constants_by_place.append((place, None if is_any else _predicate_of(operand)))
    only_leaves = all(isinstance(operand, Const | Var) for operand in pattern.inputs)
    return holds_constants if constants_by_place and only_leaves else lambda node, constants: True


def _needs(pattern: Op) -> tuple[Need, ...]:
    """Return (position, operators) of each operand of ``pattern`` that a node has to produce."""
    operators = enumerate(map(heads, pattern.inputs))
    return tuple((position, op_types) for position, op_types in operators if op_types is not None)


def _could_match(operands: Sequence[ir.Value | None], needs: tuple[Need, ...]) -> bool:
    """True if each operand of ``needs`` comes from one of the required operators."""
    count = len(operands)
    for place, head in needs:
        operand = operands[place] if place < count else None
        producer = operand.producer() if operand is not None else None
        if producer is None or producer.op_type not in head:
            return False
    return True


def _match_inputs(
    subs: list[Leaf | _Choice],
    operands: tuple[ir.Value | None, ...],
    start: int,
    state: MatchState,
    then: Continue,
) -> bool:
    """Match ``operands`` from ``start`` on, then call ``then``; if a later operand does not match,
    one with alternatives tries its next."""
    count = len(operands)
    for index in range(start, len(subs)):
        sub = subs[index]
        operand = operands[index] if index < count else None
        if isinstance(sub, _Choice):
            match_remaining = partial(_match_inputs, subs, operands, index + 1, state, then)
            return sub.matcher(operand, state, match_remaining)
        if not sub(operand, state):
            return False
    return then()


def _present(inputs: Sequence[ir.Value | None]) -> tuple[ir.Value | None, ...]:
    """Return the inputs without absent ones at the end, which ONNX may leave out or spell out."""
    count = len(inputs)
    while count and inputs[count - 1] is None:
        count -= 1
    return tuple(inputs[:count])


def _orders(
    operands: tuple[ir.Value | None, ...], count: int, commutative: bool
) -> Iterable[tuple[ir.Value | None, ...]]:
    """Return the orders in which to match ``operands``: all if ``commutative``, else one."""
    if not commutative or count != len(operands):
        return (operands,)
    return (operands, operands[::-1]) if count == 2 else permutations(operands)


def _fits_pattern(node: ir.Node, value: ir.Value, pattern: Op) -> bool:
    """True if domain, output index, attributes and the pattern's ``where`` predicate agree."""
    if node.domain != pattern.domain or value.index() != pattern.output:
        return False
    for name, expected in pattern.attributes:
        attribute = node.attributes.get(name)
        if attribute is None or attribute.value != expected:
            return False
    return pattern.where is None or pattern.where(node)
