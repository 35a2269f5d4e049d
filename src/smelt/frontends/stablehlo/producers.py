"""Compare two MLIR values by the operations that compute them.

smelt recognizes the code that JAX writes for a function in this way: it exports the function once
more, and compares.
"""

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

_RESHAPES = {*_STATIC_FORMS, *_STATIC_FORMS.values()}
"""Operators that keep the numbers of their first operand: broadcasts and reshapes."""

_IGNORED = frozenset({"callee", "mhlo.sharding", "mhlo.frontend_attributes"})
"""Attributes that do not change what an operation computes; callees are compared by body."""

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
    """Return the number that all elements of ``value`` equal, such as ``1 : i32``; else empty."""
    owner = producer(value)
    while owner is not None and owner.name in _RESHAPES:
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
    """Return the value for each leaf if ``values`` are computed like ``patterns``, else [].

    ``leaves`` are the values from which ``patterns`` are computed. A leaf must stand for the same
    value everywhere. Sizes may differ and may be symbolic. ``functions`` are the functions that
    patterns and values call.
    """
    bound: dict[Any, Any] = {}  # maps a pattern to the value that it matched
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
            pairs_before = _pairs_before(pattern, value, bound, functions)
            if pairs_before is None:
                return []
            pending += pairs_before
    return [bound[leaf] for leaf in leaves] if all(leaf in bound for leaf in leaves) else []


def _pairs_before(
    pattern: Any, value: Any, bound: dict[Any, Any], functions: tuple[Functions, Functions]
) -> _Pairs | None:
    """Return the pairs ``(pattern, value)`` on which the two values depend.

    These are the operands of the two producers, and the results of their bodies. None if the
    producers differ. Arguments of bodies are ``bound`` to each other.
    """
    pattern_owner, value_owner = producer(pattern), producer(value)
    key = _producer_key(pattern)
    if not key or key != _producer_key(value):
        return None
    if len(key) == 1:  # equal constants
        return []
    operator = key[0]
    pattern_operands, value_operands = list(pattern_owner.operands), list(value_owner.operands)
    if operator in _RESHAPES:  # The other operands are sizes, which may differ.
        pattern_operands, value_operands = pattern_operands[:1], value_operands[:1]
    size_count = 0
    if operator == "func.call":  # A call passes symbolic sizes before the other operands.
        size_count = len(value_operands) - len(pattern_operands)
    value_operands = value_operands[size_count:]
    pattern_blocks = _blocks(pattern_owner, functions[0])
    value_blocks = _blocks(value_owner, functions[1])
    if len(pattern_operands) != len(value_operands) or len(pattern_blocks) != len(value_blocks):
        return None
    pairs = list(zip(pattern_operands, value_operands, strict=True))
    for pattern_block, value_block in zip(pattern_blocks, value_blocks, strict=True):
        pattern_arguments = list(pattern_block.arguments)
        value_arguments = list(value_block.arguments)[size_count:]
        pattern_results, value_results = returned_by(pattern_block), returned_by(value_block)
        if len(pattern_arguments) != len(value_arguments):
            return None
        if len(pattern_results) != len(value_results):
            return None
        bound.update(zip(pattern_arguments, value_arguments, strict=True))
        pairs += zip(pattern_results, value_results, strict=True)
    return pairs


def _producer_key(value: Any) -> tuple[Any, ...]:
    """Return the key by which two producers are compared; operands are not part of it.

    It holds the operator, the number of the result, the element type and the attributes. A
    constant's key is its text alone. Empty for a value without producer, and for large constants.
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


def _blocks(owner: Any, functions: Functions) -> list[Any]:
    """Return the blocks of the bodies of an operator, or the block of the function it calls."""
    if owner.name == "func.call":
        return [functions[owner.attributes["callee"].value].regions[0].blocks[0]]
    return [region.blocks[0] for region in owner.regions]
