"""How operators of ONNX bound their integer results: one row for each operator.

``PLACES`` has operators whose results count or number elements, whatever the inputs hold;
``FORMULAS`` has operators that compute their bounds from those of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import onnx_ir as ir

Bounds: TypeAlias = tuple[int, int]
"""The least and the greatest element."""

LONGEST = 2**28
"""More elements than any axis has (a gigabyte of floats); sums of a few sizes fit into 32 bits."""

LARGEST_CONSTANT = 1 << 20
"""Largest constant, in elements, that is read; longer ones have the bounds of their type."""

T = ir.DataType
SIZE: Bounds = (0, LONGEST)
Operand: TypeAlias = Bounds | None
Formula: TypeAlias = Callable[..., Operand]


def of_constant(tensor: ir.TensorProtocol) -> Operand:
    """Return the bounds of a constant of integers or booleans, else None; (0, 0) if it is empty."""
    if not (tensor.dtype.is_integer() or tensor.dtype == T.BOOL) or tensor.size == 0:
        return (0, 0) if tensor.size == 0 else None
    if tensor.size > LARGEST_CONSTANT:
        return type_limits(tensor.dtype)
    array = tensor.numpy()
    return int(array.min()), int(array.max())


def type_limits(dtype: ir.DataType) -> Operand:
    """Return the least and greatest number of an integer or boolean type, else None."""
    if dtype == T.BOOL:
        return 0, 1
    if not dtype.is_integer():
        return None
    if dtype.is_signed():
        return -(2 ** (dtype.bitwidth - 1)), 2 ** (dtype.bitwidth - 1) - 1
    return 0, 2**dtype.bitwidth - 1


def within(found: Operand, limits: Bounds) -> Bounds:
    """Return ``found`` if within ``limits``, else ``limits``: the result may overflow."""
    if found is None:
        return limits
    return found if limits[0] <= found[0] and found[1] <= limits[1] else limits


def hull(*parts: Operand) -> Operand:
    """Return bounds that contain all ``parts``; None if a part is unknown or there is none."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not known:
        return None
    return min(low for low, _ in known), max(high for _, high in known)


# Operators whose results count or number elements, whatever their inputs hold.


def _shape(node: ir.Node, output: int) -> Operand:
    source = node.inputs[0]
    dims = [] if source is None or source.shape is None else [*source.shape.dims]
    start, end = (node.attributes.get_int(name, None) for name in ("start", "end"))
    sizes = [(dim, dim) if isinstance(dim, int) else SIZE for dim in dims[start:end]]
    return hull(*sizes) or SIZE


def _place(node: ir.Node, output: int) -> Operand:
    """Return the bounds of indices along one axis."""
    return 0, LONGEST - 1


def _second_is_place(node: ir.Node, output: int) -> Operand:
    """Return the bounds of TopK and Unique: indices, except in output 0 (bounds of its type)."""
    return (0, LONGEST) if output else None


PLACES: Mapping[str, Callable[[ir.Node, int], Operand]] = {
    "ArgMax": _place,
    "ArgMin": _place,
    "NonZero": _place,
    "Shape": _shape,
    "TopK": _second_is_place,
    "Unique": _second_is_place,
}

# Operators whose results are computed from the bounds of inputs.

Given: TypeAlias = Sequence[Operand]


def _first(node: ir.Node, given: Given) -> Operand:
    """Return the bounds of the first input, whose elements the operator moves or repeats."""
    return given[0]


def _all(node: ir.Node, given: Given) -> Operand:
    return hull(*given)


def _chosen(node: ir.Node, given: Given) -> Operand:
    return hull(*given[1:])


def _with_zero(node: ir.Node, given: Given) -> Operand:
    return hull(given[0], (0, 0))


def _corners(combine: Callable[[int, int], int]) -> Formula:
    """Return the formula of a function of two numbers that is monotone in each of them."""

    def formula(node: ir.Node, given: Given) -> Operand:
        left, right = given[:2]
        if left is None or right is None:
            return None
        corners = [combine(x, y) for x in left for y in right]
        return min(corners), max(corners)

    return formula


