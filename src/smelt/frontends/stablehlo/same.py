"""Whether two values of MLIR are computed alike, up to the values at certain leaves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from jaxlib.mlir import ir

from smelt.frontends.stablehlo import jax_names
from smelt.frontends.stablehlo.operation import element_of

Functions: TypeAlias = Mapping[str, Any]
"""The functions of a module, by name."""

_OF_SIZES = {
    "stablehlo.dynamic_broadcast_in_dim": "stablehlo.broadcast_in_dim",
    "stablehlo.dynamic_reshape": "stablehlo.reshape",
}
"""Operators of symbolic sizes by the same of fixed ones; their other operands are sizes."""

_SPREAD = {*_OF_SIZES, *_OF_SIZES.values()}
_SAYING_NOTHING = frozenset({"callee", "mhlo.sharding", "mhlo.frontend_attributes"})
LONGEST = 64
"""Elements of a constant at most that is compared."""

_Pairs: TypeAlias = list[tuple[Any, Any]]


def maker(value: Any) -> Any:
    """The operation that ``value`` is a result of; None for arguments of bodies."""
    return getattr(value.owner, "operation", None)


def splat(value: Any) -> str:
    """The number that all elements of ``value`` are, as MLIR prints it; nothing if it is none."""
    owner = maker(value)
    while owner is not None and owner.name in _SPREAD:
        owner = maker(owner.operands[0])
    if owner is None or owner.name != "stablehlo.constant":
        return ""
    return jax_names.splat_of(owner)


def unified(
    patterns: Sequence[Any],
    values: Sequence[Any],
    leaves: Sequence[Any],
    functions: tuple[Functions, Functions],
) -> list[Any]:
    """What stands at ``leaves`` of ``patterns`` where ``values`` are computed as these are.

    Nothing if they are not. ``functions`` are those that the one and the other call. Sizes may
    differ and may be symbolic; a leaf is one value wherever it stands.
    """
    bound: dict[Any, Any] = {}
    left = list(zip(patterns, values, strict=True))
    while left:
        ours, theirs = left.pop()
        if ours in bound:
            if bound[ours] != theirs:
                return []
        elif (number := splat(ours)) and ours not in leaves:
            if number != splat(theirs):  # Each use may have a constant of its own.
                return []
        else:
            bound[ours] = theirs
            if ours in leaves:
                continue
            below = _operands(ours, theirs, bound, functions)
            if below is None:
                return []
            left += below
    return [bound[leaf] for leaf in leaves] if all(leaf in bound for leaf in leaves) else []


def _operands(
    ours: Any, theirs: Any, bound: dict[Any, Any], functions: tuple[Functions, Functions]
) -> _Pairs | None:
    """Pairs that have to be computed alike for two values to be; None if their operators differ.

    Arguments of bodies become ``bound`` to each other.
    """
    pair = (maker(ours), maker(theirs))
    kinds = [_kind(value) for value in (ours, theirs)]
    if not kinds[0] or kinds[0] != kinds[1]:
        return None
    if len(kinds[0]) == 1:
        return []
    count = 1 if kinds[0][0] in _SPREAD else None
    operands = [list(owner.operands)[:count] for owner in pair]
    sizes = len(operands[1]) - len(operands[0]) if kinds[0][0] == "func.call" else 0
    operands[1] = operands[1][sizes:]  # Symbolic sizes go before what a function is given.
    bodies = [_bodies(owner, names) for owner, names in zip(pair, functions, strict=True)]
    if len(operands[0]) != len(operands[1]) or len(bodies[0]) != len(bodies[1]):
        return None
    pairs = list(zip(*operands, strict=True))
    for blocks in zip(*bodies, strict=True):
        arguments = [list(block.arguments) for block in blocks]
        arguments[1] = arguments[1][sizes:]
        ends = [list(block.operations)[-1].operation.operands for block in blocks]
        if len(arguments[0]) != len(arguments[1]) or len(ends[0]) != len(ends[1]):
            return None
        bound.update(zip(*arguments, strict=True))
        pairs += zip(*ends, strict=True)
    return pairs


def _kind(value: Any) -> tuple[Any, ...]:
    """What has to be equal of the operators of values that are alike; nothing if none is."""
    owner = maker(value)
    if owner is None:
        return ()
    if owner.name == "stablehlo.constant":
        kind = ir.RankedTensorType(value.type)
        is_small = kind.has_static_shape and math.prod(kind.shape) <= LONGEST
        return (str(owner.attributes["value"]),) if is_small else ()
    told = [name for name in owner.attributes if name not in _SAYING_NOTHING]
    attributes = {name: str(owner.attributes[name]) for name in told}
    name = _OF_SIZES.get(owner.name, owner.name)
    return name, ir.OpResult(value).result_number, element_of(value.type), attributes


def _bodies(owner: Any, functions: Functions) -> list[Any]:
    """The blocks of an operator, or the one of the function that it calls."""
    if owner.name == "func.call":
        return [functions[owner.attributes["callee"].value].regions[0].blocks[0]]
    return [region.blocks[0] for region in owner.regions]
