"""Patterns as values: the nodes that a rule rewrites, from the root back to its producers.

::

    x = var("x")
    swish = op("Mul", x, op("Sigmoid", x), commutative=True)

``match.py`` compiles them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import onnx_ir as ir

from smelt.ir.constants import SMALL

AttributePattern: TypeAlias = int | float | str | tuple[int, ...] | tuple[float, ...]


@dataclass(frozen=True)
class Var:
    """Any value. The same name twice in a pattern requires the same value."""

    name: str


@dataclass(frozen=True)
class Const:
    """A constant.

    With ``number``: one element within ``ulp`` of it. With ``every``: all elements equal it.
    """

    number: float | None
    name: str | None
    ulp: int
    limit: int | None
    every: float | None = None


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
    where: Callable[[ir.Node], bool] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class OneOf:
    """Alternatives, tried in order until the whole pattern matches."""

    alternatives: tuple[Pattern, ...]


@dataclass(frozen=True)
class Optional:
    """An input that may be absent."""

    pattern: Pattern


Pattern: TypeAlias = Var | Const | Op | OneOf | Optional


def var(name: str) -> Var:
    """Match any value and bind it to ``name``."""
    return Var(name)


def const(
    number: float | None = None,
    *,
    name: str | None = None,
    ulp: int = 1,
    limit: int | None = SMALL,
    every: float | None = None,
) -> Const:
    """Match a constant of at most ``limit`` bytes.

    With ``number`` it has exactly one element close to it; with ``every`` all elements equal that
    number (an empty constant matches). The rank is free; the shape check of a rewrite ensures that
    a constant such as ``[[2.0]]`` does not raise the rank of the result.
    """
    return Const(number, name, ulp, limit, every)


def op(
    op_type: str | Iterable[str],
    *inputs: Pattern,
    domain: str = "",
    name: str | None = None,
    output: int = 0,
    commutative: bool = False,
    shared: bool = False,
    rest: bool = False,
    where: Callable[[ir.Node], bool] | None = None,
    **attributes: AttributePattern,
) -> Op:
    """Match a node. ``name`` binds the output; ``rest`` allows more inputs than listed.

    ``commutative`` tries every order of the inputs; ``shared`` lets other nodes read the output.
    Attributes must be present and equal. ``where`` is a predicate on the node, called before its
    operands are matched: only the operator of the node is known to fit then.
    """
    op_types = (op_type,) if isinstance(op_type, str) else tuple(op_type)
    listed = tuple(attributes.items())
    return Op(op_types, inputs, domain, name, output, commutative, shared, rest, listed, where)


def one_of(*alternatives: Pattern) -> OneOf:
    """Match any of ``alternatives``, tried in order; nested OneOf patterns are flattened."""
    flat = (p.alternatives if isinstance(p, OneOf) else (p,) for p in alternatives)
    return OneOf(tuple(alternative for group in flat for alternative in group))


def optional(pattern: Pattern) -> Optional:
    """Match ``pattern``, or an absent input."""
    return Optional(pattern)


def heads(pattern: Pattern) -> frozenset[str] | None:
    """Return the operators that can produce a value for ``pattern``; None if any operator can."""
    if isinstance(pattern, Op):
        return frozenset(pattern.op_types)
    if isinstance(pattern, OneOf):
        alternatives = [heads(p) for p in pattern.alternatives]
        known_alternatives = [head for head in alternatives if head is not None]
        return (
            frozenset().union(*known_alternatives)
            if len(known_alternatives) == len(alternatives)
            else None
        )
    return None


def can_occur(pattern: Pattern, operators: Container[tuple[str, str]]) -> bool:
    """True unless ``pattern`` needs a node whose ``(domain, op_type)`` is not in ``operators``."""
    if isinstance(pattern, Op):
        return any((pattern.domain, op_type) in operators for op_type in pattern.op_types) and all(
            can_occur(part, operators) for part in pattern.inputs
        )
    if isinstance(pattern, OneOf):
        return any(can_occur(part, operators) for part in pattern.alternatives)
    return True


def operators(pattern: Pattern) -> frozenset[tuple[str, str]]:
    """Return the ``(domain, op_type)`` of every node that ``pattern`` may match."""
    inner: tuple[Pattern, ...] = ()
    keys: frozenset[tuple[str, str]] = frozenset()
    if isinstance(pattern, Op):
        keys = frozenset((pattern.domain, op_type) for op_type in pattern.op_types)
        inner = pattern.inputs
    elif isinstance(pattern, OneOf):
        inner = pattern.alternatives
    elif isinstance(pattern, Optional):
        inner = (pattern.pattern,)
    return keys.union(*map(operators, inner))


def roots(pattern: Pattern) -> tuple[tuple[str, str], ...]:
    """Return the ``(domain, op_type)`` that the root of ``pattern`` may have."""
    if isinstance(pattern, OneOf):
        return tuple(dict.fromkeys(key for p in pattern.alternatives for key in roots(p)))
    if isinstance(pattern, Op):
        return tuple((pattern.domain, op_type) for op_type in pattern.op_types)
    raise TypeError("the root of a pattern is an op, or one_of several")


def depth(pattern: Pattern) -> int:
    """Return the number of nodes on the longest path from the root back."""
    if isinstance(pattern, Op):
        return 1 + max((depth(p) for p in pattern.inputs), default=0)
    if isinstance(pattern, OneOf):
        return max(depth(p) for p in pattern.alternatives)
    if isinstance(pattern, Optional):
        return depth(pattern.pattern)
    return 0


def size(pattern: Pattern) -> int:
    """Return the number of nodes of ``pattern``, with the largest of alternatives."""
    if isinstance(pattern, Op):
        return 1 + sum(map(size, pattern.inputs))
    if isinstance(pattern, OneOf):
        return max(map(size, pattern.alternatives))
    return size(pattern.pattern) if isinstance(pattern, Optional) else 0


def inner_names(pattern: Pattern) -> frozenset[str]:
    """Return the names that ``pattern`` binds to results of nodes."""
    if isinstance(pattern, Op):
        names = frozenset() if pattern.name is None else frozenset({pattern.name})
        return names.union(*map(inner_names, pattern.inputs))
    if isinstance(pattern, OneOf):
        return frozenset().union(*map(inner_names, pattern.alternatives))
    if isinstance(pattern, Optional):
        return inner_names(pattern.pattern)
    return frozenset()
