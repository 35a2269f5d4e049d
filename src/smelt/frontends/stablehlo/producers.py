"""Compare how two MLIR values are computed from chosen leaves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from jaxlib.mlir import ir

from smelt.frontends.stablehlo import jax_names
from smelt.frontends.stablehlo.operation import element_of

Functions: TypeAlias = Mapping[str, Any]
"""The functions of a module, by name."""

_STATIC_FORMS = {
    "stablehlo.dynamic_broadcast_in_dim": "stablehlo.broadcast_in_dim",
    "stablehlo.dynamic_reshape": "stablehlo.reshape",
}
"""Operators with symbolic sizes, and their static form; operands after the first are sizes."""

_SPREAD = {*_STATIC_FORMS, *_STATIC_FORMS.values()}
_IGNORED = frozenset({"callee", "mhlo.sharding", "mhlo.frontend_attributes"})
LONGEST = 64
"""Larger constants, in elements, are not compared."""

_Pairs: TypeAlias = list[tuple[Any, Any]]


def producer(value: Any) -> Any:
    """Return the operation that produces ``value``; None for arguments of bodies."""
    return getattr(value.owner, "operation", None)


def returned_by(block: Any) -> list[Any]:
    """Return the values that the last operation of ``block`` returns."""
    return list(list(block.operations)[-1].operation.operands)


def splat(value: Any) -> str:
    """Return the number that all elements of ``value`` equal, as MLIR prints it; else empty."""
    owner = producer(value)
    while owner is not None and owner.name in _SPREAD:
        owner = producer(owner.operands[0])
    if owner is None or owner.name != "stablehlo.constant":
        return ""
    return jax_names.splat_text(owner)


def match_values(
    patterns: Sequence[Any],
    values: Sequence[Any],
    leaves: Sequence[Any],
    functions: tuple[Functions, Functions],
) -> list[Any]:
    """Return the values at ``leaves`` if ``values`` are computed like ``patterns``, else [].

    ``functions`` are the functions that each side calls. Sizes may differ and may be symbolic. A
    leaf must match the same value everywhere.
    """
    bound: dict[Any, Any] = {}
    pending = list(zip(patterns, values, strict=True))
    while pending:
        pattern, value = pending.pop()
        if pattern in bound:
            if bound[pattern] != value:
                return []
        elif (number := splat(pattern)) and pattern not in leaves:
            if number != splat(value):  # Each use may have a constant of its own.
                return []
        else:
            bound[pattern] = value
            if pattern in leaves:
                continue
            operand_pairs = _operands(pattern, value, bound, functions)
            if operand_pairs is None:
                return []
            pending += operand_pairs
    return [bound[leaf] for leaf in leaves] if all(leaf in bound for leaf in leaves) else []


def _operands(
    pattern: Any, value: Any, bound: dict[Any, Any], functions: tuple[Functions, Functions]
) -> _Pairs | None:
    """Return the pairs that must match for two values to match; None if their producers differ.

    Arguments of bodies are ``bound`` to each other.
    """
    pair = (producer(pattern), producer(value))
    keys = [_producer_key(pattern), _producer_key(value)]
    if not keys[0] or keys[0] != keys[1]:
        return None
    if len(keys[0]) == 1:
        return []
    count = 1 if keys[0][0] in _SPREAD else None
    operands = [list(owner.operands)[:count] for owner in pair]
    size_count = len(operands[1]) - len(operands[0]) if keys[0][0] == "func.call" else 0
    operands[1] = operands[1][size_count:]  # Symbolic sizes precede a function's other operands.
    bodies = [_bodies(owner, names) for owner, names in zip(pair, functions, strict=True)]
    if len(operands[0]) != len(operands[1]) or len(bodies[0]) != len(bodies[1]):
        return None
    pairs = list(zip(*operands, strict=True))
    for blocks in zip(*bodies, strict=True):
        arguments = [list(block.arguments) for block in blocks]
        arguments[1] = arguments[1][size_count:]
        ends = [returned_by(block) for block in blocks]
        if len(arguments[0]) != len(arguments[1]) or len(ends[0]) != len(ends[1]):
            return None
        bound.update(zip(*arguments, strict=True))
        pairs += zip(*ends, strict=True)
    return pairs


def _producer_key(value: Any) -> tuple[Any, ...]:
    """Return the key by which two producers are compared: operator, result, type, attributes.

    A constant's key is its text. Empty for a value without producer, and for large constants.
    """
    owner = producer(value)
    if owner is None:
        return ()
    if owner.name == "stablehlo.constant":
        kind = ir.RankedTensorType(value.type)
        is_small = kind.has_static_shape and math.prod(kind.shape) <= LONGEST
        return (str(owner.attributes["value"]),) if is_small else ()
    compared = [name for name in owner.attributes if name not in _IGNORED]
    attributes = {name: str(owner.attributes[name]) for name in compared}
    name = _STATIC_FORMS.get(owner.name, owner.name)
    return name, ir.OpResult(value).result_number, element_of(value.type), attributes


def _bodies(owner: Any, functions: Functions) -> list[Any]:
    """Return the blocks of an operator, or the block of the function that it calls."""
    if owner.name == "func.call":
        return [functions[owner.attributes["callee"].value].regions[0].blocks[0]]
    return [region.blocks[0] for region in owner.regions]
