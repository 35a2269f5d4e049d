"""How operators of ONNX bound their integer results: one row for each operator.

``INDEX_BOUNDS`` has operators whose results count or number elements, for any inputs. ``FORMULAS``
has operators whose bounds follow from the bounds of the inputs.
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
    if tensor.size == 0:
        return 0, 0
    if not tensor.dtype.is_integer() and tensor.dtype != T.BOOL:
        return None
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


def within(bounds: Operand, limits: Bounds) -> Bounds:
    """Return ``bounds`` if within ``limits``, else ``limits``: the result may overflow."""
    if bounds is None:
        return limits
    return bounds if limits[0] <= bounds[0] and bounds[1] <= limits[1] else limits


def hull(*parts: Operand) -> Operand:
    """Return bounds that contain all ``parts``; None if a part is unknown or there is none."""
    known_parts = [part for part in parts if part is not None]
    if len(known_parts) < len(parts) or not known_parts:
        return None
    return min(low for low, _ in known_parts), max(high for _, high in known_parts)


# Operators whose results count or number elements, whatever their inputs hold.


def _shape(node: ir.Node, output: int) -> Operand:
    """Return the bounds of the dims that a Shape returns."""
    source = node.inputs[0]
    dims = [] if source is None or source.shape is None else [*source.shape.dims]
    start, end = (node.attributes.get_int(name, None) for name in ("start", "end"))
    sizes = [(dim, dim) if isinstance(dim, int) else SIZE for dim in dims[start:end]]
    return hull(*sizes) or SIZE


def _index(node: ir.Node, output: int) -> Operand:
    """Return the bounds of indices along an axis of unknown size."""
    return 0, LONGEST - 1


def _index_after_first(node: ir.Node, output: int) -> Operand:
    """Return the bounds of an output of TopK or Unique: indices or counts.

    None for output 0, which holds elements of the input.
    """
    return (0, LONGEST) if output else None


INDEX_BOUNDS: Mapping[str, Callable[[ir.Node, int], Operand]] = {
    "ArgMax": _index,
    "ArgMin": _index,
    "NonZero": _index,
    "Shape": _shape,
    "TopK": _index_after_first,
    "Unique": _index_after_first,
}

# Operators whose results are computed from the bounds of inputs.

Operands: TypeAlias = Sequence[Operand]


def _first_operand(node: ir.Node, operands: Operands) -> Operand:
    """Return the bounds of the first input, whose elements the operator moves or repeats."""
    return operands[0]


def _any_operand(node: ir.Node, operands: Operands) -> Operand:
    """Return bounds that contain those of every operand."""
    return hull(*operands)


def _any_but_condition(node: ir.Node, operands: Operands) -> Operand:
    """Return bounds that contain those of both values of a Where."""
    return hull(*operands[1:])


def _with_zero(node: ir.Node, operands: Operands) -> Operand:
    """Return the bounds of the first operand, some of whose elements become 0."""
    return hull(operands[0], (0, 0))


def _monotone(combine: Callable[[int, int], int]) -> Formula:
    """Return the formula of a binary function that is monotone in each operand.

    Its extremes lie at the ends of the operands' bounds.
    """

    def formula(node: ir.Node, operands: Operands) -> Operand:
        """Return the least and the greatest result at the four corners."""
        left, right = operands[:2]
        if left is None or right is None:
            return None
        corners = [combine(from_left, from_right) for from_left in left for from_right in right]
        return min(corners), max(corners)

    return formula


def _over_all(combine: Callable[[Iterable[int]], int]) -> Formula:
    """Return the formula of Max, Min or Sum of any number of inputs."""

    def formula(node: ir.Node, operands: Operands) -> Operand:
        """Return ``combine`` of all lower bounds, and of all upper bounds."""
        known_operands = [part for part in operands if part is not None]
        if len(known_operands) < len(operands):
            return None
        return combine(low for low, _ in known_operands), combine(
            high for _, high in known_operands
        )

    return formula


def _clip(node: ir.Node, operands: Operands) -> Operand:
    """Return the bounds of Clip; None before opset 11, where the limits are attributes."""
    if node.attributes:  # before opset 11 they are the limits
        return None
    bounds, *limits = operands
    for limit, combine in zip(limits, (max, min), strict=False):
        if limit is not None and bounds is not None:
            bounds = combine(bounds[0], limit[0]), combine(bounds[1], limit[1])
    return bounds


def _quotient(node: ir.Node, operands: Operands) -> Operand:
    """Return the bounds of Div by a positive divisor; Div truncates towards 0."""
    left, right = operands[:2]
    if left is None or right is None or right[0] <= 0:
        return None
    corners = [
        dividend // divisor if dividend >= 0 else -(-dividend // divisor)
        for dividend in left
        for divisor in right
    ]
    return min(corners), max(corners)


def _remainder(node: ir.Node, operands: Operands) -> Operand:
    """Return the bounds of Mod by a positive divisor."""
    divisor = operands[1]
    if divisor is None or divisor[0] <= 0:
        return None
    highest = divisor[1] - 1
    lowest = -highest if node.attributes.get_int("fmod", 0) else 0
    return lowest, highest


def _bitwise(node: ir.Node, operands: Operands) -> Operand:
    """Return the bounds of BitwiseAnd, -Or and -Xor: numbers without a sign give no higher bit."""
    bounds = hull(*operands)
    return None if bounds is None or bounds[0] < 0 else (0, (1 << bounds[1].bit_length()) - 1)


def _magnitude(node: ir.Node, operands: Operands) -> Operand:
    """Return the bounds of Abs: (-3, 2) gives (0, 3)."""
    if operands[0] is None:
        return None
    low, high = operands[0]
    return max(low, -high, 0), max(abs(low), abs(high))


def _negation(node: ir.Node, operands: Operands) -> Operand:
    """Return the bounds of Neg: (-3, 2) gives (-2, 3)."""
    return None if operands[0] is None else (-operands[0][1], -operands[0][0])


def _cast(node: ir.Node, operands: Operands) -> Operand:
    """Return the bounds of the input; the caller checks that the new type holds them."""
    return operands[0]


def _range(node: ir.Node, operands: Operands) -> Operand:
    """Return the bounds of Range: elements lie between start and limit."""
    return hull(*operands[:2])


def _running_sum(node: ir.Node, operands: Operands) -> Operand:
    """Return the bounds of CumSum over an axis of up to ``LONGEST`` elements."""
    if operands[0] is None:
        return None
    low, high = operands[0]
    return min(low, 0) * LONGEST, max(high, 0) * LONGEST


def _constant_value(node: ir.Node, operands: Operands) -> Operand:
    """Return the bounds of ConstantOfShape: its value."""
    value = node.attributes.get("value")
    if value is None or value.is_ref():
        return None
    return of_constant(value.as_tensor())


def _padded_bounds(node: ir.Node, operands: Operands) -> Operand:
    """Return the bounds of Pad: those of the data and of the pad value."""
    if "value" in node.attributes:  # before opset 11
        return None
    number = operands[2] if len(operands) > 2 and node.inputs[2] is not None else (0, 0)
    return hull(operands[0], number)


def _extremum(node: ir.Node, operands: Operands) -> Operand:
    """Return the bounds of ReduceMax or ReduceMin, which give a type limit for empty tensors."""
    source = node.inputs[0]
    shape = None if source is None else source.shape
    empty = shape is None or not all(isinstance(dim, int) and dim > 0 for dim in shape.dims)
    return None if empty else operands[0]


def _data_or_updates(node: ir.Node, operands: Operands) -> Operand:
    """Return the bounds of a scatter without reduction: those of data and updates."""
    if node.attributes.get_string("reduction", "none") != "none":
        return None
    return hull(operands[0], operands[2])


FORMULAS: Mapping[str, Formula] = {
    **dict.fromkeys(
        (
            *("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand"),
            *("Tile", "Slice", "Gather", "GatherElements", "GatherND", "Split", "Compress"),
            *("DepthToSpace", "SpaceToDepth", "ReverseSequence"),
        ),
        _first_operand,
    ),
    "Abs": _magnitude,
    "Add": _monotone(lambda x, y: x + y),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor"), _bitwise),
    "Cast": _cast,
    "CastLike": _first_operand,
    "Clip": _clip,
    "Concat": _any_operand,
    "ConstantOfShape": _constant_value,
    "CumSum": _running_sum,
    "Div": _quotient,
    "Max": _over_all(max),
    "Min": _over_all(min),
    "Mod": _remainder,
    "Mul": _monotone(lambda x, y: x * y),
    "Neg": _negation,
    "OneHot": lambda node, operands: operands[2],
    "Pad": _padded_bounds,
    "Range": _range,
    "ReduceMax": _extremum,
    "ReduceMin": _extremum,
    "ScatterElements": _data_or_updates,
    "ScatterND": _data_or_updates,
    "Sign": lambda node, operands: (-1, 1),
    "Sub": _monotone(lambda x, y: x - y),
    "Sum": _over_all(sum),
    "Trilu": _with_zero,
    "Where": _any_but_condition,
}
"""Operator to a function of its inputs' bounds; other operators have the bounds of their type."""