def _over_all(combine: Callable[[Iterable[int]], int]) -> Formula:
    """Return the formula of Max, Min or Sum of any number of inputs."""

    def formula(node: ir.Node, given: Given) -> Operand:
        known = [part for part in given if part is not None]
        if len(known) < len(given):
            return None
        return combine(low for low, _ in known), combine(high for _, high in known)

    return formula


def _clip(node: ir.Node, given: Given) -> Operand:
    if node.attributes:  # before opset 11 they hold the ends
        return None
    found, *ends = given
    for end, combine in zip(ends, (max, min), strict=False):
        if end is not None and found is not None:
            found = combine(found[0], end[0]), combine(found[1], end[1])
    return found


def _divided(node: ir.Node, given: Given) -> Operand:
    """Return the bounds of Div by a positive divisor; Div truncates towards 0."""
    left, right = given[:2]
    if left is None or right is None or right[0] <= 0:
        return None
    corners = [abs(x) // y * (1 if x >= 0 else -1) for x in left for y in right]
    return min(corners), max(corners)


def _remainder(node: ir.Node, given: Given) -> Operand:
    divisor = given[1]
    if divisor is None or divisor[0] <= 0:
        return None
    return (1 - divisor[1] if node.attributes.get_int("fmod", 0) else 0), divisor[1] - 1


def _magnitude(node: ir.Node, given: Given) -> Operand:
    if given[0] is None:
        return None
    low, high = given[0]
    return max(low, -high, 0), max(abs(low), abs(high))


def _negated(node: ir.Node, given: Given) -> Operand:
    return None if given[0] is None else (-given[0][1], -given[0][0])


def _cast(node: ir.Node, given: Given) -> Operand:
    """Return the bounds of the input; the caller checks that the new type holds them."""
    return given[0]


def _range(node: ir.Node, given: Given) -> Operand:
    """Return the bounds of Range: elements lie between start and limit."""
    return hull(*given[:2])


def _running_sum(node: ir.Node, given: Given) -> Operand:
    if given[0] is None:
        return None
    low, high = given[0]
    return min(low, 0) * LONGEST, max(high, 0) * LONGEST


def _filled(node: ir.Node, given: Given) -> Operand:
    value = node.attributes.get("value")
    if value is None or value.is_ref():
        return None
    return of_constant(value.as_tensor())


def _padded(node: ir.Node, given: Given) -> Operand:
    if "value" in node.attributes:  # before opset 11
        return None
    number = given[2] if len(given) > 2 and node.inputs[2] is not None else (0, 0)
    return hull(given[0], number)


def _selected(node: ir.Node, given: Given) -> Operand:
    """Return the bounds of ReduceMax or ReduceMin, which give a type limit for empty tensors."""
    source = node.inputs[0]
    shape = None if source is None else source.shape
    empty = shape is None or not all(isinstance(dim, int) and dim > 0 for dim in shape.dims)
    return None if empty else given[0]


def _scattered(node: ir.Node, given: Given) -> Operand:
    if node.attributes.get_string("reduction", "none") != "none":
        return None
    return hull(given[0], given[2])


FORMULAS: Mapping[str, Formula] = {
    **dict.fromkeys(
        (
            *("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand"),
            *("Tile", "Slice", "Gather", "GatherElements", "GatherND", "Split", "Compress"),
            *("DepthToSpace", "SpaceToDepth", "ReverseSequence"),
        ),
        _first,
    ),
    "Abs": _magnitude,
    "Add": _corners(lambda x, y: x + y),
    "Cast": _cast,
    "CastLike": _first,
    "Clip": _clip,
    "Concat": _all,
    "ConstantOfShape": _filled,
    "CumSum": _running_sum,
    "Div": _divided,
    "Max": _over_all(max),
    "Min": _over_all(min),
    "Mod": _remainder,
    "Mul": _corners(lambda x, y: x * y),
    "Neg": _negated,
    "OneHot": lambda node, given: given[2],
    "Pad": _padded,
    "Range": _range,
    "ReduceMax": _selected,
    "ReduceMin": _selected,
    "ScatterElements": _scattered,
    "ScatterND": _scattered,
    "Sign": lambda node, given: (-1, 1),
    "Sub": _corners(lambda x, y: x - y),
    "Sum": _over_all(sum),
    "Trilu": _with_zero,
    "Where": _chosen,
}
"""Operator to a function of its inputs' bounds; other operators have the bounds of their type."""
