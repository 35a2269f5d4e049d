"""Moves drawn from the rules themselves: a pattern becomes nodes that match it, or nearly."""

from __future__ import annotations

from functools import cache

import onnx_ir as ir
from random_graphs.draft import BOOL, FLOAT, Draft, NoMove, dims

from smelt.ir.pattern import Const, OneOf, Op, Optional, Pattern, Var
from smelt.ir.rule import Rule
from smelt.operators.elementwise import ELEMENTWISE
from smelt.passes.registry import passes

FLAGS = {"And": 2, "Or": 2, "Xor": 2, "Not": 1, "Where": 1}
"""How many operands of an operator, from the first on, are booleans."""

FLAT = {*ELEMENTWISE, "Softmax", "Identity", "Dropout"}
"""Operators that take any float tensor; patterns of others need shapes that no pattern tells."""


@cache
def rules() -> tuple[Rule, ...]:
    """The rules whose pattern can be drawn from."""
    every = (rule for each in passes().values() for rule in each.rules)
    return tuple(rule for rule in every if _is_flat(rule.pattern))


def _is_flat(pattern: Pattern) -> bool:
    if isinstance(pattern, OneOf):
        return all(_is_flat(each) for each in pattern.alternatives)
    if isinstance(pattern, Optional):
        return _is_flat(pattern.pattern)
    if isinstance(pattern, Op):
        known = pattern.domain == "" and any(kind in FLAT for kind in pattern.op_types)
        return known and all(_is_flat(each) for each in pattern.inputs)
    return True


def from_a_rule(d: Draft) -> None:
    """An instance of the pattern of a rule, one operand or number exchanged at times."""
    rule = d.rng.choice(rules())
    _instance(d, rule.pattern, {}, d.float())


def _instance(d: Draft, pattern: Pattern, bound: dict[str, ir.Value], like: ir.Value) -> ir.Value:
    if isinstance(pattern, OneOf):
        return _instance(d, d.rng.choice(pattern.alternatives), bound, like)
    if isinstance(pattern, Optional):
        return _instance(d, pattern.pattern, bound, like)
    if isinstance(pattern, Const):
        return _number(d, pattern, like)
    if isinstance(pattern, Var):
        value = bound.setdefault(pattern.name, like)
        return value if d.chance(0.95) else d.pick(lambda v: v.dtype == FLOAT)
    kinds = [kind for kind in pattern.op_types if kind in FLAT]
    flags = FLAGS.get(kinds[0], 0)
    operands = [
        _flag(d, each, bound) if index < flags else _instance(d, each, bound, like)
        for index, each in enumerate(pattern.inputs)
    ]
    if pattern.commutative or d.chance(0.05):
        d.rng.shuffle(operands)
    attributes = {name: value for name, value in pattern.attributes if d.chance(0.95)}
    return d.op(d.rng.choice(kinds), *operands, **attributes)


def _flag(d: Draft, pattern: Pattern, bound: dict[str, ir.Value]) -> ir.Value:
    """An operand that is a boolean: a flag, or what a pattern says."""
    if isinstance(pattern, Var):
        return bound.setdefault(pattern.name, d.pick(lambda v: v.dtype == BOOL and not dims(v)))
    return _instance(d, pattern, bound, d.float())


def _number(d: Draft, pattern: Const, like: ir.Value) -> ir.Value:
    if like.dtype != FLOAT:
        raise NoMove
    asked = pattern.number if pattern.number is not None else pattern.every
    number = asked if asked is not None else d.rng.uniform(-2, 2)
    if d.chance(0.15):
        number = number * d.rng.choice([1.01, -1, 0.999]) + d.rng.choice([0, 1e-3])
    rank = len(dims(like))
    shape = d.rng.choice([(), (), (1,), (1,) * rank, (1,) * (rank + 1)])
    return d.const(d.generator().normal(size=shape) * 0 + number)
